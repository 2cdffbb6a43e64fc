/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Roll-ups: a finer segment's windows added to a coarser tier's file
 *
 *      window/ an hour as sampled ──▶ minute/ the day: per minute, process and exact stack
 *                                 ──▶ hour/ the week: per hour, program and function
 *
 * The target has the same schema (schema.sql, meta.tier) and its own dictionaries, to which the
 * source's are matched by content, so that a week has each name once. Merging never changes the
 * sums of samples, time, counts and losses.
 *
 * In the minute tier threads become their process; harts, events, rungs and stacks stay as they
 * are.
 *
 * In the hour tier processes of the same comm, exe, control group, owner and labels become one task with pid 0;
 * frames of one function become one frame (its first seen, without lines and inlining); harts of
 * one kind (rung, leader, modes) become the first of them; and if an hour has more than ROLLUP_HOUR_ROWS rows,
 * the lightest of them are merged further (see ROLLUP_HOUR_ROWS).
 *
 * A window of the target is a run of the source's windows that start in the same minute or hour of
 * CLOCK_REALTIME. One minute or hour may have several such windows, from several sources or because the clock
 * was set; they add up.
 *
 * A file has one boot, since monotonic times of two boots cannot be compared. The minute tier keeps the
 * parents of processes. A process that changed its name, control group, owner or labels has several tasks there.
 *
 * SQLite's reads and writes may take seconds, so this runs in a child process.
 */

#include "daemon/aggregate/share.h"
#include "daemon/store/store.h"

/* Maximum rows of one hour in the hour tier, all harts together: a query of weeks reads these rows.
 * So its time does not grow with the machine: 24 hours have at most 73,728 rows, 7 days 516,096. A
 * row with readings of cycles and instructions costs a query about 0.6 µs (0.2 SQLite's for the
 * sample, 0.2 for its readings, 0.2 to sum it), which makes 45 ms and 0.3 s, plus 0.1 µs for each
 * name and call site that it needs; a week has at most 1 << 20 call sites (ROLLUP_HOUR_STACKS).
 * Measured: tests/bench/README.md.
 *
 * If there are more, the lightest rows are merged first, until it fits; each step only if the one
 * before is not enough, and no step touches the heavier half of its rows:
 *   1. stacks are cut to their leaf, and count as truncated: totals lose what was cut, self stays
 *   2. programs become the program "[other]" of their user
 *   3. functions become the function "[other]" of the program "[other]" of nobody; this
 *      is needed only if an hour ran more functions than it may have rows
 *
 * An hour with several sources has at most an eighth more rows for each further source. */
#define ROLLUP_HOUR_ROWS 3072

/* Maximum rows of (program, loop, region) of one hour in the hour tier, per source; further rows
 * become the function "[other]" of their program. Each has up to thirty counts. */
#define ROLLUP_HOUR_LOOPS 4096

/* Maximum call sites of a file of the hour tier; beyond it new stacks are cut to their leaf. A
 * query of the whole file reads them all, at about 0.1 µs each. Function-level call sites of one
 * hour are mostly those of the one before. */
#define ROLLUP_HOUR_STACKS (1u << 20)

/* Maximum ids of each dictionary of the minute tier, half of what a query reads. Beyond it, new
 * stacks are cut to their leaf, and new tasks are unknown (task 0). */
#define ROLLUP_MINUTE_IDS (1u << 23)

/* Add the sealed segment at source_path to the file at target_path, which is created if missing.
 * All in one transaction, which also notes the source, so that adding it again does nothing
 * (ROLLUP_DONE_BEFORE). If we are killed at any moment, the target is unchanged or complete: a new
 * one (and a new version of a sealed one) is written as target_path + ROLLUP_NEW_SUFFIX and
 * renamed; one that grows has SQLite's journal beside it, and the next writer rolls it back.
 * Readers open an unsealed target without immutable=1, so that they and we wait for each other
 * (ROLLUP_WAIT_MS).
 *
 * 0; ROLLUP_DONE_BEFORE; ROLLUP_SOURCE_BROKEN (damaged, unfinished, not ours); ROLLUP_TARGET_BROKEN
 * (set it aside and begin another); ROLLUP_OTHER_BOOT (it needs a target of its own:
 * store_tier_path); STORE_NO_SPACE; -ENOENT if the source does not exist; -EBUSY; -errno.
 * *ret_error names the file for all but the first two. */
enum {
	ROLLUP_DONE_BEFORE = 32,
	ROLLUP_SOURCE_BROKEN,
	ROLLUP_TARGET_BROKEN,
	ROLLUP_OTHER_BOOT,
};
#define ROLLUP_NEW_SUFFIX ".new"
#define ROLLUP_WAIT_MS 60000 /* longer than any query reads one file Exported for tests. */
int rollup_add(const char *source_path, const char *target_path, enum tier tier,
	struct store_error *ret_error);
/* The same, but charged to the users' shares. Heavy rows come first. Of a user who is over
 * their share, the others are stored with less detail: leaves without callers, then sums of processes;
 * each is counted as the loss "over a user's share". NULL: no limits. */
int rollup_add_within(const char *source_path, const char *target_path, enum tier tier,
	struct shares *shares, struct store_error *ret_error);

/* Seal a tier's file whose period is over; a sealed one stays as it is. 0, STORE_NO_SPACE,
 * ROLLUP_TARGET_BROKEN, -errno. */
int rollup_seal(const char *target_path, struct store_error *ret_error);
