/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Events by name are opened as they were asked for, so their plan is only what the counters could hold at the
 * same time: each group of braces is a wish, and each event alone is one. Passes of metrics are groups, which
 * the kernel keeps together.
 *
 * The kernel rotates groups, and mperf does not: the kernel alone knows which counters other programs hold.
 * Source: perf_rotate_context() in kernel/events/core.c of Linux 6.12; the time between two rotations is
 * perf_event_mux_interval_ms of the PMU, 4 ms by default there (PERF_CPU_HRTIMER).
 */
#include "daemon/metric/plan_says.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/count/counter.h"
#include "daemon/count/rotation.h"
#include "daemon/pmu/event/counters.h"

#define N_BEHIND 4 /* lines kept for the text behind the passes and metrics */

/* --- lines ------------------------------------------------------------------------------------ */

/* Takes text. */
static int add_text(struct plan_says *s, char *text)
{
	if (s->n_lines < PLAN_LINES_MAX)
		s->line[s->n_lines++] = text;
	else
		free(text);
	return 0;
}

__attribute__((format(printf, 2, 3))) static int add(struct plan_says *s, const char *format, ...)
{
	char *text;
	va_list list;
	va_start(list, format);
	int n = vasprintf(&text, format, list);
	va_end(list);
	return n < 0 ? -ENOMEM : add_text(s, text);
}

static bool is_full(const struct plan_says *s)
{
	return s->n_lines + N_BEHIND >= PLAN_LINES_MAX;
}

/* --- passes ----------------------------------------------------------------------------------- */

/* "r22 on counter 3", or what else is known of its place. */
static void write_place(
	FILE *f, const struct plan_place *place, const char *name, uint64_t counters)
{
	if (place->counter == -1)
		fprintf(f, "%s, which needs no counter", name);
	else if (counters == ~UINT64_C(0) || place->counter == PLAN_ELSEWHERE)
		fprintf(f, "%s", name); /* not known: the kernel chooses */
	else
		fprintf(f, "%s on counter %d", name, place->counter);
}

struct passes {
	const struct plan_pass *pass;
	size_t n;
	const char *what, *of; /* "pass", or "group" if passes are not known */
	const char *(*name)(const void *userdata, const struct plan_place *place);
	uint64_t (*counters)(const void *userdata, const struct plan_place *place);
	const void *userdata;
};

static int add_pass(struct plan_says *s, const struct passes *p, size_t i)
{
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);
	if (!f)
		return -ENOMEM;
	fprintf(f, "%s %zu of %zu%s: ", p->what, i + 1, p->n, p->of);
	for (size_t j = 0; j < p->pass[i].n_places; j++) {
		const struct plan_place *place = &p->pass[i].place[j];
		fputs(j ? "; " : "", f);
		write_place(f, place, p->name(p->userdata, place), p->counters(p->userdata, place));
	}
	if (fclose(f) != 0) {
		free(text);
		return -ENOMEM;
	}
	return add_text(s, text);
}

static int add_passes(struct plan_says *s, const struct passes *p)
{
	int r = 0;
	for (size_t i = 0; i < p->n && r == 0; i++) {
		if (is_full(s))
			return add(s, "and %zu more of them", p->n - i);
		r = add_pass(s, p, i);
	}
	return r;
}

static int add_turns(struct plan_says *s, const struct kernel *k, size_t n_passes)
{
	unsigned ms = (unsigned)(rotation_ns(k) / 1000000);
	if (n_passes < 2)
		return add(s, "all are counted at the same time, except while another program "
			      "holds a counter that they need");
	return ms ? add(s,
			    "the kernel rotates these %zu, every %u ms "
			    "(perf_event_mux_interval_ms): counts are scaled by time enabled / "
			    "time counted",
			    n_passes, ms)
		  : add(s,
			    "the kernel rotates these %zu: counts are scaled by time enabled / "
			    "time counted",
			    n_passes);
}

/* --- what is shared --------------------------------------------------------------------------- */

/* Add a line with the number of others with which the n events from `first` on are shared, never with their users. */
static int add_shared(
	struct plan_says *s, const struct planned *of, const char *what, size_t first, size_t n)
{
	size_t n_others = 0, n_harts = 0;
	for (size_t i = first; i < first + n; i++) {
		size_t harts, others = counter_n_others(of->counter, (int)i, &harts);
		n_others = others > n_others ? others : n_others;
		n_harts = harts > n_harts ? harts : n_harts;
	}
	if (n_others == 0 || is_full(s))
		return 0;
	char some[64] = "";
	if (n_harts < of->counter->n_targets)
		snprintf(some, sizeof(some), " on %zu of %zu harts", n_harts,
			of->counter->n_targets);
	return add(s,
		"%s is shared with %zu other count%s%s: it takes no further counters and no pass "
		"of its own",
		what, n_others, n_others > 1 ? "s" : "", some);
}

static int add_shared_passes(struct plan_says *s, const struct planned *of)
{
	const struct plan_pass *pass = metric_plan_places(of->metrics);
	size_t first = of->n_by_name;
	int r = 0;
	for (size_t i = 0; of->counter && i < metric_plan_n_passes(of->metrics) && r == 0; i++) {
		char what[32];
		snprintf(what, sizeof(what), "pass %zu", i + 1);
		r = add_shared(s, of, what, first, pass[i].n_places);
		first += pass[i].n_places;
	}
	return r;
}

static int add_shared_events(struct plan_says *s, const struct planned *of)
{
	int r = 0;
	for (size_t i = 0, n; of->counter && i < of->n_by_name && r == 0; i += n) {
		const struct event *e = &of->events->event[i];
		char what[EVENT_NAME_BYTES_MAX + 16];
		for (n = 1; e->group >= 0 && i + n < of->n_by_name && e[n].group == e->group;)
			n++;
		snprintf(what, sizeof(what), "%s%s", n > 1 ? "the group of " : "", e->name);
		r = add_shared(s, of, what, i, n);
	}
	return r;
}

/* --- events by name --------------------------------------------------------------------------- */

struct by_name {
	const struct event_list *events;
	struct plan_event *counters;
};

static const char *event_name(const void *userdata, const struct plan_place *place)
{
	const struct by_name *b = userdata;
	return b->events->event[place->event].name;
}

static uint64_t event_mask(const void *userdata, const struct plan_place *place)
{
	const struct by_name *b = userdata;
	return b->counters[place->event].counters;
}

/* Each group of braces, and each event alone. Returns how many. */
static size_t wishes_of(
	const struct event_list *events, size_t n, uint16_t *position, struct plan_wish *wish)
{
	size_t n_wishes = 0;
	for (size_t i = 0; i < n; i++) {
		int group = events->event[i].group;
		position[i] = (uint16_t)i;
		if (group >= 0 && i > 0 && events->event[i - 1].group == group)
			wish[n_wishes - 1].n_events++;
		else
			wish[n_wishes++] = (struct plan_wish){&position[i], 1};
	}
	return n_wishes;
}

static int add_unplaced(struct plan_says *s, const struct counter_plan *plan,
	const struct event_list *events, const struct plan_wish *wish, size_t n_wishes)
{
	int r = 0;
	for (size_t i = 0; i < n_wishes && r == 0 && !is_full(s); i++) {
		const char *first = events->event[wish[i].event[0]].name;
		if (plan->fate[i] == PLAN_IMPOSSIBLE)
			r = add(s, "no counter of this core can count %s",
				events->event[plan->because[i]].name);
		else if (plan->fate[i] == PLAN_SPLIT)
			r = add(s,
				"the group of %s has more events than counters: they are counted "
				"outside the group, at different times",
				first);
	}
	return r;
}

static int say_events(struct plan_says *s, const struct planned *of, const struct platform *p)
{
	const struct event_list *events = of->events;
	const size_t n = of->n_by_name;
	struct plan_event counters[EVENTS_MAX];
	struct plan_wish wish[EVENTS_MAX];
	uint16_t position[EVENTS_MAX];
	_cleanup_(counter_plan_freep) struct counter_plan *plan = NULL;
	for (size_t i = 0; i < n; i++)
		counters[i] = event_counters(p, &events->event[i]);
	size_t n_wishes = wishes_of(events, n, position, wish);
	uint64_t free_counters = platform_all_counters(p) & ~cores_held(of->cores, of->harts);
	int r = counter_plan_make(counters, n, wish, n_wishes, free_counters, &plan);
	if (r != 0)
		return r < 0 ? r : 0; /* cannot be too many: EVENTS_MAX is below the plan's limit */
	const struct by_name by_name = {events, counters};
	const struct passes passes = {plan->pass, plan->n_passes, "set", " of the events by name",
		event_name, event_mask, &by_name};
	r = add_passes(s, &passes);
	if (r == 0)
		r = add_unplaced(s, plan, events, wish, n_wishes);
	return r == 0 && plan->n_passes ? add_turns(s, of->kernel, plan->n_passes) : r;
}

/* --- metrics ---------------------------------------------------------------------------------- */

static const char *metric_event(const void *userdata, const struct plan_place *place)
{
	return metric_plan_event(userdata, place);
}

static uint64_t metric_mask(const void *userdata, const struct plan_place *place)
{
	return metric_plan_counters(userdata, place);
}

static int add_left_out(struct plan_says *s, const struct metric_plan *plan)
{
	int r = 0;
	for (size_t i = 0; i < metric_plan_n_metrics(plan) && r == 0 && !is_full(s); i++) {
		const struct planned_metric *m = metric_plan_metric(plan, i);
		if (m->fate == PLAN_IMPOSSIBLE)
			r = add(s, "%s is left out, since %s cannot be counted: %s",
				m->metric->name, m->lacks, m->because);
		else if (m->fate == PLAN_SPLIT)
			r = add(s,
				"%s needs more events than there are counters: they are counted at "
				"different times",
				m->metric->name);
	}
	return r;
}

static int say_metrics(struct plan_says *s, const struct planned *of)
{
	const struct metric_plan *plan = of->metrics;
	const struct passes passes = {metric_plan_places(plan), metric_plan_n_passes(plan), "pass",
		"", metric_event, metric_mask, plan};
	int r = add_passes(s, &passes);
	if (r == 0)
		r = add_left_out(s, plan);
	if (r == 0)
		r = add_shared_passes(s, of);
	if (r == 0 && passes.n > 1 && metric_plan_n_covered(plan) == 0)
		r = add(s,
			metric_plan_is_minimal(plan)
				? "no plan with fewer passes counts each metric's events together"
				: "a search found no plan with fewer passes, but there may be one");
	return r == 0 && passes.n ? add_turns(s, of->kernel, passes.n) : r;
}

/* --- all of it -------------------------------------------------------------------------------- */

static int add_held(struct plan_says *s, const struct planned *of)
{
	int n = __builtin_popcountll(cores_held(of->cores, of->harts));
	return n ? add(s,
			   "always-on sampling uses %d counter%s of each of these harts all the "
			   "time; the plan uses the others",
			   n, n > 1 ? "s" : "")
		 : 0;
}

int plan_says_new(const struct planned *of, struct plan_says **ret_says)
{
	_cleanup_(plan_says_freep) struct plan_says *s = calloc(1, sizeof(*s));
	const struct platform *p = metric_plan_platform(of->cores);
	int r = 0;
	if (!s)
		return -ENOMEM;
	if (of->n_by_name > 0 && p)
		r = say_events(s, of, p);
	else if (of->n_by_name > 0)
		r = add(s, "this machine has cores of several kinds: on each, the kernel chooses "
			   "the counter of an event given by name");
	if (r == 0)
		r = add_shared_events(s, of);
	if (r == 0 && of->metrics)
		r = say_metrics(s, of);
	if (r == 0)
		r = add_held(s, of);
	if (r != 0)
		return r;
	*ret_says = TAKE_PTR(s);
	return 0;
}

struct plan_says *plan_says_free(struct plan_says *s)
{
	for (size_t i = 0; s && i < s->n_lines; i++)
		free(s->line[i]);
	free(s);
	return NULL;
}
