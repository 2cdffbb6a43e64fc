/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Series: bandwidth of threads over time, drawn in lines of text
 *
 *      Thread             TID           GB/s  at most   13:00:01 ── 13:00:09
 *      sv                4711  read     7.21    9.80    ▅▅▆▆▇▇██▇▆▅▄▂▁
 *                              written  2.10    2.31    ▁▁▂▂▁
 *
 * Two lines per thread, all of one height, so that threads and moments compare. A gap is a stretch
 * without reports.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "client/show/reply.h"

struct series_look {
	size_t width;     /* of the terminal; 0: SERIES_WIDTH */
	bool utf8;        /* block elements (eighths) may be drawn */
	double stretch_s; /* of one row of the reply */
};
#define SERIES_WIDTH 80u

/* Draw the rows of a series (columns time, comm, pid, tid, bytes_loaded, bytes_stored, span_ns).
 * 0, -ENOMEM, -EIO. */
int series_print(const struct reply *r, const struct series_look *look, FILE *f);
