/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Each kind of core has a plan and a counter of its own. Sums since the start are read and what grew is
 * handed out, so a window that is lost takes only its own counts with it.
 *
 * Events that count cost a hart nothing at a context switch, since they belong to the hart. Groups that
 * take turns do: at each tick the kernel takes one off the counters and puts the next on. Taking all of
 * them off and putting them on again is what we can ask for, and do, to learn its price.
 */
#include "daemon/metric/hart_counts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/count/rotation.h"
#include "daemon/metric/metric_plan.h"
#include "proto/base/array.h"
#include "proto/base/memory.h"

#define KINDS_MAX 8   /* of core: machines have up to three */
#define NAMES_MAX 32  /* in the list of groups */
#define PRICE_TRIES 7 /* use the minimum of this many tries, since other load only adds time */
/* Source: kernel/events/core.c of Linux 6.12, PERF_CPU_HRTIMER: passes rotate at each tick by default (rotation.h). */

struct kind {
	struct metric_plan *plan;
	struct counter *counter;
	struct counter_reading *last; /* by descriptor: value and times */
	int first;                    /* of its events in the list of all */
};

struct hart_counts {
	struct hart_set harts;
	uint32_t serial;
	struct kind kind[KINDS_MAX];
	size_t n_kinds;
	struct event_list events;
	struct hart_count *row;
	size_t n_rows, size_rows;
	double part;
	struct hart_rotation rotation[EVENTS_MAX];
	size_t n_rotations;
	struct platform_db *data; /* the plans borrow from these */
};

/* --- the plan --------------------------------------------------------------------------------- */

/* Divide the list in place. */
static size_t split(char *text, char *ret_name[static NAMES_MAX])
{
	size_t n = 0;
	for (char *save = NULL, *name = strtok_r(text, ",", &save); name && n < NAMES_MAX;
		name = strtok_r(NULL, ",", &save))
		ret_name[n++] = name;
	return n;
}

static int plan_kind(const struct hart_counts_options *o, const struct metric_harts *harts,
	struct kind *k, struct event_list *events, struct event_error *ret_error)
{
	char text[HART_COUNTS_TEXT_BYTES], *name[NAMES_MAX];
	snprintf(text, sizeof(text), "%s", o->groups);
	size_t n = split(text, name);
	int r = metric_plan_for(o->kernel, harts, name, n, &k->plan, ret_error);
	if (r == 0)
		r = metric_plan_parse(k->plan, events, ret_error);
	return r > 0 ? HART_COUNTS_NONE : r;
}

static int append_events(
	struct hart_counts *c, const struct event_list *events, struct event_error *ret_error)
{
	if (c->events.n_events + events->n_events > EVENTS_MAX) {
		snprintf(ret_error->text, sizeof(ret_error->text),
			"these metrics need more than %d events", EVENTS_MAX);
		return HART_COUNTS_NONE;
	}
	memcpy(&c->events.event[c->events.n_events], events->event,
		(size_t)events->n_events * sizeof(events->event[0]));
	c->events.n_events += events->n_events;
	return 0;
}

static struct kind kind_clear(struct kind *k)
{
	counter_free(k->counter);
	metric_plan_free(k->plan);
	free(k->last);
	return (struct kind){.first = 0};
}

/* --- the price of a rotation ------------------------------------------------------------------ */

/* Take all groups of the counter's only hart off its counters, and put them back. The leader of
 * each is its first open event. 0 or -errno. */
static int rotate_once(const struct counter *c)
{
	static const unsigned long step[] = {PERF_EVENT_IOC_DISABLE, PERF_EVENT_IOC_ENABLE};
	int r = 0;
	for (size_t s = 0; s < 2; s++) {
		int group = -1;
		for (int e = 0; e < c->events.n_events && r == 0; e++) {
			int of = c->events.event[e].group;
			if (c->fd[e] < 0 || (of >= 0 && of == group))
				continue;
			group = of;
			r = c->terms.kernel->event_ioctl(
				c->terms.kernel->userdata, c->fd[e], step[s], PERF_IOC_FLAG_GROUP);
		}
	}
	return r;
}

/* The time of a rotation, the least of some tries; 0: not known. */
static uint64_t rotate_all_ns(const struct counter *c)
{
	const struct kernel *kernel = c->terms.kernel;
	uint64_t least_ns = UINT64_MAX;
	for (int i = 0; i < PRICE_TRIES; i++) {
		uint64_t before_ns = kernel->now_ns(kernel->userdata);
		if (rotate_once(c) < 0)
			return 0;
		uint64_t took_ns = kernel->now_ns(kernel->userdata) - before_ns;
		least_ns = took_ns < least_ns ? took_ns : least_ns;
	}
	return least_ns;
}

/* The cost of rotation, as a share of a hart's time; 0: not known, or nothing rotates. It is measured
 * with groups of its own before the counting groups are started, since clients may use those already. */
static double price(const struct hart_counts_options *o, const struct kind *k)
{
	struct counter *own = NULL;
	struct event_error error;
	struct hart_set first = {0};
	if (metric_plan_n_passes(k->plan) < 2)
		return 0;
	hart_set_add(&first, k->counter->target[0].hart);
	const struct counter_options how = {
		.events = &k->counter->events,
		.harts = &first,
		.user_only = !o->machine->may_see_kernel,
		.cores = o->cores,
		.is_alone = true,
	};
	if (counter_new(o->kernel, o->machine, &how, &own, &error) != 0)
		return 0;
	uint64_t all_ns = counter_start(own) == 0 ? rotate_all_ns(own) : 0;
	counter_free(own);
	/* a rotation takes one group off and puts one on; we did so with all of them */
	return (double)all_ns / (double)metric_plan_n_passes(k->plan) *
	       rotations_per_second(o->kernel) / 1e9;
}

/* Measure the error that rotation causes in each of the kind's passes: groups of others make a single pass rotate,
 * too. */
static void measure_rotations(struct hart_counts *c, const struct hart_counts_options *o,
	const struct metric_harts *harts, const struct event_list *events, const struct kind *k)
{
	double part[EVENTS_MAX] = {0};
	size_t first = c->n_rotations;
	rotation_parts(o->kernel, harts->platform, events, part);
	for (int e = 0; e < events->n_events; e++) {
		unsigned pass = (unsigned)metric_plan_pass(k->plan, (size_t)e);
		size_t i = first;
		while (i < c->n_rotations && c->rotation[i].pass != pass)
			i++;
		if (part[e] <= 0 || i == EVENTS_MAX)
			continue;
		if (i == c->n_rotations)
			c->rotation[c->n_rotations++] =
				(struct hart_rotation){harts->harts, pass, 0};
		c->rotation[i].part += part[e] * counter_rotation_scale(k->counter, e);
	}
}

/* --- life ------------------------------------------------------------------------------------- */

static int open_kind(struct hart_counts *c, const struct hart_counts_options *o,
	const struct metric_harts *harts, struct event_error *ret_error)
{
	_cleanup_(freep) struct event_list *events = calloc(1, sizeof(*events));
	struct kind *k = &c->kind[c->n_kinds];
	double part = 0;
	if (!events)
		return -ENOMEM;
	const struct counter_options how = {
		.events = events,
		.harts = &harts->harts,
		.user_only = !o->machine->may_see_kernel,
		.fds_max = o->fds_max,
		.cores = o->cores,
	};
	int r = plan_kind(o, harts, k, events, ret_error);
	if (r == 0)
		r = counter_new(o->kernel, o->machine, &how, &k->counter, ret_error);
	if (r == 0)
		r = append_events(c, events, ret_error);
	if (r == 0) {
		size_t n = (size_t)events->n_events * k->counter->n_targets;
		k->first = c->events.n_events - events->n_events;
		k->last = calloc(n, sizeof(*k->last));
		part = price(o, k);
		r = k->last ? counter_start(k->counter) : -ENOMEM;
	}
	if (r == 0) {
		measure_rotations(c, o, harts, events, k);
		c->n_kinds++;
		c->part = part > c->part ? part : c->part;
	} else {
		*k = kind_clear(k);
	}
	return r > 0 ? HART_COUNTS_NONE : r;
}

int hart_counts_new(const struct hart_counts_options *o, struct hart_counts **ret_counts,
	struct event_error *ret_error)
{
	_cleanup_(hart_counts_freep) struct hart_counts *c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->harts = o->machine->online;
	c->serial = o->serial;
	c->data = cores_database(o->cores);
	int first = 0;
	for (int hart = cores_kind(o->cores, 0); hart >= 0 && c->n_kinds < KINDS_MAX;
		hart = cores_kind(o->cores, hart + 1)) {
		const struct platform *p = cores_platform(o->cores, hart);
		const struct metric_harts harts = {o->cores, p, cores_of(o->cores, p), NULL};
		struct event_error error = {""};
		int r = open_kind(c, o, &harts, &error);
		if (r < 0)
			return r;
		if (r > 0 && first++ == 0)
			*ret_error = error;
	}
	if (c->n_kinds == 0)
		return HART_COUNTS_NONE;
	*ret_counts = TAKE_PTR(c);
	return 0;
}

struct hart_counts *hart_counts_free(struct hart_counts *c)
{
	if (!c)
		return NULL;
	for (size_t i = 0; i < c->n_kinds; i++)
		c->kind[i] = kind_clear(&c->kind[i]);
	platform_db_free(c->data);
	free(c->row);
	free(c);
	return NULL;
}

const struct event_list *hart_counts_events(const struct hart_counts *c)
{
	return &c->events;
}

uint32_t hart_counts_serial(const struct hart_counts *c)
{
	return c->serial;
}

const struct hart_set *hart_counts_harts(const struct hart_counts *c)
{
	return &c->harts;
}

const struct hart_rotation *hart_counts_rotations(const struct hart_counts *c, size_t *ret_n)
{
	*ret_n = c->n_rotations;
	return c->rotation;
}

double hart_counts_part(const struct hart_counts *c)
{
	return c->part;
}

/* --- rows ------------------------------------------------------------------------------------- */

struct taking {
	struct hart_counts *counts;
	struct kind *kind;
};

static int take(void *userdata, const struct counter_reading *r)
{
	struct taking *t = userdata;
	struct hart_counts *c = t->counts;
	const struct counter *counter = t->kind->counter;
	struct counter_reading *last = &t->kind->last[(size_t)r->event * counter->n_targets +
						      (size_t)(r->target - counter->target)];
	int e = array_grow_long(&c->row, &c->size_rows, c->n_rows + 1, sizeof(*c->row));
	if (e < 0)
		return e;
	c->row[c->n_rows++] = (struct hart_count){
		.hart = r->target->hart,
		.pass = (unsigned)metric_plan_pass(t->kind->plan, (size_t)r->event),
		.event = t->kind->first + r->event,
		.value = r->value - last->value,
		.enabled_ns = r->enabled_ns - last->enabled_ns,
		.running_ns = r->running_ns - last->running_ns,
	};
	*last = *r;
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct hart_count *x = a, *y = b;
	if (x->hart != y->hart)
		return x->hart < y->hart ? -1 : 1;
	if (x->pass != y->pass)
		return x->pass < y->pass ? -1 : 1;
	return x->event - y->event;
}

struct hart_count_rows hart_counts_take(struct hart_counts *c)
{
	c->n_rows = 0;
	for (size_t i = 0; i < c->n_kinds; i++) {
		struct taking t = {c, &c->kind[i]};
		/* counts that cannot be read now are in the next window */
		(void)counter_read_each(c->kind[i].counter, take, &t);
	}
	if (c->n_rows > 0)
		qsort(c->row, c->n_rows, sizeof(*c->row), compare);
	return (struct hart_count_rows){c->serial, c->row, c->n_rows};
}
