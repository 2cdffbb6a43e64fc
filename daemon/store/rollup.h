/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Roll-ups: a finer segment's windows added to a coarser tier's file
 *
 *      window/ an hour as sampled ──▶ minute/ the day: per minute, process and exact stack
 *                                 ──▶ hour/ the week: per hour, program and function
 *
 * The target has the same schema (schema.sql, meta.tier) and its own dictionaries, to which the
 * source's are matched by content, so that a week has each name once. Whatever is merged, the sums
 * of samples, time, counts and losses are those of the source.
 *
 * In the minute tier threads become their process; harts, events, rungs and stacks stay as they
 * are.
 *
 * In the hour tier processes of the same (comm, exe, cgroup, uid) become one task with pid 0;
 * frames of one function become one frame (its first seen, without lines and inlining); harts of
 * one kind (rung, leader, modes) become the first of them; and where an hour has more than
 * ROLLUP_HOUR_ROWS rows the lightest of them are merged further, see there.
 *
 * A window of the target is a run of the source's windows that start in the same minute or hour of
 * CLOCK_REALTIME. A moment may have several such windows, from several sources or since the clock
 * was set; they add up.
 *
 * A file has one boot: monotonic times of two cannot be told apart. Who started a process is kept
 * in the minute tier. Labels, which nobody writes yet, are not rolled up.
 *
 * Reads and writes are SQLite's and may take seconds: this is run in a process of its own.
 */

#include "daemon/aggregate/share.h"
#include "daemon/store/store.h"

/* Rows that one hour may have in the hour tier, all harts together: what a query of weeks reads. So
 * its time does not grow with the machine: 24 hours have at most 73,728 rows, 7 days 516,096. A row
 * with readings of cycles and instructions costs a query about 0.6 µs (0.2 SQLite's for the sample,
 * 0.2 for its readings, 0.2 to sum it), which makes 45 ms and 0.3 s; beside that come the names and
 * call sites that it needs, of which a week has 1 << 20 at most (ROLLUP_HOUR_STACKS), at 0.1 µs.
 * Measured: tests/bench/README.md.
 *
 * What is above it is merged, lightest rows first, until it fits; each step only as far as the one
 * before it does not do, and none touches the heavier half of the rows that it is given:
 *   1. stacks are cut to their leaf, and count as truncated: totals lose what was cut, self stays
 *   2. programs become the program "[other]" of their user
 *   3. functions become the function "[other]" of the program "[other]" of nobody; that is only
 *      where an hour ran more different functions than it may have rows
 *
 * An hour that several sources have a part in has at most an eighth more for each further one. */
#define ROLLUP_HOUR_ROWS 3072

/* Rows of (program, loop, region) that one hour may have in the hour tier, of each source; the rest
 * become the function "[other]" of their program. Each has up to thirty counts. */
#define ROLLUP_HOUR_LOOPS 4096

/* Call sites that a file of the hour tier may have, beyond which new stacks are cut to their leaf:
 * a query that reads the whole file reads them all, at 0.1 µs or so. Function-level call sites of
 * one hour are mostly those of the one before. */
#define ROLLUP_HOUR_STACKS (1u << 20)

/* Ids of each dictionary of the minute tier, half of what a query reads. Beyond it new stacks are
 * cut to their leaf, and tasks are unknown (task 0). */
#define ROLLUP_MINUTE_IDS (1u << 23)

/* Add the sealed segment at source_path to the file at target_path, which is made if it is not
 * there. All in one transaction, which also notes the source, so that adding it again does
 * nothing (ROLLUP_DONE_BEFORE). Killed at any moment, the target is as it was, or complete: a new
 * one (and a new version of a sealed one) is made as target_path + ROLLUP_NEW_SUFFIX and renamed;
 * one that grows has SQLite's journal beside it, and the next who opens it for writing takes it
 * back. Readers of a target that is not sealed open it without immutable=1, so that they and we
 * wait for each other (ROLLUP_WAIT_MS).
 *
 * 0; ROLLUP_DONE_BEFORE; ROLLUP_SOURCE_BROKEN (damaged, unfinished, not ours); ROLLUP_TARGET_BROKEN
 * (set it aside and begin another); ROLLUP_OTHER_BOOT (it needs a target of its own:
 * store_tier_path); STORE_NO_SPACE; -ENOENT where the source is gone; -EBUSY; -errno. *ret_error
 * names the file with any but the first two. */
enum {
	ROLLUP_DONE_BEFORE = 32,
	ROLLUP_SOURCE_BROKEN,
	ROLLUP_TARGET_BROKEN,
	ROLLUP_OTHER_BOOT,
};
#define ROLLUP_NEW_SUFFIX ".new"
#define ROLLUP_WAIT_MS 60000 /* longer than any query reads one file */
int rollup_add(const char *source_path, const char *target_path, enum tier tier,
	struct store_error *ret_error);
/* The same; what users add is charged to their shares, and those who are over theirs add less
 * detail: leaves without callers, then sums of processes, each counted as the loss "over a user's
 * share". Heavy rows come first. NULL: nobody has a limit. */
int rollup_add_within(const char *source_path, const char *target_path, enum tier tier,
	struct shares *shares, struct store_error *ret_error);

/* Seal a tier's file whose period is over; a sealed one stays as it is. 0, STORE_NO_SPACE,
 * ROLLUP_TARGET_BROKEN, -errno. */
int rollup_seal(const char *target_path, struct store_error *ret_error);
