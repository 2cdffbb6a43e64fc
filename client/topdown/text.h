/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* A top-down tree as text: a row per node with its bar, and the explanation of each */

#include "client/topdown/tree.h"

struct topdown_look {
	size_t columns; /* of the terminal; 0: not one */
	bool utf8, colour;
};

/* Print the rows, below a line that says what was measured. */
void topdown_text_write(
	const struct topdown *t, const struct topdown_look *look, const char *what, FILE *f);

/* Print for each node: formula, inputs with their counts, passes, error, source. */
void topdown_text_explain(const struct topdown *t, FILE *f);
