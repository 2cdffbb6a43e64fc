/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Rates that clients request for the whole system, each within the client's own budget. */

#include "daemon/budget/overhead.h"

#include <stdio.h>
#include <stdlib.h>

#include "daemon/budget/overhead_private.h"
#include "proto/base/memory.h"

#define PPM 1e6

/* The hart's load by its current plan, regardless of what always-on sampling has given up. */
static struct governor_hart load_in_force(const struct overhead *h, const struct sampler *s, int i)
{
	const struct plan *p = &s->plan[i];
	struct governor_hart hart = overhead_load_of(h, s, i);
	hart.counts = p->n_siblings > 0;
	hart.cuts = is_cut(p);
	hart.by_clock = event_is_clock(&p->leader);
	return hart;
}

struct overhead_held overhead_held_begin(uint32_t hz, uint32_t ppm)
{
	return (struct overhead_held){
		.hz = hz,
		.ppm = ppm,
		.given_hz = hz,
		.governor.n_over = GOVERNOR_OVER_TICKS - 1,
	};
}

bool overhead_hold(const struct overhead *h, struct overhead_held *held, uint64_t now_ns)
{
	int n = 0;
	_cleanup_(freep) struct governor_hart *hart = calloc((size_t)h->n_harts + 1, sizeof(*hart));
	const struct sampler *s = h->walk ? h->walk->sampler : NULL;
	for (int i = 0; hart && s && i < h->n_harts; i++)
		if (is_open(s, i))
			hart[n++] = load_in_force(h, s, i);
	if (n == 0) /* even without memory; the next tick tries again */
		return false;
	struct governor_load load = {
		.budget = held->ppm / PPM,
		.hz = held->hz,
		.hz_least = overhead_rate(h),
		.record_ns = overhead_record_ns(h),
		.hart = hart,
		.n_harts = n,
	};
	/* Our own CPU time at the always-on rate, and the cost of records beyond it. */
	double always = governor_records(&load, STEP_RATE_8), own = overhead_own_of_budget(h) / n;
	double more = governor_records(&load, held->governor.step) - always;
	load.own = own > 0 ? own + overhead_own_by_records(h, more)
			   : overhead_own_by_records(h, always + more);
	governor_tick(&held->governor, &load, now_ns);
	uint32_t given_hz = governor_rate_above(held->governor.step, held->hz, load.hz_least);
	bool changed = given_hz != held->given_hz;
	held->given_hz = given_hz;
	return changed;
}

bool overhead_allows(const struct overhead *h, uint32_t hz, uint32_t ppm, char *ret_why, size_t n)
{
	if (ppm == 0)
		return true;
	if (h->governor.step >= STEP_RATE_2) {
		snprintf(ret_why, n, "%u samples a second are taken instead of %u; %s",
			overhead_rate(h), h->o.conf->rate, h->governor.reason);
		return false;
	}
	struct overhead_held held = overhead_held_begin(hz, ppm);
	if (hz <= overhead_rate(h) || !overhead_hold(h, &held, 1) || held.given_hz >= hz)
		return true;
	snprintf(ret_why, n, "%s", held.governor.reason);
	return false;
}
