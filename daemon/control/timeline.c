/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

#include "daemon/query/samples/timeline.h"

#include "daemon/control/question.h"

static int run(struct question *a, const struct answer *to, struct query_error *ret_error)
{
	const Mperf__TimelineRequest *m = a->request->timeline;
	const struct timeline_of of = {
		.every_ns = (int64_t)m->every_ms * 1000000, .n_stretches = m->stretches};
	return query_timeline(a->source, a->n_sources, &a->query, &of, to, ret_error);
}

static int make(struct request *q, struct question *a)
{
	const Mperf__TimelineRequest *m = a->request->timeline;
	const int by = query_by_parse(*m->by ? m->by : "process");
	if (by != QUERY_BY_HART && by != QUERY_BY_PROCESS && by != QUERY_BY_JOB)
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_USAGE,
			       "Use hart, process or job.", "there is no timeline by '%s'", m->by)
			       ?: 1;
	if (m->stretches > TIMELINE_STRETCHES_MAX)
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_USAGE, "Ask for fewer.",
			       "an answer has at most %u stretches", TIMELINE_STRETCHES_MAX)
			       ?: 1;
	question_about_files(q, a, m->path, m->n_path, m->filter);
	a->query.by = (enum query_by)by;
	a->query.limit = m->limit;
	a->coarsest = STORE_FINEST_FIRST;
	a->run = run;
	return 0;
}

int control_timeline(struct request *q, const Mperf__Request *request)
{
	return question_ask(q, request, make);
}
