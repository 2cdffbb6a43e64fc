/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Store queries: hotspots, flame graphs and comparisons of what the service keeps
 *
 * Only the daemon knows which files there are, so it chooses them; a child reads them (offload.h)
 * and answers. The child reports damaged files to the daemon, which sets them aside.
 */

#include "daemon/control/request.h"

/* The time span of a query that gives none. */
#define STORE_QUERY_SPAN_NS 3600000000000ll

/* A kind of query has one row, a struct store_question. Its run is called with this. */
struct store_question_run {
	struct query_source *source;
	size_t n_sources;
	const Mperf__Request *request;
	const struct query_filter *filter;
	const struct cores *cores; /* as the daemon knew them; may be NULL */
	const struct answer *to;   /* its userdata is a row_stream */
	struct query_error *error;
	const void *known; /* of the question's know; else NULL */
	int *status;       /* of Done; 0 unless it is set */
};
struct store_question {
	const Mperf__Filter *(*filter)(const Mperf__Request *m); /* NULL: none */
	/* The coarsest tier that can answer it. */
	enum tier (*coarsest)(const Mperf__Request *m, const struct query_filter *filter);
	/* Answer it, in the child. As the functions of query.h. */
	int (*run)(const struct store_question_run *run);
	/* In the daemon, as the files are chosen: what only it knows, which `forget` frees. 0 or
	 * -errno. NULL: nothing. */
	int (*know)(struct request *q, const Mperf__Request *m, void **ret_known);
	void (*forget)(void *known);
	/* The labels of its i-th selection of jobs, whose pins are read as well; returns how many, 0 after the
	 * last. NULL: there is one, the filter's. */
	size_t (*labels)(const Mperf__Request *m, size_t i, char *const **ret_label);
	bool all_time; /* without a time, it is about all that is stored, not about the last hour */
};

/* Answer m, a request without a path, already validated, from the service's store. 0 or -errno. */
int store_query_start(
	struct request *q, const Mperf__Request *m, const struct store_question *question);
