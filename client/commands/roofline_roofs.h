/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The measured roofs of this machine, in the form that plots take */

#include "client/plot/plot.h"

#define ROOFLINE_SAYS_BYTES 512

struct roofline_roofs {
	struct plot_roof *roof; /* of one hart; owned */
	size_t n;
	char none[ROOFLINE_SAYS_BYTES];  /* why there are none, and what to do; "" if there are */
	char stale[ROOFLINE_SAYS_BYTES]; /* whose they are instead, and what to do; "" */
};

/* Read those that `mperfctl roofs measure` kept. 0, also if there are none; -ENOMEM. */
int roofline_roofs_find(struct roofline_roofs *ret_roofs);
void roofline_roofs_clear(struct roofline_roofs *r);
