/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Two phases: a command runs twice, and loops that ran alike are combined
 *
 *      first run, entries and time alone ─┐
 *                                         ├─▶ same entries? ─▶ its time, the second's counts
 *      second run, which counts ──────────┘
 */

#include "client/options.h"
#include "client/reply.h"

/* Run the command of the options twice, ask about both, and show what they come to. spare: columns
 * that a table leaves out. Returns mperfctl's exit status: EXIT_DIFFERENT where something ran
 * differently. */
int two_phase(const struct options *o, Mperf__Request *request, const char *const *spare);

/* Is a row of that answer of a function or loop that has a body which does not count? */
bool has_two_bodies(const struct reply *r);

/* Let what is run next find what --loops and --sample chose (MPERF_LOOPS, MPERF_SAMPLE). 0 or
 * -errno, which was said. */
int choose_by_environment(const struct options *o);

/* Combine the answers of both runs into another. Borrows; *ret_both is the caller's to clear.
 * ret_different: rows that were not combined. 0; TWO_PHASE_ONE_BODY: what ran has no functions of
 * two bodies; REPLY_TOO_LARGE, REPLY_MALFORMED: they are not of this mperfctl's version; -ENOMEM.
 */
enum { TWO_PHASE_ONE_BODY = REPLY_MALFORMED + 1 };
int two_phase_combine(const struct reply *plain, const struct reply *counting, uint32_t limit,
	struct reply *ret_both, size_t *ret_different);
