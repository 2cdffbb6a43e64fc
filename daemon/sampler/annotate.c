/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Notes are sorted by kind of core, then by event. A statement about a core gives its name, and if
 * cores differ also its harts, since the reader may not know which harts have that core.
 */
#include "daemon/sampler/annotate.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "daemon/pmu/event/event_on_core.h"
#include "daemon/sampler/attr.h"
#include "daemon/sampler/effort.h"
#include "daemon/sampler/sampler.h"

struct annotating {
	const struct annotate_question *q;
	struct annotation *ret;
	size_t n;
	/* of the current kind of core: */
	const struct platform *platform;
	struct hart_set harts;
	const struct plan *plan; /* plan of its first hart that samples; NULL: none */
	char who[128];
};

__attribute__((format(printf, 3, 4))) static void add(
	struct annotating *a, int event, const char *format, ...)
{
	if (a->n == ANNOTATIONS_MAX)
		return;
	struct annotation *to = &a->ret[a->n++];
	*to = (struct annotation){.harts = a->harts, .event = event};
	va_list list;
	va_start(list, format);
	vsnprintf(to->says, sizeof(to->says), format, list);
	va_end(list);
}

/* The event's name without modifiers. */
static const char *plain(const struct event *e, char name[static EVENT_NAME_BYTES_MAX])
{
	memcpy(name, e->name, EVENT_NAME_BYTES_MAX);
	if (e->type != PERF_TYPE_TRACEPOINT && !e->by_bank)
		name[strcspn(name, ":")] = '\0';
	return name;
}

static bool is_fixed(const struct event *e)
{
	return e->type == PERF_TYPE_HARDWARE &&
	       (e->config == PERF_COUNT_HW_CPU_CYCLES || e->config == PERF_COUNT_HW_INSTRUCTIONS);
}

static bool counted_by_raw(const struct annotating *a, int event)
{
	for (int i = 0; a->q->by_raw && i < HARTS_MAX; i++)
		if (hart_set_has(&a->harts, i) && hart_set_has(&a->q->by_raw[event], i))
			return true;
	return false;
}

/* Note events that count the kernel although they should exclude it. */
static void annotate_modes(struct annotating *a, int event, const struct platform_event *own)
{
	const struct event *e = &a->q->events->event[event];
	const struct platform *p = a->platform;
	char name[EVENT_NAME_BYTES_MAX];
	plain(e, name);
	if (a->q->unexcluded >> event & 1) {
		add(a, event, "%s counts the kernel too: the driver on %s refuses exclude_kernel",
			name, a->who);
		return;
	}
	if (!e->exclude_kernel && !a->q->user_only)
		return;
	const struct platform_range *range = own ? platform_unfiltered(p, own->code) : NULL;
	if (!own && e->type == PERF_TYPE_RAW)
		range = platform_unfiltered(p, e->config);
	if (range && range->says && *range->says)
		add(a, event, "%s on %s: %s", name, a->who, range->says);
	else if (range || (own && own->ignores_exclude_kernel))
		add(a, event, "%s on %s ignores exclude_kernel and counts every mode", name,
			a->who);
	else if (p->fixed_unfiltered && is_fixed(e) && !own)
		add(a, event, "%s on %s are not mode-filtered: they count every mode", name,
			a->who);
}

static void annotate_event(struct annotating *a, int event)
{
	const struct event *e = &a->q->events->event[event];
	char name[EVENT_NAME_BYTES_MAX];
	bool by_raw = counted_by_raw(a, event);
	const struct platform_event *own = event_described(e, a->platform, by_raw);
	if (by_raw && own)
		add(a, event,
			"%s on %s is %s (r%llx) from the platform database, since the kernel's "
			"driver does not map it",
			plain(e, name), a->who, own->name, (unsigned long long)own->code);
	annotate_modes(a, event, own);
}

/* The only mode that the leader counts, if the leader is the core's own event for that mode; NULL:
 * it counts all modes, or this is not known. */
static const char *mode_of_leader(const struct platform *p, const struct plan *plan)
{
	const struct platform_event *own =
		plan->rung == RUNG_LEADER ? event_described(&plan->leader, p, false) : NULL;
	if (!own || !p->leader_user || !p->leader_kernel || p->leader_user == p->leader_kernel ||
		own == platform_all_modes(p))
		return NULL;
	return own == p->leader_user      ? "user mode"
	       : own == p->leader_kernel  ? "kernel mode"
	       : own == p->leader_machine ? "machine mode"
					  : NULL;
}

static void annotate_leader(struct annotating *a)
{
	const char *mode = mode_of_leader(a->platform, a->plan);
	char name[EVENT_NAME_BYTES_MAX];
	if (!mode)
		return;
	plain(&a->plan->leader, name);
	if (!a->q->user_only && !a->plan->user_only)
		add(a, -1, "%s on %s counts only %s: samples do not cover other time", name, a->who,
			mode);
	for (int i = 0; i < a->q->events->n_events; i++) {
		const struct event *e = &a->q->events->event[i];
		bool filtered = e->exclude_kernel && !a->platform->fixed_unfiltered;
		if (!is_fixed(e) || e->config != PERF_COUNT_HW_CPU_CYCLES || filtered)
			continue;
		add(a, i,
			"IPC mixes modes on %s: cycles and instructions count every mode, their "
			"leader %s counts only %s",
			a->who, name, mode);
		return;
	}
}

/* A better rung that failed on this hart although its core can sample by it: other profilers had the
 * counters, or a loaded machine lost the interrupts. NULL: none. */
static const struct rung_try *odd_refusal(const struct plan *p)
{
	for (int i = 0; i < p->n_tries && p->tries[i].rung < p->rung; i++) {
		const struct rung_try *t = &p->tries[i];
		if (!t->doubted && (t->silent || t->error == EBUSY))
			return t;
	}
	return NULL;
}

/* The harts, from `first` on, on which it failed for the same reason. */
static struct hart_set same_refusal(const struct annotating *a, int first, const struct rung_try *t)
{
	struct hart_set same = {0};
	for (int i = first; i < HARTS_MAX; i++) {
		const struct rung_try *other =
			hart_set_has(&a->harts, i) ? odd_refusal(&a->q->plan[i]) : NULL;
		if (other && other->rung == t->rung && strcmp(other->says, t->says) == 0)
			hart_set_add(&same, i);
	}
	return same;
}

/* Why a hart samples by a lower rung than its core allows. */
static void annotate_refusals(struct annotating *a)
{
	const struct hart_set kind = a->harts;
	struct hart_set said = {0};
	for (int i = 0; i < HARTS_MAX; i++) {
		const struct rung_try *t =
			hart_set_has(&kind, i) ? odd_refusal(&a->q->plan[i]) : NULL;
		if (!t || hart_set_has(&said, i))
			continue;
		char harts[32];
		const struct hart_set same = same_refusal(a, i, t);
		for (int j = i; j < HARTS_MAX; j++)
			if (hart_set_has(&same, j))
				hart_set_add(&said, j);
		a->harts = same;
		add(a, -1, "rung %s not taken on hart%s %s: %s", rung_letter(t->rung),
			hart_set_count(&same) > 1 ? "s" : "",
			hart_set_says(&same, harts, sizeof(harts)), t->says);
		a->harts = kind;
	}
}

/* Do all harts of this kind have the same leader? A hart may have lost its counters to another
 * user. */
static bool have_one_plan(const struct annotating *a)
{
	bool same = a->plan != NULL;
	for (int i = 0; i < HARTS_MAX && same; i++) {
		const struct plan *p = &a->q->plan[i];
		if (hart_set_has(&a->harts, i) && p->rung != RUNG_NONE)
			same = p->rung == a->plan->rung &&
			       event_equal(&p->leader, &a->plan->leader);
	}
	return same;
}

/* If cores differ, note the kind of each hart. */
static void annotate_kind(struct annotating *a)
{
	char harts[64];
	if (!cores_differ(a->q->cores))
		return;
	hart_set_says(&a->harts, harts, sizeof(harts));
	if (have_one_plan(a))
		add(a, -1, "harts %s: %s, rung %s, led by %s", harts, a->platform->title,
			rung_letter(a->plan->rung), a->plan->leader.name);
	else
		add(a, -1, "harts %s: %s", harts, a->platform->title);
}

static void name_kind(struct annotating *a)
{
	char harts[64];
	if (cores_differ(a->q->cores))
		snprintf(a->who, sizeof(a->who), "harts %s (%.48s)",
			hart_set_says(&a->harts, harts, sizeof(harts)), a->platform->title);
	else
		snprintf(a->who, sizeof(a->who), "%.100s", a->platform->title);
}

static void annotate_harts(struct annotating *a)
{
	a->plan = NULL;
	for (int i = 0; a->q->plan && i < HARTS_MAX && !a->plan; i++)
		if (hart_set_has(&a->harts, i) && a->q->plan[i].rung != RUNG_NONE)
			a->plan = &a->q->plan[i];
	name_kind(a);
	annotate_kind(a);
	if (a->plan) {
		annotate_leader(a);
		annotate_refusals(a);
	}
	for (int i = 0; i < a->q->events->n_events; i++)
		annotate_event(a, i);
}

static bool both(const struct hart_set *a, const struct hart_set *b, struct hart_set *ret_both)
{
	uint64_t any = 0;
	for (size_t i = 0; i < sizeof(a->bits) / sizeof(a->bits[0]); i++)
		any |= ret_both->bits[i] = a->bits[i] & b->bits[i];
	return any != 0;
}

size_t annotate(const struct annotate_question *q, struct annotation ret[static ANNOTATIONS_MAX])
{
	struct annotating a = {.q = q, .ret = ret};
	if (cores_kind(q->cores, 0) < 0) {
		a.platform = cores_platform(NULL, 0);
		a.harts = q->harts;
		if (hart_set_count(&a.harts) > 0)
			annotate_harts(&a);
	}
	for (int h = cores_kind(q->cores, 0); h >= 0; h = cores_kind(q->cores, h + 1)) {
		a.platform = cores_platform(q->cores, h);
		const struct hart_set kind = cores_of(q->cores, a.platform);
		if (both(&kind, &q->harts, &a.harts))
			annotate_harts(&a);
	}
	return a.n;
}

/* The session's effort; its lower rate is left out if the samples come at a higher one. */
static struct sampler_effort effort_at(const struct sampler *s, uint32_t hz)
{
	struct sampler_effort e = *effort_in_force(s);
	if (hz > e.hz)
		e.rate_part = 1;
	return e;
}

size_t annotate_sampler(
	const struct sampler *s, uint32_t hz, struct annotation ret[static ANNOTATIONS_MAX])
{
	const struct annotate_question q = {
		.cores = s->options.cores,
		.harts = s->seen,
		.events = &s->events,
		.plan = s->plan,
		.user_only = s->options.user_only,
		.unexcluded = sampler_unexcluded(s),
		.by_raw = sampler_by_raw(s),
	};
	size_t n = annotate(&q, ret);
	char says[EFFORT_TEXT_BYTES];
	const struct sampler_effort effort = effort_at(s, hz);
	if (*effort_says(&effort, says) && n < ANNOTATIONS_MAX) {
		ret[n] = (struct annotation){.harts = s->seen, .event = -1};
		snprintf(ret[n++].says, ANNOTATION_BYTES_MAX, "to limit overhead, %s", says);
	}
	if (s->options.stacks == SAMPLER_STACKS_DWARF && n < ANNOTATIONS_MAX)
		ret[n++] = (struct annotation){.harts = s->seen, .event = -1, .says = NOTE_TABLES};
	return n;
}
