/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Plausible: finding impossible counts
 *
 * The counters of some virtual machines and cores return nonsense now and then, such as
 * 140,737,769,190,326 instructions in a fraction of a second, or more misses than accesses. Such a
 * count is not shown as if it had been measured. The rules are a table (plausible.c). A rule
 * that compares two events doubts both, for it cannot know which one is wrong. A low IPC alone is
 * possible, and no rule.
 */

#include <stdbool.h>
#include <stddef.h>

struct plausible_count {
	const char *event; /* as requested: "cycles:u"; borrowed */
	double count;      /* scaled to the whole time; negative: not counted */
	double ns;         /* how long it was counted, summed over harts and tasks; 0: unknown */
	bool is_scaled;    /* it was counted for a part of the time only */
};

#define PLAUSIBLE_TEXT_BYTES 192

/* Explain why counts[which] is impossible, compared with the others, which were counted in the same time:
 * a sentence without a full stop. Events are compared only if their modifiers are equal. Returns false,
 * and leaves the text alone, if the count is possible. */
bool plausible_doubt(const struct plausible_count *counts, size_t n_counts, size_t which,
	char ret_text[static PLAUSIBLE_TEXT_BYTES]);
