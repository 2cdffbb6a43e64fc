/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * mperfctl status: what the service costs, stores and loses.
 */
#include "client/commands/status_short.h"
#include "client/commands/tables.h"
#include "client/options/command.h"

int client_status(const struct options *o)
{
	static const struct tables_heading headings[] = {
		{.table = "account", .says = "Samples"},
		{.table = "rate", .says = "Rate", .upright = true},
		{.table = "process", .says = "Processes of the daemon"},
		{.table = "budget", .says = "Overhead", .upright = true},
		{.table = "overhead", .says = "Overhead by cause"},
		{.table = "loop", .says = "Event loop of the daemon", .upright = true},
		{.table = "loss", .says = "Lost"},
		{.table = "naming", .says = "Naming", .upright = true},
		{.table = "namer", .says = "Workers of the namer"},
		{.table = "naming_refused", .says = "Users whose naming is paused"},
		{.table = "feed", .says = "Instrumented programs", .upright = true},
		{.table = "feed_fault", .says = "Errors in their messages"},
		{.table = "feed_event", .says = "Events counted in their regions"},
		{.table = "limit", .says = "Shares of users"},
		{.table = "store", .says = "Store", .upright = true},
		{.table = "roofs", .says = "Roofs", .upright = true},
		{.table = NULL},
	};
	Mperf__StatusRequest status = MPERF__STATUS_REQUEST__INIT;
	Mperf__Request request = MPERF__REQUEST__INIT;
	request.body_case = MPERF__REQUEST__BODY_STATUS;
	request.status = &status;
	return tables_ask_changed(o, &request, headings,
		&(struct tables_change){.brief = o->target.all ? NULL : status_write_short});
}
