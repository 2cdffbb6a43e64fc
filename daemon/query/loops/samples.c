/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Samples of the processes that count, given to what their leaf is in (lines.c), and those of code that
 * nobody counts also to the callee that a loop called (callee.c), where that is known.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/query/loops/facts.h"

/* The name of code that nobody counts, as the last part of a fact's key: texts of its function and
 * its module. 0: there are too many names. */
static uint64_t uncounted_name(struct loop_facts *f, const struct loaded_frame *frame)
{
	const struct loaded *l = &f->loaded;
	uint32_t function = frame->n_places > 0
				    ? l->place[frame->place + frame->n_places - 1].function
				    : l->unknown_name;
	if (f->n_uncounted >= LOOP_UNCOUNTED_MAX)
		return 0;
	return (uint64_t)function << 32 | loaded_module(l, frame);
}

static void add_sample(struct fact *fact, const struct scan_row *row)
{
	fact->sampled_ns += (double)row->weight_ns;
	fact->samples += row->count;
	fact->uncounted += row->uncounted;
	fact->cycles += row->cycles > 0 ? row->cycles : 0;
	fact->instructions += row->instructions > 0 ? row->instructions : 0;
}

/* A sample in uncounted code counts also for the callee through which counted code called it, if
 * known. */
static int take_callee(struct loop_facts *f, const struct scan_row *row, uint32_t who)
{
	uint32_t callee = row->stack <= f->loaded.n_stacks ? loop_facts_callee(f, row->stack) : 0;
	const struct key key = FACT_KEY(callee, FACT_ANY_REGION, who, 0);
	struct fact *fact;
	int r = callee ? loop_facts_get(f, &key, &fact) : 0;
	if (r != 0 || !callee)
		return r;
	f->callers |= loop_facts_moves(f, callee);
	add_sample(fact, row);
	return 0;
}

static int take_sample(void *userdata, const struct scan_row *row)
{
	struct loop_facts *f = userdata;
	const struct loaded *l = &f->loaded;
	uint32_t frame = row->stack <= l->n_stacks ? l->stack[row->stack].frame : 0, who = 0;
	if (!f->counts[l->task[row->task].process])
		return 0;
	provenance_row(&f->provenance, l, row);
	f->sampled_ns += (double)row->weight_ns;
	f->samples_taken += row->count;
	uint32_t site = loop_facts_frame(f, frame);
	int r = f->by_thread ? loop_facts_task(f, row->task, &who) : 0;
	struct fact *fact;
	uint64_t name = site == 0 ? uncounted_name(f, &l->frame[frame]) : 0;
	const struct key key = FACT_KEY(site, FACT_ANY_REGION, who, name);
	if (r == 0 && site == 0)
		r = take_callee(f, row, who);
	uint32_t n = f->keys.n_keys;
	if (r == 0)
		r = loop_facts_get(f, &key, &fact);
	if (r != 0)
		return r;
	f->n_uncounted += name != 0 && f->keys.n_keys > n;
	add_sample(fact, row);
	return 0;
}

int loop_facts_add_samples(
	struct loop_facts *f, const struct row_filter *filter, struct scan_notes *notes)
{
	size_t n = (size_t)f->loaded.n_frames + 1;
	size_t n_stacks = (size_t)f->loaded.n_stacks + 1;
	f->frame_site = malloc(n * sizeof(*f->frame_site));
	f->callee = malloc(n_stacks * sizeof(*f->callee));
	if (!f->frame_site || !f->callee)
		return -ENOMEM;
	memset(f->frame_site, 0xff, n * sizeof(*f->frame_site));
	memset(f->callee, 0xff, n_stacks * sizeof(*f->callee));
	return scan_samples(&f->loaded, filter, notes, take_sample, f);
}
