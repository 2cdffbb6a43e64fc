/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * First we format all cells into strings; then widths are known, and names shrink until a line
 * fits. A path loses its front, since its end says more; other names lose their end, or their middle
 * if the caller says so.
 */
#include "client/show/table.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "client/show/escape.h"
#include "proto/base/memory.h"
#include "proto/syntax/unit.h"

#define NAME_COLUMNS_MIN 12 /* a shorter name is useless */
#define GAP 2
#define INDENT_COLUMNS 2     /* per level */
#define INDENT_LEVELS_MAX 16 /* deeper ones are not indented further */
#define ISO_SECONDS_BYTES 19 /* of ISO 8601, up to its seconds */

#define COLOUR_HEADER "\033[1m"
#define COLOUR_HOT "\033[1;31m"
#define COLOUR_WARM "\033[32m"
#define COLOUR_END "\033[0m"
#define SHARE_HOT 0.05
#define SHARE_WARM 0.005

struct column {
	const Mperf__Column *from;
	size_t index; /* in the reply */
	size_t width;
	bool name; /* text, or a number that is a name: left-aligned, cut if need be */
};

struct layout {
	const struct reply *reply;
	const struct table_options *options;
	struct column column[REPLY_COLUMNS_MAX];
	size_t n_columns;
	int group;   /* index in the reply, -1: none */
	char **cell; /* n_rows × n_columns, owned */
};

static void ask_environment(const char *name, size_t *size)
{
	const char *value = getenv(name);
	unsigned long asked = value ? strtoul(value, NULL, 10) : 0;
	if (asked > 0 && asked < 10000)
		*size = asked;
}

void table_look(FILE *f, bool no_colour, struct table_options *o)
{
	struct winsize size;
	const char *term = getenv("TERM"), *no_color = getenv("NO_COLOR");
	bool terminal = isatty(fileno(f));

	/* Source: https://no-color.org/ : set and not empty. */
	o->colour = terminal && !no_colour && !(no_color && *no_color) && term &&
		    strcmp(term, "dumb") != 0;
	o->width = o->height = 0;
	if (!terminal)
		return;
	if (ioctl(fileno(f), TIOCGWINSZ, &size) == 0) {
		o->width = size.ws_col;
		o->height = size.ws_row;
	}
	ask_environment("COLUMNS", &o->width);
	ask_environment("LINES", &o->height);
}

/* "2026-11-21T15:00:00+01:00" becomes "2026-11-21 15:00:00", in the reader's own time zone. */
static char *time_dup(const char *iso)
{
	char *text = escape_terminal_dup(iso);

	if (text && strlen(text) > ISO_SECONDS_BYTES && text[10] == 'T') {
		text[10] = ' ';
		text[ISO_SECONDS_BYTES] = '\0';
	}
	return text;
}

/* "0.5 - 1" */
static char *series_dup(const Mperf__Series *s)
{
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);
	if (!f)
		return NULL;
	for (size_t i = 0; i < s->n_value; i++) {
		fputs(i ? " " : "", f);
		if (isfinite(s->value[i]))
			fprintf(f, "%.6g", (double)s->value[i]);
		else
			fputc('-', f);
	}
	return fclose(f) == 0 ? text : (free(text), NULL);
}

char *table_cell(const Mperf__Value *v, Mperf__Unit unit, bool raw)
{
	char text[UNIT_TEXT_BYTES] = "-";

	if (v->is_case == MPERF__VALUE__IS_TEXT && unit == MPERF__UNIT__UNIT_TIME && !raw)
		return time_dup(v->text);
	if (v->is_case == MPERF__VALUE__IS_TEXT)
		return escape_terminal_dup(v->text);
	if (v->is_case == MPERF__VALUE__IS_SERIES)
		return series_dup(v->series);
	if (v->is_case == MPERF__VALUE__IS_INTEGER) {
		if (unit == MPERF__UNIT__UNIT_ADDRESS)
			snprintf(text, sizeof(text), "0x%llx", (unsigned long long)v->integer);
		else if (raw || unit == MPERF__UNIT__UNIT_NONE)
			snprintf(text, sizeof(text), "%lld", (long long)v->integer);
		else if (unit == MPERF__UNIT__UNIT_COUNT)
			unit_count_text(v->integer, text);
		else
			unit_text(unit, (double)v->integer, text);
	} else if (v->is_case == MPERF__VALUE__IS_REAL) {
		if (raw)
			snprintf(text, sizeof(text), "%.17g", v->real);
		else
			unit_text(unit, v->real, text);
	}
	return strdup(text);
}

static bool hidden(const struct layout *l, size_t index)
{
	const char *const *hide = l->options->hide;
	const char *name = l->reply->columns->column[index]->name;

	if (l->group == (int)index)
		return true;
	for (; hide && *hide; hide++)
		if (strcmp(*hide, name) == 0)
			return true;
	return false;
}

static bool measured(const struct layout *l, size_t index)
{
	for (size_t i = 0; i < l->reply->n_rows; i++)
		if (l->reply->row[i]->value[index]->is_case != MPERF__VALUE__IS__NOT_SET)
			return true;
	return l->reply->n_rows == 0;
}

static bool is_name(const Mperf__Column *c)
{
	return c->unit == MPERF__UNIT__UNIT_NONE || c->unit == MPERF__UNIT__UNIT_TIME;
}

static void choose_column(struct layout *l, size_t i)
{
	const Mperf__Column *from = l->reply->columns->column[i];
	if (!l->options->raw && (hidden(l, i) || !measured(l, i)))
		return;
	if (l->n_columns < REPLY_COLUMNS_MAX)
		l->column[l->n_columns++] =
			(struct column){.from = from, .index = i, .name = is_name(from)};
}

/* Choose the caller's columns; by default numbers first, then names, each in order of arrival. */
static void choose_columns(struct layout *l)
{
	const char *const *show = l->options->show;
	for (; show && *show; show++) {
		int i = reply_column(l->reply, *show);
		if (i >= 0)
			choose_column(l, (size_t)i);
	}
	if (l->options->show)
		return;
	for (int names = 0; names < 2; names++) {
		for (size_t i = 0; i < l->reply->columns->n_column; i++) {
			if (is_name(l->reply->columns->column[i]) == names)
				choose_column(l, i);
		}
	}
}

static const char *title(const struct layout *l, const struct column *c)
{
	return l->options->raw || !*c->from->title ? c->from->name : c->from->title;
}

/* Put the levels of a row's indentation before its first cell. 0, -ENOMEM. */
static int indent_cell(const struct layout *l, size_t row, char **cell)
{
	double levels = 0;
	char *indented;
	if (!l->options->indent || l->options->raw)
		return 0;
	reply_number(l->reply, row, reply_column(l->reply, l->options->indent), &levels);
	levels = levels > INDENT_LEVELS_MAX ? INDENT_LEVELS_MAX : levels > 0 ? levels : 0;
	if (asprintf(&indented, "%*s%s", INDENT_COLUMNS * (int)levels, "", *cell) < 0)
		return -ENOMEM;
	free(*cell);
	*cell = indented;
	return 0;
}

static int fill_cells(struct layout *l)
{
	size_t n = l->reply->n_rows * l->n_columns;
	l->cell = calloc(n + 1, sizeof(*l->cell));
	if (!l->cell)
		return -ENOMEM;

	for (size_t k = 0; k < l->n_columns; k++)
		l->column[k].width = escape_width(title(l, &l->column[k]));
	for (size_t i = 0; i < n; i++) {
		struct column *c = &l->column[i % l->n_columns];
		const Mperf__Value *v = l->reply->row[i / l->n_columns]->value[c->index];
		l->cell[i] = table_cell(v, c->from->unit, l->options->raw);
		if (!l->cell[i])
			return -ENOMEM;
		if (i % l->n_columns == 0 && indent_cell(l, i / l->n_columns, &l->cell[i]) != 0)
			return -ENOMEM;
		size_t width = escape_width(l->cell[i]);
		if (width > c->width)
			c->width = width;
	}
	return 0;
}

/* Narrow the widest name until the line fits, or no name can give more. */
static void fit(struct layout *l)
{
	size_t total = 0;
	for (size_t k = 0; k < l->n_columns; k++)
		total += l->column[k].width + (k > 0 ? GAP : 0);

	while (l->options->width > 0 && total > l->options->width) {
		struct column *widest = NULL;
		for (size_t k = 0; k < l->n_columns; k++)
			if (l->column[k].name && (!widest || l->column[k].width > widest->width))
				widest = &l->column[k];
		if (!widest || widest->width <= NAME_COLUMNS_MIN)
			break;
		widest->width--;
		total--;
	}
}

static void pad(FILE *f, size_t n)
{
	for (; n > 0; n--)
		fputc(' ', f);
}

/* Print the first and last columns of a text with "…" between; returns the columns it took. */
static size_t print_ends(FILE *f, const char *text, size_t first, size_t last)
{
	size_t n = escape_cut(text, first);
	const char *tail = text + escape_cut_front(text, last);
	_cleanup_(freep) char *head = strndup(text, n);
	fwrite(text, 1, n, f);
	fprintf(f, "…%s", last > 0 ? tail : "");
	return head ? escape_width(head) + 1 + (last > 0 ? escape_width(tail) : 0)
		    : first + 1 + last;
}

/* Print a name cut to its column; returns the columns it took. */
static size_t print_name(FILE *f, const char *text, size_t width, bool cut_middle)
{
	size_t full = escape_width(text);
	if (full <= width) {
		fputs(text, f);
		return full;
	}
	if (escape_is_path(text))
		return print_ends(f, text, 0, width - 1);
	size_t last = cut_middle ? (width - 1) / 2 : 0;
	return print_ends(f, text, width - 1 - last, last);
}

static const char *share_colour(const struct layout *l, const struct column *c, size_t row)
{
	double share;
	if (!l->options->colour || c->from->unit != MPERF__UNIT__UNIT_SHARE ||
		!reply_number(l->reply, row, (int)c->index, &share))
		return NULL;
	return share >= SHARE_HOT ? COLOUR_HOT : share >= SHARE_WARM ? COLOUR_WARM : NULL;
}

/* Print one line; row is SIZE_MAX for the header. */
static void print_line(struct layout *l, size_t row, FILE *f)
{
	bool header = row == SIZE_MAX;
	for (size_t k = 0; k < l->n_columns; k++) {
		const struct column *c = &l->column[k];
		char *name = header ? escape_terminal_dup(title(l, c)) : NULL;
		const char *text = header ? name : l->cell[row * l->n_columns + k];
		const char *colour = header ? (l->options->colour ? COLOUR_HEADER : NULL)
					    : share_colour(l, c, row);
		size_t width = text ? escape_width(text) : 0;

		if (k > 0)
			fputs(l->options->raw ? "\t" : "  ", f);
		if (!c->name && !l->options->raw && width < c->width)
			pad(f, c->width - width);
		if (colour)
			fputs(colour, f);
		if (text && c->name && !l->options->raw)
			width = print_name(f, text, c->width, l->options->cut_middle);
		else if (text)
			fputs(text, f);
		if (colour)
			fputs(COLOUR_END, f);
		if (c->name && !l->options->raw && k + 1 < l->n_columns && width < c->width)
			pad(f, c->width - width);
		free(name);
	}
	fputc('\n', f);
}

/* Print the heading of a row's group if it differs from the last row's. */
static void print_heading(const struct layout *l, size_t row, FILE *f)
{
	const char *heading = reply_text(l->reply, row, l->group);
	const char *last = row > 0 ? reply_text(l->reply, row - 1, l->group) : NULL;
	if (!heading || l->options->raw || (last && strcmp(heading, last) == 0))
		return;

	fputs(row > 0 ? "\n" : "", f);
	fputs(l->options->colour ? COLOUR_HEADER : "", f);
	escape_terminal(f, heading);
	fputs(l->options->colour ? COLOUR_END "\n" : "\n", f);
}

static void layout_clear(struct layout *l)
{
	for (size_t i = 0; l->cell && i < l->reply->n_rows * l->n_columns; i++)
		free(l->cell[i]);
	free(l->cell);
}

int table_print(const struct reply *r, const struct table_options *o, FILE *f)
{
	if (!r->columns)
		return 0;
	_cleanup_(layout_clear) struct layout l = {.reply = r, .options = o, .group = -1};
	if (o->group)
		l.group = reply_column(r, o->group);

	choose_columns(&l);
	int e = fill_cells(&l);
	if (e < 0)
		return e;
	if (!o->raw)
		fit(&l);
	if (l.group < 0 || o->raw)
		print_line(&l, SIZE_MAX, f);
	for (size_t i = 0; i < r->n_rows; i++) {
		print_heading(&l, i, f);
		print_line(&l, i, f);
	}
	return ferror(f) ? -EIO : 0;
}
