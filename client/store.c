/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * mperfctl store: what the service keeps, for how long, and what goes next.
 */
#include "client/command.h"
#include "client/tables.h"

int client_store(const struct options *o)
{
	/* the name tells the tier, and a file lasts until the next begins */
	static const char *const spare[] = {"tier", "until", NULL};
	static const struct tables_heading headings[] = {
		{.table = "file", .says = "Files", .spare = spare},
		{.table = "tier", .says = "Tiers"},
		{.table = "next", .says = "Next", .upright = true},
		{.table = "share", .says = "Users' shares of what windows take"},
		{.table = NULL},
	};
	Mperf__StoreRequest store = MPERF__STORE_REQUEST__INIT;
	Mperf__Request request = MPERF__REQUEST__INIT;
	request.body_case = MPERF__REQUEST__BODY_STORE;
	request.store = &store;
	return tables_ask(o, &request, headings);
}
