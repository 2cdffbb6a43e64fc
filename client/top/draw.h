/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Draws top's model on the open curses screen */

#include <stdbool.h>
#include <stddef.h>

#include "client/options/options.h"
#include "client/top/model.h"

/* Colour pairs, if the terminal has colours. */
enum { TOP_PAIR_HOT = 1, TOP_PAIR_WARM };

struct top_drawing {
	const struct options *options; /* borrowed */
	bool utf8;                     /* may letters beyond ASCII be written? */

	/* inner: widths of the view's columns so far, and of which view */
	size_t grown[REPLY_COLUMNS_MAX];
	char grown_for[TOP_MESSAGE_BYTES];
};

/* Draw all of the screen; sets the model's page. */
void top_draw(struct top_drawing *d, struct top_model *m);
