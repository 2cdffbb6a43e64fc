/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Adding a segment to a coarser tier: the life of the target's file until it is sealed */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/store/rollup/merge.h"
#include "daemon/store/segment/segment.h"

void rollup_clear(struct rollup *r)
{
	sqlite3_close(r->source);
	sqlite3_close(r->target);
	free(r);
}
DEFINE_CLEANUP(struct rollup *, rollup_clear)

struct rollup *rollup_new(
	const char *source_path, const char *target_path, enum tier tier, struct store_error *error)
{
	struct rollup *r = calloc(1, sizeof(*r));
	if (!r)
		return NULL;
	r->source_path = source_path;
	r->target_path = target_path;
	r->tier = tier;
	r->error = error;
	r->stacks_max = tier == TIER_HOUR ? ROLLUP_HOUR_STACKS : ROLLUP_MINUTE_IDS;
	return r;
}

char *rollup_source_key(const char *source_path)
{
	const char *slash = strrchr(source_path, '/');
	char *key;
	if (asprintf(&key, STORE_SOURCE_KEY "%s", slash ? slash + 1 : source_path) < 0)
		return NULL;
	return key;
}

/* --- the transaction -------------------------------------------------------------------------- */

int rollup_fill(struct rollup *r, const char *key)
{
	int64_t done;
	int outcome = rollup_meta(r, key, &done);
	if (outcome == 0 && done != 0)
		return ROLLUP_DONE_BEFORE;
	if (outcome == 0)
		outcome = merge_run(r);
	if (outcome == 0)
		outcome = rollup_write_meta(r, key, NULL, 1);
	return outcome == 0 ? rollup_exec(r, "COMMIT") : outcome;
}

/* Is there a target, and is it sealed? A sealed one is closed again: its readers do not expect it
 * to change. */
enum target_state { TARGET_OPEN, TARGET_SEALED, TARGET_NONE };
static int open_existing(struct rollup *r, enum target_state *ret_state)
{
	struct stat st;
	if (lstat(r->target_path, &st) < 0 && errno == ENOENT) {
		*ret_state = TARGET_NONE;
		return 0;
	}
	int64_t sealed;
	bool whole = segment_seal_is_whole(r->target_path) == 1;
	int outcome = rollup_open_target(r, r->target_path, false);
	if (outcome == 0)
		outcome = rollup_meta(r, "sealed", &sealed);
	/* a process that was killed before it wrote the seal has left it open */
	if (outcome == 0)
		*ret_state = sealed && whole ? TARGET_SEALED : TARGET_OPEN;
	return outcome;
}

void rollup_remove_new(const char *path)
{
	char *journal;
	unlink(path);
	if (asprintf(&journal, "%s-journal", path) < 0)
		return;
	unlink(journal);
	free(journal);
}

/* Make the new file, fill it, and rename it to the target. */
static int add_to_new(struct rollup *r, const char *key, bool copy)
{
	_cleanup_(freep) char *path = NULL;
	if (asprintf(&path, "%s%s", r->target_path, ROLLUP_NEW_SUFFIX) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	rollup_remove_new(path); /* left by a process that was killed */
	int outcome = copy ? rollup_copy(r, r->target_path, path) : 0;
	if (outcome == 0)
		outcome = rollup_open_target(r, path, !copy);
	/* a file that has become damaged must not get a new seal */
	if (outcome == 0 && copy)
		outcome = rollup_check_target(r);
	if (outcome == 0)
		outcome = rollup_fill(r, key);
	if (outcome == 0)
		outcome = rollup_close_target(r);
	if (outcome == 0 && copy)
		outcome = rollup_write_seal(r, path);
	if (outcome == 0)
		outcome = rollup_rename(r, path, r->target_path);
	if (outcome != 0)
		rollup_remove_new(path);
	return outcome;
}

int rollup_add(const char *source_path, const char *target_path, enum tier tier,
	struct store_error *ret_error)
{
	return rollup_add_within(source_path, target_path, tier, NULL, ret_error);
}

int rollup_add_within(const char *source_path, const char *target_path, enum tier tier,
	struct shares *shares, struct store_error *ret_error)
{
	if (tier != TIER_MINUTE && tier != TIER_HOUR)
		return -EINVAL;
	_cleanup_(freep) char *key = rollup_source_key(source_path);
	_cleanup_(rollup_clearp) struct rollup *r =
		rollup_new(source_path, target_path, tier, ret_error);
	if (!key || !r)
		return -ENOMEM;
	r->shares = shares;
	enum target_state state = TARGET_NONE;
	int outcome = open_existing(r, &state);
	/* a source that was added before need not exist any more */
	int64_t done = 0;
	if (outcome == 0 && state != TARGET_NONE)
		outcome = rollup_meta(r, key, &done);
	if (outcome == 0 && done != 0)
		return ROLLUP_DONE_BEFORE;
	if (outcome == 0)
		outcome = rollup_open_source(r);
	if (outcome != 0)
		return outcome;
	if (state == TARGET_OPEN)
		return rollup_fill(r, key);
	outcome = rollup_close_target(r);
	return outcome == 0 ? add_to_new(r, key, state == TARGET_SEALED) : outcome;
}

/* --- sealing ---------------------------------------------------------------------------------- */

int rollup_complete(struct rollup *r)
{
	int outcome = rollup_exec(r, "INSERT OR REPLACE INTO meta "
				     "SELECT 'end_ns', coalesce(max(end_ns), 0) FROM window;"
				     "INSERT OR REPLACE INTO meta VALUES ('sealed', 1); COMMIT");
	return outcome == 0 ? rollup_close_target(r) : outcome;
}

int rollup_seal(const char *target_path, struct store_error *ret_error)
{
	_cleanup_(rollup_clearp) struct rollup *r =
		rollup_new(NULL, target_path, TIER_WINDOW, ret_error);
	if (!r)
		return -ENOMEM;
	enum target_state state = TARGET_NONE;
	int outcome = open_existing(r, &state);
	if (outcome != 0 || state == TARGET_SEALED)
		return outcome;
	/* a file that has become damaged must not get a seal */
	if (state == TARGET_OPEN)
		outcome = rollup_check_target(r);
	if (outcome != 0)
		return outcome;
	if (state == TARGET_NONE) {
		rollup_fail(
			r, 0, target_path, "No roll-up was made for this time", "does not exist");
		return -ENOENT;
	}
	outcome = rollup_complete(r);
	return outcome == 0 ? rollup_write_seal(r, target_path) : outcome;
}
