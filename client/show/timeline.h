/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Timeline: rows of bars, one for each stretch of time, above their times and what happened then
 *
 *      Process           PID    Mean  At most
 *      cc1              4711   98.0 %   100 %  ▇▇▇▇▇▇▁▁▁▁▇▇▇▇
 *      ring overrun                              !
 *                                              |13:00:01     |13:00:11
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "client/show/reply.h"

struct timeline_look {
	size_t width;      /* of the terminal; 0: TIMELINE_WIDTH */
	bool utf8;         /* block elements (eighths) may be drawn */
	const char *title; /* of the rows */
	const char *unit;  /* of their values: "hart", "thread" */
};
#define TIMELINE_WIDTH 80u

/* Stretches for which there is room. */
size_t timeline_room(size_t width);

/* Draw the tables "timeline" and "mark". If there are more stretches than room, neighbours are drawn as one. 0,
 * -ENOMEM, -EIO. */
int timeline_print(const struct replies *r, const struct timeline_look *look, FILE *f);
