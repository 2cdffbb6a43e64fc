/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Deltas: the counts of a group since it was last read
 *
 * Counters of a hart keep running across context switches, so a difference between two samples
 * would charge one task for the work of others in between. The record at each switch cuts the stretch:
 * every reading, of a sample or a switch, ends a stretch of a single task. If a record was lost, so
 * was the cut, and the stretch is charged to no task.
 */

#include "daemon/attribute/delta.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct delta_group {
	struct delta_key key;
	struct record_read_value last[RECORD_READ_VALUES_MAX];
	uint32_t n_last; /* 0: forgotten, the next reading is a first one */
	uint64_t enabled_ns, running_ns;
	UT_hash_handle hh;
};

static int delta_group_get(
	struct delta_table *t, const struct delta_key *key, struct delta_group **ret_group)
{
	struct delta_group *g;

	HASH_FIND(hh, t->groups, key, sizeof(*key), g);
	if (!g) {
		if (HASH_COUNT(t->groups) >= DELTA_GROUPS_MAX)
			return DELTA_TABLE_FULL;
		g = calloc(1, sizeof(*g));
		if (!g)
			return -ENOMEM;

		g->key = *key;
		HASH_ADD(hh, t->groups, key, sizeof(g->key), g);
		if (!g->hh.tbl) {
			free(g);
			return -ENOMEM;
		}
	}
	*ret_group = g;
	return 0;
}

static void delta_group_keep(struct delta_group *g, const struct record_sample *s)
{
	memcpy(g->last, s->read, s->n_read * sizeof(*g->last));
	g->n_last = s->n_read;
	g->enabled_ns = s->enabled_ns;
	g->running_ns = s->running_ns;
}

static void delta_whole(const struct record_sample *s, struct delta *d)
{
	memcpy(d->read, s->read, s->n_read * sizeof(*d->read));
	d->n_reads = s->n_read;
	d->enabled_ns = s->enabled_ns;
	d->running_ns = s->running_ns;
}

/* False if a member changed or a value went backwards. */
static bool delta_subtract(
	const struct delta_group *g, const struct record_sample *s, struct delta *d)
{
	if (g->n_last != s->n_read || s->enabled_ns < g->enabled_ns ||
		s->running_ns < g->running_ns)
		return false;

	for (uint32_t i = 0; i < s->n_read; i++) {
		if (s->read[i].id != g->last[i].id || s->read[i].value < g->last[i].value)
			return false;
		d->read[i].id = s->read[i].id;
		d->read[i].value = s->read[i].value - g->last[i].value;
	}
	d->n_reads = s->n_read;
	d->enabled_ns = s->enabled_ns - g->enabled_ns;
	d->running_ns = s->running_ns - g->running_ns;
	return true;
}

int delta_take(struct delta_table *t, const struct delta_key *key, const struct record_sample *s,
	struct delta *ret_delta)
{
	struct delta_group *g;
	struct delta d;

	int r = delta_group_get(t, key, &g);
	if (r)
		return r;

	if (!g->n_last && key->tid) {
		delta_whole(s, &d);
	} else if (!g->n_last) {
		r = DELTA_FIRST;
	} else if (!delta_subtract(g, s, &d)) {
		r = DELTA_RESET;
	}
	delta_group_keep(g, s);
	if (!r)
		*ret_delta = d;
	return r;
}

void delta_forget_hart(struct delta_table *t, int hart)
{
	for (struct delta_group *g = t->groups; g; g = g->hh.next)
		if (g->key.hart == hart && !g->key.tid)
			g->n_last = 0;
}

void delta_forget_task(struct delta_table *t, pid_t tid)
{
	struct delta_group *g, *next;

	HASH_ITER (hh, t->groups, g, next) {
		if (g->key.tid != tid)
			continue;
		HASH_DEL(t->groups, g);
		free(g);
	}
}

void delta_table_clear(struct delta_table *t)
{
	struct delta_group *g, *next;

	HASH_ITER (hh, t->groups, g, next) {
		HASH_DEL(t->groups, g);
		free(g);
	}
}
