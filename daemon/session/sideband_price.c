/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* A record takes less than a microsecond, but an exec 500 microseconds, so a mean would be all
 * noise. Therefore pairs are short, every other pair begins with the side that has events, and the
 * result is the median. Its interval comes from the differences themselves: with 21 of them, the
 * median is between the 6th and the 16th in 97 of 100 cases, whatever the disturbance.
 */

#include "daemon/session/sideband_price.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/pmu/event/event.h"
#include "daemon/sampler/sampler.h"
#include "proto/base/memory.h"

/* Source: binomial distribution, 21 trials of 1/2: P(6 ≤ X ≤ 15) = 0.973 */
#define RANK_LOW 5
#define RANK_HIGH 15
_Static_assert(RANK_LOW + RANK_HIGH + 1 == SIDEBAND_ROUNDS, "ranks on both sides of the median");

/* Repeats that take a ms or two on a usual machine. Without tracefs, the exec ring has room for
 * some 60 records, of which a fork writes two and an exec three, and wakes us at each while it has
 * room: the measurement must include that. */
static const unsigned times[N_TASK_WORKS] = {
	[TASK_FORK] = 24, [TASK_EXEC] = 4, [TASK_MAPPING] = 256};

DEFINE_CLEANUP(struct sampler *, sampler_free)

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

struct sideband_price sideband_price_judge(double difference_ns[static SIDEBAND_ROUNDS])
{
	qsort(difference_ns, SIDEBAND_ROUNDS, sizeof(*difference_ns), compare);
	return (struct sideband_price){
		.known = true,
		.ns = difference_ns[SIDEBAND_ROUNDS / 2],
		.low_ns = difference_ns[RANK_LOW],
		.high_ns = difference_ns[RANK_HIGH],
	};
}

/* A full ring takes no record, and so costs less. */
static void empty_rings(struct ring *ring, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		ring_snapshot(&ring[i]);
		ring[i].tail = ring[i].head;
		ring_release(&ring[i]);
	}
}

/* Do a quarter of the work without measuring it, then measure the work: so the other side's work and the
 * enabling of events do not show in the result. */
static int work_warm(const struct kernel *k, int hart, enum task_work what, uint64_t *ret_ns)
{
	uint64_t warm_ns;
	int r = k->task_work(k->userdata, hart, what, times[what] / 4, &warm_ns);
	return r < 0 ? r : k->task_work(k->userdata, hart, what, times[what], ret_ns);
}

static int work_with(struct sampler *s, int hart, enum task_work what, uint64_t *ret_ns)
{
	const struct kernel *k = s->kernel;
	int r = sampler_start(s);
	if (r == 0)
		r = work_warm(k, hart, what, ret_ns);
	int stopped = sampler_stop(s);
	empty_rings(s->ring, s->n_rings);
	empty_rings(s->exec_ring, s->n_exec_rings);
	return r == 0 ? stopped : r;
}

static int measure_one(
	struct sampler *s, int hart, enum task_work what, struct sideband_price *ret_price)
{
	const struct kernel *k = s->kernel;
	double difference_ns[SIDEBAND_ROUNDS];
	int r = 0;
	for (int i = 0; i < SIDEBAND_ROUNDS && r == 0; i++) {
		uint64_t with_ns = 0, without_ns = 0;
		if (i % 2)
			r = work_with(s, hart, what, &with_ns);
		if (r == 0)
			r = work_warm(k, hart, what, &without_ns);
		if (r == 0 && i % 2 == 0)
			r = work_with(s, hart, what, &with_ns);
		difference_ns[i] = ((double)with_ns - (double)without_ns) / times[what];
	}
	if (r == 0)
		*ret_price = sideband_price_judge(difference_ns);
	return r;
}

/* The first hart that has events, and on which we may run. */
static int find_hart(const struct sampler *s)
{
	for (size_t i = 0; i < s->n_rings; i++)
		if (s->kernel->spin(s->kernel->userdata, s->ring[i].hart, 1) == 0)
			return s->ring[i].hart;
	return -1;
}

int sideband_price_measure(
	const struct kernel *k, struct sideband_price ret_price[static N_TASK_WORKS])
{
	_cleanup_(sampler_freep) struct sampler *s = NULL;
	struct event_error error = {""};
	struct event_list events = {0};
	const struct sampler_options o = {.hz = 1, .events = &events};
	int r = event_parse(k, "cpu-clock", &events, &error);
	if (r == 0)
		r = sampler_new(k, &o, &s, &error);
	if (r < 0)
		return r;
	int hart = r == 0 && k->task_work ? find_hart(s) : -1;
	if (hart < 0)
		return SIDEBAND_REFUSED;
	for (int what = 0; what < N_TASK_WORKS; what++)
		(void)measure_one(s, hart, (enum task_work)what, &ret_price[what]);
	return 0;
}
