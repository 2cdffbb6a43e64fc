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

/* The time that the next sample of a group on a hart represents. */
struct sample_clock {
	uint64_t ran_ns;       /* time that tasks ran since the last sample, by readings */
	uint64_t throttled_ns; /* throttled time of wanted tasks since the last sample */
	bool uncertain;        /* some switches had no reading */
	bool summed; /* ran_ns is up to date: a record of sums came since the last sample */
};

struct sample_clocks {
	const struct attribute_options *o;
	struct sample_clock clock[]; /* by group_index */
};

struct sample_clocks *weigh_new(const struct attribute_options *o)
{
	struct sample_clocks *c = calloc(1, sizeof(*c) + n_groups(o) * sizeof(*c->clock));

	if (c)
		c->o = o;
	return c;
}

static struct sample_clock *clock_of(struct sample_clocks *c, const struct stream *leader, int hart)
{
	ptrdiff_t i = group_index(c->o, leader, hart);

	return i < 0 ? NULL : &c->clock[i];
}

void weigh_stretch(struct sample_clocks *c, const struct record *r, int hart, const struct delta *d)
{
	struct sample_clock *clock = clock_of(c, group_leader(c->o, r), hart);

	if (!clock || !d->n_reads)
		return;
	clock->ran_ns += d->enabled_ns;
	clock->uncertain = clock->uncertain || d->n_unrecorded > 0;
}

void weigh_sums(struct sample_clocks *c, const struct record *r, int hart)
{
	struct sample_clock *clock = clock_of(c, group_leader(c->o, r), hart);

	if (!clock)
		return;
	clock->ran_ns += r->sample.ran_ns;
	clock->summed |= r->sample.ran_ns > 0 || r->sample.n_read == 0; /* else it is the first */
	clock->uncertain = clock->uncertain || r->sample.n_missed > 0;
}

void weigh_throttled(struct sample_clocks *c, const struct record *r, int hart, uint64_t ns)
{
	struct sample_clock *clock = clock_of(c, group_leader(c->o, r), hart);

	if (clock)
		clock->throttled_ns += ns;
}

void weigh_ran(struct sample_clocks *c, const struct record *r, int hart, uint64_t ns)
{
	struct sample_clock *clock = clock_of(c, group_leader(c->o, r), hart);

	if (clock)
		clock->ran_ns += ns;
}

uint64_t weigh_take(
	struct sample_clocks *c, const struct record *r, int hart, const struct delta *d)
{
	const struct stream *leader = group_leader(c->o, r);
	struct sample_clock *clock = clock_of(c, leader, hart);

	if (!clock)
		return r->stream->weight_ns;
	/* the first sample, or the first after a loss, has no previous one to measure from */
	bool measured = leader->timed && (d->n_reads || clock->summed) && !clock->uncertain;
	uint64_t by_rate_ns = r->stream->weight_ns ? r->stream->weight_ns + clock->throttled_ns : 0;
	uint64_t weight_ns = measured ? clock->ran_ns : by_rate_ns;
	*clock = (struct sample_clock){.ran_ns = 0};
	return weight_ns;
}
