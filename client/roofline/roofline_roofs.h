/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The measured roofs of this machine, in the form that plots take */

#include "client/plot/plot.h"
#include "client/roofs/machine.h"
#include "client/roofs/peaks.h"

#define ROOFLINE_SAYS_BYTES 512

struct roofline_roofs {
	struct plot_roof *roof; /* of one hart; owned */
	size_t n;
	char none[ROOFLINE_SAYS_BYTES];  /* the reason why there are no roofs, and what to do; "" if
					  * there are */
	char stale[ROOFLINE_SAYS_BYTES]; /* the other machine whose roofs these are, and what to do;
					  * or "" */
	char disturbed[ROOFLINE_SAYS_BYTES]; /* what disturbed measuring them, and what to do; or ""
					      * */
	char whose[ROOFLINE_SAYS_BYTES];     /* where they are kept, and when they were measured; or
					      * "" */
};

/* Which theoretical peaks to add. */
enum roofline_peaks {
	ROOFLINE_NO_PEAKS,
	ROOFLINE_PEAKS_ALONE, /* if no roof was measured */
	ROOFLINE_PEAKS_TOO,
};

/* Read those that `mperfctl roofs measure` kept. 0, also if there are none; -ENOMEM. */
int roofline_roofs_find(enum roofline_peaks peaks, struct roofline_roofs *ret_roofs);
void roofline_roofs_clear(struct roofline_roofs *r);

/* A theoretical peak as a roof of this machine. False without the highest clock of its harts, or for
 * what no plot draws. Exported for tests. */
bool roofline_roofs_peak(
	const struct machine *m, const struct peak *peak, struct plot_roof *ret_roof);
