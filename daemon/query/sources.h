/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Sources: the files that one query reads, one after the other
 *
 * A query sums up samples as it reads them, but a file of a store that turns out to be damaged halfway must
 * not count. So the query saves its sums before each such file, and restores them if the file cannot be
 * read to its end.
 */

#include "daemon/query/provenance.h"

/* Steps of a query with one file. */
struct source_reader {
	void *query;
	/* Read it. 0, QUERY_FAILED, -errno. */
	int (*add)(void *query, sqlite3 *db, const struct query_source *source,
		struct query_error *ret_error);
	/* Save the sums; restore them. 0 or -ENOMEM. */
	int (*keep)(void *query);
	void (*take_back)(void *query);
	struct provenance *provenance;
};

/* Does the question name this file? Then the query fails if the file cannot be read. */
static inline bool source_is_named(const struct query_source *s)
{
	return s->named || s->db;
}

/* Open a file; if one of a store was sealed meanwhile, or was wrongly thought to be sealed, open it as it is
 * now. 0, SEGMENT_* with *ret_error, -errno. */
int source_open(struct query_source *s, sqlite3 **ret_db, struct query_error *ret_error);

/* What a query notes of a source that source_open refused with this SEGMENT_*. */
enum query_outcome source_outcome(int r);

/* Open, read and close each. Files of a store that cannot be read are noted; the query fails if there is no other.
 * 0, QUERY_FAILED, -errno. */
int sources_read(const struct source_reader *reader, struct query_source *source, size_t n,
	struct query_error *ret_error);
