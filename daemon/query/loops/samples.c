/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Give each sample of the processes that count to the loop or function that its leaf is in (lines.c), and each one in
 * uncounted code also to the callee that a loop called (callee.c), if known. With places of OpenMP, give it to the
 * region that its stack is in (places.c).
 */
#include "daemon/query/loops/facts_private.h"

/* The name of a frame's code, as the last part of a fact's key: texts of its function and its module. 0: there are
 * too many names. */
static uint64_t code_name(const struct loop_facts *f, uint32_t stack)
{
	const struct loaded *l = &f->loaded;
	const struct loaded_frame *frame = loaded_leaf(l, stack);
	uint32_t function = frame->n_places > 0
				    ? l->place[frame->place + frame->n_places - 1].function
				    : l->unknown_name;
	if (f->samples.n_uncounted >= LOOP_UNCOUNTED_MAX)
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
	f->samples.callers |= loop_facts_moves(f, callee);
	add_sample(fact, row);
	return 0;
}

static int take_sample(void *userdata, const struct scan_row *row)
{
	struct loop_facts *f = userdata;
	const struct loaded *l = &f->loaded;
	uint32_t site, who = 0;
	struct fact *fact;
	int r = 0;
	if (!f->segment.counts[l->task[row->task].process])
		return 0;
	provenance_row(&f->provenance, l, row);
	f->samples.taken.ns += (double)row->weight_ns;
	f->samples.taken.n += row->count;
	if (f->q.by_thread)
		r = loop_facts_task(f, row->task, &who);
	if (f->q.places)
		site = loop_facts_region_of_stack(f, row->stack);
	else
		site = loop_facts_frame(
			f, row->stack <= l->n_stacks ? l->stack[row->stack].frame : 0);
	/* the functions that the samples of a region fell into are rows, too */
	const uint64_t name = site == 0 || f->q.places ? code_name(f, row->stack) : 0;
	if (r == 0 && site == 0 && !f->q.places)
		r = take_callee(f, row, who);
	const uint32_t n = f->table.keys.n_keys;
	if (r == 0)
		r = loop_facts_get(f, &FACT_KEY(site, FACT_ANY_REGION, who, name), &fact);
	if (r != 0)
		return r;
	f->samples.n_uncounted += name != 0 && f->table.keys.n_keys > n;
	add_sample(fact, row);
	return 0;
}

int loop_facts_add_samples(
	struct loop_facts *f, const struct row_filter *filter, struct scan_notes *notes)
{
	int r = f->q.places ? 0 : loop_frames_begin(f);
	if (r == 0 && !f->q.places)
		r = loop_callees_begin(f);
	return r == 0 ? scan_samples(&f->loaded, filter, notes, take_sample, f) : r;
}
