/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A figure's width follows only from its unit, and names keep their widest width, so that columns
 * move only after a resize or another view. On a narrow screen we drop derived and less useful
 * columns, until the names have room to be recognised.
 */
#include "client/top/layout.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/show/escape.h"
#include "client/show/table.h"
#include "client/top/model.h"
#include "proto/base/memory.h"
#include "proto/syntax/unit.h"

#define NAME_WIDTH_MIN 12       /* a shorter one is useless */
#define FIRST_NAME_WIDTH_MIN 20 /* the function itself */
#define NAME_WIDTH_MAX 300      /* of the text measured; longer ones never fit */

/* The figures' widths: the longest that each unit's text gets here. */
static size_t figure_width(Mperf__Unit unit)
{
	switch (unit) {
	case MPERF__UNIT__UNIT_SHARE:
		return strlen("100.00 %");
	case MPERF__UNIT__UNIT_RATIO:
		return strlen("0.86");
	default:
		return strlen("9.99 M");
	}
}

static bool is_name(const struct reply *r, size_t column)
{
	return r->columns->column[column]->unit == MPERF__UNIT__UNIT_NONE;
}

static size_t title_width(const struct reply *r, size_t column)
{
	const Mperf__Column *c = r->columns->column[column];
	_cleanup_(freep) char *title = escape_terminal_dup(*c->title ? c->title : c->name);
	return title ? escape_width(title) : 0;
}

/* The widest name of a column, including its title. */
static size_t name_width(const struct reply *r, size_t column)
{
	size_t widest = title_width(r, column);
	for (size_t i = 0; i < r->n_rows; i++) {
		_cleanup_(freep) char *text = top_cell(r, i, column);
		size_t width = text ? escape_width(text) : 0;
		widest = width > widest ? width : widest;
	}
	return widest < NAME_WIDTH_MAX ? widest : NAME_WIDTH_MAX;
}

static void choose(
	const struct reply *r, size_t grown[static REPLY_COLUMNS_MAX], struct top_layout *layout)
{
	layout->n = 0;
	for (int names = 0; names < 2; names++) {
		for (size_t i = 0; i < r->columns->n_column; i++) {
			if (is_name(r, i) != names || top_column_hidden(r, i))
				continue;
			size_t width = names ? name_width(r, i) : title_width(r, i);
			size_t least = names ? grown[i] : figure_width(r->columns->column[i]->unit);
			width = width > least ? width : least;
			grown[i] = width;
			layout->column[layout->n++] =
				(struct top_column){.index = i, .width = width, .name = names};
		}
	}
}

/* The columns' minimum: full figures, and names just long enough to be recognised. */
static size_t needed(const struct top_layout *layout)
{
	size_t total = 0, n_names = 0;
	for (size_t i = 0; i < layout->n; i++) {
		const struct top_column *c = &layout->column[i];
		size_t least = n_names == 0 ? FIRST_NAME_WIDTH_MIN : NAME_WIDTH_MIN;
		total += c->name && c->width > least ? least : c->width;
		total += i > 0 ? TOP_GAP : 0;
		n_names += c->name;
	}
	return total;
}

static void drop(struct top_layout *layout, const struct reply *r, const char *name)
{
	for (size_t i = 0; i < layout->n; i++) {
		if (strcmp(r->columns->column[layout->column[i].index]->name, name) != 0)
			continue;
		layout->n--;
		memmove(&layout->column[i], &layout->column[i + 1],
			(layout->n - i) * sizeof(*layout->column));
		return;
	}
}

/* Shorten the widest name until the line fits; the first name counts half, since readers look for
 * it, while others are recognised by their end. Then the last takes the remaining columns. */
static void fit(struct top_layout *layout, size_t width)
{
	size_t total = 0;
	for (size_t i = 0; i < layout->n; i++)
		total += layout->column[i].width + (i > 0 ? TOP_GAP : 0);

	while (total > width) {
		struct top_column *widest = NULL;
		size_t most = 0, n_names = 0;
		for (size_t i = 0; i < layout->n; i++) {
			struct top_column *c = &layout->column[i];
			size_t weight = n_names == 0 ? (c->width + 1) / 2 : c->width;
			n_names += c->name;
			if (c->name && weight > most) {
				widest = c;
				most = weight;
			}
		}
		if (!widest)
			return;
		widest->width--;
		total--;
	}
	if (layout->n > 0 && layout->column[layout->n - 1].name)
		layout->column[layout->n - 1].width += width - total;
}

void top_layout(const struct reply *r, size_t width, size_t grown[static REPLY_COLUMNS_MAX],
	struct top_layout *ret_layout)
{
	static const char *const order[] = {"unnamed", "out_of_symbol", "placed", "named",
		"instructions", "cycles", "process", "samples", "argv", "ipc", "counted", "tid",
		"module", "total"};

	choose(r, grown, ret_layout);
	for (size_t i = 0; i < sizeof(order) / sizeof(*order) && needed(ret_layout) > width; i++)
		if (ret_layout->n > 2)
			drop(ret_layout, r, order[i]);
	fit(ret_layout, width);
}

/* "999", "12.4 k", "1.24 G": at most six letters. */
static char *count_text(double value)
{
	static const char suffix[] = "kMGTPE";
	char text[UNIT_TEXT_BYTES];
	size_t step = 0;

	if (!isfinite(value) || value < 0)
		return strdup("-");
	if (value < 99999.5) {
		unit_count_text((int64_t)value, text);
		return strdup(text);
	}
	for (value /= 1000; value >= 999.5 && step + 2 < sizeof(suffix); step++)
		value /= 1000;
	snprintf(text, sizeof(text), "%.*f %c",
		value < 9.995   ? 2
		: value < 99.95 ? 1
				: 0,
		value, suffix[step]);
	return strdup(text);
}

char *top_cell(const struct reply *r, size_t row, size_t column)
{
	Mperf__Unit unit = r->columns->column[column]->unit;
	double value;

	if (unit == MPERF__UNIT__UNIT_COUNT && reply_number(r, row, (int)column, &value))
		return count_text(value);
	return table_cell(r->row[row]->value[column], unit, false);
}

/* Start of a path's tail that takes at most `width` columns: at a folder's boundary, if its last
 * part fits. */
static const char *path_tail(const char *path, size_t width)
{
	const char *tail = path + escape_cut_front(path, width);
	const char *slash = strchr(tail, '/');
	return slash ? slash : tail;
}

char *top_cut(const char *text, size_t width, const char *mark)
{
	char *cut = NULL;
	if (escape_width(text) <= width)
		return strdup(text);
	if (width == 0)
		return strdup("");
	int n = escape_is_path(text)
			? asprintf(&cut, "%s%s", mark, path_tail(text, width - 1))
			: asprintf(&cut, "%.*s%s", (int)escape_cut(text, width - 1), text, mark);
	return n < 0 ? NULL : cut;
}
