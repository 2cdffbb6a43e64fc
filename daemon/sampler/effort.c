/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Effort: the part of a plan that an effort leaves, and its text. Pure. */

#include "daemon/sampler/effort.h"

#include <stdio.h>

#include "daemon/sampler/attr.h"
#include "daemon/sampler/sampler_private.h"

static unsigned part(const struct sampler_effort *e)
{
	return e->rate_part ? e->rate_part : 1;
}

bool effort_same_events(const struct sampler_effort *a, const struct sampler_effort *b)
{
	return a->no_cut == b->no_cut && a->no_counters == b->no_counters &&
	       a->clock_only == b->clock_only && a->no_callers == b->no_callers;
}

bool effort_is(const struct sampler *s, const struct sampler_effort *effort)
{
	return effort_same_events(&s->effort, effort) && part(&s->effort) == part(effort);
}

void effort_reduce(const struct sampler *s, int hart, struct plan *p)
{
	const struct sampler_effort *e = &s->effort;
	const bool yields = s->watch[hart].yields;
	if (p->rung == RUNG_NONE || p->rung == RUNG_ASKED)
		return;
	if (e->no_counters || e->clock_only || yields) {
		p->n_siblings = 0;
		if (p->rung == RUNG_CLOCK_LEADER)
			p->rung = RUNG_CLOCK;
	}
	bool shares_leader = yields && !plan_leaves_room(s, hart, p);
	if ((e->clock_only || shares_leader) && p->rung != RUNG_CLOCK) {
		/* as it was entered in the session's list of events (reserve.c) */
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
