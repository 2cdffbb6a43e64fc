/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Store queries: hotspots and flame graphs of what the service keeps
 *
 * The daemon chooses the files, since it alone knows which there are; a child reads them (offload.h)
 * and answers. Files that it finds broken it names to the daemon, which sets them aside.
 */

#include "daemon/control/request.h"

/* What is asked about where no time is given. */
#define STORE_QUERY_SPAN_NS 3600000000000ll

/* Answer m, a HotspotsRequest or FlamegraphRequest without a path, from the service's store. 0 or
 * -errno. */
int store_query_start(struct request *q, const Mperf__Request *m);

/* --- what the two have in common with queries of a file (hotspots.c) ------------------------------ */

/* The filter as asked for, and as who asks must have it: others' samples and the kernel's insides are
 * for those who see all. Borrows everything from m, which may be NULL (no filter). */
struct query_filter query_filter_of(const struct request *q, const Mperf__Filter *m);

/* End an answer: Done, or the failure that stopped the query with outcome r. 0, -errno. */
int query_answer_end(struct request *q, struct row_stream *stream, int r,
	const struct query_error *error);
