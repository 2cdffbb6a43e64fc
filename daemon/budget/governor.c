/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* The cost of a hart is the kernel's work on it (samples and switches, at the costs measured there)
 * plus an equal share of the CPU time of our processes. The cost of a step is predicted from the
 * same figures: except for the sampling rate, rates of samples and switches do not depend on the
 * step. Our own CPU time is assumed to change with the number of records, at the cost of one, and
 * otherwise to stay.
 *
 * Steps that change nothing on this machine are skipped. Sampling keeps a part of the budget, since samples are given up
 * for what samples cost alone: from the first step on at which they cost no more than that, what else costs must be
 * saved elsewhere (measures.h), and the budget may be exceeded. If no step is within the budget or so cheap, we take the
 * cheapest, unless it saves not much of the present cost: we give up nothing that does not help.
 *
 * For a client that shares the samples of others, only its additional rate can be given up
 * (hz_least).
 */

#include "daemon/budget/governor.h"

#include <stdio.h>

#define NS_PER_S 1e9
/* Share of the cost that a step above the budget must save; part of the budget that sampling keeps; and how much more than
 * the best step one may cost that is as good. */
#define SAVES_MIN 0.1
/* At 99 Hz samples take up to 0.6 of a budget of 1 % on virtual machines, where each costs 30 to 60 µs. */
#define KEPT_PART 0.7
/* A step is not left for what its records cost more than was predicted: their price has a part that does not depend on
 * their number. */
#define KEPT_PART_MAX 0.85
/* … and a step is taken back, whatever else costs, if samples would then cost less than this part. */
#define KEPT_PART_BACK 0.6
#define NEARLY 0.02

static unsigned rate_part(enum governor_step step)
{
	return step >= STEP_RATE_8 ? 8 : step >= STEP_RATE_4 ? 4 : step >= STEP_RATE_2 ? 2 : 1;
}

uint32_t governor_rate(enum governor_step step, uint32_t hz)
{
	uint32_t least = hz < GOVERNOR_HZ_MIN ? hz : GOVERNOR_HZ_MIN;
	uint32_t rate = hz / rate_part(step);
	return rate < least ? least : rate;
}

uint32_t governor_rate_above(enum governor_step step, uint32_t hz, uint32_t hz_least)
{
	uint32_t rate = step < STEP_RATE_8 ? governor_rate(step, hz) : hz_least;
	return rate > hz_least ? rate : hz_least;
}

static uint32_t rate_at(const struct governor_load *l, enum governor_step step)
{
	return l->hz_least ? governor_rate_above(step, l->hz, l->hz_least)
			   : governor_rate(step, l->hz);
}

/* Does the step include giving up `what`? If only the rate may be given up, no step includes
 * anything else. */
static bool leaves_out(
	const struct governor_load *l, enum governor_step step, enum governor_step what)
{
	return !l->hz_least && step >= what;
}

static bool cuts_at(
	const struct governor_load *l, const struct governor_hart *h, enum governor_step step)
{
	return h->counts && h->cuts && !leaves_out(l, step, STEP_NO_CUT);
}

static double samples_at(
	const struct governor_load *l, const struct governor_hart *h, enum governor_step step)
{
	return h->busy * rate_at(l, step);
}

static double groups_at(const struct governor_load *l, enum governor_step step)
{
	return leaves_out(l, step, STEP_NO_GROUPS) ? 0 : l->groups;
}

/* Share of that hart's time that sampling takes in the kernel at that step. */
static double kernel_part(
	const struct governor_load *l, const struct governor_hart *h, enum governor_step step)
{
	bool counted = h->counts && !leaves_out(l, step, STEP_NO_COUNTERS);
	bool by_clock = h->by_clock || leaves_out(l, step, STEP_CLOCK);
	double sample_ns = cost_of_sample(&h->cost, counted, by_clock && !counted);
	double ns = samples_at(l, h, step) * sample_ns;
	if (cuts_at(l, h, step))
		ns += h->switches * cost_of_switch(&h->cost, h->sums);
	return ns / NS_PER_S + groups_at(l, step);
}

double governor_records(const struct governor_load *l, enum governor_step step)
{
	double n = 0;
	for (int i = 0; i < l->n_harts; i++) {
		n += samples_at(l, &l->hart[i], step);
		bool records = cuts_at(l, &l->hart[i], step) && !l->hart[i].sums;
		n += records ? l->hart[i].switches : 0;
	}
	return n;
}

static double own_part(
	const struct governor_load *l, enum governor_step now, enum governor_step step)
{
	double more = governor_records(l, step) - governor_records(l, now);
	double own = l->own + more * l->record_ns / NS_PER_S / l->n_harts;
	return own > 0 ? own : 0;
}

/* Index of the hart that costs most at that step. */
static int busiest(const struct governor_load *l, enum governor_step step)
{
	int worst = 0;
	for (int i = 1; i < l->n_harts; i++)
		if (kernel_part(l, &l->hart[i], step) > kernel_part(l, &l->hart[worst], step))
			worst = i;
	return worst;
}

double governor_predict(
	const struct governor_load *l, enum governor_step now, enum governor_step step)
{
	return own_part(l, now, step) + kernel_part(l, &l->hart[busiest(l, step)], step);
}

/* Does the step differ from the one before it, on any hart? */
static bool is_useful(const struct governor_load *l, enum governor_step step)
{
	bool any = false;
	switch (step) {
	case STEP_RATE_2:
	case STEP_RATE_4:
	case STEP_RATE_8:
		return rate_at(l, step) < rate_at(l, (enum governor_step)(step - 1));
	case STEP_NO_CALLERS:
		return l->callers && !l->hz_least;
	case STEP_NO_GROUPS:
		return l->groups > 0 && !l->hz_least;
	default:
		for (int i = 0; i < l->n_harts && !l->hz_least; i++) {
			const struct governor_hart *h = &l->hart[i];
			any |= step == STEP_NO_CUT        ? h->counts && h->cuts
			       : step == STEP_NO_COUNTERS ? h->counts
			       : step == STEP_CLOCK       ? !h->by_clock
							  : true;
		}
		return any;
	}
}

static bool asks(
	const struct governor_load *l, enum governor_step step, enum governor_step for_what)
{
	return step >= for_what && is_useful(l, for_what);
}

/* Effort that a step asks of the sampler, as far as it differs there from doing all; and the rate
 * that it leaves of hz. */
static struct sampler_effort effort_of(const struct governor_load *l, enum governor_step step)
{
	return (struct sampler_effort){
		.no_groups = asks(l, step, STEP_NO_GROUPS),
		.no_cut = asks(l, step, STEP_NO_CUT),
		.no_counters = asks(l, step, STEP_NO_COUNTERS),
		.rate_part = rate_part(step),
		.hz = rate_at(l, step),
		.clock_only = asks(l, step, STEP_CLOCK),
		.no_callers = asks(l, step, STEP_NO_CALLERS),
	};
}

/* Share of the busiest hart's time that sampling takes at that step, there and in our processes. */
static double sampling_part(const struct governor_load *l, enum governor_step step)
{
	return kernel_part(l, &l->hart[busiest(l, step)], step) +
	       governor_records(l, step) * l->record_ns / NS_PER_S / l->n_harts;
}

/* Has sampling no more than this part of the budget? What one client asks for beside others has none. */
static bool is_modest(const struct governor_load *l, enum governor_step step, double part)
{
	return !l->hz_least && sampling_part(l, step) <= l->budget * part;
}

/* The first step after `from` that is within the budget, or where sampling is modest; else the first that costs nearly the
 * least, if that saves enough; else `from`. */
static enum governor_step step_down(const struct governor_load *l, enum governor_step from)
{
	double cost[N_STEPS] = {0}, least = governor_predict(l, from, from);
	const double now = least;
	for (int step = from + 1; step < N_STEPS; step++) {
		cost[step] = governor_predict(l, from, (enum governor_step)step);
		if (!is_useful(l, (enum governor_step)step))
			continue;
		if (cost[step] <= l->budget || is_modest(l, (enum governor_step)step, KEPT_PART))
			return (enum governor_step)step;
		least = cost[step] < least ? cost[step] : least;
	}
	/* the cost of callers is not measured separately: they are given up last, if nothing else
	 * is enough */
	if (least >= now * (1 - SAVES_MIN))
		return from;
	for (int step = from + 1; step < N_STEPS; step++)
		if (is_useful(l, (enum governor_step)step) && cost[step] <= least * (1 + NEARLY))
			return (enum governor_step)step;
	return from;
}

/* The next better step that differs from this one. */
static enum governor_step step_up(const struct governor_load *l, enum governor_step from)
{
	enum governor_step step = from;
	while (step > STEP_ALL && !is_useful(l, step))
		step--;
	if (step > STEP_ALL)
		step--;
	/* steps without effect are taken back together with it */
	while (step > STEP_ALL && !is_useful(l, step))
		step--;
	return step;
}

/* "switches cost hart 1 39 % of its time (19500 ns each, 20100 a second)" */
static void explain(struct governor *g, const struct governor_load *l, enum governor_step now)
{
	const struct governor_hart *h = &l->hart[busiest(l, now)];
	double switch_ns = cost_of_switch(&h->cost, h->sums);
	double switches = cuts_at(l, h, now) ? h->switches * switch_ns / NS_PER_S : 0;
	double groups = groups_at(l, now);
	double samples = kernel_part(l, h, now) - switches - groups;
	if (groups > switches && groups > samples && groups > l->own)
		snprintf(g->reason, sizeof(g->reason),
			"rotating topdown-groups costs each hart %.1f %% of its time",
			groups * 100);
	else if (switches > samples && switches > l->own)
		snprintf(g->reason, sizeof(g->reason),
			"cutting counts at switches cost hart %d %.1f %% of its time (%.1f µs "
			"each, "
			"%.0f a second)",
			h->number, switches * 100, switch_ns / 1e3, h->switches);
	else if (samples > l->own - governor_records(l, now) * l->record_ns / NS_PER_S / l->n_harts)
		snprintf(g->reason, sizeof(g->reason),
			"samples cost hart %d %.1f %% of its time (%.1f µs each)", h->number,
			samples * 100, samples * NS_PER_S / samples_at(l, h, now) / 1e3);
	else
		snprintf(g->reason, sizeof(g->reason),
			"mperf's own processes took %.1f %% of the machine", l->own * 100);
}

static bool change(struct governor *g, enum governor_step step, uint64_t now_ns)
{
	g->step = step;
	g->changed_ns = now_ns;
	g->n_over = 0;
	g->low_ns = 0;
	if (step == STEP_ALL)
		g->reason[0] = '\0';
	return true;
}

static bool give_up(struct governor *g, const struct governor_load *l, uint64_t now_ns)
{
	enum governor_step step = step_down(l, g->step);
	if (step == g->step)
		return false;
	bool failed = g->returned_ns && now_ns - g->returned_ns < GOVERNOR_FAILED_NS;
	g->back_ns = failed && g->back_ns ? 2 * g->back_ns : GOVERNOR_BACK_NS;
	if (g->back_ns > GOVERNOR_BACK_NS_MAX)
		g->back_ns = GOVERNOR_BACK_NS_MAX;
	explain(g, l, g->step);
	return change(g, step, now_ns);
}

/* Take back a step, once it would have been cheap for long enough. */
static bool come_back(struct governor *g, const struct governor_load *l, uint64_t now_ns)
{
	enum governor_step step = step_up(l, g->step);
	if (step == g->step)
		return false;
	if (governor_predict(l, g->step, step) > l->budget * GOVERNOR_BACK_PART &&
		!is_modest(l, step, KEPT_PART_BACK)) {
		g->low_ns = 0;
		return false;
	}
	if (g->low_ns == 0)
		g->low_ns = now_ns;
	if (now_ns - g->low_ns < g->back_ns)
		return false;
	g->returned_ns = now_ns;
	return change(g, step, now_ns);
}

static bool decide(struct governor *g, const struct governor_load *l, uint64_t now_ns)
{
	if (l->budget <= 0) /* no limit: take back all steps at once */
		return g->step != STEP_ALL && change(g, STEP_ALL, now_ns);
	const bool over = governor_predict(l, g->step, g->step) > l->budget;
	g->keeps = over && is_modest(l, g->step, g->step == STEP_ALL ? KEPT_PART : KEPT_PART_MAX);
	g->n_over = over && !g->keeps ? g->n_over + 1 : 0;
	if (!over || g->keeps)
		return come_back(g, l, now_ns);
	g->low_ns = 0;
	return g->n_over >= GOVERNOR_OVER_TICKS && give_up(g, l, now_ns);
}

bool governor_tick(struct governor *g, const struct governor_load *l, uint64_t now_ns)
{
	bool changed = decide(g, l, now_ns);
	g->effort = effort_of(l, g->step);
	return changed;
}
