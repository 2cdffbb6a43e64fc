/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Weighing: the time that a sample represents
 *
 * At 100 Hz that is nominally 10 ms. But the kernel throttles, hardware reaches a requested
 * frequency late or never, ticks during a long stretch without interrupts merge into one, and a
 * mostly idle hart is sampled at the same frequency in its short busy times. So if a group is read
 * at each switch, the readings decide: a sample represents all the time that any task ran on that
 * hart since the previous sample, since any of them could have been sampled. The sum is the hart's
 * busy time up to the last sample.
 *
 * A group that is not cut but whose switches are counted has no such readings. The length of a
 * stretch without a switch is known, but it is not used: tasks that switch rarely would be weighed
 * by it and those that switch often by the rate, and their shares could not be compared.
 *
 * If there are no such readings, or one of them is missing, the rate is used (without the reading
 * of the idle task, for example, idle time is not known). Then only throttled time is added
 * (throttle.c). If events were asked to fire by occurrences, not by time, a sample represents no time.
 */

#include "daemon/attribute/attribute_private.h"

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

struct stand *weigh_stand(struct attribute *a, const struct record *r, int hart)
{
	return stand_of(a, leader_of(a, r), hart);
}

void weigh_stretch(struct attribute *a, const struct record *r, int hart, const struct delta *d)
{
	struct stand *stand = weigh_stand(a, r, hart);

	if (!stand || !d->n_reads)
		return;
	stand->ran_ns += d->enabled_ns;
	stand->unsure = stand->unsure || d->n_untold > 0;
}

void weigh_sums(struct attribute *a, const struct record *r, int hart)
{
	struct stand *stand = weigh_stand(a, r, hart);

	if (!stand)
		return;
	stand->ran_ns += r->sample.ran_ns;
	stand->summed |= r->sample.ran_ns > 0 || r->sample.n_read == 0; /* else it is the first */
	stand->unsure = stand->unsure || r->sample.n_missed > 0;
}

uint64_t weigh_take(struct attribute *a, const struct record *r, int hart, const struct delta *d)
{
	const struct stream *leader = leader_of(a, r);
	struct stand *stand = stand_of(a, leader, hart);

	if (!stand)
		return r->stream->weight_ns;
	/* the first sample, or the first after a loss, has no previous one to measure from */
	bool measured = leader->timed && (d->n_reads || stand->summed) && !stand->unsure;
	uint64_t by_rate_ns = r->stream->weight_ns ? r->stream->weight_ns + stand->silent_ns : 0;
	uint64_t weight_ns = measured ? stand->ran_ns : by_rate_ns;
	stand->ran_ns = stand->silent_ns = 0;
	stand->unsure = stand->summed = false;
	return weight_ns;
}
