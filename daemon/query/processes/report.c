/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* From processes to a tree with begin and end
 *
 * A job begins with the first process that one of its processes started, or with its first samples, whichever is
 * earlier. A shell that was given labels lived long before that, and counts from the job's begin. If several processes
 * have no parent in the job, one that stands for their unknown parent is the first of the tree.
 */
#include "daemon/query/processes/report_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/memory.h"

/* job run gives labels to a process that waits for them; a longer life before the job's begin was another's. */
#define LABELLED_NS 1000000000

/* --- begin and end ---------------------------------------------------------------------------- */

static const struct process *parent_of(const struct report *r, const struct process *p)
{
	const struct process *parent = p->parent ? &r->process[p->parent - 1] : NULL;
	return parent && parent->wanted && parent->start_ns <= p->start_ns ? parent : NULL;
}

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* When a process without a parent began to count, as far as it alone says. */
static int64_t began_ns(const struct report *r, const struct process *p)
{
	if (p->start_ns >= r->first_ns)
		return p->start_ns;
	/* of a recording's command, the time until it could start is no part of it */
	if (r->of->is_recording && p->lived_ns && p->end_ns > p->lived_ns)
		return most(p->end_ns - p->lived_ns, r->first_ns);
	return r->first_ns;
}

static void find_begin(struct report *r)
{
	int64_t begin_ns = r->of->begin_boot_ns > 0 ? r->of->begin_boot_ns : INT64_MAX;
	for (uint32_t i = 0; i < r->keys.n_keys; i++) {
		const struct process *p = &r->process[i];
		if (p->wanted && parent_of(r, p))
			begin_ns = least(begin_ns, most(p->start_ns, parent_of(r, p)->start_ns));
		else if (p->wanted && r->of->begin_boot_ns <= 0)
			begin_ns = least(begin_ns, began_ns(r, p));
	}
	int64_t first_ns = begin_ns;
	for (uint32_t i = 0; i < r->keys.n_keys && !r->of->is_recording; i++) {
		const struct process *p = &r->process[i];
		if (p->wanted && p->start_ns < begin_ns && p->start_ns >= begin_ns - LABELLED_NS)
			first_ns = least(first_ns, p->start_ns);
	}
	r->begin_ns = first_ns;
}

/* A process whose end is not known has not ended, or has left the job. */
static void find_end(struct report *r)
{
	int64_t known_ns = 0;
	for (uint32_t i = 0; i < r->keys.n_keys; i++)
		if (r->process[i].wanted)
			known_ns = most(known_ns, r->process[i].end_ns);
	if (r->of->unfinished || r->of->is_recording)
		known_ns = most(known_ns, r->last_ns);
	for (uint32_t i = 0; i < r->keys.n_keys; i++) {
		struct process *p = &r->process[i];
		if (!p->wanted || p->end_ns)
			continue;
		r->n_endless++;
		p->end_ns = most(known_ns, p->start_ns);
		if (known_ns == 0)
			p->end_ns = most(p->last_ns, p->start_ns);
	}
}

/* --- the tree --------------------------------------------------------------------------------- */

static void add_node(struct report *r, uint32_t key)
{
	struct process *p = &r->process[key];
	p->at = r->n_tree;
	r->key[r->n_tree] = key;
	r->tree[r->n_tree++] = (struct chain_process){.start_ns = most(p->start_ns, r->begin_ns),
		.end_ns = most(p->end_ns, most(p->start_ns, r->begin_ns)),
		.program = p->comm};
}

/* Make the first process of the tree: the only one without a parent, or one that stands for all starters. */
static void add_first(struct report *r)
{
	uint32_t n_roots = 0, root = KEY_NONE;
	r->end_ns = r->begin_ns;
	for (uint32_t i = 0; i < r->keys.n_keys; i++) {
		const struct process *p = &r->process[i];
		if (!p->wanted || parent_of(r, p))
			continue;
		n_roots++;
		root = i;
		r->end_ns = most(r->end_ns, p->end_ns);
	}
	if (n_roots == 1) {
		add_node(r, root);
		r->tree[0].parent = CHAIN_NONE;
		r->begin_ns = r->tree[0].start_ns;
		r->end_ns = r->tree[0].end_ns;
		return;
	}
	r->key[0] = KEY_NONE;
	r->tree[r->n_tree++] = (struct chain_process){r->begin_ns, r->end_ns, CHAIN_NONE, 0};
}

static void add_others(struct report *r)
{
	for (uint32_t i = 0; i < r->keys.n_keys; i++)
		if (r->process[i].wanted && r->key[0] != i)
			add_node(r, i);
	for (uint32_t at = 1; at < r->n_tree; at++) {
		const struct process *p = &r->process[r->key[at]];
		const struct process *parent = parent_of(r, p);
		r->tree[at].parent = parent ? parent->at : 0;
	}
}

/* The parts of each process side by side, in order of time. */
static int find_parts(struct report *r)
{
	r->part = chain_parts(r->chain, &r->n_parts);
	r->part_of = calloc((size_t)r->n_parts + 1, sizeof(*r->part_of));
	r->first = calloc((size_t)r->n_tree + 2, sizeof(*r->first));
	r->spent = calloc((size_t)r->n_parts + 1, sizeof(*r->spent));
	if (!r->part_of || !r->first || !r->spent)
		return -ENOMEM;
	for (uint32_t i = 0; i < r->n_parts; i++)
		r->first[r->part[i].process + 2]++;
	for (uint32_t i = 2; i <= r->n_tree + 1; i++)
		r->first[i] += r->first[i - 1];
	for (uint32_t i = 0; i < r->n_parts; i++)
		r->part_of[r->first[r->part[i].process + 1]++] = i;
	return 0;
}

/* 0, QUERY_FAILED (there are no processes, or too many), -ENOMEM. */
static int make_tree(struct report *r, struct query_error *ret_error)
{
	if (r->n_wanted == 0)
		return query_fail(ret_error, MPERF__FAILURE_KIND__FAILURE_MISSING,
			"See which jobs there are: mperfctl hotspots --since -1d --by job; with "
			"-i, add "
			"the file",
			"there are no processes of %s that you may see", r->of->says);
	if (r->n_wanted >= CHAIN_PROCESSES_MAX)
		return query_fail(ret_error, MPERF__FAILURE_KIND__FAILURE_LIMIT,
			"Choose a smaller job", "%s has more than %u processes", r->of->says,
			CHAIN_PROCESSES_MAX);
	r->tree = calloc((size_t)r->n_wanted + 1, sizeof(*r->tree));
	r->key = calloc((size_t)r->n_wanted + 1, sizeof(*r->key));
	if (!r->tree || !r->key)
		return -ENOMEM;
	find_end(r);
	find_begin(r);
	add_first(r);
	add_others(r);
	int result = chain_new(r->tree, r->n_tree, &r->chain);
	return result == 0 ? find_parts(r) : result;
}

/* ---------------------------------------------------------------------------------------------- */

static void report_clear(struct report *r)
{
	key_table_clear(&r->keys);
	text_table_clear(&r->texts);
	chain_free(r->chain);
	free(r->process);
	free(r->tree);
	free(r->key);
	free(r->part_of);
	free(r->first);
	free(r->spent);
}

int query_report(struct query_source *source, size_t n_sources,
	const struct query_question *question, const struct report_of *of,
	const struct answer *answer, struct query_error *ret_error)
{
	struct report *r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	r->of = of;
	r->own = *question->filter;
	r->own.wall = true;
	r->own.event = NULL;
	struct query_question own = *question;
	own.by = QUERY_BY_PROCESS;
	own.filter = &r->own;
	provenance_expect(&r->provenance, &own);
	int result = report_read(r, source, n_sources, ret_error);
	if (result == 0)
		result = make_tree(r, ret_error);
	if (result == 0)
		result = report_spend(r, source, n_sources, ret_error);
	if (result == 0)
		result = report_tell(r, question->limit, answer);
	report_clear(r);
	free(r);
	return result;
}
