/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Counters are shared with all other profilers on this machine: perf stat, another recording of ours, a
 * watchdog. The kernel multiplexes groups, and reports how long a
 * group was enabled and how long it ran. Counts are scaled by these times. But a group runs only if it
 * gets all its counters: otherwise not even a leader that needs no counter runs, and the hart delivers
 * no samples. So a hart whose group has not run for several checks climbs the ladder again, and takes
 * the rung that the remaining counters allow. It climbs again later, since the other profiler will end
 * some time.
 *
 * priority.c describes what always-on sampling does to keep its counters, or to do without them.
 */

#include "daemon/sampler/sampler_private.h"

/* Three seconds: a probe of ours or of doctor takes a hart's counters for a tenth of one. */
#define STARVED_LOOKS_MAX 3
/* A check is valid only if the event was enabled for this fraction of the time since the last
 * check: an event opened in between is not checked yet. */
#define WANTED_NS_MIN 500000000u
/* Share of the time between two checks below which another program is taken to use the counter. A
 * probe of our own, which takes a tenth of a second, stays above it. */
#define SHORT_PART 0.85
/* Trying costs up to some tenths of a second without samples on that hart. */
#define CLIMB_AGAIN_NS 60000000000u

/* Does it or its group need a counter of the hart? */
static bool needs_counter(const struct sampler *s, const struct stream *t)
{
	if (t->role != STREAM_SAMPLER)
		return false;
	return s->events.event[t->event].type != PERF_TYPE_SOFTWARE ||
	       (t->read_format & PERF_FORMAT_GROUP);
}

/* Enabling a displaced event lets the kernel try again to place it. */
static int place_again(const struct sampler *s, const struct stream *t, struct reading *ret_reading)
{
	int r = s->kernel->event_ioctl(s->kernel->userdata, t->fd, PERF_EVENT_IOC_ENABLE, 0);
	return r < 0 ? r : stream_read(s, t, ret_reading);
}

/* 0; STREAM_DISPLACED: one of them finds no counter. */
static int read_all(const struct sampler *s, int hart, struct reading *ret_sum)
{
	struct reading sum = {0};
	for (size_t i = 0; i < s->streams.n_streams; i++) {
		const struct stream *t = &s->streams.stream[i];
		struct reading one;
		if (t->hart != hart || !needs_counter(s, t))
			continue;
		int r = stream_read(s, t, &one);
		if (r == STREAM_DISPLACED && (r = place_again(s, t, &one)) == STREAM_DISPLACED)
			return r;
		if (r < 0)
			continue;
		sum.enabled_ns += one.enabled_ns;
		sum.running_ns += one.running_ns;
	}
	*ret_sum = sum;
	return 0;
}

/* Update how long its counters were enabled and ran since the last check. */
static void look(struct counter_share *w, const struct reading *now)
{
	uint64_t wanted = now->enabled_ns - w->before_wanted_ns;
	uint64_t ran = now->running_ns - w->before_ran_ns;
	w->before_wanted_ns = now->enabled_ns;
	w->before_ran_ns = now->running_ns;
	if (w->yields)
		return; /* its leader may run, but nothing is counted */
	w->wanted_ns += wanted;
	w->ran_ns += ran;
	if (wanted < WANTED_NS_MIN)
		return;
	w->n_starved = ran == 0 ? w->n_starved + 1 : 0;
	w->n_short = (double)ran < SHORT_PART * (double)wanted ? w->n_short + 1 : 0;
}

/* Could the hart get a better rung? It had a better rung before, or a counter was in use when the
 * rung was tried. */
static bool could_climb(const struct counter_share *w, const struct plan *p)
{
	bool could = p->rung != w->best;
	for (int i = 0; i < p->n_tries; i++)
		could |= p->tries[i].busy;
	return could;
}

/* The ladder has found a source with counters for the hart, to which it may climb again. */
static enum share look_to_climb(struct counter_share *w, const struct plan *found, uint64_t now_ns)
{
	bool starved = w->n_starved >= STARVED_LOOKS_MAX;
	if (!starved && !could_climb(w, found))
		return SHARE_KEPT;
	if (!starved && w->climb_ns == 0)
		w->climb_ns = now_ns + CLIMB_AGAIN_NS;
	if (now_ns < w->climb_ns)
		return SHARE_KEPT;
	w->climb_ns = now_ns + CLIMB_AGAIN_NS;
	return SHARE_CLIMB;
}

/* Leave its counters to others, or take them back. */
static enum share yield(struct counter_share *w, bool yields, uint64_t now_ns)
{
	w->yields = yields;
	w->climb_ns = now_ns + CLIMB_AGAIN_NS;
	return SHARE_REFIT;
}

enum share hart_share_look(struct sampler *s, int hart)
{
	struct counter_share *w = &s->share[hart];
	const enum rung rung = s->found[hart].rung; /* regardless of the effort */
	const uint64_t now_ns = s->kernel->now_ns(s->kernel->userdata);
	const uint64_t since_ns = w->checked_ns ? now_ns - w->checked_ns : 0;
	struct reading reading;
	if (!s->started || s->options.per_task || !hart_ring(s, hart, 0))
		return SHARE_KEPT;
	w->checked_ns = now_ns;
	bool displaced = read_all(s, hart, &reading) == STREAM_DISPLACED;
	if (!displaced)
		look(w, &reading);
	/* events requested by name have no alternative */
	if (s->options.events)
		return SHARE_KEPT;
	if (displaced || w->yields)
		w->wanted_ns += since_ns;
	if (rung != RUNG_NONE && (w->best == RUNG_NONE || rung < w->best))
		w->best = rung;
	if (displaced) {
		w->climb_ns = now_ns + CLIMB_AGAIN_NS;
		return SHARE_CLIMB;
	}
	if (w->yields)
		return now_ns < w->climb_ns ? SHARE_KEPT : yield(w, false, now_ns);
	if (s->options.always && w->n_short >= STARVED_LOOKS_MAX)
		return yield(w, true, now_ns);
	return look_to_climb(w, &s->found[hart], now_ns);
}

void share_begin(struct sampler *s, int hart)
{
	const struct counter_share *w = &s->share[hart];

	s->share[hart] = (struct counter_share){
		.wanted_ns = w->wanted_ns,
		.ran_ns = w->ran_ns,
		.best = w->best,
		.climb_ns = w->climb_ns,
	};
}

void share_begin_again(struct sampler *s, int hart)
{
	struct counter_share *w = &s->share[hart];

	w->before_wanted_ns = w->before_ran_ns = 0;
	w->n_starved = w->n_short = 0;
}

bool share_yields(const struct sampler *s, int hart)
{
	return s->share[hart].yields;
}

void share_take_back(struct sampler *s, int hart)
{
	s->share[hart].yields = false;
}

bool sampler_has_counters(const struct sampler *s, int hart)
{
	return s->share[hart].wanted_ns > 0;
}

double sampler_counted_share(const struct sampler *s, int hart)
{
	const struct counter_share *w = &s->share[hart];
	return w->wanted_ns > 0 ? (double)w->ran_ns / (double)w->wanted_ns : 1;
}
