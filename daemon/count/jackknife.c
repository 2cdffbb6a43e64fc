/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Readings are sums since the start, so two stretches are joined by forgetting the reading between them.
 * If the phases of a program are longer than a stretch, its counts scatter more than its scaling errs,
 * since all groups see each phase. The interval is then rather too wide than too narrow.
 *
 * Most runs need no interval, since all events have their counters all the time, and each reading takes
 * the hart from the program. So as long as no count is scaled, we read a run only each time that it is
 * twice as long; after that, often.
 */
#include "daemon/count/jackknife.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COST_PART 20       /* a reading costs at most this part of the time */
#define COUNTED_ALL 0.9995 /* what people read as 100.0 % */

struct jackknife {
	size_t n_events;
	size_t n_readings; /* of JACKKNIFE_STRETCHES_MAX + 1 */
	uint64_t stretch_ns, due_ns;
	uint64_t pause_ns; /* after the last reading, for what it took */
	uint64_t taken_ns[JACKKNIFE_STRETCHES_MAX + 1];
	struct jackknife_count *reading; /* n_events each; the first is the start */
};

int jackknife_new(size_t n_events, uint64_t now_ns, struct jackknife **ret_jackknife)
{
	_cleanup_(jackknife_freep) struct jackknife *s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->reading = calloc((JACKKNIFE_STRETCHES_MAX + 1) * (n_events + 1), sizeof(*s->reading));
	if (!s->reading)
		return -ENOMEM;
	s->n_events = n_events;
	s->n_readings = 1;
	s->taken_ns[0] = now_ns;
	s->stretch_ns = JACKKNIFE_FIRST_NS;
	s->due_ns = now_ns + s->stretch_ns;
	*ret_jackknife = TAKE_PTR(s);
	return 0;
}

struct jackknife *jackknife_free(struct jackknife *s)
{
	if (s)
		free(s->reading);
	free(s);
	return NULL;
}

uint64_t jackknife_due_ns(const struct jackknife *s)
{
	return s->due_ns;
}

static struct jackknife_count *reading_at(const struct jackknife *s, size_t i)
{
	return s->reading + i * s->n_events;
}

static void put_reading(
	struct jackknife *s, size_t to, const struct jackknife_count *from, uint64_t taken_ns)
{
	memcpy(reading_at(s, to), from, s->n_events * sizeof(*from));
	s->taken_ns[to] = taken_ns;
}

static void move_reading(struct jackknife *s, size_t to, size_t from)
{
	put_reading(s, to, reading_at(s, from), s->taken_ns[from]);
}

/* Join stretches by twos. */
static void join(struct jackknife *s)
{
	for (size_t i = 1; 2 * i < s->n_readings; i++)
		move_reading(s, i, 2 * i);
	s->n_readings = s->n_readings / 2 + 1;
}

/* Were all events counted all the time, as of this reading? */
static bool all_whole(const struct jackknife *s, const struct jackknife_count *now)
{
	const struct jackknife_count *start = reading_at(s, 0);
	for (size_t e = 0; e < s->n_events; e++) {
		double enabled = (double)(now[e].enabled_ns - start[e].enabled_ns);
		double running = (double)(now[e].running_ns - start[e].running_ns);
		if (enabled > 0 && !jackknife_is_whole(running / enabled))
			return false;
	}
	return true;
}

static uint64_t max_ns(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

void jackknife_take(
	struct jackknife *s, const struct jackknife_count *count, uint64_t now_ns, uint64_t took_ns)
{
	uint64_t run_ns = now_ns - s->taken_ns[0];
	s->pause_ns = COST_PART * took_ns;
	if (s->n_readings == JACKKNIFE_STRETCHES_MAX + 1)
		join(s);
	put_reading(s, s->n_readings++, count, now_ns);
	while (s->stretch_ns * JACKKNIFE_STRETCHES_MAX < run_ns)
		s->stretch_ns *= 2;
	uint64_t next_ns = all_whole(s, count) && run_ns > s->stretch_ns ? run_ns : s->stretch_ns;
	s->due_ns = now_ns + max_ns(next_ns, s->pause_ns);
}

void jackknife_restart(struct jackknife *s)
{
	if (s->n_readings > 1)
		move_reading(s, 0, s->n_readings - 1);
	s->n_readings = 1;
	s->stretch_ns = JACKKNIFE_FIRST_NS;
	s->due_ns = s->taken_ns[0] + max_ns(s->stretch_ns, s->pause_ns);
}

size_t jackknife_n_stretches(const struct jackknife *s)
{
	return s->n_readings - 1;
}

double jackknife_part(const struct jackknife *s, size_t stretch)
{
	uint64_t run_ns = s->taken_ns[s->n_readings - 1] - s->taken_ns[0];
	uint64_t stretch_ns = s->taken_ns[stretch + 1] - s->taken_ns[stretch];
	return run_ns ? (double)stretch_ns / (double)run_ns : 0;
}

void jackknife_without(const struct jackknife *s, size_t stretch, double *ret_counts)
{
	for (size_t e = 0; e < s->n_events; e++) {
		const struct jackknife_count *first = &reading_at(s, 0)[e];
		const struct jackknife_count *last = &reading_at(s, s->n_readings - 1)[e];
		const struct jackknife_count *from = &reading_at(s, stretch)[e];
		const struct jackknife_count *to = &reading_at(s, stretch + 1)[e];
		double value =
			(double)(last->value - first->value) - (double)(to->value - from->value);
		double running = (double)(last->running_ns - first->running_ns) -
				 (double)(to->running_ns - from->running_ns);
		double enabled = (double)(last->enabled_ns - first->enabled_ns);
		ret_counts[e] = running > 0 ? value * (enabled / running) : NAN;
	}
}

/* Quantile of Student's distribution, two-sided 95 %, for n - 1 degrees of freedom. It is 1.7 % too
 * small for four, less for more. Source: Abramowitz and Stegun, 26.7.5. */
static double student(double n)
{
	double f = n - 1;
	return 1.960 + 2.372 / f + 2.823 / (f * f);
}

bool jackknife_is_whole(double counted)
{
	return counted >= COUNTED_ALL;
}

static bool is_used(const double *without, const double *part, size_t i)
{
	return isfinite(without[i]) && (!part || part[i] > 0);
}

/* 1 less the share of stretch i in the n stretches that are used, whose lengths add up to sum. */
static double rest_of(const double *part, size_t i, double sum, double n)
{
	return 1 - (part ? part[i] / sum : 1 / n);
}

/* If stretches differ in length, the weight of each is the share of the others. If all are equal, this
 * is the ordinary jackknife. Source: F. M. T. A. Busing, E. Meijer, R. van der Leeden, "Delete-m jackknife for
 * unequal m", Statistics and Computing 9, 1999, (8), for values that are hardly biased. */
double jackknife_error(const double *without, const double *part, size_t n, double counted)
{
	double used = 0, parts = 0, mean = 0, squares = 0;
	if (jackknife_is_whole(counted))
		return 0;
	for (size_t i = 0; i < n; i++)
		if (is_used(without, part, i)) {
			used++;
			parts += part ? part[i] : 0;
		}
	if (used < JACKKNIFE_STRETCHES_MIN)
		return NAN;
	for (size_t i = 0; i < n; i++)
		if (is_used(without, part, i))
			mean += without[i] * rest_of(part, i, parts, used) / (used - 1);
	for (size_t i = 0; i < n; i++)
		if (is_used(without, part, i)) {
			double rest = rest_of(part, i, parts, used), off = without[i] - mean;
			squares += off * off * rest / (1 - rest);
		}
	return student(used) * sqrt((1 - counted) * squares / used);
}
