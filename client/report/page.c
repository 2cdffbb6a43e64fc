/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "client/report/page.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/report/pack.h"
#include "client/report/trust.h"
#include "client/show/escape.h"
#include "client/show/page.h"
#include "proto/base/memory.h"
#include "proto/syntax/event_name.h"
#include "proto/syntax/unit.h"

/* Rows of a table for those without JavaScript. */
#define ROWS_MAX 50

static const char body[] =
#include "client/report/report.html.inc"
	;
static const char own_style[] =
#include "client/report/report.css.inc"
	;

/* In the order in which they run. */
static const struct script {
	const char *text, *hash;
} scripts[] = {
	{
#include "client/report/data.js.inc"
		,
#include "client/report/data.js.sha256.inc"
	},
	{
#include "client/report/tree.js.inc"
		,
#include "client/report/tree.js.sha256.inc"
	},
	{
#include "client/report/timeline.js.inc"
		,
#include "client/report/timeline.js.sha256.inc"
	},
	{
#include "client/report/graph.js.inc"
		,
#include "client/report/graph.js.sha256.inc"
	},
	{
#include "client/report/tables.js.inc"
		,
#include "client/report/tables.js.sha256.inc"
	},
	{
#include "client/report/report.js.inc"
		,
#include "client/report/report.js.sha256.inc"
	},
};
#define N_SCRIPTS (sizeof(scripts) / sizeof(*scripts))

/* A sum: what a function, or a process, adds up to. */
struct sum {
	uint32_t number; /* of the function; of a task of the process */
	double self, total;
};

struct writing {
	const struct report_page *page;
	bool *is_waiting; /* by text: is it an event of waiting? */
	struct sum *function, *process;
	size_t n_processes;
	double whole;
	int r;
};

/* --- sums, for the tables --------------------------------------------------------------------- */

/* Outermost calls: nodes without a caller of the same function. Only these add up to a function's total. first[i]: where the callees
 * of node i begin, which stand beside each other; those of the last node end at n_nodes. 0, -ENOMEM. */
static int find_outermost(const struct gathered *g, bool *outermost)
{
	_cleanup_(freep) uint32_t *first = calloc((size_t)g->n_nodes + 1, sizeof(*first));
	_cleanup_(freep) uint32_t *open = calloc(g->n_functions, sizeof(*open));
	_cleanup_(freep) uint32_t *path = calloc(GATHER_DEPTH_MAX + 2, sizeof(*path));
	_cleanup_(freep) uint32_t *next = calloc(GATHER_DEPTH_MAX + 2, sizeof(*next));
	if (!first || !open || !path || !next)
		return -ENOMEM;
	for (uint32_t i = 0; i <= g->n_nodes; i++)
		first[i] = g->n_nodes;
	for (uint32_t i = g->n_nodes; i-- > 1;)
		first[g->node[i].caller] = i;
	for (uint32_t i = g->n_nodes; i-- > 0;)
		first[i] = first[i] < first[i + 1] ? first[i] : first[i + 1];
	next[0] = first[0];
	for (size_t depth = 0;;) {
		const uint32_t at = path[depth];
		if (next[depth] < first[at + 1]) {
			const uint32_t callee = next[depth]++;
			outermost[callee] = open[g->node[callee].function]++ == 0;
			path[++depth] = callee;
			next[depth] = first[callee];
			continue;
		}
		if (depth == 0)
			return 0;
		open[g->node[at].function]--;
		depth--;
	}
}

static int add_functions(struct writing *w, const double *self, double *total)
{
	const struct gathered *g = w->page->samples;
	_cleanup_(freep) bool *outermost = calloc(g->n_nodes, sizeof(*outermost));
	int r = outermost ? find_outermost(g, outermost) : -ENOMEM;
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < g->n_nodes; i++)
		total[i] = self[i];
	for (uint32_t i = g->n_nodes; i-- > 1;)
		total[g->node[i].caller] += total[i];
	for (uint32_t i = 1; i < g->n_nodes; i++) {
		w->function[g->node[i].function].self += self[i];
		w->function[g->node[i].function].total += outermost[i] ? total[i] : 0;
	}
	w->whole = total[0];
	return 0;
}

static bool is_same_process(const struct gather_task *a, const struct gather_task *b)
{
	return a->pid == b->pid && a->process == b->process;
}

/* By task at first, then tasks of one process together: self is CPU time, total waiting. */
static int compare_processes(const void *a, const void *b, void *gathered)
{
	const struct gathered *g = gathered;
	const struct gather_task *x = &g->task[((const struct sum *)a)->number];
	const struct gather_task *y = &g->task[((const struct sum *)b)->number];
	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return (x->process > y->process) - (x->process < y->process);
}

static int compare_self(const void *a, const void *b)
{
	const struct sum *x = a, *y = b;
	if (x->self != y->self)
		return x->self > y->self ? -1 : 1;
	return x->total != y->total ? (x->total > y->total ? -1 : 1)
				    : (x->number > y->number) - (x->number < y->number);
}

static void join_processes(struct writing *w)
{
	const struct gathered *g = w->page->samples;
	size_t n = 0;
	if (g->n_tasks > 0)
		qsort_r(w->process, g->n_tasks, sizeof(*w->process), compare_processes, (void *)g);
	for (size_t i = 0; i < g->n_tasks; i++) {
		if (n > 0 && is_same_process(&g->task[w->process[n - 1].number],
				     &g->task[w->process[i].number])) {
			w->process[n - 1].self += w->process[i].self;
			w->process[n - 1].total += w->process[i].total;
		} else
			w->process[n++] = w->process[i];
	}
	w->n_processes = n;
	if (n > 0)
		qsort(w->process, n, sizeof(*w->process), compare_self);
}

static int add_up(struct writing *w)
{
	const struct gathered *g = w->page->samples;
	_cleanup_(freep) double *self = calloc(g->n_nodes, sizeof(*self));
	_cleanup_(freep) double *total = calloc(g->n_nodes, sizeof(*total));
	w->is_waiting = calloc(g->n_texts, sizeof(*w->is_waiting));
	w->function = calloc(g->n_functions, sizeof(*w->function));
	w->process = calloc((size_t)g->n_tasks + 1, sizeof(*w->process));
	if (!self || !total || !w->is_waiting || !w->function || !w->process)
		return -ENOMEM;
	for (uint32_t i = 0; i < g->n_texts; i++)
		w->is_waiting[i] = event_name_is_waiting(g->text[i]);
	for (uint32_t i = 0; i < g->n_functions; i++)
		w->function[i].number = i;
	for (uint32_t i = 0; i < g->n_tasks; i++)
		w->process[i].number = i;
	for (uint32_t i = 0; i < g->n_rows; i++) {
		const struct gather_row *row = &g->row[i];
		if (w->is_waiting[row->event])
			w->process[row->task].total += (double)row->value;
		else {
			w->process[row->task].self += (double)row->value;
			self[row->node] += (double)row->value;
		}
	}
	int r = add_functions(w, self, total);
	if (r < 0)
		return r;
	qsort(w->function, g->n_functions, sizeof(*w->function), compare_self);
	join_processes(w);
	return 0;
}

/* --- tables ----------------------------------------------------------------------------------- */

static void write_amount(const struct writing *w, double value, FILE *out)
{
	char text[UNIT_TEXT_BYTES];
	unit_text(w->page->samples->unit, value, text);
	fputs("<td class=\"n\">", out);
	escape_markup(out, value > 0 ? text : "");
	fputs("</td>", out);
}

static void write_share(const struct writing *w, double value, FILE *out)
{
	fprintf(out, "<td class=\"n\">%.2f %%</td>", w->whole > 0 ? 100 * value / w->whole : 0);
}

static void write_functions(const struct writing *w, FILE *out)
{
	const struct gathered *g = w->page->samples;
	for (size_t i = 0; i < g->n_functions && i < ROWS_MAX; i++) {
		const struct sum *s = &w->function[i];
		const struct gather_function *f = &g->function[s->number];
		if (s->self <= 0)
			break;
		fputs("<tr>", out);
		write_amount(w, s->self, out);
		write_share(w, s->self, out);
		write_amount(w, s->total, out);
		write_share(w, s->total, out);
		fputs("<td class=\"fn\">", out);
		escape_markup(out, g->text[f->name]);
		fputs("</td><td class=\"quiet\">", out);
		escape_markup(out, g->text[f->module]);
		fputs("</td></tr>\n", out);
	}
}

static void write_processes(const struct writing *w, FILE *out)
{
	const struct gathered *g = w->page->samples;
	for (size_t i = 0; i < w->n_processes && i < ROWS_MAX; i++) {
		const struct gather_task *t = &g->task[w->process[i].number];
		fputs("<tr>", out);
		write_amount(w, w->process[i].self, out);
		write_amount(w, w->process[i].total, out);
		fputs("<td class=\"fn\">", out);
		escape_markup(out, g->text[t->process]);
		if (t->pid > 0)
			fprintf(out, " (%d)", t->pid);
		fputs("</td></tr>\n", out);
	}
}

static void write_legend(FILE *out)
{
	static const char *const kinds[][2] = {{"user", "user"}, {"kernel", "kernel"},
		{"jit", "jit"}, {"inlined", "inlined"}, {"unnamed", "without a name"}};
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		fprintf(out, "<span><i style=\"background:var(--%s)\"></i>%s</span>\n", kinds[i][0],
			kinds[i][1]);
}

/* The state, or all findings. */
static enum trust write_trust(const struct report_page *page, FILE *out)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	enum trust t = TRUST_DOUBTFUL;
	if (f) {
		t = trust_write(page->provenance, f);
		fclose(f);
	}
	if (out && text) {
		fputs("<ul>\n", out);
		fputs(text, out);
		fputs("<li>", out);
		escape_markup(out, page->provenance_line ? page->provenance_line : "");
		fputs("</li>\n</ul>\n", out);
	}
	free(text);
	return t;
}

static void write_summary(const struct writing *w, FILE *out)
{
	const struct gathered *g = w->page->samples;
	char text[UNIT_TEXT_BYTES];
	unit_text(MPERF__UNIT__UNIT_NS, (double)(g->end_ns - g->begin_ns), text);
	escape_markup(out, text);
	fprintf(out, ", %zu process%s, %u function%s", w->n_processes,
		w->n_processes == 1 ? "" : "es", g->n_functions - 1,
		g->n_functions == 2 ? "" : "s");
	unit_text(MPERF__UNIT__UNIT_NS, (double)g->bucket_ns, text);
	fputs("; times are known to ", out);
	escape_markup(out, text);
}

/* The event that is shown first, unless the page's address names another. */
static void write_kind(const struct report_page *page, FILE *out)
{
	const char *kind =
		page->first && event_name_is_all_waiting(page->first) ? "waiting" : page->first;
	escape_markup(out, kind ? kind : "cpu");
}

static void fill_hole(const void *userdata, const char *name, size_t n, FILE *out)
{
	struct writing *w = *(struct writing *const *)userdata;
	const struct report_page *page = w->page;
	if (strncmp(name, "title", n) == 0)
		escape_markup(out, page->title);
	else if (strncmp(name, "summary", n) == 0)
		write_summary(w, out);
	else if (strncmp(name, "style", n) == 0)
		fprintf(out, "%s%s", page_style(), own_style);
	else if (strncmp(name, "policy", n) == 0)
		for (size_t i = 0; i < N_SCRIPTS; i++)
			fprintf(out, "%s%s", i > 0 ? " " : "", scripts[i].hash);
	else if (strncmp(name, "script", n) == 0)
		for (size_t i = 0; i < N_SCRIPTS; i++)
			fprintf(out, "%s%s", i > 0 ? "</script>\n<script>\n" : "", scripts[i].text);
	else if (strncmp(name, "state", n) == 0)
		fputs(trust_name(write_trust(page, NULL)), out);
	else if (strncmp(name, "verdict", n) == 0)
		trust_write_verdict(page->provenance, out);
	else if (strncmp(name, "trust", n) == 0)
		write_trust(page, out);
	else if (strncmp(name, "measured", n) == 0)
		fputs(page->samples->unit == MPERF__UNIT__UNIT_COUNT ? "Count" : "CPU time", out);
	else if (strncmp(name, "functions", n) == 0)
		write_functions(w, out);
	else if (strncmp(name, "processes", n) == 0)
		write_processes(w, out);
	else if (strncmp(name, "kind", n) == 0)
		write_kind(page, out);
	else if (strncmp(name, "legend", n) == 0)
		write_legend(out);
	else if (strncmp(name, "data", n) == 0)
		w->r = pack_write(page->samples, out);
}

int report_page_write(const struct report_page *page, FILE *out)
{
	struct writing w = {.page = page}, *userdata = &w;
	w.r = add_up(&w);
	if (w.r == 0)
		page_write(body, fill_hole, &userdata, out);
	free(w.is_waiting);
	free(w.function);
	free(w.process);
	if (w.r == 0 && (fflush(out) != 0 || ferror(out)))
		return -EIO;
	return w.r;
}
