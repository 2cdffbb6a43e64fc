/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Adding a segment to a coarser tier
 *
 * The source's windows are walked once, in the order in which they were written, with the samples
 * and losses that belong to each. While windows start in the same minute or hour their rows are
 * added up in memory; when one starts in another, the sums are written and forgotten. So memory
 * follows the rows of one minute or hour, and the names, not the length of the source.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/store/rollup/rollup_private.h"

void rollup_clear(struct rollup *r)
{
	for (size_t i = 0; i < N_ROLLUP_READS; i++)
		sqlite3_finalize(r->read[i]);
	for (size_t i = 0; i < N_ROLLUP_WRITES; i++)
		sqlite3_finalize(r->write[i]);
	sqlite3_close(r->source);
	sqlite3_close(r->target);
	rollup_forget_names(r);
	rollup_forget_stacks(r);
	sums_clear(&r->sums);
	rollup_loops_clear(r);
	text_table_clear(&r->texts);
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

/* --- the walk --------------------------------------------------------------------------------- */

static int64_t floor_to(int64_t ns, int64_t step_ns)
{
	int64_t rest = step_ns ? ns % step_ns : 0;
	return ns - rest - (rest < 0 ? step_ns : 0);
}

/* Take the rows of a table that belong to this window; they come in the order of windows, and each
 * has one. *at is 0 while the table's statement stands on a row. */
static int take_rows(struct rollup *r, enum rollup_read s, int column, int64_t window, int *at,
	int (*take)(struct rollup *r))
{
	while (*at == 0) {
		int64_t owner = rollup_integer(r, s, column);
		if (owner > window)
			return 0;
		if (owner < window)
			return rollup_fail_source(r, "a row belongs to no window");
		int outcome = take(r);
		if (outcome != 0)
			return outcome;
		*at = rollup_next(r, s);
	}
	return *at == ROLLUP_NO_ROW ? 0 : *at;
}

/* What the source's cursors stand on: 0 a row, ROLLUP_NO_ROW, or what went wrong. */
struct cursors {
	int window, sample, loss, loop;
};

static int take_window(struct rollup *r, struct cursors *at, struct sums_window *w)
{
	const int64_t step_ns = (int64_t)tier_step_ns(r->tier);
	int64_t id = rollup_integer(r, READ_WINDOW, 0);
	int64_t start_ns = rollup_integer(r, READ_WINDOW, 1);
	int64_t end_ns = rollup_integer(r, READ_WINDOW, 2);
	int64_t realtime_ns = rollup_integer(r, READ_WINDOW, 3);
	if (start_ns < 0 || end_ns < start_ns || realtime_ns < 0)
		return rollup_fail_source(r, "a window ends before it starts");
	realtime_ns = floor_to(realtime_ns, step_ns);
	int outcome = 0;
	if (w->end_ns != 0 && (step_ns == 0 || w->realtime_ns != realtime_ns)) {
		outcome = sums_write(r, w);
		w->end_ns = 0;
	}
	if (w->end_ns == 0)
		*w = (struct sums_window){start_ns, end_ns, realtime_ns};
	w->start_ns = start_ns < w->start_ns ? start_ns : w->start_ns;
	w->end_ns = end_ns > w->end_ns ? end_ns : w->end_ns;
	if (outcome == 0)
		outcome = take_rows(r, READ_SAMPLE, 1, id, &at->sample, sums_take_sample);
	if (outcome == 0)
		outcome = take_rows(r, READ_LOSS, 0, id, &at->loss, sums_take_loss);
	if (outcome == 0)
		outcome = take_rows(r, READ_LOOP_COUNT, 0, id, &at->loop, rollup_take_loop);
	if (outcome == 0)
		at->window = rollup_next(r, READ_WINDOW);
	return outcome;
}

static bool is_failure(int at)
{
	return at != 0 && at != ROLLUP_NO_ROW;
}

static int take_windows(struct rollup *r)
{
	struct sums_window w = {0};
	struct cursors at = {
		.window = rollup_get(r, READ_WINDOW, 0),
		.sample = rollup_get(r, READ_SAMPLE, 0),
		.loss = rollup_get(r, READ_LOSS, INT64_MIN),
		.loop = rollup_get(r, READ_LOOP_COUNT, INT64_MIN),
	};
	int outcome = rollup_get(r, READ_READING, 0);
	r->reading = outcome == 0;
	if (is_failure(outcome))
		return outcome;
	if (is_failure(at.sample) || is_failure(at.loss))
		return is_failure(at.sample) ? at.sample : at.loss;
	if (is_failure(at.loop))
		return at.loop;

	outcome = 0;
	while (at.window == 0 && outcome == 0)
		outcome = take_window(r, &at, &w);
	if (outcome == 0 && is_failure(at.window))
		outcome = at.window;
	if (outcome == 0 && (at.sample == 0 || at.loss == 0 || at.loop == 0))
		outcome = rollup_fail_source(r, "a row belongs to no window");
	if (outcome == 0 && r->reading)
		outcome = rollup_fail_source(r, "a reading belongs to no sample");
	if (outcome == 0 && w.end_ns != 0)
		outcome = sums_write(r, &w);
	return outcome;
}

/* --- meta ------------------------------------------------------------------------------------- */

static int source_meta(struct rollup *r, const char *key)
{
	sqlite3_stmt *st = r->read[READ_META];
	sqlite3_reset(st);
	int rc = sqlite3_bind_text(st, 1, key, -1, SQLITE_STATIC);
	return rc == SQLITE_OK ? rollup_next(r, READ_META) : rollup_source_outcome(r, rc);
}

/* A file with several rates says so, and has the highest. */
static int take_rate(struct rollup *r)
{
	int64_t theirs, ours;
	int outcome = source_meta(r, "hz");
	if (outcome != 0)
		return outcome == ROLLUP_NO_ROW ? 0 : outcome;
	theirs = rollup_integer(r, READ_META, 0);
	outcome = rollup_meta(r, "hz", theirs, &ours);
	if (outcome != 0 || theirs == ours)
		return outcome;
	outcome = PUT(r, WRITE_META, CELL_T("hz"), CELL_I(theirs > ours ? theirs : ours));
	return outcome == 0 ? PUT(r, WRITE_META, CELL_T("hz_mixed"), CELL_I(1)) : outcome;
}

/* A file says of all its sources together how their counts were cut. */
static int take_cut(struct rollup *r)
{
	int64_t theirs, ours;
	int outcome = source_meta(r, "switches");
	if (outcome != 0)
		return outcome == ROLLUP_NO_ROW ? 0 : outcome;
	theirs = rollup_integer(r, READ_META, 0);
	outcome = rollup_meta(r, "switches", 0, &ours);
	if (outcome != 0 || (theirs | ours) == ours)
		return outcome;
	return PUT(r, WRITE_META, CELL_T("switches"), CELL_I(theirs | ours));
}

static int compare_boot(struct rollup *r)
{
	int outcome = source_meta(r, "boot_id");
	if (outcome != 0)
		return outcome == ROLLUP_NO_ROW ? rollup_fail_source(r, "it names no boot")
						: outcome;
	uint32_t theirs;
	outcome = rollup_text(r, r->read[READ_META], 0, &theirs);
	if (outcome == 0)
		outcome = rollup_meta_text(r, "boot_id", &r->boot);
	if (outcome == 0 && theirs != r->boot)
		outcome = rollup_fail(r, ROLLUP_OTHER_BOOT, r->target_path,
			"Each boot needs files of its own",
			"belongs to another boot of the machine");
	return outcome;
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
	int outcome = rollup_meta(r, key, 0, &done);
	if (outcome == 0 && done != 0)
		return ROLLUP_DONE_BEFORE;
	if (outcome == 0)
		outcome = compare_boot(r);
	if (outcome == 0)
		outcome = rollup_load_names(r);
	if (outcome == 0)
		outcome = rollup_load_tasks(r);
	if (outcome == 0)
		outcome = rollup_load_stacks(r);
	if (outcome == 0)
		outcome = rollup_load_loops(r);
	if (outcome == 0)
		outcome = take_rate(r);
	if (outcome == 0)
		outcome = take_cut(r);
	if (outcome == 0)
		outcome = rollup_take_events(r);
	if (outcome == 0)
		outcome = rollup_take_cores(r);
	if (outcome == 0)
		outcome = rollup_take_harts(r);
	if (outcome == 0)
		outcome = rollup_take_notes(r);
	if (outcome == 0)
		outcome = take_windows(r);
	if (outcome == 0)
		outcome = PUT(r, WRITE_META, CELL_T(key), CELL_I(1));
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
		outcome = rollup_meta(r, "sealed", 0, &sealed);
	/* one that was killed between the two is to be sealed again */
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

/* Make the new file, fill it, and put it where the target is to be. */
static int add_to_new(struct rollup *r, const char *key, bool copy)
{
	_cleanup_(freep) char *path = NULL;
	if (asprintf(&path, "%s%s", r->target_path, ROLLUP_NEW_SUFFIX) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	rollup_remove_new(path); /* of one that was killed */
	int outcome = copy ? rollup_copy(r, r->target_path, path) : 0;
	if (outcome == 0)
		outcome = rollup_open_target(r, path, !copy);
	/* one of a version without seals: what is broken by now shall not get one */
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
	/* the source may be gone long since, and need not be read, where it was added before */
	int64_t done = 0;
	if (outcome == 0 && state != TARGET_NONE)
		outcome = rollup_meta(r, key, 0, &done);
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
	/* what is broken by now shall not be sealed as it is */
	if (state == TARGET_OPEN)
		outcome = rollup_check_target(r);
	if (outcome != 0)
		return outcome;
	if (state == TARGET_NONE) {
		rollup_fail(
			r, 0, target_path, "Nothing was rolled up in its time", "does not exist");
		return -ENOENT;
	}
	outcome = rollup_complete(r);
	return outcome == 0 ? rollup_write_seal(r, target_path) : outcome;
}
