/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * store: not built yet.
 */
#include "client/command.h"
#include "client/say.h"

int client_store(const struct options *o)
{
	(void)o;
	return EXIT_FAILED;
}
