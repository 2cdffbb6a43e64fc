/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Sources: the files that one query reads, one after the other
 *
 * A query sums up samples as it reads them, but a file that turns out to be damaged halfway must
 * not count. So the query saves its sums before each file, and restores them if the file cannot be
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

/* Read files that the caller has opened; a damaged one fails the query. */
int sources_read_open(const struct source_reader *reader, sqlite3 *const *db, size_t n,
	struct query_error *ret_error);
/* Open, read, close each; those that cannot be read are noted. */
int sources_read(const struct source_reader *reader, struct query_source *source, size_t n,
	struct query_error *ret_error);
