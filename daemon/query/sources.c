/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Reading sources with one descriptor at a time, however long the requested time
 *
 * Files of a store come and go while a query runs: retention unlinks the oldest, a roll-up replaces one that
 * was sealed, a segment is sealed that was live when the query was planned. Files that cannot be
 * read are left out, counted by reason and reported with the answer; the query fails only if
 * nothing could be read. A file that the user named is the whole question, so it fails the query.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/query/sources.h"

DEFINE_CLEANUP(sqlite3 *, sqlite3_close)

enum query_outcome source_outcome(int r)
{
	switch (r) {
	case SEGMENT_ABSENT:
		return QUERY_GONE;
	case SEGMENT_NOT_OURS:
	case SEGMENT_OTHER_VERSION:
	case SEGMENT_CORRUPT:
		return QUERY_BROKEN;
	default:
		return QUERY_HELD;
	}
}

static Mperf__FailureKind kind_of(int outcome)
{
	return outcome == SEGMENT_ABSENT    ? MPERF__FAILURE_KIND__FAILURE_MISSING
	       : outcome == SEGMENT_REFUSED ? MPERF__FAILURE_KIND__FAILURE_REFUSED
					    : MPERF__FAILURE_KIND__FAILURE_BROKEN;
}

int source_open(struct query_source *s, sqlite3 **ret_db, struct query_error *ret_error)
{
	struct segment_error e = {"", ""};
	const struct segment_identity before = s->verified;
	int r = s->live ? segment_open_live(s->path, ret_db, &e)
			: segment_open_known(s->path, &s->verified, ret_db, &e);
	if (r == SEGMENT_UNSEALED && !s->live && !s->named) {
		r = segment_open_live(s->path, ret_db, &e);
		s->live = true;
	}
	s->is_verified_anew |= !segment_identity_equal(&before, &s->verified);
	if (r > 0)
		query_fail(ret_error, kind_of(r), e.remedy, "%s", e.text);
	return r;
}

static int read_named(
	const struct source_reader *reader, struct query_source *s, struct query_error *error)
{
	_cleanup_(sqlite3_closep) sqlite3 *db = NULL;
	const int r = s->db ? 0 : source_open(s, &db, error);
	if (r != 0)
		return r > 0 ? QUERY_FAILED : r;
	return reader->add(reader->query, s->db ? s->db : db, s, error);
}

/* Read a file of a store. 0 with the source's outcome; a result that ends the query. */
static int read_stored(
	const struct source_reader *reader, struct query_source *s, struct query_error *error)
{
	_cleanup_(sqlite3_closep) sqlite3 *db = NULL;
	int r = source_open(s, &db, error);
	if (r > 0)
		s->outcome = source_outcome(r);
	if (r != 0)
		return r < 0 ? r : 0;
	r = reader->keep(reader->query);
	if (r == 0)
		r = reader->add(reader->query, db, s, error);
	if (r != QUERY_FAILED)
		return r;
	if (error->kind == MPERF__FAILURE_KIND__FAILURE_BROKEN)
		s->outcome = QUERY_BROKEN;
	else if (error->kind == MPERF__FAILURE_KIND__FAILURE_REFUSED)
		s->outcome = QUERY_HELD;
	else if (error->kind == MPERF__FAILURE_KIND__FAILURE_MISSING)
		s->outcome = QUERY_WITHOUT;
	else
		return r;
	reader->take_back(reader->query);
	return 0;
}

/* "minute/20261121T000000Z.mprf" of the whole path. */
static const char *name_of(const char *path)
{
	const char *name = path + strlen(path);
	for (int slashes = 0; name > path; name--)
		if (name[-1] == '/' && ++slashes == 2)
			break;
	return name;
}

int sources_read(const struct source_reader *reader, struct query_source *source, size_t n,
	struct query_error *ret_error)
{
	struct query_error error = {
		"there are no recordings of that time", "", MPERF__FAILURE_KIND__FAILURE_MISSING};
	size_t n_read = 0;
	for (size_t i = 0; i < n; i++) {
		source[i].outcome = QUERY_READ;
		int r = source_is_named(&source[i]) ? read_named(reader, &source[i], &error)
						    : read_stored(reader, &source[i], &error);
		if (r != 0) {
			*ret_error = error;
			return r;
		}
		n_read += source[i].outcome == QUERY_READ;
		/* the query has rolled back its notes: note it again */
		struct provenance *p = reader->provenance;
		p->n_sources[source[i].outcome]++;
		if (source[i].outcome == QUERY_READ)
			p->n_growing += source[i].live;
		if (source[i].outcome == QUERY_BROKEN && !*p->broken)
			snprintf(p->broken, sizeof(p->broken), "%s", name_of(source[i].path));
	}
	if (n_read > 0)
		return 0;
	*ret_error = error;
	return QUERY_FAILED;
}
