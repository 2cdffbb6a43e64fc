/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Braille: a canvas whose characters have two by four dots each */

#include <stddef.h>
#include <stdint.h>

#define BRAILLE_COLUMNS 2 /* dots of a character */
#define BRAILLE_ROWS 4
#define BRAILLE_TEXT_BYTES 4

struct braille {
	size_t columns, rows; /* in characters */
	uint8_t *cell;        /* columns × rows, owned */
};

/* 0, -ENOMEM. columns and rows are above 0. */
int braille_new(size_t columns, size_t rows, struct braille *ret_canvas);
void braille_clear(struct braille *b);

/* Set a dot, counted from the top left; outside the canvas it is ignored. Exported for tests. */
void braille_set(struct braille *b, long x, long y);

/* A straight line between two points, in dots: `on` dots drawn, then `off` left out, and so on;
 * off 0: all drawn. Parts outside the canvas are ignored. */
struct braille_line {
	double x0, y0, x1, y1;
	unsigned on, off;
};
void braille_draw(struct braille *b, const struct braille_line *line);

/* The character of a cell in UTF-8; "" if it has no dots. */
void braille_text(const struct braille *b, size_t column, size_t row,
	char ret_text[static BRAILLE_TEXT_BYTES]);
