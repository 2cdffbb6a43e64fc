/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Names come from other programs: they are escaped for each form.
 */
#include "client/compare/side_by_side.h"

#include <stdlib.h>
#include <string.h>

#include "client/show/escape.h"
#include "client/show/table.h"
#include "proto/base/memory.h"

#define MARKDOWN_ROWS_MAX 20

bool side_by_side_is_there(const struct replies *r)
{
	const struct reply *side = replies_table(r, "side");
	return side && side->n_rows == 2 && replies_table(r, "beside");
}

static char *cell(const struct reply *t, size_t row, const char *column)
{
	const int c = reply_column(t, column);
	return c < 0 ? NULL : table_cell(t->row[row]->value[c], t->columns->column[c]->unit, false);
}

static void write_cell(const struct reply *t, size_t row, const char *column, const char *before,
	const char *behind, FILE *f)
{
	_cleanup_(freep) char *value = cell(t, row, column);
	if (value && strcmp(value, "-") != 0)
		fprintf(f, "%s%s%s", before, value, behind);
}

/* "A: x86_64 (host), cpu-clock, rung d: cpu-clock alone, 999 Hz, 5 runs; 1,204 samples, 1.2 s, IPC 2.10" */
static void write_side(const struct reply *side, size_t row, FILE *f)
{
	fprintf(f, "%c: ", row == 0 ? 'A' : 'B');
	write_cell(side, row, "machine", "", "", f);
	write_cell(side, row, "host", " (", ")", f);
	write_cell(side, row, "event", ", ", "", f);
	write_cell(side, row, "rung", ", rung ", "", f);
	write_cell(side, row, "hz", ", ", "", f);
	write_cell(side, row, "runs", ", ", " run(s)", f);
	write_cell(side, row, "samples", "; a run: ", " samples", f);
	write_cell(side, row, "ns", ", ", "", f);
	write_cell(side, row, "instructions", ", ", " instructions", f);
	write_cell(side, row, "ipc", ", IPC ", "", f);
}

static const char says[] = "Side by side: functions are matched by name, and no change is tested.";

void side_by_side_head(const struct replies *r, FILE *f)
{
	const struct reply *side = replies_table(r, "side");
	for (size_t i = 0; i < side->n_rows; i++) {
		write_side(side, i, f);
		fputc('\n', f);
	}
	fprintf(f, "%s\n\n", says);
}

static bool is_text(const struct reply *t, size_t row, int column)
{
	return t->row[row]->value[column]->is_case == MPERF__VALUE__IS_TEXT;
}

void side_by_side_markdown(const struct replies *r, FILE *f)
{
	static const char *const column[] = {"function", "comm", "cgroup", "source", "line",
		"module", "share_a", "share_b", "ratio", "instructions_a", "instructions_b",
		"ipc_a", "ipc_b", "became"};
	enum { N = sizeof(column) / sizeof(*column) };
	const struct reply *rows = replies_table(r, "beside"), *side = replies_table(r, "side");
	for (size_t i = 0; i < side->n_rows; i++) {
		_cleanup_(freep) char *line = NULL;
		size_t bytes;
		FILE *text = open_memstream(&line, &bytes);
		if (!text)
			return;
		write_side(side, i, text);
		fclose(text);
		escape_markdown(f, line ? line : "", false);
		fputs("  \n", f);
	}
	fprintf(f, "%s\n\n|", says);
	for (size_t k = 0; k < N; k++)
		if (reply_column(rows, column[k]) >= 0)
			fprintf(f, " %s |",
				rows->columns->column[reply_column(rows, column[k])]->title);
	fputs("\n|", f);
	for (size_t k = 0; k < N; k++)
		if (reply_column(rows, column[k]) >= 0)
			fputs("---|", f);
	for (size_t i = 0; i < rows->n_rows && i < MARKDOWN_ROWS_MAX; i++) {
		fputs("\n|", f);
		for (size_t k = 0; k < N; k++) {
			const int c = reply_column(rows, column[k]);
			if (c < 0)
				continue;
			_cleanup_(freep) char *value = cell(rows, i, column[k]);
			const char *shown = value && strcmp(value, "-") != 0 ? value : "";
			fputc(' ', f);
			if (is_text(rows, i, c))
				escape_markdown(f, shown, true);
			else
				fputs(shown, f);
			fputs(" |", f);
		}
	}
	fputs("\n", f);
}
