/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Common parts of requests that query samples. */

#include "daemon/control/query_request.h"

#include "daemon/conf/conf.h"
#include "daemon/control/peer.h"
#include "daemon/kernel/kernel.h"
#include "proto/base/clock.h"

/* The time asked for on the clock that nobody sets, in this boot. */
static void find_since_boot(struct query_filter *f)
{
	int64_t ago_ns = (int64_t)clock_ns(CLOCK_REALTIME) - f->since_ns;
	int64_t since_ns = (int64_t)clock_ns(CLOCK_MONOTONIC) - ago_ns;
	if (f->since_ns <= 0 || ago_ns < 0 || since_ns <= 0)
		return; /* open, to come, or before this boot */
	kernel_boot_id(&kernel_real, f->boot_id);
	f->since_boot_ns = *f->boot_id ? since_ns : 0;
}

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
	f.label = (const char *const *)m->label, f.n_labels = m->n_label;
	f.cpu = m->cpu, f.n_cpus = m->n_cpu;
	f.since_ns = m->since_ns;
	f.until_ns = m->until_ns;
	find_since_boot(&f);
	f.event = m->event && *m->event ? m->event : NULL;
	return f;
}

int query_answer_end(
	struct request *q, struct row_stream *stream, int r, const struct query_error *error)
{
	return query_answer_end_with(q, stream, r, error, 0);
}

int query_answer_end_with(struct request *q, struct row_stream *stream, int r,
	const struct query_error *error, int status)
{
	int ended = row_stream_end(stream);
	if (r == 0)
		r = ended;
	if (r == 0)
		r = request_done(q, status);
	else if (r == QUERY_FAILED && *error->text)
		r = request_fail(q, error->kind, error->remedy, "%s", error->text);
	else if (r > 0)
		r = request_fail(q, MPERF__FAILURE_KIND__FAILURE_LIMIT,
			"Ask for less: --limit, or a filter.",
			"the answer is larger than the buffer for a client");
	return r < 0 ? r : 0;
}

bool query_asks_store(const struct request *q, const char *path)
{
	return !q->peer->options->private && !*path;
}
