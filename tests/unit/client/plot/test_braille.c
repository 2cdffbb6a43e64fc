/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Dots and lines in braille.
 */
#include <math.h>

#include "client/plot/braille.h"
#include "tests/unit/test.h"

static struct braille canvas;

static void begin(void)
{
	ck_assert_int_eq(braille_new(3, 2, &canvas), 0);
}

static void end(void)
{
	braille_clear(&canvas);
}

EACH_TEST(.begin = begin, .end = end);

/* All characters, a blank as a full stop. */
static const char *drawn(void)
{
	static char text[64];
	char one[BRAILLE_TEXT_BYTES];
	*text = '\0';
	for (size_t row = 0; row < canvas.rows; row++) {
		for (size_t i = 0; i < canvas.columns; i++) {
			braille_text(&canvas, i, row, one);
			strcat(text, *one ? one : ".");
		}
		strcat(text, "\n");
	}
	return text;
}

TEST(each_dot_has_its_place)
{
	static const char *const alone[] = {"⠁", "⠈", "⠂", "⠐", "⠄", "⠠", "⡀", "⢀"};
	for (long i = 0; i < 8; i++) {
		char text[BRAILLE_TEXT_BYTES];
		struct braille b;
		ck_assert_int_eq(braille_new(1, 1, &b), 0);
		braille_set(&b, i % 2, i / 2);
		braille_text(&b, 0, 0, text);
		ck_assert_str_eq(text, alone[i]);
		braille_clear(&b);
	}
}

TEST(all_dots_of_a_character_are_one)
{
	for (long x = 0; x < 2; x++)
		for (long y = 4; y < 8; y++)
			braille_set(&canvas, x, y);
	ck_assert_str_eq(drawn(), "...\n⣿..\n");
}

TEST(dots_outside_are_ignored)
{
	braille_set(&canvas, -1, 0);
	braille_set(&canvas, 0, -1);
	braille_set(&canvas, 6, 0);
	braille_set(&canvas, 0, 8);
	ck_assert_str_eq(drawn(), "...\n...\n");
}

TEST(a_line_has_both_ends_and_no_gap)
{
	braille_draw(&canvas, &(struct braille_line){.x0 = 0, .y0 = 3, .x1 = 5, .y1 = 3});
	ck_assert_str_eq(drawn(), "⣀⣀⣀\n...\n");
	braille_draw(&canvas, &(struct braille_line){.x0 = 2, .y0 = 7, .x1 = 2, .y1 = 4});
	ck_assert_str_eq(drawn(), "⣀⣀⣀\n.⡇.\n");
}

TEST(a_line_is_clipped)
{
	braille_draw(&canvas, &(struct braille_line){.x0 = -1e9, .y0 = 0, .x1 = 1e9, .y1 = 0});
	ck_assert_str_eq(drawn(), "⠉⠉⠉\n...\n");
	braille_draw(&canvas, &(struct braille_line){.x0 = 0, .y0 = 9, .x1 = 5, .y1 = 9});
	braille_draw(&canvas, &(struct braille_line){.x0 = 7, .y0 = -5, .x1 = 90, .y1 = 20});
	braille_draw(&canvas, &(struct braille_line){.x0 = NAN, .y0 = 1, .x1 = 3, .y1 = 2});
	braille_draw(&canvas, &(struct braille_line){.x0 = 0, .y0 = 1, .x1 = INFINITY, .y1 = 2});
	ck_assert_str_eq(drawn(), "⠉⠉⠉\n...\n");
}

TEST(a_dashed_line_has_gaps)
{
	braille_draw(&canvas,
		&(struct braille_line){.x0 = 0, .y0 = 0, .x1 = 5, .y1 = 0, .on = 1, .off = 1});
	ck_assert_str_ne(drawn(), "⠉⠉⠉\n...\n");
	ck_assert_str_ne(drawn(), "...\n...\n");
}
