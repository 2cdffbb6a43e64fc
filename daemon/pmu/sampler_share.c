/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Counters are shared with whoever else profiles this machine: perf stat beside the daemon, another
 * recording of ours, a watchdog. The kernel lets groups take turns, and says by two times how long
 * a group was wanted and how long it ran. Counts are scaled by them. But a group is all or nothing:
 * one that never gets all its counters does not run at all, not even a leader that needs none, and
 * the hart is blind. So a hart whose group has not run for some looks is planned anew, by trying,
 * and takes what rung the counters that are left allow; and is tried again later, since the other
 * will go some day.
 */

#include "daemon/pmu/sampler_open.h"

/* Three seconds: a probe of ours or of doctor takes a hart's counters for a tenth of one. */
#define STARVED_LOOKS_MAX 3
/* Of the time between two looks, what must have been wanted for the look to tell anything: an event
 * that was opened in between tells nothing yet. */
#define WANTED_NS_MIN 500000000u
/* Trying costs up to some tenths of a second without samples on that hart. */
#define CLIMB_AGAIN_NS 60000000000u

/* Does it need a counter of the hart's, itself or beside it? */
static bool needs_counter(const struct sampler *s, const struct stream *t)
{
	if (t->role != STREAM_SAMPLER)
		return false;
	return s->events.event[t->event].type != PERF_TYPE_SOFTWARE ||
	       (t->read_format & PERF_FORMAT_GROUP);
}

static struct reading read_all(const struct sampler *s, int hart)
{
	struct reading sum = {0};
	for (size_t i = 0; i < s->streams.n_streams; i++) {
		const struct stream *t = &s->streams.stream[i];
		struct reading r;
		if (t->hart != hart || !needs_counter(s, t) || stream_read(s, t, &r) < 0)
			continue;
		sum.enabled_ns += r.enabled_ns;
		sum.running_ns += r.running_ns;
	}
	return sum;
}

/* Take in how long its counters were wanted and ran since the last look. */
static void look(struct hart_watch *w, const struct reading *now)
{
	uint64_t wanted = now->enabled_ns - w->before_wanted_ns;
	uint64_t ran = now->running_ns - w->before_ran_ns;
	w->before_wanted_ns = now->enabled_ns;
	w->before_ran_ns = now->running_ns;
	w->wanted_ns += wanted;
	w->ran_ns += ran;
	if (wanted >= WANTED_NS_MIN)
		w->n_starved = ran == 0 ? w->n_starved + 1 : 0;
}

/* Could the hart have a better rung than it has? It had one, or one was in use when it was tried.
 */
static bool could_climb(const struct hart_watch *w, const struct plan *p)
{
	bool could = p->rung != w->best;
	for (int i = 0; i < p->n_tries; i++)
		could |= p->tries[i].busy;
	return could;
}

bool hart_share_look(struct sampler *s, int hart)
{
	struct hart_watch *w = &s->watch[hart];
	const enum rung rung = s->plan[hart].rung;
	if (!s->started || s->options.per_task || !hart_ring(s, hart))
		return false;
	const struct reading reading = read_all(s, hart);
	look(w, &reading);
	/* what was asked for by name has nothing to give way to */
	if (s->options.events)
		return false;
	if (rung != RUNG_NONE && (w->best == RUNG_NONE || rung < w->best))
		w->best = rung;
	uint64_t now_ns = s->kernel->now_ns(s->kernel->userdata);
	bool starved = w->n_starved >= STARVED_LOOKS_MAX;
	if (!starved && !could_climb(w, &s->plan[hart]))
		return false;
	if (!starved && w->climb_ns == 0)
		w->climb_ns = now_ns + CLIMB_AGAIN_NS;
	if (now_ns < w->climb_ns)
		return false;
	w->climb_ns = now_ns + CLIMB_AGAIN_NS;
	return true;
}

double sampler_counted_share(const struct sampler *s, int hart)
{
	const struct hart_watch *w = &s->watch[hart];
	return w->wanted_ns > 0 ? (double)w->ran_ns / (double)w->wanted_ns : 1;
}
