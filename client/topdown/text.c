/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 *     > backend_bound      30.0 % ± 1.2  ████████
 *     >   memory_bound     30.0 % ± 1.4  ████████
 *           l1_bound       n/a           MEMSTALL_L1MISS was not counted: …
 */
#include "client/topdown/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/show/escape.h"
#include "proto/base/memory.h"
#include "proto/syntax/unit.h"

#define COLUMNS_DEFAULT 80 /* where there is no terminal */
#define BAR_COLUMNS_MAX 50
#define BAR_COLUMNS_MIN 10
#define INDENT 2
#define EIGHTHS 8 /* steps of a column in which bars grow */

#define COLOUR_WORST "\033[1;31m"
#define COLOUR_USEFUL "\033[32m"
#define COLOUR_QUIET "\033[2m"
#define COLOUR_END "\033[0m"

/* Columns of the parts of a row. */
struct widths {
	size_t name, value, error, bar;
	double scale; /* the value of a full bar */
};

static size_t larger(size_t a, size_t b)
{
	return a > b ? a : b;
}

static size_t indent_of(const struct topdown_node *n)
{
	return (size_t)(n->level - 1) * INDENT;
}

static size_t width_of(const char *text)
{
	_cleanup_(freep) char *escaped = escape_terminal_dup(text);
	return escaped ? escape_width(escaped) : strlen(text);
}

static struct widths measure(const struct topdown *t, const struct topdown_look *look)
{
	struct widths w = {.scale = 0};
	char text[TOPDOWN_TEXT_BYTES];
	for (size_t i = 0; i < t->n_nodes; i++) {
		const struct topdown_node *n = &t->node[i];
		w.name = larger(w.name, indent_of(n) + width_of(n->name));
		topdown_value_text(n, text);
		w.value = larger(w.value, width_of(text));
		topdown_error_text(n, text);
		w.error = larger(w.error, width_of(text));
		if (isfinite(n->value))
			w.scale = fmax(w.scale, n->value);
		if (strcmp(n->unit, "%") == 0)
			w.scale = fmax(w.scale, 100);
	}
	size_t columns = look->columns ? look->columns : COLUMNS_DEFAULT;
	size_t taken = 2 + w.name + 2 + w.value + 1 + w.error + 2;
	w.bar = columns > taken + BAR_COLUMNS_MIN ? columns - taken : BAR_COLUMNS_MIN;
	w.bar = w.bar < BAR_COLUMNS_MAX ? w.bar : BAR_COLUMNS_MAX;
	return w;
}

static void write_padded(const char *text, size_t width, bool right, FILE *f)
{
	_cleanup_(freep) char *escaped = escape_terminal_dup(text);
	size_t n = escaped ? escape_width(escaped) : 0, pad = n < width ? width - n : 0;
	fprintf(f, "%*s%s%*s", right ? (int)pad : 0, "", escaped ? escaped : "?",
		right ? 0 : (int)pad, "");
}

static void write_bar(double part, size_t columns, bool utf8, FILE *f)
{
	static const char *const ends[EIGHTHS] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
	double length = fmin(fmax(part, 0), 1) * (double)columns;
	size_t eighths = (size_t)(length * EIGHTHS + 0.5);
	size_t whole = utf8 ? eighths / EIGHTHS : (size_t)(length + 0.5);
	for (size_t i = 0; i < whole; i++)
		fputs(utf8 ? "█" : "#", f);
	if (utf8)
		fputs(ends[eighths % EIGHTHS], f);
}

static const char *colour_of(const struct topdown_node *n, const struct topdown_look *look)
{
	if (!look->colour)
		return "";
	return n->is_worst                                          ? COLOUR_WORST
	       : !isfinite(n->value) || n->kind == TOPDOWN_RESIDUAL ? COLOUR_QUIET
	       : n->kind == TOPDOWN_USEFUL                          ? COLOUR_USEFUL
								    : "";
}

static void write_node(const struct topdown_node *n, const struct widths *w,
	const struct topdown_look *look, FILE *f)
{
	char text[TOPDOWN_TEXT_BYTES];
	const char *colour = colour_of(n, look);
	fprintf(f, "%s%s %*s", colour, n->is_worst ? look->utf8 ? "▶" : ">" : " ",
		(int)indent_of(n), "");
	write_padded(n->name, w->name - indent_of(n), false, f);
	topdown_value_text(n, text);
	fputs("  ", f);
	write_padded(text, w->value, true, f);
	topdown_error_text(n, text);
	fputs(" ", f);
	write_padded(text, w->error, false, f);
	fputs(w->error ? "  " : " ", f);
	if (isfinite(n->value))
		write_bar(n->value / w->scale, w->bar, look->utf8, f);
	else
		escape_terminal(f, n->reason);
	fprintf(f, "%s\n", *colour ? COLOUR_END : "");
}

void topdown_text_write(
	const struct topdown *t, const struct topdown_look *look, const char *what, FILE *f)
{
	struct widths w = measure(t, look);
	fputs("Top-down of ", f);
	escape_terminal(f, what);
	fputs(" on ", f);
	escape_terminal(f, t->core);
	if (!t->is_alone) {
		fputs(" (harts ", f);
		escape_terminal(f, t->harts);
		fputs(")", f);
	}
	fputs("\n\n", f);
	for (size_t i = 0; i < t->n_nodes; i++)
		write_node(&t->node[i], &w, look, f);
}

/* --- explanations ----------------------------------------------------------------------------- */

/* Was the input counted in one of the passes, "1+3"? True also if the text names none. */
static bool is_in_passes(const char *passes, int pass)
{
	char *end;
	for (const char *at = passes; *at; at = *end ? end + 1 : end) {
		long each = strtol(at, &end, 10);
		if (end == at)
			return true;
		if (each == pass)
			return true;
	}
	return !*passes;
}

static void write_input(const struct topdown *t, const struct topdown_node *node, const char *name,
	size_t n, FILE *f)
{
	char text[UNIT_TEXT_BYTES];
	bool is_there = false;
	for (size_t i = 0; i < t->n_inputs; i++) {
		const struct topdown_input *in = &t->input[i];
		if (!topdown_is_input(in, name, n) || !is_in_passes(node->passes, in->pass))
			continue;
		is_there = true;
		fputs("    ", f);
		escape_terminal(f, in->name);
		if (!isfinite(in->count)) {
			fputs(": n/a, ", f);
			escape_terminal(f, in->reason);
			fputc('\n', f);
			continue;
		}
		unit_text(MPERF__UNIT__UNIT_COUNT, in->count, text);
		fprintf(f, ": %s", text);
		if (unit_part_text(in->running, text))
			fprintf(f, ", scaled: counted %s of the time", text);
		fprintf(f, ", pass %d\n", in->pass);
	}
	if (!is_there) {
		_cleanup_(freep) char *one = strndup(name, n);
		fputs("    ", f);
		escape_terminal(f, one ? one : "?");
		fputs(": n/a\n", f);
	}
}

static void write_inputs(const struct topdown *t, const struct topdown_node *node, FILE *f)
{
	for (const char *at = node->inputs; *at;) {
		size_t n = strcspn(at, ",");
		write_input(t, node, at, n, f);
		at += n;
		at += strspn(at, ", ");
	}
}

static void write_line(const char *before, const char *text, const char *after, FILE *f)
{
	fputs(before, f);
	escape_terminal(f, text);
	fputs(after, f);
}

static void explain_node(const struct topdown *t, const struct topdown_node *n, FILE *f)
{
	char value[TOPDOWN_TEXT_BYTES], error[TOPDOWN_TEXT_BYTES];
	topdown_value_text(n, value);
	topdown_error_text(n, error);
	write_line("\n", n->name, " = ", f);
	escape_terminal(f, n->formula);
	fprintf(f, "\n    = %s%s%s", value, *error ? " " : "", error);
	if (isfinite(n->value))
		fprintf(f, "%s", n->error == 0 ? ", exact: counted all of the time" : "");
	else
		write_line(": ", n->reason, "", f);
	if (*n->passes && isfinite(n->value))
		write_line(
			strchr(n->passes, '+') ? ", in passes " : ", in pass ", n->passes, "", f);
	fputc('\n', f);
	if (*n->says)
		write_line("    ", n->says, "\n", f);
	write_inputs(t, n, f);
	if (*n->source)
		write_line("    source: ", n->source, "", f);
	if (*n->verified)
		write_line(", verified: ", n->verified, "", f);
	fputs(*n->source ? "\n" : "", f);
}

void topdown_text_explain(const struct topdown *t, FILE *f)
{
	for (size_t i = 0; i < t->n_nodes; i++)
		explain_node(t, &t->node[i], f);
}
