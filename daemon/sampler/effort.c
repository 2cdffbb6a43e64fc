/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Effort: remove from a plan the work that an effort leaves out, and describe it as text. Pure. */

#include "daemon/sampler/effort.h"

#include <stdio.h>

#include "daemon/sampler/attr.h"
#include "daemon/sampler/sampler_private.h"

static unsigned part(const struct sampler_effort *e)
{
	return e->rate_part ? e->rate_part : 1;
}

/* Do both efforts want the same events? Their rates may differ. */
static bool same_events(const struct sampler_effort *a, const struct sampler_effort *b)
{
	return a->no_cut == b->no_cut && a->no_counters == b->no_counters &&
	       a->clock_only == b->clock_only && a->no_callers == b->no_callers;
}

void effort_begin(struct effort_state *f, const struct sampler_options *o)
{
	f->switches = o->switches;
	f->stacks = o->stacks;
}

const struct sampler_effort *effort_in_force(const struct sampler *s)
{
	return &s->effort.in_force;
}

enum sampler_switches sampler_switches_asked(const struct sampler *s)
{
	return s->effort.switches;
}

enum sampler_stacks sampler_stacks_asked(const struct sampler *s)
{
	return s->effort.stacks;
}

bool sampler_prefers_sums(const struct sampler *s, int hart)
{
	return hart_set_has(&s->effort.sums, hart);
}

void effort_prefer_sums(struct sampler *s, int hart, bool prefer)
{
	if (prefer)
		hart_set_add(&s->effort.sums, hart);
	else
		hart_set_remove(&s->effort.sums, hart);
}

void effort_is_due(struct sampler *s, int hart)
{
	hart_set_add(&s->effort.unfit, hart);
}

bool effort_take_due(struct sampler *s, int hart)
{
	bool due = hart_set_has(&s->effort.unfit, hart);

	hart_set_remove(&s->effort.unfit, hart);
	return due;
}

bool effort_set(struct sampler *s, const struct sampler_effort *effort)
{
	struct effort_state *f = &s->effort;
	bool other = !same_events(&f->in_force, effort);

	f->in_force = *effort;
	s->options.switches = effort->no_cut ? SAMPLER_SWITCHES_NONE : f->switches;
	s->options.stacks = effort->no_callers ? SAMPLER_STACKS_NONE : f->stacks;
	return other;
}

bool effort_is(const struct sampler *s, const struct sampler_effort *effort)
{
	const struct sampler_effort *now = effort_in_force(s);

	return same_events(now, effort) && part(now) == part(effort);
}

void effort_reduce(const struct sampler *s, int hart, struct plan *p)
{
	const struct sampler_effort *e = effort_in_force(s);
	const bool yields = share_yields(s, hart);
	if (p->rung == RUNG_NONE || p->rung == RUNG_ASKED)
		return;
	if (e->no_counters || e->clock_only || yields) {
		p->n_siblings = 0;
		if (p->rung == RUNG_CLOCK_LEADER)
			p->rung = RUNG_CLOCK;
	}
	bool shares_leader = yields && !plan_leaves_room(s, hart, p);
	if ((e->clock_only || shares_leader) && p->rung != RUNG_CLOCK) {
		/* same event as in the session's list (reserve.c) */
		const bool user_only = s->options.user_only || !s->machine.may_see_kernel;
		p->rung = RUNG_CLOCK;
		p->user_only = user_only;
		p->leader = event_cpu_clock();
		event_exclude_kernel(&p->leader, user_only);
		snprintf(p->reason, sizeof(p->reason),
			"cpu-clock costs less than the source that this hart could have "
			"(overhead)");
	}
	p->yields = yields;
	if (yields)
		snprintf(p->reason, sizeof(p->reason),
			"%s samples without counters for a minute: other programs use all counters "
			"of this core",
			p->leader.name);
	p->switches &= p->n_siblings > 0 && !e->no_cut;
}

const char *effort_says(const struct sampler_effort *e, char ret_text[static EFFORT_TEXT_BYTES])
{
	char rate[48];
	snprintf(rate, sizeof(rate), "only one in %u samples is taken", e->rate_part);
	const struct {
		bool is;
		const char *says;
	} parts[] = {
		{e->no_groups, "topdown-groups are not counted"},
		{e->no_cut && !e->no_counters, "counts are not cut at switches"},
		{e->no_counters && !e->clock_only, "samples carry no counters"},
		{e->rate_part > 1, rate},
		{e->clock_only, "samples come from cpu-clock"},
		{e->no_callers, "samples have no callers"},
	};
	size_t n = 0;
	ret_text[0] = '\0';
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && n < EFFORT_TEXT_BYTES; i++)
		if (parts[i].is)
			n += (size_t)snprintf(ret_text + n, EFFORT_TEXT_BYTES - n, "%s%s",
				n ? ", " : "", parts[i].says);
	return ret_text;
}
