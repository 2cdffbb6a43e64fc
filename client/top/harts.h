/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* One line per hart, as far as there is room */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/show/reply.h"

#define TOP_RUNG_BYTES 32

struct top_hart {
	int first, last; /* the numbers of the line's harts */
	bool has_load, has_user, has_kernel, has_hz, has_ipc;
	double load, user, kernel; /* shares of the interval; of several harts: their mean */
	double hz, ipc;            /* of several: hz if equal, no ipc */
	char rung[TOP_RUNG_BYTES]; /* "d", not escaped; of several that differ: "mixed" */
};

/* Fill at most max > 0 lines from the table "harts", in its order: one hart each; if there are more
 * harts, the last line has all the rest. Returns the number of lines. */
size_t top_harts(const struct reply *harts, struct top_hart *ret_hart, size_t max);

/* "3", "8-63": in at most n bytes. */
void top_hart_label(const struct top_hart *h, char *ret_text, size_t n);
