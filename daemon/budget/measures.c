/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* A measure is taken if its cause costs enough for it to save a tenth of all, so what costs little is kept. How much
 * it will cost once it is taken back is not known while it is taken. So what it saved is believed for less and less,
 * half after each minute, and a measure that is needed again soon is kept for longer.
 */

#include "daemon/budget/measures.h"

#include <math.h>
#include <stdio.h>

#include "daemon/budget/governor.h"

#define SAVES_MIN 0.1

static const struct {
	enum cause cause;
	const char *says;
} list[N_MEASURES] = {
	[MEASURE_NAMES] = {CAUSE_NAMING, "names of files wait"},
	[MEASURE_FLUSHES] = {CAUSE_WRITING, "samples are written every 30 s"},
	[MEASURE_ARGUMENTS] = {CAUSE_ARGUMENTS,
		"arguments of programs that end within 0.25 s are not read"},
	[MEASURE_LOOKS] = {CAUSE_WAITING, "waiting threads are sampled every 2 s"},
};

const char *cause_says(enum cause cause)
{
	static const char *const says[N_CAUSES] = {
		[CAUSE_SAMPLES] = "samples",
		[CAUSE_SIDEBAND] = "records of forks, execs and mappings",
		[CAUSE_ARGUMENTS] = "arguments of execs",
		[CAUSE_NAMING] = "naming",
		[CAUSE_WAITING] = "sampling of waiting threads",
		[CAUSE_WRITING] = "writing",
		[CAUSE_CLIENTS] = "clients and programs",
		[CAUSE_REST] = "the rest",
	};
	return says[cause];
}

static bool change(struct measures *m, uint64_t now_ns)
{
	m->changed_ns = now_ns;
	m->n_over = 0;
	m->low_ns = 0;
	return true;
}

static bool take(struct measures *m, const struct measures_load *l, uint64_t now_ns)
{
	double cost = l->cost;
	bool any = false;
	for (int i = 0; i < N_MEASURES && cost > l->budget; i++) {
		double saves = l->spent[list[i].cause] * (1 - l->keeps[i]);
		if (m->taken[i] || saves < SAVES_MIN * l->cost)
			continue;
		m->taken[i] = any = true;
		m->saved[i] = saves;
		cost -= saves;
	}
	if (!any)
		return false;
	bool failed = m->returned_ns && now_ns - m->returned_ns < GOVERNOR_FAILED_NS;
	m->back_ns = failed && m->back_ns ? 2 * m->back_ns : GOVERNOR_BACK_NS;
	if (m->back_ns > GOVERNOR_BACK_NS_MAX)
		m->back_ns = GOVERNOR_BACK_NS_MAX;
	return change(m, now_ns);
}

static bool take_back(struct measures *m, const struct measures_load *l, uint64_t now_ns)
{
	int last = N_MEASURES - 1;
	while (last >= 0 && !m->taken[last])
		last--;
	if (last < 0)
		return false;
	int minutes = (int)((now_ns - m->changed_ns) / GOVERNOR_BACK_NS);
	double cost = l->cost + ldexp(m->saved[last], -minutes);
	if (!l->may_return || cost > l->budget * GOVERNOR_BACK_PART) {
		m->low_ns = 0;
		return false;
	}
	if (m->low_ns == 0)
		m->low_ns = now_ns;
	if (now_ns - m->low_ns < m->back_ns)
		return false;
	m->taken[last] = false;
	m->returned_ns = now_ns;
	return change(m, now_ns);
}

bool measures_tick(struct measures *m, const struct measures_load *l, uint64_t now_ns)
{
	bool any = false;
	for (int i = 0; i < N_MEASURES; i++)
		any |= m->taken[i];
	if (l->budget <= 0) { /* no limit */
		for (int i = 0; i < N_MEASURES; i++)
			m->taken[i] = false;
		return any && change(m, now_ns);
	}
	if (l->cost <= l->budget) {
		m->n_over = 0;
		return take_back(m, l, now_ns);
	}
	m->low_ns = 0;
	return ++m->n_over >= GOVERNOR_OVER_TICKS && take(m, l, now_ns);
}

const char *measures_say(const struct measures *m, char ret_text[static MEASURES_TEXT_BYTES])
{
	size_t n = 0;
	ret_text[0] = '\0';
	for (int i = 0; i < N_MEASURES && n < MEASURES_TEXT_BYTES; i++)
		if (m->taken[i])
			n += (size_t)snprintf(ret_text + n, MEASURES_TEXT_BYTES - n, "%s%s",
				n ? ", " : "", list[i].says);
	return ret_text;
}
