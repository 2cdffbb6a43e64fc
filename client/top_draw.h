/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Drawing of top's model on curses' screen, which is open */

#include <stdbool.h>
#include <stddef.h>

#include "client/options.h"
#include "client/top_model.h"

/* Colours of the screen, where it has some. */
enum { TOP_PAIR_HOT = 1, TOP_PAIR_WARM };

struct top_drawing {
	const struct options *options; /* borrowed */
	bool utf8;                     /* may letters beyond ASCII be written? */

	/* inner: widths of the view's columns so far, and for what they were measured */
	size_t grown[REPLY_COLUMNS_MAX];
	char grown_for[TOP_MESSAGE_BYTES];
};

/* Draw all of the screen; sets the model's page. */
void top_draw(struct top_drawing *d, struct top_model *m);
