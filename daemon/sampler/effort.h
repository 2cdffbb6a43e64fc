/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Effort: the amount of work of a running session at each sample and switch
 *
 * A session can reduce its work, and later resume all of it, without a gap in its side band.
 */

#include "daemon/sampler/sampler.h"

/* Harts that one call opens again, each in about a ms; further ones follow at the next ticks. */
#define EFFORT_HARTS_MAX 16

#define EFFORT_TEXT_BYTES 192

/* Reduce the work to this effort from now on. Drain before. Only for sessions by the ladder and not per task:
 * others are unchanged. 0 or -errno. */
int sampler_set_effort(struct sampler *s, const struct sampler_effort *effort);

/* Copy that many bytes of each stack from now on, or as many as rings have room for at that rate; never fewer than the
 * session's options say. Drain before. Sessions per task, with requested events, or with a fixed size are unchanged. 0
 * or -errno. */
int sampler_set_copy(struct sampler *s, uint32_t bytes, uint32_t hz);
const struct sampler_effort *effort_in_force(const struct sampler *s);
/* Is that the effort in force? rate_part 0 and 1 are the same. */
bool effort_is(const struct sampler *s, const struct sampler_effort *effort);

/* A sentence about the work that is left out: "counts are not cut at switches, samples carry no
 * counters"; "" if no work is left out. Returns ret_text. */
const char *effort_says(
	const struct sampler_effort *effort, char ret_text[static EFFORT_TEXT_BYTES]);
