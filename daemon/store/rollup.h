/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Roll-ups: a finer segment's windows added to a coarser tier's file
 *
 *      window/ an hour as sampled ──▶ minute/ the day: per minute, process and exact stack
 *                                 ──▶ hour/ the week: per hour, program and function
 *
 * The target has the same schema (schema.sql, meta.tier) and its own dictionaries, to which the
 * source's are matched by content, so that a week has each name once. In the minute tier threads
 * become their process. In the hour tier processes of the same (comm, exe, cgroup, uid) become one
 * task, frames of one function become one frame (its first seen; lines are not kept), and beyond
 * ROLLUP_HOUR_ROWS rows of an hour the lightest stacks are cut to their leaf and counted as
 * truncated: self shares stay exact, totals lose what was cut.
 * Reads and writes are SQLite's and may take seconds: this is run in a process of its own.
 */

#include "daemon/store/store.h"

/* Rows that one hour may have in the hour tier, all harts together: what a query of weeks reads.
 * A million rows take about 0.35 s to answer, so 24 of these take under 100 ms. */
#define ROLLUP_HOUR_ROWS 8192

/* Add the sealed segment at source_path to the file at target_path, which is made if it is not
 * there. All in one transaction, which also notes the source, so that adding it again does
 * nothing (ROLLUP_DONE_BEFORE). 0, ROLLUP_*, STORE_NO_SPACE, -errno; *ret_error names the file. */
enum { ROLLUP_DONE_BEFORE = 32, ROLLUP_SOURCE_BROKEN, ROLLUP_TARGET_BROKEN };
int rollup_add(const char *source_path, const char *target_path, enum tier tier,
	struct store_error *ret_error);

/* Seal a tier's file whose period is over. 0, STORE_NO_SPACE, ROLLUP_TARGET_BROKEN, -errno. */
int rollup_seal(const char *target_path, struct store_error *ret_error);
