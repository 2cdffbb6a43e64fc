/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Current cost, by cause. Pure: from the figures of the last tick, and prices. */

#include "daemon/budget/overhead_private.h"

#include <stdio.h>
#include <string.h>

static double price_of(double part, double per_second, int n_harts)
{
	return part > 0 && per_second > 0 ? part * n_harts / per_second * NS_PER_S : -1;
}

/* Negative: not known, or not to be told from 0. */
static double sideband_price_of(const struct sideband_price *p, enum task_work what)
{
	if (!p || !p[what].known || p[what].low_ns <= 0)
		return -1;
	if (what != TASK_EXEC)
		return p[what].ns;
	/* it was measured with a fork, which counts for itself */
	double fork_ns = sideband_price_of(p, TASK_FORK);
	double alone_ns = p[what].ns - (fork_ns > 0 ? fork_ns : 0);
	return alone_ns > 0 ? alone_ns : -1;
}

static void charge_sideband(const struct overhead *h, int n_harts, struct overhead_spent *s)
{
	for (int what = 0; what < N_TASK_WORKS; what++) {
		double ns = sideband_price_of(h->price, (enum task_work)what);
		s->sideband[what].per_second = h->sideband[what];
		s->sideband[what].ns = ns;
		s->sideband[what].part = ns < 0 ? -1 : h->sideband[what] * ns / NS_PER_S / n_harts;
		s->all_part += ns < 0 ? 0 : s->sideband[what].part;
	}
}

/* Shares of all harts' time. Naming for users is charged to them. */
static void divide(const struct overhead_own *sum, int n_harts, double ret_part[static N_CAUSES])
{
	double time_ns = (double)sum->time_ns * n_harts;
	for (int cause = 0; cause < N_CAUSES; cause++) {
		uint64_t ns = sum->cause_ns[cause];
		ns = cause == CAUSE_NAMING ? less(ns, sum->users_naming_ns) : ns;
		ns += cause == CAUSE_CLIENTS ? sum->users_naming_ns : 0;
		ret_part[cause] = (double)ns / time_ns;
	}
}

static void take_minute(const struct overhead *h, int n_harts, struct overhead_spent *s)
{
	struct overhead_own sum = {0};
	for (unsigned i = 0; i < OVERHEAD_OWN_TICKS; i++)
		overhead_add_own(&sum, &h->own[i]);
	double time_ns = (double)sum.time_ns * n_harts;
	if (sum.time_ns == 0)
		return;
	s->own_part = (double)sum.own_ns / time_ns;
	s->clients_part = (double)sum.clients_ns / time_ns;
	s->others_part = (double)sum.others_ns / time_ns;
	s->users_naming_part = (double)sum.users_naming_ns / time_ns;
	s->groups_part = h->groups_part;
	divide(&sum, n_harts, s->cause_part);
	s->all_part = s->own_part + s->clients_part + s->others_part + s->samples_part +
		      s->switches_part + s->groups_part;
}

static void take_judged(const struct overhead *h, int n_harts, struct overhead_spent *s)
{
	struct overhead_own sum;
	memcpy(s->judged_cause_part, s->cause_part, sizeof(s->cause_part));
	if (overhead_counted(h, &sum) < OVERHEAD_OWN_TICKS_MIN)
		return;
	s->judged_part = (double)sum.own_ns / ((double)sum.time_ns * n_harts);
	divide(&sum, n_harts, s->judged_cause_part);
}

void overhead_spent(const struct overhead *h, struct overhead_spent *ret_spent)
{
	struct overhead_spent s = {.worst_hart = -1, .own_part = -1, .judged_part = -1};
	double worst = -1;
	int n = h->walk ? n_open(h, h->walk->sampler) : 1;
	for (int i = 0; i < h->n_harts; i++) {
		const struct overhead_hart *hart = &h->hart[i];
		s.samples += hart->samples;
		s.switches += hart->switches;
		s.throttles += hart->throttles;
		s.samples_part += hart->samples_part / n;
		s.switches_part += hart->switches_part / n;
		if (hart->samples_part + hart->switches_part <= worst)
			continue;
		worst = hart->samples_part + hart->switches_part;
		s.worst_hart = i;
		s.worst_samples_part = hart->samples_part;
		s.worst_switches_part = hart->switches_part;
	}
	s.sample_ns = price_of(s.samples_part, s.samples, n);
	s.switch_ns = price_of(s.switches_part, s.switches, n);
	take_minute(h, n, &s);
	take_judged(h, n, &s);
	charge_sideband(h, n, &s);
	*ret_spent = s;
}

static double kernel_part(const struct overhead_spent *s)
{
	return s->worst_samples_part + s->worst_switches_part + s->groups_part;
}

double overhead_spent_of_budget(const struct overhead_spent *s)
{
	double own = s->judged_part >= 0 ? s->judged_part : s->own_part;
	return own < 0 ? -1 : own + kernel_part(s);
}

static const char *what_is_decided(const struct overhead *h, const struct overhead_spent *s)
{
	if (s->judged_part < 0)
		return h->judged_from_ns ? "and what the last change saves is not known yet"
					 : "and nothing is decided yet";
	if (h->governor.keeps)
		return "and most of the budget is kept for samples";
	return h->governor.n_over >= GOVERNOR_OVER_TICKS ? "of which nothing is left to give up"
							 : "and nothing is decided yet";
}

const char *overhead_says_over(
	const struct overhead *h, const struct overhead_spent *s, char *ret_text, size_t n)
{
	double budget = h->o.conf->overhead_ppm / 1e6, all = overhead_spent_of_budget(s), most = 0;
	enum cause dearest = CAUSE_SAMPLES;
	ret_text[0] = '\0';
	if (budget <= 0 || all <= budget)
		return ret_text;
	for (int cause = 0; cause < N_CAUSES; cause++) {
		double part = s->judged_cause_part[cause];
		part += cause == CAUSE_SAMPLES ? kernel_part(s) : 0;
		if (cause == CAUSE_CLIENTS || part <= most)
			continue;
		most = part;
		dearest = (enum cause)cause;
	}
	snprintf(ret_text, n, "%.2g %%: %s cost %.2g %%, %s", all * 100, cause_says(dearest),
		most * 100, what_is_decided(h, s));
	return ret_text;
}
