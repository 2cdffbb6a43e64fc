/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Weighing: how much time a sample stands for
 *
 * At a rate of 100 Hz that is 10 ms by intention. But the kernel throttles, hardware that is asked
 * for a frequency reaches it late or never, ticks that fall into one long stretch without
 * interrupts are one, and a hart that mostly idles is sampled at the same frequency in what little
 * it runs. So where a group is read at each switch, the readings tell: a sample stands for all the
 * time in which somebody ran on that hart since the sample before, whoever it was, since each had
 * the chance to be the one. Summed up that is the time that the hart was busy, to the last sample.
 *
 * Where there are no such readings, or one of them is missing, the rate must do: with the idle
 * task's, all the time would be missing in which nobody ran. Then only what the kernel says of
 * throttling is added: while it kept the event silent somebody ran there, or it would not have
 * fired so often. Whether it was who is asked for is not known, so where not everybody is nothing
 * is added.
 */

#include "daemon/attribute/station.h"

/* A throttled event is heard again at the next tick, which is 10 ms away at most (CONFIG_HZ=100); a
 * hart that went idle meanwhile has none for long. Source: perf_adjust_freq_unthr_events in
 * kernel/events/core.c of Linux 6.12. */
#define SILENT_NS_MAX 10000000u

static struct stand *stand_of(struct attribute *a, const struct stream *leader, int hart)
{
	if (!leader || leader->event < 0 || leader->event >= a->o.n_events)
		return NULL;
	return &a->stand[(size_t)hart * (size_t)a->o.n_events + (size_t)leader->event];
}

static const struct stream *leader_of(const struct attribute *a, const struct record *r)
{
	return r->stream ? stream_table_find(a->o.streams, r->stream->leader) : NULL;
}

void weigh_stretch(struct attribute *a, const struct record *r, int hart, const struct delta *d)
{
	struct stand *stand = stand_of(a, leader_of(a, r), hart);

	if (!stand || !d->n_reads)
		return;
	stand->ran_ns += d->enabled_ns;
	stand->unsure = stand->unsure || d->n_untold > 0;
}

uint64_t weigh_take(struct attribute *a, const struct record *r, int hart, const struct delta *d)
{
	const struct stream *leader = leader_of(a, r);
	struct stand *stand = stand_of(a, leader, hart);

	if (!stand)
		return r->stream->weight_ns;
	/* the first of all, or the first after a loss, has nothing before it to be measured from */
	bool measured = leader->timed && d->n_reads && !stand->unsure;
	uint64_t weight_ns = measured ? stand->ran_ns : r->stream->weight_ns + stand->silent_ns;
	stand->ran_ns = stand->silent_ns = 0;
	stand->unsure = false;
	return weight_ns;
}

void weigh_throttle(struct attribute *a, const struct record *r, int hart)
{
	struct stand *stand = stand_of(a, leader_of(a, r), hart);

	if (stand)
		stand->throttled_ns = r->time_ns;
}

void weigh_unthrottle(struct attribute *a, const struct record *r, int hart)
{
	const struct stream *leader = leader_of(a, r);
	struct stand *stand = stand_of(a, leader, hart);

	if (!stand || !stand->throttled_ns)
		return;
	uint64_t since_ns = stand->throttled_ns;
	uint64_t silent_ns = r->time_ns > since_ns ? r->time_ns - since_ns : 0;
	stand->throttled_ns = 0;
	if (!leader->timed && a->o.all)
		stand->silent_ns += silent_ns < SILENT_NS_MAX ? silent_ns : SILENT_NS_MAX;
}
