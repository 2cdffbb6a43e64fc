/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* One sweep over the ends of all stretches, in the order of time
 *
 * Between two of them the number of working harts stands still. The sweep sums up the time that passes divided by
 * that number, as long as it is not 0; what a stretch accounts for is the difference of that sum between its ends.
 */
#include "daemon/query/wall.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "proto/base/memory.h"

struct stretch {
	double start_ns;
	uint32_t sample;
};

/* What is known of a hart up to its last sample. */
struct hart {
	double end_ns;  /* of its last stretch */
	double owed_ns; /* time that stretches had to leave out, since another one was there */
};

static int by_time(const void *a, const void *b)
{
	const struct wall_sample *x = a, *y = b;
	return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

static int by_start(const void *a, const void *b)
{
	const struct stretch *x = a, *y = b;
	return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

/* Where the sample's stretch starts. Stretches of one hart do not overlap: where samples come closer than they weigh, as
 * those of two threads that share it do, what is cut off is added to the hart's next stretch, at most the weight of the
 * sample that was cut. */
static double start_of(struct hart *h, const struct wall_sample *s)
{
	const double end_ns = s->time_ns, wanted_ns = s->weight_ns + h->owed_ns;
	const double start_ns = fmax(h->end_ns, end_ns - wanted_ns);
	h->owed_ns = fmin(fmax(wanted_ns - (end_ns - start_ns), 0), s->weight_ns);
	h->end_ns = end_ns;
	return start_ns;
}

static void sweep(struct wall_sample *sample, const struct stretch *stretch, size_t n)
{
	double sum_ns = 0, now_ns = n > 0 ? stretch[0].start_ns : 0;
	uint32_t n_working = 0;
	size_t started = 0, ended = 0;
	while (ended < n) {
		const double end_ns = sample[ended].time_ns;
		const bool starts = started < n && stretch[started].start_ns <= end_ns;
		const double next_ns = starts ? stretch[started].start_ns : end_ns;
		if (n_working > 0)
			sum_ns += (next_ns - now_ns) / n_working;
		now_ns = next_ns;
		if (starts) { /* until it ends, where it started */
			sample[stretch[started++].sample].wall_ns = sum_ns;
			n_working++;
		} else {
			struct wall_sample *s = &sample[ended++];
			s->wall_ns = sum_ns - s->wall_ns;
			n_working--;
		}
	}
}

uint32_t wall_harts(double share)
{
	const double harts = share > 0 ? 1 / share : 1;
	return harts < 1 ? 1 : harts > HARTS_MAX ? HARTS_MAX : (uint32_t)lround(harts);
}

int wall_share(struct wall_sample *sample, size_t n)
{
	_cleanup_(freep) struct stretch *stretch = calloc(n + 1, sizeof(*stretch));
	_cleanup_(freep) struct hart *hart = calloc(WALL_HARTS, sizeof(*hart));
	_cleanup_(freep) double *length_ns = calloc(n + 1, sizeof(*length_ns));
	if (!stretch || !hart || !length_ns)
		return -ENOMEM;
	if (n == 0) /* sample may be NULL */
		return 0;
	for (size_t i = 0; i < WALL_HARTS; i++)
		hart[i].end_ns = -INFINITY;
	qsort(sample, n, sizeof(*sample), by_time);
	for (size_t i = 0; i < n; i++) {
		stretch[i] =
			(struct stretch){start_of(&hart[sample[i].hart], &sample[i]), (uint32_t)i};
		length_ns[i] = sample[i].time_ns - stretch[i].start_ns;
	}
	qsort(stretch, n, sizeof(*stretch), by_start);
	sweep(sample, stretch, n);
	for (size_t i = 0; i < n; i++) {
		sample[i].harts =
			wall_harts(length_ns[i] > 0 ? sample[i].wall_ns / length_ns[i] : 1);
	}
	return 0;
}

struct wall_bounds wall_guess(const double *busy_ns, size_t n, double span_ns)
{
	struct wall_bounds b = {0, 0, 0};
	double all_idle = 1;
	for (size_t i = 0; i < n && span_ns > 0; i++) {
		const double busy = fmin(fmax(busy_ns[i], 0), span_ns);
		b.least_ns = fmax(b.least_ns, busy);
		b.most_ns += busy;
		all_idle *= 1 - busy / span_ns;
	}
	b.most_ns = fmin(b.most_ns, span_ns);
	b.likely_ns = fmax(b.least_ns, fmin(span_ns * (1 - all_idle), b.most_ns));
	return b;
}
