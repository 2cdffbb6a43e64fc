/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Two phases: run a command without and with counting, and combine loops that ran alike
 *
 *      first run, only entries and time  ─┐
 *                                         ├─▶ same entries? ─▶ its time, the second's counts
 *      second run, which counts ──────────┘                          ▲
 *      third run, as the first ────────────── how much times differ ─┘
 */

#include "client/options/options.h"
#include "client/show/reply.h"

/* Run the options' command three times, ask about the runs, and print the combined rows. Returns
 * mperfctl's exit status: EXIT_DIFFERENT if something ran differently. */
int two_phase(const struct options *o, Mperf__Request *request);

/* Does any function or loop of the answer have two bodies? */
bool has_two_bodies(const struct reply *r);

/* Pass the choices of --loops, and one_in as of --sample, to the next command (MPERF_LOOPS, MPERF_SAMPLE). 0, or
 * -errno after an error message. */
int choose_by_environment(const struct options *o, uint32_t one_in);

/* Answers about the runs, borrowed. */
struct two_phase_runs {
	const struct reply *plain, *counting;
	const struct reply *again; /* NULL: there was no third run, so errors are not known */
};

enum { TWO_PHASE_ONE_BODY = REPLY_MALFORMED + 1 };

/* Combine them into another, which the caller clears. ret_different: rows that were not combined.
 * 0; TWO_PHASE_ONE_BODY: no function has two bodies; REPLY_TOO_LARGE, REPLY_MALFORMED: they are from
 * another version of mperfd; -ENOMEM. Exported for tests. */
int two_phase_combine(const struct two_phase_runs *runs, uint32_t limit, struct reply *ret_both,
	size_t *ret_different);
