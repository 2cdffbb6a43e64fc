/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Open the sampling events of harts again, with more or less work
 *
 * The sampler stores the plan that the ladder found on a hart (sampler.found); the plan in force is
 * this one without the work that is left out. So resuming all work needs no new climb, which would take
 * the hart for a tenth of a second. Only the sampling events are opened again: side band and ring
 * stay.
 */

#include <errno.h>
#include <stdlib.h>

#include "daemon/sampler/attr.h"
#include "daemon/sampler/effort.h"
#include "daemon/sampler/sampler_private.h"
#include "proto/base/memory.h"

int sampler_refit(struct sampler *s, int hart)
{
	pid_t everybody = -1;
	_cleanup_(freep) struct opening *o = calloc(1, sizeof(*o));
	if (!o)
		return -ENOMEM;
	o->sampler = s;
	o->tasks = &everybody;
	o->n_tasks = 1;
	int r = hart_refit(o, hart);
	if (r == 0 && s->started)
		r = hart_enable(s, hart, true);
	if (sampler_is_short(s, r))
		effort_is_due(s, hart); /* tried again at the next tick */
	/* Refused: its side band continues, and doctor shows the plan. */
	return r == -ENOMEM ? r : 0;
}

int effort_follow(struct sampler *s)
{
	int n = 0, r = 0;
	for (int hart = 0; hart < s->machine.n_harts && n < EFFORT_HARTS_MAX && r == 0; hart++) {
		if (!effort_take_due(s, hart))
			continue;
		if (!hart_ring(s, hart, 0))
			continue; /* an offline hart gets its effort when it comes online */
		r = sampler_refit(s, hart);
		n++;
	}
	return r;
}

int sampler_prefer_sums(struct sampler *s, int hart, bool prefer)
{
	bool choice = sampler_switches_asked(s) == SAMPLER_SWITCHES_CHEAPEST && sampler_may_sum(s);
	if (s->options.events || !choice || sampler_prefers_sums(s, hart) == prefer)
		return 0;
	effort_prefer_sums(s, hart, prefer);
	if (s->plan[hart].rung != RUNG_NONE && s->plan[hart].cut & (CUT_SIBLING | CUT_BPF))
		effort_is_due(s, hart);
	return effort_follow(s);
}

/* Bytes that hold most stacks (session/copies.h): copied even if the rings have no room for more. */
#define ALWAYS_COPY_LEAST 4096u

void copies_begin(struct sampler *s)
{
	struct sampler_options *o = &s->options;
	const bool may = o->stacks == SAMPLER_STACKS_DWARF && o->may_copy_more;

	if (may && o->always) {
		const uint32_t most =
			ring_copy_most(ring_bytes_for(s, 0), ALWAYS_COPY_LEAST, s->hz);
		o->stack_bytes = o->stack_bytes < most ? o->stack_bytes : most;
	}
	s->copy_bytes = o->stack_bytes;
	/* Requested events may fire at any rate. */
	if (!may || o->always || o->events)
		return;
	s->copy_bytes = SAMPLER_STACK_BYTES_MAX; /* for which rings are sized */
	s->copy_bytes = ring_copy_most(ring_bytes_for(s, 0), o->stack_bytes, ring_begin_hz(s));
}

/* Bring all harts to another size; at once if it is a smaller one, which rings may need. */
static int follow_copies(struct sampler *s, bool at_once)
{
	const int n_calls = at_once ? 1 + s->machine.n_harts / EFFORT_HARTS_MAX : 1;
	int r = 0;

	for (int hart = 0; hart < s->machine.n_harts; hart++)
		if (s->plan[hart].rung != RUNG_NONE)
			effort_is_due(s, hart);
	for (int i = 0; i < n_calls && r == 0; i++)
		r = effort_follow(s);
	return r;
}

int sampler_set_copy(struct sampler *s, uint32_t bytes, uint32_t hz)
{
	const uint32_t most = ring_copy_most(rings_least(s), s->options.stack_bytes, hz);
	const uint32_t before = s->copy_bytes;

	bytes = bytes < most ? bytes : most;
	bytes = bytes > s->options.stack_bytes ? bytes : s->options.stack_bytes;
	if (s->options.events || s->options.per_task || !s->options.may_copy_more ||
		bytes == before)
		return 0;
	s->copy_bytes = bytes;
	return s->options.stacks == SAMPLER_STACKS_DWARF ? follow_copies(s, bytes < before) : 0;
}

int sampler_set_effort(struct sampler *s, const struct sampler_effort *effort)
{
	if (s->options.events || s->options.per_task || effort_is(s, effort))
		return 0;
	bool reopen = effort_set(s, effort);
	for (int hart = 0; reopen && hart < s->machine.n_harts; hart++)
		if (s->plan[hart].rung != RUNG_NONE)
			effort_is_due(s, hart);
	return effort_follow(s);
}
