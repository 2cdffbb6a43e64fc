/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * mperfctl store: the files of the service, how long it keeps them, and what it removes next.
 */
#include "client/commands/tables.h"
#include "client/options/command.h"

int client_store(const struct options *o)
{
	/* the name tells the tier, and a file ends where the next begins */
	static const char *const spare[] = {"tier", "until", NULL};
	static const char *const pin_spare[] = {"since", "until", "file", NULL};
	static const struct tables_heading headings[] = {
		{.table = "file", .says = "Files", .spare = spare},
		{.table = "pin", .says = "Pinned jobs", .spare = pin_spare},
		{.table = "tier", .says = "Tiers"},
		{.table = "next", .says = "Next", .upright = true},
		{.table = "share", .says = "Users' shares of the windows"},
		{.table = NULL},
	};
	Mperf__StoreRequest store = MPERF__STORE_REQUEST__INIT;
	Mperf__Request request = MPERF__REQUEST__INIT;
	request.body_case = MPERF__REQUEST__BODY_STORE;
	request.store = &store;
	return tables_ask(o, &request, headings);
}
