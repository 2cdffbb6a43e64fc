/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 *      1 4     A character is U+2800 plus a bit for each dot, numbered so.
 *      2 5     Source: The Unicode Standard 15, section 21.1 (Braille Patterns).
 *      3 6
 *      7 8
 */
#include "client/plot/braille.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "proto/base/memory.h"

int braille_new(size_t columns, size_t rows, struct braille *ret_canvas)
{
	uint8_t *cell = calloc(columns, rows);
	if (!cell)
		return -ENOMEM;
	*ret_canvas = (struct braille){.columns = columns, .rows = rows, .cell = cell};
	return 0;
}

void braille_clear(struct braille *b)
{
	free(TAKE_PTR(b->cell));
}

void braille_set(struct braille *b, long x, long y)
{
	static const uint8_t bits[BRAILLE_ROWS][BRAILLE_COLUMNS] = {
		{1u << 0, 1u << 3}, {1u << 1, 1u << 4}, {1u << 2, 1u << 5}, {1u << 6, 1u << 7}};
	if (x < 0 || y < 0)
		return;
	size_t column = (size_t)x / BRAILLE_COLUMNS, row = (size_t)y / BRAILLE_ROWS;
	if (column < b->columns && row < b->rows)
		b->cell[row * b->columns + column] |=
			bits[(size_t)y % BRAILLE_ROWS][(size_t)x % BRAILLE_COLUMNS];
}

/* Cut a line to the part with 0 <= position <= end in one direction, `from` and `to` being shares of
 * it. Source: Liang and Barsky, "A new concept and method for line clipping", 1984. */
static void clip(double start, double length, double end, double *from, double *to)
{
	if (length == 0) {
		if (start < 0 || start > end)
			*to = -1;
		return;
	}
	double a = -start / length, b = (end - start) / length;
	*from = fmax(*from, fmin(a, b));
	*to = fmin(*to, fmax(a, b));
}

void braille_draw(struct braille *b, const struct braille_line *line)
{
	double dx = line->x1 - line->x0, dy = line->y1 - line->y0, from = 0, to = 1;
	if (!isfinite(dx) || !isfinite(dy))
		return;
	clip(line->x0, dx, (double)(b->columns * BRAILLE_COLUMNS) - 1, &from, &to);
	clip(line->y0, dy, (double)(b->rows * BRAILLE_ROWS) - 1, &from, &to);
	if (from > to)
		return;
	size_t steps = (size_t)ceil(fmax(fabs(dx), fabs(dy)) * (to - from)) + 1;
	for (size_t i = 0; i <= steps; i++) {
		double at = from + (to - from) * (double)i / (double)steps;
		if (line->off == 0 || i % (line->on + line->off) < line->on)
			braille_set(b, lround(line->x0 + at * dx), lround(line->y0 + at * dy));
	}
}

void braille_text(const struct braille *b, size_t column, size_t row,
	char ret_text[static BRAILLE_TEXT_BYTES])
{
	uint8_t bits = b->cell[row * b->columns + column];
	if (bits == 0) {
		ret_text[0] = '\0';
		return;
	}
	ret_text[0] = (char)0xe2; /* U+2800 in UTF-8: e2 a0 80 */
	ret_text[1] = (char)(0xa0 | bits >> 6);
	ret_text[2] = (char)(0x80 | (bits & 0x3f));
	ret_text[3] = '\0';
}
