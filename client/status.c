/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * mperfctl status: what the service costs, stores and loses.
 */
#include "client/command.h"
#include "client/tables.h"

int client_status(const struct options *o)
{
	static const struct tables_heading headings[] = {
		{.table = "account", .says = "Samples"},
		{.table = "rate", .says = "Rate", .upright = true},
		{.table = "process", .says = "Processes of the daemon"},
		{.table = "loop", .says = "Turns of the daemon's loop", .upright = true},
		{.table = "loss", .says = "Lost"},
		{.table = "naming", .says = "Naming", .upright = true},
		{.table = "namer", .says = "Workers of the namer"},
		{.table = "naming_refused", .says = "Users for whom naming rests"},
		{.table = "feed", .says = "Programs that count themselves", .upright = true},
		{.table = "feed_fault", .says = "What such programs said wrong"},
		{.table = "feed_event", .says = "What is counted in regions of such programs"},
		{.table = "limit", .says = "What users share"},
		{.table = "store", .says = "Store", .upright = true},
		{.table = NULL},
	};
	Mperf__StatusRequest status = MPERF__STATUS_REQUEST__INIT;
	Mperf__Request request = MPERF__REQUEST__INIT;
	request.body_case = MPERF__REQUEST__BODY_STATUS;
	request.status = &status;
	return tables_ask(o, &request, headings);
}
