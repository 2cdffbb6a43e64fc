/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * hotspots and flamegraph: a query's rows become the answer's rows. A file is read here and now,
 * with the caller's rights, since only a private daemon reads one; the service's own store is read
 * by a process of its own (store_query.c).
 */
#include <errno.h>

#include "daemon/control/peer.h"
#include "daemon/control/query_request.h"
#include "daemon/control/store_query.h"

/* by is -1 if there is no such way to group. */
static struct query_question hotspots_question(
	const Mperf__HotspotsRequest *m, const struct query_filter *filter)
{
	return (struct query_question){
		.by = (enum query_by)query_by_parse(*m->by ? m->by : "function"),
		.limit = m->limit,
		.inlined = m->inlined,
		.filter = filter,
	};
}

static const Mperf__Filter *hotspots_filter(const Mperf__Request *m)
{
	return m->hotspots->filter;
}

static enum tier hotspots_coarsest(const Mperf__Request *m, const struct query_filter *filter)
{
	const struct query_question question = hotspots_question(m->hotspots, filter);
	return query_coarsest(&question);
}

static int hotspots_run(const struct store_question_run *run)
{
	const Mperf__HotspotsRequest *m = run->request->hotspots;
	struct query_question question = hotspots_question(m, run->filter);
	const struct query_metrics metrics = {run->cores, m->metric, m->n_metric};
	question.metrics = m->n_metric ? &metrics : NULL;
	return query_store_hotspots(run->source, run->n_sources, &question, run->to, run->error);
}

int control_hotspots(struct request *q, const Mperf__Request *request)
{
	static const struct store_question store = {
		hotspots_filter, hotspots_coarsest, hotspots_run};
	const Mperf__HotspotsRequest *m = request->hotspots;
	struct query_filter filter = query_filter_of(q, m->filter);
	struct query_question question = hotspots_question(m, &filter);
	const struct query_metrics metrics = {q->peer->options->cores, m->metric, m->n_metric};
	struct machine machine; /* needed only to load the platform database */
	question.metrics = m->n_metric ? &metrics : NULL;
	if ((int)question.by < 0)
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_USAGE,
			"Use function, module, process, thread, cgroup, job, line or hart.",
			"there is no way to group by '%s'", m->by);
	int r = m->n_metric ? request_read_machine(q, &machine) : 0;
	if (r != 0)
		return r < 0 ? r : 0;
	if (query_asks_store(q, m->path))
		return store_query_start(q, request, &store);
	sqlite3 *db;
	r = request_open_segment(q, m->path, &db);
	if (r != 0)
		return r < 0 ? r : 0;

	struct query_error error = {"", "", 0};
	struct row_stream stream;
	struct answer answer = row_stream_answer(&stream, q);
	r = query_hotspots_of(db, &question, &answer, &error);
	sqlite3_close(db);
	return query_answer_end(q, &stream, r, &error);
}

static const Mperf__Filter *flamegraph_filter(const Mperf__Request *m)
{
	return m->flamegraph->filter;
}

static enum tier flamegraph_coarsest(const Mperf__Request *m, const struct query_filter *filter)
{
	const struct query_question question = {.by = QUERY_BY_FUNCTION, .filter = filter};
	(void)m;
	return query_coarsest(&question);
}

static int flamegraph_run(const struct store_question_run *run)
{
	return query_store_flamegraph(
		run->source, run->n_sources, run->filter, run->to, run->error);
}

int control_flamegraph(struct request *q, const Mperf__Request *request)
{
	static const struct store_question store = {
		flamegraph_filter, flamegraph_coarsest, flamegraph_run};
	const Mperf__FlamegraphRequest *m = request->flamegraph;
	if (query_asks_store(q, m->path))
		return store_query_start(q, request, &store);
	sqlite3 *db;
	int r = request_open_segment(q, m->path, &db);
	if (r != 0)
		return r < 0 ? r : 0;

	struct query_error error = {"", "", 0};
	struct query_filter filter = query_filter_of(q, m->filter);
	struct row_stream stream;
	struct answer answer = row_stream_answer(&stream, q);
	r = query_flamegraph(&db, 1, &filter, &answer, &error);
	sqlite3_close(db);
	return query_answer_end(q, &stream, r, &error);
}
