/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Common parts of requests that query samples: a filter, a source, an end */

#include "daemon/control/request.h"

/* The requested filter, narrowed to what the peer may see: only peers that see all get others'
 * samples and kernel details. Borrows everything from m, which may be NULL (no filter). */
struct query_filter query_filter_of(const struct request *q, const Mperf__Filter *m);

/* End an answer: Done, or the failure that stopped the query with outcome r. 0, -errno. */
int query_answer_end(
	struct request *q, struct row_stream *stream, int r, const struct query_error *error);
/* The same, Done with this status. */
int query_answer_end_with(struct request *q, struct row_stream *stream, int r,
	const struct query_error *error, int status);

/* Does a request with this path mean the store of the service that received it? */
bool query_asks_store(const struct request *q, const char *path);
