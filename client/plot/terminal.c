/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Three layers on one grid of characters: lines in braille, names of roofs where nothing else is written, and loops
 * above all. If several loops share a character, it has the letter of the first, since rows are sorted by falling time.
 */
#include "client/plot/terminal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/plot/braille.h"
#include "client/plot/legend.h"
#include "client/show/escape.h"
#include "proto/base/memory.h"

#define LEFT 8  /* columns of the labels of y, with their line */
#define BELOW 2 /* lines of the axis of x and its labels */
#define ABOVE 1 /* the unit of y */
#define COLUMNS_PER_LABEL 9
#define ROWS_PER_LABEL 3

/* The colour of a character. Source: man 4 console_codes, SGR. */
enum ink { INK_NONE, INK_ROOF, INK_MEMORY, INK_BOTH, INK_COMPUTE, INK_DOT, N_INKS };
static const char *const colours[N_INKS] = {
	"", "\033[2m", "\033[1;36m", "\033[1;35m", "\033[1;33m", "\033[1m"};
#define COLOUR_END "\033[0m"

static const char letters[] = "123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
#define N_LETTERS (sizeof(letters) - 1)
#define LETTER_OF_REST '*'
#define LETTER_BEFORE 'o' /* where a loop was in the first of two runs */
#define LETTER_DRAM '+'   /* where it is by bytes from memory */

struct sheet {
	const struct plot *plot;
	const struct plot_set *set; /* or NULL */
	const struct plot_axes *axes;
	struct plot_terminal_look look;
	size_t columns, rows; /* of the area between the axes */
	struct braille lines;
	char *text;   /* columns × rows; 0: none */
	uint8_t *ink; /* the same */
	size_t n_used;
};

/* --- points and texts ------------------------------------------------------------------------- */

/* Shares of the axes, in dots of braille. */
static double dot_x(const struct sheet *s, double share)
{
	return share * (double)(s->columns * BRAILLE_COLUMNS - 1);
}

static double dot_y(const struct sheet *s, double share)
{
	return (1 - share) * (double)(s->rows * BRAILLE_ROWS - 1);
}

static size_t cell_of(const struct sheet *s, double intensity, double gops)
{
	double x = dot_x(s, plot_axis_at(&s->axes->x, intensity));
	double y = dot_y(s, plot_axis_at(&s->axes->y, gops));
	size_t column = (size_t)fmax(x, 0) / BRAILLE_COLUMNS,
	       row = (size_t)fmax(y, 0) / BRAILLE_ROWS;
	column = column < s->columns ? column : s->columns - 1;
	row = row < s->rows ? row : s->rows - 1;
	return row * s->columns + column;
}

/* Write a name if its place, and the cells next to it, are free of text. */
static bool put_name(struct sheet *s, long column, long row, const char *name)
{
	long n = (long)strlen(name);
	if (row < 0 || row >= (long)s->rows || column < 0 || column + n > (long)s->columns)
		return false;
	char *at = &s->text[row * (long)s->columns];
	for (long i = column > 0 ? column - 1 : 0; i <= column + n && i < (long)s->columns; i++)
		if (at[i])
			return false;
	for (long i = 0; i < n; i++) {
		at[column + i] = (name[i] >= ' ' && name[i] <= '~') ? name[i] : '?';
		s->ink[row * (long)s->columns + column + i] = INK_ROOF;
	}
	return true;
}

/* --- roofs ------------------------------------------------------------------------------------ */

static void draw_roof(struct sheet *s, const struct plot_roof *roof)
{
	struct plot_line l;
	if (!plot_axes_roof(s->axes, s->set, roof, roof->value, &l))
		return;
	braille_draw(&s->lines, &(struct braille_line){.x0 = dot_x(s, l.x0),
					.y0 = dot_y(s, l.y0),
					.x1 = dot_x(s, l.x1),
					.y1 = dot_y(s, l.y1),
					.on = 1,
					.off = s->plot->stale || roof->is_theoretical ? 2 : 0});
}

/* Write the name of memory above the middle of its line or nearby, that of a peak above its right end. */
static void name_roof(struct sheet *s, const struct plot_roof *roof)
{
	static const double along[] = {0.5, 0.35, 0.65, 0.2, 0.8, 0.05};
	struct plot_line l;
	if (!plot_axes_roof(s->axes, s->set, roof, roof->value, &l))
		return;
	long n = (long)strlen(roof->name), above = roof->is_memory ? 0 : 1;
	for (size_t i = 0; i < sizeof(along) / sizeof(*along); i++) {
		double at = roof->is_memory ? along[i] : 1;
		double x = dot_x(s, l.x0 + at * (l.x1 - l.x0)),
		       y = dot_y(s, l.y0 + at * (l.y1 - l.y0));
		long column = lround(x / BRAILLE_COLUMNS) - n - (long)i * (above ? n + 2 : 0) - 1;
		if (put_name(s, column, (long)y / BRAILLE_ROWS - above, roof->name))
			return;
	}
}

static void draw_roofs(struct sheet *s)
{
	for (size_t i = 0; s->set && i < s->set->n_memory; i++)
		draw_roof(s, s->set->memory[i]);
	for (size_t i = 0; s->set && i < s->set->n_peaks; i++)
		draw_roof(s, s->set->peak[i]);
	for (size_t i = 0; s->set && i < s->set->n_memory; i++)
		name_roof(s, s->set->memory[i]);
	for (size_t i = 0; s->set && i < s->set->n_peaks; i++)
		name_roof(s, s->set->peak[i]);
}

/* --- loops ------------------------------------------------------------------------------------ */

static enum ink ink_of(enum plot_bound bound)
{
	static const enum ink inks[N_PLOT_BOUNDS] = {INK_DOT, INK_MEMORY, INK_BOTH, INK_COMPUTE};
	return inks[bound];
}

/* The bound for the bytes by which the dot is drawn. */
static enum plot_bound bound_of(const struct plot_dot *d)
{
	return plot_dot_has_place(d) ? d->bound : d->dram_bound;
}

static bool is_mark(char letter)
{
	return letter == LETTER_BEFORE || letter == LETTER_DRAM;
}

/* All loops in one character cell share a letter. */
static char letter_at(struct sheet *s, size_t cell, const struct plot_dot *d)
{
	if (s->text[cell] && s->ink[cell] >= INK_MEMORY && !is_mark(s->text[cell]))
		return s->text[cell];
	char letter = s->n_used < N_LETTERS ? letters[s->n_used] : LETTER_OF_REST;
	s->n_used += s->n_used < N_LETTERS;
	s->text[cell] = letter;
	s->ink[cell] = ink_of(bound_of(d));
	return letter;
}

/* Draw a line from one (intensity, rate) to another. */
static void draw_way(struct sheet *s, double x0, double y0, double x1, double y1)
{
	const struct plot_axes *a = s->axes;
	braille_draw(&s->lines, &(struct braille_line){.x0 = dot_x(s, plot_axis_at(&a->x, x0)),
					.y0 = dot_y(s, plot_axis_at(&a->y, y0)),
					.x1 = dot_x(s, plot_axis_at(&a->x, x1)),
					.y1 = dot_y(s, plot_axis_at(&a->y, y1)),
					.on = 1,
					.off = 1});
}

/* Write a mark, unless there is a letter. */
static void put_mark(struct sheet *s, size_t cell, char mark, enum plot_bound bound)
{
	if (s->text[cell] && s->ink[cell] != INK_ROOF)
		return;
	s->text[cell] = mark;
	s->ink[cell] = ink_of(bound);
}

static void draw_before(struct sheet *s, const struct plot_dot *d)
{
	const struct plot_dot *later = d->later != PLOT_NO_DOT ? &s->plot->dot[d->later] : NULL;
	put_mark(s, cell_of(s, d->ops_per_byte, d->gops), LETTER_BEFORE, d->bound);
	if (later && plot_dot_has_place(later))
		draw_way(s, d->ops_per_byte, d->gops, later->ops_per_byte, later->gops);
}

/* Mark the second place of a loop, whose letter is at the first. */
static void draw_dram(struct sheet *s, const struct plot_dot *d)
{
	put_mark(s, cell_of(s, d->ops_per_dram_byte, d->gops), LETTER_DRAM, d->dram_bound);
	draw_way(s, d->ops_per_byte, d->gops, d->ops_per_dram_byte, d->gops);
}

/* Loops of the last run get letters; those of the first run are small circles, joined to their new
 * places. */
static void draw_dots(struct sheet *s, char *mark)
{
	const struct plot *p = s->plot;
	for (size_t i = 0; i < p->n_dots; i++) {
		const struct plot_dot *d = &p->dot[i];
		mark[i] = '\0';
		if (plot_dot_is_drawn(d) && d->run + 1 >= p->n_runs)
			mark[i] = letter_at(s, cell_of(s, plot_dot_intensity(d), d->gops), d);
	}
	for (size_t i = 0; i < p->n_dots; i++) {
		const struct plot_dot *d = &p->dot[i];
		if (!plot_dot_has_place(d))
			continue;
		if (d->run + 1 < p->n_runs)
			draw_before(s, d);
		else if (plot_dot_has_dram_place(d))
			draw_dram(s, d);
	}
}

/* --- printing --------------------------------------------------------------------------------- */

static void put_line(const struct sheet *s, size_t row, FILE *f)
{
	size_t end = s->columns;
	char braille[BRAILLE_TEXT_BYTES];
	while (end > 0 && !s->text[row * s->columns + end - 1] &&
		!s->lines.cell[row * s->columns + end - 1])
		end--; /* no trailing spaces */
	for (size_t i = 0; i < end; i++) {
		size_t cell = row * s->columns + i;
		enum ink ink = s->text[cell] ? s->ink[cell] : INK_ROOF;
		braille_text(&s->lines, i, row, braille);
		bool is_blank = !s->text[cell] && !*braille;
		if (s->look.colour && !is_blank)
			fputs(colours[ink], f);
		bool is_dot = s->ink[cell] >= INK_MEMORY && s->look.utf8;
		if (s->text[cell] == LETTER_BEFORE && is_dot)
			fputs("○", f);
		else if (s->text[cell] == LETTER_DRAM && is_dot)
			fputs("◇", f);
		else if (s->text[cell])
			fputc(s->text[cell], f);
		else
			fputs(is_blank ? " " : s->look.utf8 ? braille : ".", f);
		if (s->look.colour && !is_blank)
			fputs(COLOUR_END, f);
	}
	fputc('\n', f);
}

static void put_rows(const struct sheet *s, FILE *f)
{
	struct plot_tick tick[PLOT_TICKS_MAX];
	size_t n = plot_axis_ticks(&s->axes->y, s->rows / ROWS_PER_LABEL + 1, tick);
	fprintf(f, "%*s\n", LEFT - 1, s->plot->rate);
	for (size_t row = 0; row < s->rows; row++) {
		char label[PLOT_TICK_BYTES] = "";
		for (size_t i = 0; i < n; i++) {
			double y = dot_y(s, plot_axis_at(&s->axes->y, tick[i].value));
			if (tick[i].has_label && (size_t)lround(y) / BRAILLE_ROWS == row)
				plot_tick_text(tick[i].value, label);
		}
		fprintf(f, "%*s%s", LEFT - 1, label,
			s->look.utf8 ? (*label ? "┤" : "│") : (*label ? "+" : "|"));
		put_line(s, row, f);
	}
}

static void put_x_axis(const struct sheet *s, FILE *f)
{
	struct plot_tick tick[PLOT_TICKS_MAX];
	size_t n = plot_axis_ticks(&s->axes->x, s->columns / COLUMNS_PER_LABEL, tick), at = 0;
	char line[PLOT_TERMINAL_COLUMNS_MAX + 1], marks[PLOT_TERMINAL_COLUMNS_MAX + 1];
	size_t room = s->columns - strlen(s->plot->per_byte) - 1;
	memset(line, ' ', s->columns);
	memset(marks, 0, s->columns);
	for (size_t i = 0; i < n; i++) {
		char label[PLOT_TICK_BYTES];
		double x = dot_x(s, plot_axis_at(&s->axes->x, tick[i].value));
		size_t column = (size_t)lround(x) / BRAILLE_COLUMNS;
		if (!tick[i].has_label || column >= s->columns)
			continue;
		plot_tick_text(tick[i].value, label);
		size_t width = strlen(label), begin = column > width / 2 ? column - width / 2 : 0;
		marks[column] = 1;
		if (begin < at || begin + width > room)
			continue;
		memcpy(&line[begin], label, width);
		at = begin + width + 1;
	}
	memcpy(&line[room + 1], s->plot->per_byte, strlen(s->plot->per_byte));
	fprintf(f, "%*s%s", LEFT - 1, "", s->look.utf8 ? "└" : "+");
	for (size_t i = 0; i < s->columns; i++)
		fputs(s->look.utf8 ? (marks[i] ? "┬" : "─") : (marks[i] ? "+" : "-"), f);
	fprintf(f, "\n%*s%.*s\n", LEFT, "", (int)s->columns, line);
}

/* ---------------------------------------------------------------------------------------------- */

static size_t within(size_t n, size_t min, size_t max)
{
	return n < min ? min : n > max ? max : n;
}

static void sheet_clear(struct sheet *s)
{
	braille_clear(&s->lines);
	free(s->text);
	free(s->ink);
}

static int sheet_new(struct sheet *s, size_t columns, size_t rows)
{
	s->columns = within(columns, PLOT_TERMINAL_COLUMNS_MIN, PLOT_TERMINAL_COLUMNS_MAX) - LEFT;
	s->rows = within(rows, PLOT_TERMINAL_ROWS_MIN, PLOT_TERMINAL_ROWS_MAX) - ABOVE - BELOW;
	s->text = calloc(s->columns, s->rows);
	s->ink = calloc(s->columns, s->rows);
	return s->text && s->ink ? braille_new(s->columns, s->rows, &s->lines) : -ENOMEM;
}

int plot_terminal_draw(const struct plot *p, const struct plot_sets *sets,
	const struct plot_terminal_look *look, struct plot_axes *axes, char *mark, FILE *f)
{
	const struct plot_legend_look legend_look = {
		.columns = look->columns, .brief = look->brief};
	_cleanup_(freep) char *legend = NULL;
	_cleanup_(sheet_clear) struct sheet s = {.plot = p, .axes = axes, .look = *look};
	size_t bytes;
	FILE *words = open_memstream(&legend, &bytes);
	if (!words)
		return -ENOMEM;
	size_t n_lines = plot_legend_write(p, sets, &legend_look, words);
	if (fclose(words) != 0)
		return -ENOMEM;
	int r = sheet_new(&s, look->columns, look->rows > n_lines ? look->rows - n_lines : 0);
	if (r < 0)
		return r;
	s.set = sets->n > 0 ? &sets->set[sets->shown] : NULL;
	plot_axes_fit(axes, p, sets);
	draw_roofs(&s);
	draw_dots(&s, mark);
	put_rows(&s, f);
	put_x_axis(&s, f);
	fputs(legend, f);
	return ferror(f) ? -EIO : 0;
}
