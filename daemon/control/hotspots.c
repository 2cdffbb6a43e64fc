/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * hotspots, flamegraph, export and report: the questions about samples. Each part of an export is sent as soon as it is
 * complete. A private daemon has one client, and waits whenever that client has not read what was sent, so a
 * recording of any size takes little memory on both sides.
 */
#include "daemon/control/peer.h"
#include "daemon/control/question.h"
#include "daemon/query/samples/export.h"

/* Wall time is of all samples of CPU time. 0; positive after a refusal; -errno. */
static int check_wall(struct request *q, bool wall, const Mperf__Filter *filter, size_t n_metrics)
{
	if (wall && filter && filter->event && *filter->event)
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_USAGE,
			       "Leave out --wall, or --event.",
			       "wall time is of CPU time, not of the event %s", filter->event)
			       ?: 1;
	if (wall && n_metrics > 0)
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_USAGE,
			       "Leave out --wall, or -M.",
			       "metrics are of counts, which have no wall time")
			       ?: 1;
	return 0;
}

/* --- hotspots --------------------------------------------------------------------------------- */

static int run_hotspots(struct question *a, const struct answer *to, struct query_error *ret_error)
{
	a->filter.wall = a->request->hotspots->wall;
	return query_hotspots(a->source, a->n_sources, &a->query, to, ret_error);
}

static int make_hotspots(struct request *q, struct question *a)
{
	const Mperf__HotspotsRequest *m = a->request->hotspots;
	const int by = query_by_parse(*m->by ? m->by : "function");
	if (by < 0)
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_USAGE,
			       "Use function, module, process, comm, thread, cgroup, job, line, "
			       "hart, "
			       "address or parallelism.",
			       "there is no way to group by '%s'", m->by)
			       ?: 1;
	if (by == QUERY_BY_PARALLELISM && !m->wall)
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_USAGE,
			       "Ask for wall time, too.",
			       "only wall time is grouped by parallelism")
			       ?: 1;
	int r = check_wall(q, m->wall, m->filter, m->n_metric);
	if (r != 0)
		return r;
	question_about_files(q, a, m->path, m->n_path, m->filter);
	a->filter.wall = m->wall;
	a->query.by = (enum query_by)by;
	a->query.limit = m->limit;
	a->query.inlined = m->inlined;
	a->coarsest = query_coarsest(&a->query);
	a->run = run_hotspots;
	return question_add_metrics(q, a, m->metric, m->n_metric);
}

int control_hotspots(struct request *q, const Mperf__Request *request)
{
	return question_ask(q, request, make_hotspots);
}

/* --- flamegraph ------------------------------------------------------------------------------- */

static int run_flamegraph(
	struct question *a, const struct answer *to, struct query_error *ret_error)
{
	a->filter.wall = a->request->flamegraph->wall;
	a->filter.by_wait = a->request->flamegraph->by_wait;
	return query_flamegraph(a->source, a->n_sources, &a->filter, to, ret_error);
}

static int make_flamegraph(struct request *q, struct question *a)
{
	const Mperf__FlamegraphRequest *m = a->request->flamegraph;
	question_about_files(q, a, m->path, m->n_path, m->filter);
	a->filter.wall = m->wall;
	a->query.by = QUERY_BY_FUNCTION;
	a->coarsest = query_coarsest(&a->query);
	a->run = run_flamegraph;
	return check_wall(q, m->wall, m->filter, 0);
}

int control_flamegraph(struct request *q, const Mperf__Request *request)
{
	return question_ask(q, request, make_flamegraph);
}

/* --- export ----------------------------------------------------------------------------------- */

static int send_part(void *userdata, const Mperf__Profile *part)
{
	struct row_stream *stream = userdata;
	struct request *q = stream->request;
	int r = request_profile(q, part);
	return r == 0 && q->peer->options->private ? peer_flush(q->peer) : r;
}

static int run_export(struct question *a, const struct answer *to, struct query_error *ret_error)
{
	const struct export_answer parts = {
		.part = send_part, .provenance = to->provenance, .userdata = to->userdata};
	return query_export(a->source, a->n_sources, &a->filter, &parts, ret_error);
}

static int make_export(struct request *q, struct question *a)
{
	const bool is_report = a->request->body_case == MPERF__REQUEST__BODY_REPORT;
	const Mperf__ExportRequest *m = is_report ? a->request->report : a->request->export;
	question_about_files(q, a, m->path, m->n_path, m->filter);
	a->query.by = QUERY_BY_THREAD;
	a->coarsest = query_coarsest(&a->query);
	a->run = run_export;
	return 0;
}

int control_export(struct request *q, const Mperf__Request *request)
{
	return question_ask(q, request, make_export);
}

int control_report(struct request *q, const Mperf__Request *request)
{
	return question_ask(q, request, make_export);
}
