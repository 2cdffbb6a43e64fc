/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * hotspots and flamegraph: a query's rows become the answer's rows.
 */
#include <errno.h>

#include "daemon/control/peer.h"
#include "daemon/control/request.h"
#include "daemon/query/query.h"

/* Borrows everything from m, which may be NULL (no filter). */
static struct query_filter filter_of(const Mperf__Filter *m)
{
	if (!m)
		return (struct query_filter){0};
	return (struct query_filter){
		.pid = m->pid, .n_pids = m->n_pid,
		.comm = (const char *const *)m->comm, .n_comms = m->n_comm,
		.cgroup = (const char *const *)m->cgroup, .n_cgroups = m->n_cgroup,
		.cpu = m->cpu, .n_cpus = m->n_cpu,
		.since_ns = m->since_ns, .until_ns = m->until_ns,
		.event = m->event && *m->event ? m->event : NULL,
	};
}

/* End an answer: Done, or the failure that stopped the query with outcome r. */
static int end_answer(struct request *q, struct row_stream *stream, int r,
	const struct query_error *error)
{
	int ended = row_stream_end(stream);
	if (r == 0)
		r = ended;
	if (r == 0)
		r = request_done(q, 0);
	else if (r == QUERY_FAILED && *error->text)
		r = request_fail(q, error->kind, error->remedy, "%s", error->text);
	else if (r > 0)
		r = request_fail(q, MPERF__FAILURE_KIND__FAILURE_LIMIT,
			"Ask for less: --limit, or a filter.",
			"the answer exceeds what mperfd keeps for a client");
	return r < 0 ? r : 0;
}

int control_hotspots(struct request *q, const Mperf__Request *request)
{
	const Mperf__HotspotsRequest *m = request->hotspots;
	int by = query_by_parse(*m->by ? m->by : "function");
	if (by < 0)
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_USAGE,
			"Use function, module, process, thread, cgroup, line or hart.",
			"there is no way to group by '%s'", m->by);
	sqlite3 *db;
	int r = request_open_segment(q, m->path, &db);
	if (r != 0)
		return r < 0 ? r : 0;

	struct query_error error = {"", "", 0};
	struct query_filter filter = filter_of(m->filter);
	struct row_stream stream;
	struct answer answer = row_stream_answer(&stream, q);
	r = query_hotspots(&db, 1, (enum query_by)by, m->limit, m->inlined, &filter, &answer, &error);
	sqlite3_close(db);
	return end_answer(q, &stream, r, &error);
}

int control_flamegraph(struct request *q, const Mperf__Request *request)
{
	const Mperf__FlamegraphRequest *m = request->flamegraph;
	sqlite3 *db;
	int r = request_open_segment(q, m->path, &db);
	if (r != 0)
		return r < 0 ? r : 0;

	struct query_error error = {"", "", 0};
	struct query_filter filter = filter_of(m->filter);
	struct row_stream stream;
	struct answer answer = row_stream_answer(&stream, q);
	r = query_flamegraph(&db, 1, &filter, &answer, &error);
	sqlite3_close(db);
	return end_answer(q, &stream, r, &error);
}
