/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * mperfctl diff: what changed between two sides of recordings, one way or the other.
 */
#include "client/commands/compare.h"
#include "client/options/command.h"
#include "client/show/say.h"

int client_diff(const struct options *o)
{
	struct replies replies = {0};
	bool answered;
	int exit_status = compare_ask(o, false, &replies, &answered);

	if (answered && compare_show(o, false, &replies) != 0)
		exit_status = EXIT_FAILED;
	replies_clear(&replies);
	return exit_status;
}
