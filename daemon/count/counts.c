/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "daemon/count/counts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

double counts_scaled(const struct counter_value *now, const struct counter_value *last)
{
	uint64_t running = now->running_ns - last->running_ns;
	double value = (double)(now->value - last->value);
	if (last->enabled_ns == 0)
		return now->scaled;
	return running ? value * (double)(now->enabled_ns - last->enabled_ns) / (double)running
		       : value;
}

void counts_take(struct counts *s, const struct machine *machine, const struct counter *counter,
	const struct counter_value *last)
{
	*s = (struct counts){.machine = machine, .counter = counter, .last = last};
	for (int e = 0; e < counter->events.n_events; e++) {
		const struct counter_value *now = &counter->value[e];
		uint64_t running = now->running_ns - last[e].running_ns;
		bool counted = !now->error && running > 0;
		s->count[e] = (struct plausible_count){
			.event = counter->events.event[e].name,
			.count = counted ? counts_scaled(now, &last[e]) : -1,
			.ns = (double)(now->enabled_ns - last[e].enabled_ns),
			.is_scaled = running < now->enabled_ns - last[e].enabled_ns,
		};
	}
}

double counts_running(const struct counts *s, int e)
{
	uint64_t enabled = s->counter->value[e].enabled_ns - s->last[e].enabled_ns;
	uint64_t running = s->counter->value[e].running_ns - s->last[e].running_ns;
	return enabled ? (double)running / (double)enabled : 1;
}

double counts_error(const struct counts *s, int e)
{
	double count[EVENTS_MAX], without[JACKKNIFE_STRETCHES_MAX], part[JACKKNIFE_STRETCHES_MAX];
	const double running = counts_running(s, e);
	size_t n = s->jackknife ? jackknife_n_stretches(s->jackknife) : 0;
	for (size_t i = 0; i < n; i++) {
		jackknife_without(s->jackknife, i, count);
		without[i] = count[e];
		part[i] = jackknife_part(s->jackknife, i);
	}
	return jackknife_is_whole(running) ? 0
					   : jackknife_error(without, part, n, running) +
						     s->rotation * fmax(s->count[e].count, 0);
}

void counts_read(
	struct jackknife *jackknife, const struct counter *c, uint64_t now_ns, uint64_t took_ns)
{
	struct jackknife_count count[EVENTS_MAX];
	for (int e = 0; e < c->events.n_events; e++)
		count[e] = (struct jackknife_count){
			c->value[e].value, c->value[e].enabled_ns, c->value[e].running_ns};
	jackknife_take(jackknife, count, now_ns, took_ns);
}

const char *counts_why_not(const struct counts *s, int e, char reason[static COUNTS_REASON_BYTES])
{
	_Static_assert(COUNTS_REASON_BYTES >= PLAUSIBLE_TEXT_BYTES, "room for a doubt");
	const struct counter *c = s->counter;
	uint64_t enabled = c->value[e].enabled_ns - s->last[e].enabled_ns;
	uint64_t running = c->value[e].running_ns - s->last[e].running_ns;
	if (c->value[e].error)
		return refusal_explain(&c->events.event[e], c->value[e].error, false, s->machine)
			.says;
	if (running == 0 && enabled > 0)
		return "it opened but never got a counter: always-on sampling or another program "
		       "has them";
	return plausible_doubt(s->count, (size_t)c->events.n_events, (size_t)e, reason) ? reason
											: NULL;
}
