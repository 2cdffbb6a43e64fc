/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * No roofs are kept yet, so plots have dots alone.
 */
#include "client/commands/roofline_roofs.h"

#include <stdio.h>
#include <stdlib.h>

#include "proto/memory.h"

int roofline_roofs_find(struct roofline_roofs *ret_roofs)
{
	*ret_roofs = (struct roofline_roofs){.n = 0};
	snprintf(ret_roofs->none, sizeof(ret_roofs->none),
		"The roofs of this machine are not known. `mperfctl roofs measure` measures them "
		"in "
		"a minute.");
	return 0;
}

void roofline_roofs_clear(struct roofline_roofs *r)
{
	free(TAKE_PTR(r->roof));
	*r = (struct roofline_roofs){.n = 0};
}
