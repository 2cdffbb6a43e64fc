/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* The time of a sample ends when it was taken, and may have begun in the second before: it is divided between the two.
 */

#include "daemon/aggregate/seconds.h"

#include <errno.h>
#include <stdlib.h>

#include "proto/base/hash.h"

#define SECOND_NS 1000000000u
#define SLOTS_FIRST 64u /* a power of two, like all sizes; doubled when three quarters are taken */

static struct second *find_slot(const struct seconds *s, const struct second *of)
{
	const uint64_t whose =
		of->process ? of->process->id : UINT64_C(1) << 32 | (uint32_t)of->hart;
	const uint32_t mask = s->n_slots - 1;
	uint32_t at = (uint32_t)hash_words(whose, of->at) & mask;
	while (s->slot[at].ns > 0 &&
		!(seconds_are_of_one(&s->slot[at], of) && s->slot[at].at == of->at))
		at = (at + 1) & mask;
	return &s->slot[at];
}

static int reserve(struct seconds *s)
{
	if (s->n_slots && s->n < s->n_slots / 4 * 3)
		return 0;
	struct seconds grown = *s;
	grown.n_slots = s->n_slots ? s->n_slots * 2 : SLOTS_FIRST;
	grown.slot = calloc(grown.n_slots, sizeof(*grown.slot));
	if (!grown.slot)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->n_slots; i++)
		if (s->slot[i].ns > 0)
			*find_slot(&grown, &s->slot[i]) = s->slot[i];
	free(s->slot);
	*s = grown;
	return 0;
}

/* Its ns is above 0. */
static int add(struct seconds *s, const struct second *of)
{
	int r = reserve(s);
	if (r < 0)
		return r;
	struct second *slot = find_slot(s, of);
	if (slot->ns > 0) {
		slot->ns += of->ns;
		return 0;
	}
	if (of->process && s->n_pairs == SECONDS_PAIRS_MAX) {
		s->is_too_many = true;
		return 0;
	}
	*slot = *of;
	s->n++;
	s->n_pairs += of->process != NULL;
	return 0;
}

static int add_for(
	struct seconds *s, struct second of, uint64_t from_ns, uint64_t to_ns, uint64_t ns)
{
	const uint64_t span_ns = to_ns > from_ns ? to_ns - from_ns : 1;
	uint64_t left_ns = ns;
	for (uint64_t at = from_ns / SECOND_NS; left_ns > 0 && at < SECONDS_MAX; at++) {
		const uint64_t end_ns = (at + 1) * SECOND_NS;
		const double share =
			end_ns < to_ns ? (double)(end_ns - from_ns) / (double)span_ns : 1;
		const uint64_t until_ns = share < 1 ? (uint64_t)(share * (double)ns) : ns;
		of.ns = until_ns > ns - left_ns ? until_ns - (ns - left_ns) : 0;
		of.at = (uint32_t)at;
		left_ns -= of.ns;
		int r = of.ns > 0 ? add(s, &of) : 0;
		if (r < 0)
			return r;
	}
	return 0;
}

int seconds_add(struct seconds *s, const struct attribution *a, uint64_t start_ns)
{
	if (!s->are_kept || a->is_offcpu || a->weight_ns == 0)
		return 0;
	const uint64_t time_ns = a->time_ns > start_ns ? a->time_ns - start_ns : 0;
	uint64_t first_ns = a->first_ns > start_ns ? a->first_ns - start_ns : time_ns;
	const uint64_t each_ns = a->weight_ns / (a->count > 0 ? a->count : 1);
	if (first_ns > time_ns)
		first_ns = time_ns;
	const uint64_t from_ns = first_ns > each_ns ? first_ns - each_ns : 0;
	int r = add_for(s, (struct second){.hart = a->hart}, from_ns, time_ns, a->weight_ns);
	struct task *process = a->task ? a->task->process : NULL;
	if (r == 0 && process && process->uid == a->task->uid)
		r = add_for(s, (struct second){.process = process, .hart = -1}, from_ns, time_ns,
			a->weight_ns);
	return r;
}

static int by_whose(const void *a, const void *b)
{
	const struct second *x = a, *y = b;
	const uint32_t x_id = x->process ? x->process->id : 0,
		       y_id = y->process ? y->process->id : 0;
	if (x_id != y_id)
		return x_id < y_id ? -1 : 1;
	if (x->hart != y->hart)
		return x->hart < y->hart ? -1 : 1;
	return (x->at > y->at) - (x->at < y->at);
}

int seconds_sorted(const struct seconds *s, struct second **ret_second, uint32_t *ret_n)
{
	struct second *second = calloc(s->n + 1, sizeof(*second));
	uint32_t n = 0;
	if (!second)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->n_slots; i++)
		if (s->slot[i].ns > 0)
			second[n++] = s->slot[i];
	qsort(second, n, sizeof(*second), by_whose);
	*ret_second = second;
	*ret_n = n;
	return 0;
}

void seconds_clear(struct seconds *s)
{
	free(s->slot);
	*s = (struct seconds){.are_kept = s->are_kept};
}
