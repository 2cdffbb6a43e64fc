/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Readings are sums since the start, so joining two stretches is forgetting the reading between them.
 * A program whose phases are longer than a stretch scatters more than its scaling errs, since all
 * groups see each phase; the interval is then rather too wide than too narrow.
 */
#include "daemon/pmu/scatter.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COST_PART 20       /* a reading costs at most this part of the time */
#define COUNTED_ALL 0.9995 /* what people read as 100.0 % */

struct scatter {
	size_t n_events;
	size_t n_readings; /* of SCATTER_STRETCHES_MAX + 1 */
	uint64_t stretch_ns, due_ns;
	struct scatter_count *reading; /* n_events each; the first is the start */
};

int scatter_new(size_t n_events, uint64_t now_ns, struct scatter **ret_scatter)
{
	_cleanup_(scatter_freep) struct scatter *s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->reading = calloc((SCATTER_STRETCHES_MAX + 1) * (n_events + 1), sizeof(*s->reading));
	if (!s->reading)
		return -ENOMEM;
	s->n_events = n_events;
	s->n_readings = 1;
	s->stretch_ns = SCATTER_FIRST_NS;
	s->due_ns = now_ns + s->stretch_ns;
	*ret_scatter = TAKE_PTR(s);
	return 0;
}

struct scatter *scatter_free(struct scatter *s)
{
	if (s)
		free(s->reading);
	free(s);
	return NULL;
}

uint64_t scatter_due_ns(const struct scatter *s)
{
	return s->due_ns;
}

static struct scatter_count *reading_at(const struct scatter *s, size_t i)
{
	return s->reading + i * s->n_events;
}

static void copy_reading(struct scatter *s, size_t to, const struct scatter_count *from)
{
	memcpy(reading_at(s, to), from, s->n_events * sizeof(*from));
}

/* Join stretches by twos. */
static void join(struct scatter *s)
{
	for (size_t i = 1; 2 * i < s->n_readings; i++)
		copy_reading(s, i, reading_at(s, 2 * i));
	s->n_readings = s->n_readings / 2 + 1;
	s->stretch_ns *= 2;
}

void scatter_take(
	struct scatter *s, const struct scatter_count *count, uint64_t now_ns, uint64_t took_ns)
{
	if (s->n_readings == SCATTER_STRETCHES_MAX + 1)
		join(s);
	copy_reading(s, s->n_readings++, count);
	uint64_t pause_ns = COST_PART * took_ns;
	s->due_ns = now_ns + (pause_ns > s->stretch_ns ? pause_ns : s->stretch_ns);
}

void scatter_restart(struct scatter *s)
{
	if (s->n_readings > 1)
		copy_reading(s, 0, reading_at(s, s->n_readings - 1));
	s->n_readings = 1;
	s->stretch_ns = SCATTER_FIRST_NS;
}

size_t scatter_n_stretches(const struct scatter *s)
{
	return s->n_readings - 1;
}

void scatter_without(const struct scatter *s, size_t stretch, double *ret_counts)
{
	for (size_t e = 0; e < s->n_events; e++) {
		const struct scatter_count *first = &reading_at(s, 0)[e];
		const struct scatter_count *last = &reading_at(s, s->n_readings - 1)[e];
		const struct scatter_count *from = &reading_at(s, stretch)[e];
		const struct scatter_count *to = &reading_at(s, stretch + 1)[e];
		double value =
			(double)(last->value - first->value) - (double)(to->value - from->value);
		double running = (double)(last->running_ns - first->running_ns) -
				 (double)(to->running_ns - from->running_ns);
		double enabled = (double)(last->enabled_ns - first->enabled_ns);
		ret_counts[e] = running > 0 ? value * (enabled / running) : NAN;
	}
}

/* Of Student's distribution, two-sided 95 %, for n - 1 degrees of freedom; 1.7 % too small for four,
 * less for more. Source: Abramowitz and Stegun, 26.7.5. */
static double student(double n)
{
	double f = n - 1;
	return 1.960 + 2.372 / f + 2.823 / (f * f);
}

bool scatter_is_whole(double counted)
{
	return counted >= COUNTED_ALL;
}

double scatter_error(const double *without, size_t n, double counted)
{
	double sum = 0, squares = 0, used = 0;
	if (scatter_is_whole(counted))
		return 0;
	for (size_t i = 0; i < n; i++)
		if (isfinite(without[i])) {
			sum += without[i];
			used++;
		}
	if (used < SCATTER_STRETCHES_MIN)
		return NAN;
	for (size_t i = 0; i < n; i++)
		if (isfinite(without[i]))
			squares += (without[i] - sum / used) * (without[i] - sum / used);
	return student(used) * sqrt((1 - counted) * squares * (used - 1) / used);
}
