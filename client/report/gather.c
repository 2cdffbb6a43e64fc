/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "client/report/gather.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/array.h"
#include "proto/base/hash_table.h"
#include "proto/base/memory.h"
#include "proto/syntax/event_name.h"

/* Windows of a forged file may be of any length; eleven days, as in profile.c. */
#define WINDOW_NS_MAX INT64_C(1000000000000000)

/* One in this number of samples may be without a time, and then stands at the begin of its window. */
#define TIMELESS_FEW 50

/* Entry i of an array by what is in it. */
struct entry {
	UT_hash_handle hh;
	uint32_t number;
	uint32_t key[5]; /* unused ones are 0 */
};

struct text_entry {
	UT_hash_handle hh;
	uint32_t number;
};

/* Numbers of the current export to ours; 0: not known yet, else one more. */
struct numbers {
	uint32_t *of;
	uint32_t n;
};

struct gather_maps {
	struct text_entry *text;
	struct entry *function, *node, *task;
	struct numbers stack_numbers, task_numbers, text_numbers;
	uint32_t size_texts, size_functions, size_nodes, size_tasks, size_rows;
	uint32_t path[PROFILE_DEPTH_MAX];
};

static int add_text(struct gathered *g, const char *text, uint32_t *ret_number)
{
	struct gather_maps *m = g->maps;
	struct text_entry *e;
	const size_t n = strlen(text);
	HASH_FIND(hh, m->text, text, n, e);
	if (e) {
		*ret_number = e->number;
		return 0;
	}
	if (array_grow(&g->text, &m->size_texts, g->n_texts + 1, sizeof(*g->text)) < 0)
		return -ENOMEM;
	char *copy = strdup(text);
	e = calloc(1, sizeof(*e));
	if (copy && e) {
		e->number = g->n_texts;
		HASH_ADD_KEYPTR(hh, m->text, copy, n, e);
	}
	if (!copy || !e || !e->hh.tbl) {
		free(copy);
		free(e);
		return -ENOMEM;
	}
	g->text[g->n_texts] = copy;
	*ret_number = g->n_texts++;
	return 0;
}

/* The number of this key in a table, or, new, `next`. 1: it is new. 0, -ENOMEM. */
static int number_of(
	struct entry **table, const uint32_t key[5], uint32_t next, uint32_t *ret_number)
{
	struct entry *e;
	HASH_FIND(hh, *table, key, sizeof(e->key), e);
	if (e) {
		*ret_number = e->number;
		return 0;
	}
	e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	memcpy(e->key, key, sizeof(e->key));
	e->number = next;
	HASH_ADD(hh, *table, key, sizeof(e->key), e);
	if (!e->hh.tbl) {
		free(e);
		return -ENOMEM;
	}
	*ret_number = next;
	return 1;
}

int gather_init(struct gathered *g)
{
	*g = (struct gathered){.unit = MPERF__UNIT__UNIT_NS};
	g->maps = calloc(1, sizeof(*g->maps));
	uint32_t none;
	if (!g->maps || add_text(g, "", &none) < 0)
		return -ENOMEM;
	if (array_grow(&g->function, &g->maps->size_functions, 1, sizeof(*g->function)) < 0 ||
		array_grow(&g->node, &g->maps->size_nodes, 1, sizeof(*g->node)) < 0)
		return -ENOMEM;
	g->n_functions = g->n_nodes = 1;
	return 0;
}

static void clear_table(struct entry *table)
{
	struct entry *e, *next;
	HASH_ITER (hh, table, e, next) {
		HASH_DEL(table, e);
		free(e);
	}
}

static void clear_maps(struct gather_maps *m)
{
	struct text_entry *e, *next;
	if (!m)
		return;
	HASH_ITER (hh, m->text, e, next) {
		HASH_DEL(m->text, e);
		free(e);
	}
	clear_table(m->function);
	clear_table(m->node);
	clear_table(m->task);
	free(m->stack_numbers.of);
	free(m->task_numbers.of);
	free(m->text_numbers.of);
	free(m);
}

void gather_clear(struct gathered *g)
{
	clear_maps(g->maps);
	for (uint32_t i = 0; i < g->n_texts; i++)
		free(g->text[i]);
	free(g->text);
	free(g->function);
	free(g->node);
	free(g->task);
	free(g->row);
	*g = (struct gathered){0};
}

void gather_next(struct gathered *g)
{
	struct numbers *const all[] = {
		&g->maps->stack_numbers, &g->maps->task_numbers, &g->maps->text_numbers};
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		free(all[i]->of);
		*all[i] = (struct numbers){0};
	}
}

/* --- what a sample refers to ------------------------------------------------------------------ */

/* Where the number of an entry is kept; NULL without memory. */
static uint32_t *slot(struct numbers *n, uint32_t i)
{
	return array_grow(&n->of, &n->n, i + 1, sizeof(*n->of)) < 0 ? NULL : &n->of[i];
}

static int text_of(struct gathered *g, const struct profile *p, uint32_t text, uint32_t *ret_number)
{
	uint32_t *known = slot(&g->maps->text_numbers, text);
	if (!known)
		return -ENOMEM;
	if (*known == 0) {
		int r = add_text(g, p->text[text], ret_number);
		if (r < 0)
			return r;
		*known = *ret_number + 1;
	}
	*ret_number = *known - 1;
	return 0;
}

static enum gather_kind kind_of(const struct profile *p, const struct profile_frame *f,
	const struct profile_place *place, bool inlined)
{
	const enum profile_kind kind = p->module[f->module].kind;
	if (profile_is_kernel(p, f))
		return GATHER_KERNEL;
	if (place->function == 0)
		return GATHER_UNNAMED;
	if (kind == PROFILE_JITDUMP || kind == PROFILE_PERF_MAP)
		return GATHER_JIT;
	return inlined ? GATHER_INLINED : GATHER_USER;
}

/* A function without a name is known by its module. */
static int function_of(struct gathered *g, const struct profile *p, const struct profile_frame *f,
	const struct profile_place *place, bool inlined, uint32_t *ret_number)
{
	const enum gather_kind kind = kind_of(p, f, place, inlined);
	uint32_t name, module;
	int r = add_text(g, profile_module_name(p, f->module), &module);
	if (r == 0 && place->function == 0) {
		char text[300];
		snprintf(text, sizeof(text), "[%.280s]", profile_module_name(p, f->module));
		r = add_text(g, text[1] == '[' ? profile_module_name(p, f->module) : text, &name);
	} else if (r == 0)
		r = text_of(g, p, place->function, &name);
	if (r < 0)
		return r;
	const uint32_t key[5] = {name, module, kind};
	r = number_of(&g->maps->function, key, g->n_functions, ret_number);
	if (r <= 0)
		return r;
	if (array_grow(&g->function, &g->maps->size_functions, g->n_functions + 1,
		    sizeof(*g->function)) < 0)
		return -ENOMEM;
	g->function[g->n_functions++] = (struct gather_function){name, module, kind};
	return 0;
}

static int child_of(struct gathered *g, uint32_t caller, uint32_t function, uint32_t *ret_node)
{
	const uint32_t key[5] = {caller, function};
	int r = number_of(&g->maps->node, key, g->n_nodes, ret_node);
	if (r <= 0)
		return r;
	/* A stack of a forged recording may begin where another one ended, again and again. */
	const uint32_t depth = g->node[caller].depth + 1;
	if (g->n_nodes >= GATHER_NODES_MAX || depth > GATHER_DEPTH_MAX)
		return PROFILE_TOO_LARGE;
	if (array_grow(&g->node, &g->maps->size_nodes, g->n_nodes + 1, sizeof(*g->node)) < 0)
		return -ENOMEM;
	g->node[g->n_nodes++] = (struct gather_node){caller, function, depth};
	return 0;
}

/* Put a frame, and what is inlined into it, on a node. */
static int add_frame(struct gathered *g, const struct profile *p, uint32_t frame, uint32_t caller,
	uint32_t *ret_node)
{
	uint32_t n, function;
	const struct profile_frame *f = &p->frame[frame];
	const struct profile_place *place = profile_places(p, f, &n);
	int r = 0;
	*ret_node = caller;
	while (r == 0 && n-- > 0) {
		r = function_of(g, p, f, &place[n], n + 1 < f->n_places, &function);
		if (r == 0)
			r = child_of(g, *ret_node, function, ret_node);
	}
	return r;
}

/* The node of a stack; its callers are numbered first, outermost first. */
static int node_of(struct gathered *g, const struct profile *p, uint32_t stack, uint32_t *ret_node)
{
	struct gather_maps *m = g->maps;
	uint32_t depth = 0;
	if (stack > 0 && !slot(&m->stack_numbers, stack))
		return -ENOMEM;
	*ret_node = 0;
	for (; stack > 0 && depth < PROFILE_DEPTH_MAX; stack = p->stack[stack].caller) {
		if (m->stack_numbers.of[stack] > 0) {
			*ret_node = m->stack_numbers.of[stack] - 1;
			break;
		}
		m->path[depth++] = stack;
	}
	while (depth-- > 0) {
		int r = add_frame(g, p, p->stack[m->path[depth]].frame, *ret_node, ret_node);
		if (r != 0)
			return r;
		m->stack_numbers.of[m->path[depth]] = *ret_node + 1;
	}
	return 0;
}

static int task_of(struct gathered *g, const struct profile *p, uint32_t task, uint32_t *ret_number)
{
	uint32_t *known = slot(&g->maps->task_numbers, task);
	const struct profile_task *t = &p->task[task];
	struct gather_task made = {.pid = t->pid, .tid = t->tid};
	if (!known)
		return -ENOMEM;
	if (*known > 0) {
		*ret_number = *known - 1;
		return 0;
	}
	int r = text_of(g, p, t->process, &made.process);
	if (r == 0)
		r = text_of(g, p, t->comm, &made.thread);
	if (r == 0)
		r = text_of(g, p, t->cgroup, &made.cgroup);
	if (r < 0)
		return r;
	const uint32_t key[5] = {
		(uint32_t)made.pid, (uint32_t)made.tid, made.process, made.thread, made.cgroup};
	r = number_of(&g->maps->task, key, g->n_tasks, ret_number);
	if (r < 0 || (r > 0 && array_grow(&g->task, &g->maps->size_tasks, g->n_tasks + 1,
				       sizeof(*g->task)) < 0))
		return -ENOMEM;
	if (r > 0)
		g->task[g->n_tasks++] = made;
	*known = *ret_number + 1;
	return 0;
}

int gather_sample(struct gathered *g, const struct profile *p, const struct profile_sample *s)
{
	struct gather_row row = {.value = s->value, .hart = s->hart};
	const struct profile_window *w = &p->window[s->window];
	if (s->value == 0)
		return 0;
	if (g->n_rows >= GATHER_ROWS_MAX)
		return PROFILE_TOO_LARGE;
	if (p->unit == MPERF__UNIT__UNIT_COUNT)
		g->unit = p->unit;
	int64_t length_ns = w->end_ns - w->start_ns;
	length_ns = length_ns < 0 ? 0 : length_ns > WINDOW_NS_MAX ? WINDOW_NS_MAX : length_ns;
	const bool is_waiting = event_name_is_waiting(p->text[s->event]),
		   is_timeless = s->at_ns < 0;
	/* A wait is found at its end. */
	row.at_ns = w->realtime_ns + (!is_timeless                         ? s->at_ns
					     : is_waiting && length_ns > 0 ? length_ns - 1
									   : 0);
	g->n_timeless += is_timeless && !is_waiting;
	g->n_timed += !is_timeless && !is_waiting;
	if (is_timeless && length_ns > g->coarse_ns)
		g->coarse_ns = length_ns;
	const int64_t begin_ns = is_timeless ? w->realtime_ns : row.at_ns;
	if (g->n_rows == 0 || begin_ns < g->begin_ns)
		g->begin_ns = begin_ns;
	const int64_t end_ns = is_timeless ? w->realtime_ns + length_ns : row.at_ns + 1;
	if (g->n_rows == 0 || end_ns > g->end_ns)
		g->end_ns = end_ns;
	int r = task_of(g, p, s->task, &row.task);
	if (r == 0)
		r = text_of(g, p, s->event, &row.event);
	if (r == 0)
		r = node_of(g, p, s->stack, &row.node);
	if (r != 0)
		return r;
	if (array_grow(&g->row, &g->maps->size_rows, g->n_rows + 1, sizeof(*g->row)) < 0)
		return -ENOMEM;
	g->row[g->n_rows++] = row;
	return 0;
}

/* --- in order --------------------------------------------------------------------------------- */

/* By the names of their functions. */
static int compare_nodes(const void *a, const void *b, void *gathered)
{
	const struct gathered *g = gathered;
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	const uint32_t f = g->node[x].function, h = g->node[y].function;
	int r = strcmp(g->text[g->function[f].name], g->text[g->function[h].name]);
	return r ? r : (x > y) - (x < y);
}

/* Nodes by their callers: of node i, callee[first[i]] to callee[first[i + 1] - 1]. */
static int callees_of(const struct gathered *g, uint32_t **ret_first, uint32_t **ret_callee)
{
	const uint32_t n = g->n_nodes;
	uint32_t *first = calloc((size_t)n + 2, sizeof(*first));
	uint32_t *callee = calloc((size_t)n + 1, sizeof(*callee));
	*ret_first = first;
	*ret_callee = callee;
	if (!first || !callee)
		return -ENOMEM;
	for (uint32_t i = 1; i < n; i++)
		first[g->node[i].caller + 2]++;
	for (uint32_t i = 2; i < n + 2; i++)
		first[i] += first[i - 1];
	for (uint32_t i = 1; i < n; i++)
		callee[first[g->node[i].caller + 1]++] = i;
	for (uint32_t i = 0; i < n; i++)
		if (first[i + 1] - first[i] > 1)
			qsort_r(&callee[first[i]], first[i + 1] - first[i], sizeof(*callee),
				compare_nodes, (void *)g);
	return 0;
}

/* Renumber the nodes, level by level. */
static int order_nodes(struct gathered *g)
{
	const uint32_t n = g->n_nodes;
	_cleanup_(freep) uint32_t *first = NULL, *callee = NULL;
	_cleanup_(freep) uint32_t *was = calloc((size_t)n + 1, sizeof(*was));
	_cleanup_(freep) uint32_t *is = calloc((size_t)n + 1, sizeof(*is));
	struct gather_node *node = calloc((size_t)n + 1, sizeof(*node));
	if (callees_of(g, &first, &callee) < 0 || !was || !is || !node) {
		free(node);
		return -ENOMEM;
	}
	uint32_t end = 1;
	for (uint32_t i = 0; i < end; i++) {
		node[i] =
			(struct gather_node){is[g->node[was[i]].caller], g->node[was[i]].function};
		for (uint32_t k = first[was[i]]; k < first[was[i] + 1]; k++) {
			was[end] = callee[k];
			is[callee[k]] = end++;
		}
	}
	for (uint32_t i = 0; i < g->n_rows; i++)
		g->row[i].node = is[g->row[i].node];
	free(g->node);
	g->node = node;
	return 0;
}

/* 1, 2 or 5 with zeros: buckets of which at most GATHER_BUCKETS_MAX fit, and not finer than what is known. */
static int64_t bucket_of(const struct gathered *g)
{
	int64_t wanted = (g->end_ns - g->begin_ns) / GATHER_BUCKETS_MAX + 1;
	if (wanted < g->coarse_ns)
		wanted = g->coarse_ns;
	int64_t bucket = 1000000; /* a sample every millisecond is what is usual */
	for (int step = 0; bucket < wanted && bucket < INT64_MAX / 5; step++)
		bucket = step % 3 == 1 ? bucket / 2 * 5 : bucket * 2;
	return bucket;
}

static int compare_rows(const void *a, const void *b)
{
	const struct gather_row *x = a, *y = b;
#define BY(member)                                                                                 \
	if (x->member != y->member)                                                                \
		return x->member < y->member ? -1 : 1;
	BY(at_ns)
	BY(event)
	BY(task)
	BY(hart)
	BY(node)
#undef BY
	return 0;
}

static bool is_same(const struct gather_row *x, const struct gather_row *y)
{
	return compare_rows(x, y) == 0;
}

static void order_rows(struct gathered *g)
{
	if (g->n_timeless < (g->n_timeless + g->n_timed) / TIMELESS_FEW)
		g->coarse_ns = 0;
	g->bucket_ns = bucket_of(g);
	for (uint32_t i = 0; i < g->n_rows; i++)
		g->row[i].at_ns = (g->row[i].at_ns - g->begin_ns) / g->bucket_ns;
	if (g->n_rows > 0)
		qsort(g->row, g->n_rows, sizeof(*g->row), compare_rows);
	uint32_t n = 0;
	for (uint32_t i = 0; i < g->n_rows; i++) {
		if (n > 0 && is_same(&g->row[n - 1], &g->row[i]))
			g->row[n - 1].value += g->row[i].value;
		else
			g->row[n++] = g->row[i];
	}
	g->n_rows = n;
	g->n_buckets = n > 0 ? (uint32_t)((g->end_ns - g->begin_ns - 1) / g->bucket_ns) + 1 : 0;
}

int gather_finish(struct gathered *g)
{
	int r = order_nodes(g);
	if (r == 0)
		order_rows(g);
	return r;
}
