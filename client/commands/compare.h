/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Comparison: parts that diff and gate share, the two sides, the question and the verdict's wording */

#include "client/compare/verdict.h"
#include "client/options/options.h"

#define COMPARE_MARGIN_PPM 20000
#define COMPARE_EFFECT_PPM 50000
#define COMPARE_LOOKS 2 /* gate: after "not enough to tell", the user looks again */

/* Read and compare both sides. Returns the exit status, which for gate is its verdict.
 * *ret_answered: there is an answer to show; otherwise an error message was printed. */
int compare_ask(const struct options *o, bool is_gate, struct replies *replies, bool *ret_answered);

struct verdict_asked compare_asked(const struct options *o, bool is_gate);

/* Print the line, the table and the notes, or JSON, as the options say, on stdout. 0 or EXIT_FAILED. */
int compare_show(const struct options *o, bool is_gate, const struct replies *replies);
