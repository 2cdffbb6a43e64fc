/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Current cost, by cause. Pure: from the figures of the last tick, and prices. */

#include "daemon/budget/overhead_private.h"

#include <stdio.h>

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

void overhead_spent(const struct overhead *h, struct overhead_spent *ret_spent)
{
	struct overhead_spent s = {.worst_hart = -1, .own_part = -1};
	double own_ns = 0, clients_ns = 0, others_ns = 0, time_ns = 0, worst = -1;
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
	for (unsigned i = 0; i < OVERHEAD_OWN_TICKS; i++) {
		own_ns += (double)h->own[i].own_ns;
		clients_ns += (double)h->own[i].clients_ns;
		others_ns += (double)h->own[i].others_ns;
		time_ns += (double)h->own[i].time_ns;
		for (int cause = 0; cause < N_CAUSES; cause++)
			s.cause_part[cause] += (double)h->own[i].cause_ns[cause];
	}
	if (time_ns > 0) {
		s.own_part = own_ns / time_ns / n;
		s.clients_part = clients_ns / time_ns / n;
		s.others_part = others_ns / time_ns / n;
		s.groups_part = h->groups_part;
		for (int cause = 0; cause < N_CAUSES; cause++)
			s.cause_part[cause] /= time_ns * n;
		s.cause_part[CAUSE_SAMPLES] +=
			s.worst_samples_part + s.worst_switches_part + s.groups_part;
		s.all_part = s.own_part + s.clients_part + s.others_part + s.samples_part +
			     s.switches_part + s.groups_part;
	}
	charge_sideband(h, n, &s);
	*ret_spent = s;
}

const char *overhead_says_over(
	const struct overhead *h, const struct overhead_spent *s, char *ret_text, size_t n)
{
	double budget = h->o.conf->overhead_ppm / 1e6;
	double all = s->own_part + s->worst_samples_part + s->worst_switches_part + s->groups_part;
	int most = 0;
	ret_text[0] = '\0';
	if (budget <= 0 || s->own_part < 0 || all <= budget)
		return ret_text;
	for (int cause = 0; cause < N_CAUSES; cause++)
		if (cause != CAUSE_CLIENTS && s->cause_part[cause] > s->cause_part[most])
			most = cause;
	snprintf(ret_text, n, "%.2g %%: %s cost %.2g %%, %s", all * 100,
		cause_says((enum cause)most), s->cause_part[most] * 100,
		h->governor.n_over >= GOVERNOR_OVER_TICKS ? "of which nothing is left to give up"
							  : "and nothing is decided yet");
	return ret_text;
}
