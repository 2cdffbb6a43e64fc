/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Teams are in a table: a thread that waits at the end of a region learns from its team when that
 * was, which may be long after the region has ended. The list of free ones is changed in one step;
 * its head has a number beside the index, so that it is never taken for an earlier one.
 */
#include "runtime/ompt/team.h"

#include <stddef.h>

static struct team teams[TEAMS_MAX];
static uint32_t n_used;    /* of the table, ever; atomic, as the next */
static uint64_t free_head; /* number << 32 | index + 1; 0: none */

static struct team *reuse(void)
{
	uint64_t head = __atomic_load_n(&free_head, __ATOMIC_ACQUIRE);
	while ((uint32_t)head) {
		struct team *t = &teams[(uint32_t)head - 1];
		uint64_t next =
			((head >> 32) + 1) << 32 | __atomic_load_n(&t->next, __ATOMIC_RELAXED);
		if (__atomic_compare_exchange_n(
			    &free_head, &head, next, 1, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE))
			return t;
	}
	return NULL;
}

static struct team *use(void)
{
	uint32_t n = __atomic_load_n(&n_used, __ATOMIC_RELAXED);
	while (n < TEAMS_MAX)
		if (__atomic_compare_exchange_n(
			    &n_used, &n, n + 1, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			return &teams[n];
	return NULL;
}

struct team *team_begin(struct place *place)
{
	struct team *t = reuse();
	if (!t)
		t = use();
	if (!t)
		return NULL;
	t->place = place;
	__atomic_store_n(&t->end_ns, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&t->refs, 1, __ATOMIC_RELEASE);
	return t;
}

void team_ref(struct team *t)
{
	__atomic_add_fetch(&t->refs, 1, __ATOMIC_RELAXED);
}

void team_unref(struct team *t)
{
	if (__atomic_sub_fetch(&t->refs, 1, __ATOMIC_ACQ_REL) != 0)
		return;
	uint64_t head = __atomic_load_n(&free_head, __ATOMIC_RELAXED), next;
	do {
		__atomic_store_n(&t->next, (uint32_t)head, __ATOMIC_RELAXED);
		next = ((head >> 32) + 1) << 32 | ((uint32_t)(t - teams) + 1);
	} while (!__atomic_compare_exchange_n(
		&free_head, &head, next, 1, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}

void team_end(struct team *t, uint64_t now_ns)
{
	__atomic_store_n(&t->end_ns, now_ns, __ATOMIC_RELEASE);
	team_unref(t);
}

void teams_clear(void)
{
	n_used = 0;
	free_head = 0;
}
