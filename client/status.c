/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * status: not built yet.
 */
#include "client/command.h"
#include "client/say.h"

int client_status(const struct options *o)
{
	(void)o;
	return EXIT_FAILED;
}
