/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * hotspots and flamegraph: a query's rows become the answer's rows. A file is read here and now,
 * with the caller's rights, since only a private daemon reads one; the service's own store is read
 * by a process of its own (store_query.c).
 */
#include <errno.h>

#include "daemon/conf.h"
#include "daemon/control/peer.h"
#include "daemon/control/request.h"
#include "daemon/control/store_query.h"
#include "daemon/query/query.h"

struct query_filter query_filter_of(const struct request *q, const Mperf__Filter *m)
{
	const struct peer *p = q->peer;
	const struct conf *conf = p->options->conf;
	struct query_filter f = {
		.only_uid = !p->sees_all,
		.uid = p->uid,
		.gid = p->gid,
		.hide_kernel = !p->sees_all,
		.group = conf && *conf->group ? conf->group : NULL,
	};
	if (!m)
		return f;
	f.pid = m->pid, f.n_pids = m->n_pid;
	f.comm = (const char *const *)m->comm, f.n_comms = m->n_comm;
	f.cgroup = (const char *const *)m->cgroup, f.n_cgroups = m->n_cgroup;
	f.cpu = m->cpu, f.n_cpus = m->n_cpu;
	f.since_ns = m->since_ns;
	f.until_ns = m->until_ns;
	f.event = m->event && *m->event ? m->event : NULL;
	return f;
}

int query_answer_end(
	struct request *q, struct row_stream *stream, int r, const struct query_error *error)
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

/* Does the request mean the store of the service that it came to? */
static bool asks_store(const struct request *q, const char *path)
{
	return !q->peer->options->private && !*path;
}

int control_hotspots(struct request *q, const Mperf__Request *request)
{
	const Mperf__HotspotsRequest *m = request->hotspots;
	int by = query_by_parse(*m->by ? m->by : "function");
	if (by < 0)
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_USAGE,
			"Use function, module, process, thread, cgroup, line or hart.",
			"there is no way to group by '%s'", m->by);
	if (asks_store(q, m->path))
		return store_query_start(q, request);
	sqlite3 *db;
	int r = request_open_segment(q, m->path, &db);
	if (r != 0)
		return r < 0 ? r : 0;

	struct query_error error = {"", "", 0};
	struct query_filter filter = query_filter_of(q, m->filter);
	struct row_stream stream;
	struct answer answer = row_stream_answer(&stream, q);
	r = query_hotspots(
		&db, 1, (enum query_by)by, m->limit, m->inlined, &filter, &answer, &error);
	sqlite3_close(db);
	return query_answer_end(q, &stream, r, &error);
}

int control_flamegraph(struct request *q, const Mperf__Request *request)
{
	const Mperf__FlamegraphRequest *m = request->flamegraph;
	if (asks_store(q, m->path))
		return store_query_start(q, request);
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
