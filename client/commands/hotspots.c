/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * mperfctl hotspots: the table of where the time went.
 */
#include <string.h>

#include "client/commands/hotspots_tree.h"
#include "client/commands/query.h"
#include "client/options/command.h"
#include "client/show/say.h"

static void say_empty(const struct options *o, bool kept)
{
	(void)o;
	say_note(kept ? "no samples match; choose another time with --since and --until, or relax "
			"the filters"
		      : "no samples match; record longer, raise -F, or relax the filters");
}

int client_hotspots(const struct options *o)
{
	if (o->tree || o->callers || o->callees)
		return hotspots_tree(o);
	/* People read the share; the nanoseconds are in --json and --raw. */
	static const char *const hide[] = {"self_ns", NULL};
	static const char *const hide_shares[] = {"self_ns", "self", "total", NULL};
	const bool counts = o->per_process || o->per_cgroup;
	Mperf__HotspotsRequest hotspots = MPERF__HOTSPOTS_REQUEST__INIT;
	hotspots.by = (char *)(o->by ? o->by : "function");
	hotspots.limit = o->sort ? 0 : o->limit; /* sorted here, and then cut */
	hotspots.inlined = o->inlined;
	hotspots.wall = o->wall || (o->by && strcmp(o->by, "parallelism") == 0);
	hotspots.n_metric = o->sampling.n_metrics;
	hotspots.metric = (char **)o->sampling.metric;
	Mperf__Request request = MPERF__REQUEST__INIT;
	request.body_case = MPERF__REQUEST__BODY_HOTSPOTS;
	request.hotspots = &hotspots;
	struct sampling sampling = o->sampling;
	struct source_request from = source_request_of(o);
	if (counts) { /* of a process, which needs no callers */
		sampling.stack = MPERF__STACK_KIND__STACK_NONE;
		sampling.stack_given = true;
		from.sampling = &sampling;
	}
	return query_command(o, &from, &request, counts ? hide_shares : hide, say_empty);
}
