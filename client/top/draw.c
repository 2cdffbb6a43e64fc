/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Each frame draws the whole screen again from the model, and curses sends the changes:
 *
 *     host, clock, rate, losses
 *     a line per hart with its bar, on at most a third of the screen
 *     what the rows are, and their order
 *     titles of the columns
 *     rows
 *     keys, the filter being typed, or a message
 *
 * Nothing depends on colour alone, or on letters beyond ASCII if the terminal may have none: a
 * serial console shows the same.
 */
#include "client/top/draw.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NCURSES_WIDECHAR 1
#define NCURSES_NOMACROS 1
#include <curses.h>

#include "client/show/ascii.h"
#include "client/show/bars.h"
#include "client/show/escape.h"
#include "client/top/harts.h"
#include "client/top/keys.h"
#include "client/top/layout.h"
#include "client/top/text.h"
#include "proto/base/memory.h"
#include "proto/syntax/unit.h"

#define COLUMNS_MIN 40 /* no room for a share and a name below this */
#define LINES_MIN 8    /* no room for rows under the harts below this */
#define HART_LINES_MAX 64
#define BAR_MIN 8
#define BAR_MAX 40
#define HART_TEXT_WIDTH 60 /* of the text after a bar */
#define HART_TEXT_SHORT 30
#define HISTORY_PART 3 /* of the screen's width, for the rows' history */
#define SHARE_HOT 0.05 /* as in tables */
#define SHARE_WARM 0.005

/* Print escaped text at a position, cut to the width. */
static void put(const struct top_drawing *d, int y, int x, int width, const char *text)
{
	if (y < 0 || y >= LINES || width <= 0)
		return;
	_cleanup_(freep) char *ascii = d->utf8 ? NULL : ascii_dup(text);
	if (!d->utf8 && !ascii)
		return;
	_cleanup_(freep) char *cut =
		top_cut(ascii ? ascii : text, (size_t)width, d->utf8 ? "…" : "~");
	if (cut)
		mvaddstr(y, x, cut);
}

static void put_line(const struct top_drawing *d, int y, const char *text)
{
	put(d, y, 0, COLS, text);
}

/* A line in reverse video, to the right edge. */
static void put_reversed(const struct top_drawing *d, int y, const char *text)
{
	attr_set(A_REVERSE, 0, NULL);
	mvhline(y, 0, ' ', COLS);
	put_line(d, y, text);
	attr_set(A_NORMAL, 0, NULL);
}

/* --- harts ------------------------------------------------------------------------------------ */

static void put_bar(const struct top_drawing *d, int y, int x, int width, const struct top_hart *h)
{
	double user = h->has_user && h->has_kernel ? h->user : h->load;
	double all = h->has_user && h->has_kernel ? h->user + h->kernel : h->load;
	int to_user = (int)(user * width + 0.5), to_all = (int)(all * width + 0.5);

	mvaddstr(y, x, "[");
	for (int i = 0; i < width; i++) {
		bool in_user = i < to_user;
		const char *full = d->utf8 ? (in_user ? "█" : "▒") : (in_user ? "|" : "#");
		short pair = i >= to_all ? 0 : in_user ? TOP_PAIR_WARM : TOP_PAIR_HOT;
		attr_set(A_NORMAL, pair, NULL);
		addstr(i < to_all ? full : " ");
	}
	attr_set(A_NORMAL, 0, NULL);
	addstr("]");
}

/* One column for each of the last n frames, up to `tallest`. */
static void put_history(
	const struct top_drawing *d, int y, int x, const float *value, size_t n, double tallest)
{
	move(y, x);
	for (size_t i = 0; i < n; i++)
		addstr(isnan(value[i]) ? " "
				       : bar_of(tallest > 0 ? value[i] / tallest : 0, d->utf8));
}

static size_t history_width(int columns)
{
	return columns < 0                              ? 0
	       : (unsigned)columns < TOP_HISTORY_FRAMES ? (size_t)columns
							: TOP_HISTORY_FRAMES;
}

static void share_text(bool has, double share, char *ret_text)
{
	strcpy(ret_text, "-");
	if (has)
		unit_text(MPERF__UNIT__UNIT_SHARE, share, ret_text);
}

/* "43.20 %  user 40.10 %  kernel 3.10 %  d  99 Hz  IPC 0.86", or less of it. */
static void hart_text(const struct top_hart *h, bool whole, char *ret_text, size_t n)
{
	char load[UNIT_TEXT_BYTES], user[UNIT_TEXT_BYTES], kernel[UNIT_TEXT_BYTES];
	char hz[UNIT_TEXT_BYTES] = "", ipc[24] = "";
	_cleanup_(freep) char *rung = escape_terminal_dup(*h->rung ? h->rung : "-");

	share_text(h->has_load, h->load, load);
	share_text(h->has_user, h->user, user);
	share_text(h->has_kernel, h->kernel, kernel);
	if (h->has_hz)
		unit_text(MPERF__UNIT__UNIT_HZ, h->hz, hz);
	if (h->has_ipc)
		snprintf(ipc, sizeof(ipc), "  IPC %.2f", h->ipc);
	if (whole)
		snprintf(ret_text, n, "%8s  user %8s  kernel %8s  %s %s%s", load, user, kernel,
			rung ? rung : "-", hz, ipc);
	else
		snprintf(ret_text, n, "%8s  %s %s%s", load, rung ? rung : "-", hz, ipc);
}

static void hart_name(const struct top_hart *h, char *ret_text, size_t n)
{
	char range[32];
	top_hart_label(h, range, sizeof(range));
	snprintf(ret_text, n, "%s %s", h->first == h->last ? "hart" : "harts", range);
}

/* The harts, from line y on; returns the line after them. */
static int draw_harts(const struct top_drawing *d, const struct top_model *m, int y)
{
	struct top_hart hart[HART_LINES_MAX];
	const struct reply *harts = top_model_harts(m);
	size_t max = (size_t)LINES / 3 < HART_LINES_MAX ? (size_t)LINES / 3 : HART_LINES_MAX;
	size_t n = harts ? top_harts(harts, hart, max) : 0;
	char text[320];
	int name = 0;

	for (size_t i = 0; i < n; i++) {
		hart_name(&hart[i], text, sizeof(text));
		name = (int)strlen(text) > name ? (int)strlen(text) : name;
	}
	int bar = COLS - name - HART_TEXT_WIDTH;
	bool whole = bar >= BAR_MIN;
	bar = whole ? bar : COLS - name - HART_TEXT_SHORT;
	bar = bar < BAR_MIN ? BAR_MIN : bar > BAR_MAX ? BAR_MAX : bar;

	for (size_t i = 0; i < n; i++, y++) {
		hart_name(&hart[i], text, sizeof(text));
		put_line(d, y, text);
		if (m->shows_history) {
			float value[TOP_HISTORY_FRAMES];
			const size_t n_frames = history_width(bar);
			top_history_harts(m->history, hart[i].first, hart[i].last, value, n_frames);
			put_history(d, y, name + 2, value, n_frames, 1);
		} else {
			put_bar(d, y, name + 1, bar, &hart[i]);
		}
		hart_text(&hart[i], whole, text, sizeof(text));
		put(d, y, name + bar + 4, COLS - (name + bar + 4), text);
	}
	return y;
}

/* --- rows ------------------------------------------------------------------------------------- */

/* "functions by Self, reversed, /text, process 12": what the rows are. */
static void draw_title(const struct top_drawing *d, struct top_model *m, int y)
{
	const struct top_view *v = top_model_view(m);
	const struct reply *rows = top_model_rows(m);
	char title[TOP_MESSAGE_BYTES], interval[UNIT_TEXT_BYTES];
	int sort = rows ? reply_column(rows, v->sort) : -1;
	_cleanup_(freep) char *line = NULL, *narrowed = top_text_narrowed(d->options);
	size_t size;
	FILE *f = open_memstream(&line, &size);
	if (!f)
		return;

	top_view_title(v, title, sizeof(title));
	escape_terminal(f, title);
	if (sort >= 0) {
		fputs(" by ", f);
		escape_terminal(f, rows->columns->column[sort]->title);
	}
	fputs(v->reverse ? ", reversed" : "", f);
	unit_text(MPERF__UNIT__UNIT_NS, m->interval_ms * 1e6, interval);
	fprintf(f, "; every %s%s", interval, narrowed ? narrowed : "");
	if (*m->filter) {
		fputs("; with '", f);
		escape_terminal(f, m->filter);
		fputc('\'', f);
	}
	if (fclose(f) != 0)
		return;
	put_line(d, y, line);
	if (m->paused) {
		attr_set(A_REVERSE, 0, NULL);
		put(d, y, COLS - 8, 8, " paused ");
		attr_set(A_NORMAL, 0, NULL);
	}
}

/* One cell; titles for row SIZE_MAX. */
static void draw_cell(const struct top_drawing *d, int y, int x, const struct top_column *c,
	const struct reply *rows, size_t row)
{
	const Mperf__Column *column = rows->columns->column[c->index];
	const char *title = *column->title ? column->title : column->name;
	_cleanup_(freep) char *text =
		row == SIZE_MAX ? escape_terminal_dup(title) : top_cell(rows, row, c->index);
	int width = (int)c->width;
	if (!text)
		return;

	int used = (int)escape_width(text);
	if (!c->name && used < width) {
		x += width - used;
		width = used;
	}
	put(d, y, x, COLS - x < width ? COLS - x : width, text);
}

static short share_pair(const struct reply *rows, size_t row, const struct top_column *c)
{
	double share;
	if (rows->columns->column[c->index]->unit != MPERF__UNIT__UNIT_SHARE ||
		!reply_number(rows, row, (int)c->index, &share))
		return 0;
	return share >= SHARE_HOT ? TOP_PAIR_HOT : share >= SHARE_WARM ? TOP_PAIR_WARM : 0;
}

static void draw_row(const struct top_drawing *d, int y, const struct top_layout *layout,
	const struct reply *rows, size_t row, bool reversed)
{
	int x = 0;

	attr_set(reversed ? A_REVERSE : A_NORMAL, 0, NULL);
	if (reversed)
		mvhline(y, 0, ' ', COLS);
	for (size_t i = 0; i < layout->n; i++) {
		const struct top_column *c = &layout->column[i];
		if (!reversed)
			attr_set(A_NORMAL, share_pair(rows, row, c), NULL);
		draw_cell(d, y, x, c, rows, row);
		x += (int)c->width + TOP_GAP;
	}
	attr_set(A_NORMAL, 0, NULL);
}

/* Widths start again with another view and stay with this one. */
static void lay_out(
	struct top_drawing *d, struct top_model *m, size_t width, struct top_layout *ret_layout)
{
	char title[TOP_MESSAGE_BYTES];
	top_view_title(top_model_view(m), title, sizeof(title));
	if (strcmp(title, d->grown_for) != 0)
		memset(d->grown, 0, sizeof(d->grown));
	strcpy(d->grown_for, title);
	top_layout(top_model_rows(m), width, d->grown, ret_layout);
}

/* The history of the rows on the screen, from line y on, all of one height; n columns at the right edge. */
static void draw_row_history(
	const struct top_drawing *d, struct top_model *m, int y, int end, size_t n)
{
	const struct reply *rows = top_model_rows(m);
	float value[TOP_HISTORY_FRAMES];
	char view[TOP_MESSAGE_BYTES], title[64];
	double tallest = 0;
	const size_t last = m->first + (size_t)(end - y);
	top_view_title(top_model_view(m), view, sizeof(view));
	for (size_t i = m->first; i < m->n_order && i < last; i++) {
		top_history_row(m->history, rows, m->order[i], view, value, n);
		for (size_t k = 0; k < n; k++)
			tallest = !isnan(value[k]) && value[k] > tallest ? value[k] : tallest;
	}
	for (size_t i = m->first; i < m->n_order && i < last; i++) {
		top_history_row(m->history, rows, m->order[i], view, value, n);
		put_history(d, y + (int)(i - m->first), COLS - (int)n, value, n, tallest);
	}
	snprintf(title, sizeof(title), "History, up to %.2f harts", tallest);
	attr_set(A_REVERSE, 0, NULL);
	put(d, y - 1, COLS - (int)n, (int)n, title);
	attr_set(A_NORMAL, 0, NULL);
}

static void draw_rows(struct top_drawing *d, struct top_model *m, int y)
{
	const struct reply *rows = top_model_rows(m);
	struct top_layout layout;
	int end = LINES - 1;

	if (!rows) {
		put_reversed(d, y, "");
		put_line(d, y + 1, "waiting for the first frame");
		return;
	}
	const size_t n_history = m->shows_history ? history_width(COLS / HISTORY_PART) : 0;
	lay_out(d, m, (size_t)COLS - n_history - (n_history ? TOP_GAP : 0), &layout);
	attr_set(A_REVERSE, 0, NULL);
	mvhline(y, 0, ' ', COLS);
	for (size_t i = 0, x = 0; i < layout.n; x += layout.column[i++].width + TOP_GAP)
		draw_cell(d, y, (int)x, &layout.column[i], rows, SIZE_MAX);
	attr_set(A_NORMAL, 0, NULL);

	y++;
	m->page = end > y ? (size_t)(end - y) : 1;
	top_model_move(m, 0);
	const int first = y;
	for (size_t i = m->first; i < m->n_order && y < end; i++, y++)
		draw_row(d, y, &layout, rows, m->order[i], i == m->selected);
	if (n_history > 0)
		draw_row_history(d, m, first, end, n_history);
	if (m->n_order == 0)
		put_line(d, y, *m->filter ? "no row matches the filter" : "nothing ran");
}

/* --- the rest --------------------------------------------------------------------------------- */

static void draw_bottom(const struct top_drawing *d, const struct top_model *m)
{
	int y = LINES - 1;
	char line[2 * TOP_FILTER_BYTES];

	if (m->typing) {
		snprintf(line, sizeof(line), "/%s_", m->filter);
		put_line(d, y, line);
	} else if (*m->message) {
		_cleanup_(freep) char *message = escape_terminal_dup(m->message);
		attr_set(A_BOLD, 0, NULL);
		put_line(d, y, message ? message : "");
		attr_set(A_NORMAL, 0, NULL);
	} else {
		put_line(d, y,
			m->n_views > 1 ? "Esc back  Enter open  ? help  q quit"
				       : "? help  / filter  s sort  Enter open  f p t c m what  "
					 "space pause  q quit");
	}
}

/* The provenance, over as many lines as it takes. */
static void draw_provenance(const struct top_drawing *d, const struct top_model *m, int y)
{
	_cleanup_(freep) char *line =
		m->shown.provenance ? reply_provenance_line(m->shown.provenance) : NULL;
	for (const char *rest = line; rest && *rest && y < LINES - 1; y++) {
		size_t n = escape_cut(rest, (size_t)COLS);
		char *part = strndup(rest, n);
		if (!part || n == 0) {
			free(part);
			return;
		}
		put_line(d, y, part);
		free(part);
		rest += n;
	}
}

static void draw_help(const struct top_drawing *d, const struct top_model *m)
{
	const char *const *help = top_keys_help();
	int y = 0;

	put_reversed(d, y++, "mperfctl top: keys");
	for (; *help && y < LINES - 1; help++)
		put_line(d, y++, *help);
	if (y + 2 < LINES - 1)
		draw_provenance(d, m, y + 1);
	put_line(d, LINES - 1, "any key closes this help");
}

static void draw_all(struct top_drawing *d, struct top_model *m)
{
	_cleanup_(freep) char *headline = top_text_headline(m);

	attr_set(A_BOLD, 0, NULL);
	put_line(d, 0, headline ? headline : "");
	attr_set(A_NORMAL, 0, NULL);
	int y = draw_harts(d, m, 1);
	draw_title(d, m, y);
	draw_rows(d, m, y + 1);
	draw_bottom(d, m);
}

void top_draw(struct top_drawing *d, struct top_model *m)
{
	erase();
	attr_set(A_NORMAL, 0, NULL);
	if (COLS < COLUMNS_MIN || LINES < LINES_MIN) {
		put_line(d, 0, "top needs 40 x 8; q quits");
		m->page = 1;
	} else if (m->help) {
		draw_help(d, m);
	} else {
		draw_all(d, m);
	}
	refresh();
}
