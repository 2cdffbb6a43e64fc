/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* A line per hart, as far as there is room */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/reply.h"

#define TOP_RUNG_BYTES 32

struct top_hart {
	int first, last; /* the harts that the line tells of, by their numbers */
	bool has_load, has_user, has_kernel, has_hz, has_ipc;
	double load, user, kernel; /* shares of the interval; of several harts: their mean */
	double hz, ipc;            /* of several: hz as long as it is the same, no ipc */
	char rung[TOP_RUNG_BYTES]; /* "d", not escaped; of several that differ: "mixed" */
};

/* Fill at most max > 0 lines from the table "harts", in its order: a hart each, or, where there are
 * more, the last line for all that are left. Returns how many. */
size_t top_harts(const struct reply *harts, struct top_hart *ret_hart, size_t max);

/* "3", "8-63": in at most n bytes. */
void top_hart_label(const struct top_hart *h, char *ret_text, size_t n);
