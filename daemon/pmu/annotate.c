/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Kind by kind of core, event by event. A statement about a core bears its name, and where cores
 * differ the harts too, since the reader of an answer may never have heard which is which.
 */
#include "daemon/pmu/annotate.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "daemon/pmu/event_place.h"
#include "daemon/pmu/sampler.h"
#include "daemon/pmu/sampler_attr.h"

struct annotating {
	const struct annotate_question *q;
	struct annotation *ret;
	size_t n;
	/* of the kind under way: */
	const struct platform *platform;
	struct hart_set harts;
	const struct plan *plan; /* of its first hart that samples; NULL: none does */
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
	vsnprintf(to->says, sizeof to->says, format, list);
	va_end(list);
}

/* The event's name as people say it, without modifiers. */
static const char *plain(const struct event *e, char name[static EVENT_NAME_BYTES_MAX])
{
	memcpy(name, e->name, EVENT_NAME_BYTES_MAX);
	if (e->type != PERF_TYPE_TRACEPOINT)
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

/* Was the kernel to be left out, and does it count there all the same? */
static void annotate_modes(struct annotating *a, int event, const struct platform_event *own)
{
	const struct event *e = &a->q->events->event[event];
	const struct platform *p = a->platform;
	char name[EVENT_NAME_BYTES_MAX];
	plain(e, name);
	if (a->q->unexcluded >> event & 1) {
		add(a, event,
			"%s counts the kernel too: the driver refuses to leave it out on %s "
			"(exclude_kernel)",
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
		add(a, event, "%s on %s ignores exclude_kernel: it counts every mode", name,
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
			"%s on %s is %s (r%llx), by the platform database: the kernel's driver "
			"does not "
			"map it",
			plain(e, name), a->who, own->name, (unsigned long long)own->code);
	annotate_modes(a, event, own);
}

/* The one mode that the leader counts, where it is the core's own event for that mode; NULL: it
 * counts all, or nobody knows. */
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
		add(a, -1, "%s on %s counts %s alone: other time is not among the samples", name,
			a->who, mode);
	for (int i = 0; i < a->q->events->n_events; i++) {
		const struct event *e = &a->q->events->event[i];
		bool filtered = e->exclude_kernel && !a->platform->fixed_unfiltered;
		if (!is_fixed(e) || e->config != PERF_COUNT_HW_CPU_CYCLES || filtered)
			continue;
		add(a, i,
			"IPC mixes modes on %s: cycles and instructions count every mode, their "
			"leader %s %s alone",
			a->who, name, mode);
		return;
	}
}

/* Are the kind's harts all led by the same? One may have lost its counters to somebody else. */
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

/* Where cores differ, which is which. */
static void annotate_kind(struct annotating *a)
{
	char harts[64];
	if (!cores_differ(a->q->cores))
		return;
	hart_set_says(&a->harts, harts, sizeof harts);
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
		snprintf(a->who, sizeof a->who, "harts %s (%.48s)",
			hart_set_says(&a->harts, harts, sizeof harts), a->platform->title);
	else
		snprintf(a->who, sizeof a->who, "%.100s", a->platform->title);
}

static void annotate_harts(struct annotating *a)
{
	a->plan = NULL;
	for (int i = 0; a->q->plan && i < HARTS_MAX && !a->plan; i++)
		if (hart_set_has(&a->harts, i) && a->q->plan[i].rung != RUNG_NONE)
			a->plan = &a->q->plan[i];
	name_kind(a);
	annotate_kind(a);
	if (a->plan)
		annotate_leader(a);
	for (int i = 0; i < a->q->events->n_events; i++)
		annotate_event(a, i);
}

static bool both(const struct hart_set *a, const struct hart_set *b, struct hart_set *ret_both)
{
	uint64_t any = 0;
	for (size_t i = 0; i < sizeof a->bits / sizeof a->bits[0]; i++)
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

size_t annotate_sampler(const struct sampler *s, struct annotation ret[static ANNOTATIONS_MAX])
{
	const struct annotate_question q = {
		.cores = s->options.cores,
		.harts = s->seen,
		.events = &s->events,
		.plan = s->plan,
		.user_only = s->options.user_only,
		.unexcluded = s->unexcluded,
		.by_raw = s->by_raw,
	};
	return annotate(&q, ret);
}
