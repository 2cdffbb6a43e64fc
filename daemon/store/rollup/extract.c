/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "daemon/store/rollup/extract.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "daemon/store/rollup/rollup_private.h"
#include "proto/base/memory.h"

DEFINE_CLEANUP(struct rollup *, rollup_clear)

struct making {
	const struct extract *e;
	const char *target_path; /* its final name */
	const char *path;        /* its name while it is written */
	char *job;               /* the job's name in the roll-up: "UID JSON"; NULL: any */
	bool begun;              /* the file at path has a source in it */
	int64_t n_rows;
	struct store_error *error;
};

/* A file that has reached max_page_count is a full disc to SQLite. */
static int limit(struct rollup *r, uint64_t bytes_max)
{
	char sql[64];
	uint64_t pages = bytes_max / rollup_page_bytes(r);
	snprintf(sql, sizeof(sql), "PRAGMA max_page_count = %llu",
		(unsigned long long)(pages > 0 ? pages : 1));
	return rollup_exec(r, sql);
}

/* SQLite writes only at the commit. So the disc itself is full only if it has less room than the file's
 * limit. */
static bool has_room(const char *path, uint64_t bytes_max)
{
	struct statvfs st;
	return statvfs(path, &st) == 0 && (uint64_t)st.f_bavail * st.f_frsize >= bytes_max;
}

static int add(struct making *m, struct rollup *r)
{
	_cleanup_(freep) char *key = rollup_source_key(r->source_path);
	if (!key)
		return -ENOMEM;
	int outcome = rollup_open_source(r);
	if (outcome == 0)
		outcome = rollup_open_target(r, m->path, !m->begun);
	if (outcome != 0)
		return outcome;
	/* set the limit only now: one that the empty tables exceed would look like damage */
	outcome = limit(r, m->e->bytes_max);
	if (outcome == 0)
		outcome = rollup_fill(r, key);
	if (outcome == STORE_NO_SPACE && has_room(m->path, m->e->bytes_max))
		return EXTRACT_TOO_LARGE;
	return outcome;
}

/* Add the rows of the i-th source. What fails before its commit leaves the file as it was. */
static int add_source(struct making *m, size_t i)
{
	const struct extract *e = m->e;
	struct extract_choice choice = {0};
	int outcome = e->choose ? e->choose(e->userdata, i, &choice) : 0;
	if (outcome != 0)
		return outcome == EXTRACT_SKIP ? 0 : outcome;
	struct rollup *r = rollup_new(e->source[i], m->target_path, TIER_WINDOW, m->error);
	if (!r)
		return -ENOMEM;
	r->live = true;
	r->only = m->job;
	r->choice = &choice;
	r->hide_kernel = e->hide_kernel;
	outcome = add(m, r);
	if (outcome == 0) {
		m->begun = true;
		m->n_rows += r->n_rows;
	}
	rollup_clear(r);
	if (outcome != 0 && !m->begun)
		rollup_remove_new(m->path);
	if (outcome == ROLLUP_SOURCE_BROKEN && e->broken) {
		e->broken(e->userdata, i);
		return 0;
	}
	return outcome == -ENOENT || outcome == ROLLUP_OTHER_BOOT ? 0 : outcome;
}

static int finish(struct making *m)
{
	_cleanup_(rollup_clearp) struct rollup *r =
		rollup_new(NULL, m->target_path, TIER_WINDOW, m->error);
	int outcome = r ? rollup_open_target(r, m->path, false) : -ENOMEM;
	for (size_t i = 0; i < m->e->n_notes && outcome == 0; i++) {
		const struct extract_note *n = &m->e->note[i];
		outcome = rollup_write_meta(r, n->key, n->text, n->number);
	}
	if (outcome == 0)
		outcome = rollup_complete(r);
	if (outcome == 0)
		outcome = rollup_write_seal(r, m->path);
	return outcome == 0 ? rollup_rename(r, m->path, m->target_path) : outcome;
}

int extract_write(const struct extract *e, const char *target_path, struct store_error *ret_error)
{
	_cleanup_(freep) char *path = NULL, *job = NULL;
	if (asprintf(&path, "%s" ROLLUP_NEW_SUFFIX, target_path) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	if (e->labels && asprintf(&job, "%u %s", e->uid, e->labels) < 0) {
		job = NULL;
		return -ENOMEM;
	}
	struct making m = {
		.e = e, .target_path = target_path, .path = path, .job = job, .error = ret_error};
	int outcome = 0;
	rollup_remove_new(path); /* left by a process that was killed */
	for (size_t i = 0; i < e->n_sources && outcome == 0; i++)
		outcome = add_source(&m, i);
	if (outcome == 0)
		outcome = m.n_rows > 0 ? finish(&m) : EXTRACT_EMPTY;
	if (outcome != 0)
		rollup_remove_new(path);
	return outcome;
}

void extract_remove(const char *target_path)
{
	_cleanup_(freep) char *path = NULL;
	unlink(target_path);
	if (asprintf(&path, "%s" ROLLUP_NEW_SUFFIX, target_path) < 0)
		path = NULL;
	else
		rollup_remove_new(path);
}
