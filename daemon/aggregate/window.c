/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* A window is a table of counters. What came in as a thousand samples of one task at one place
 * leaves as one row, so what is stored grows with the variety of what ran, not with the rate of
 * sampling. Rows are found by one fixed key of sixteen bytes; the values of a group hang from the
 * row in a short list that is searched, since a group has few members.
 *
 * The owner of a window sets its bounds; nothing here looks at the clock.
 */

#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(element) ((element)->hh.tbl = NULL)

#include "daemon/aggregate/window.h"

#include <errno.h>
#include <stdlib.h>

_Static_assert(sizeof(struct window_key) == 16, "the key is hashed as bytes: no padding in it");

static struct window_row *row_free(struct window_row *row)
{
	if (row)
		free(row->read);
	free(row);
	return NULL;
}

static int add_row(struct window *w, const struct window_key *key, struct window_row **ret_row)
{
	struct window_row *row = calloc(1, sizeof(*row));
	if (!row)
		return -ENOMEM;

	row->key = *key;
	HASH_ADD(hh, w->rows, key, sizeof(row->key), row);
	if (!row->hh.tbl) {
		row_free(row);
		return -ENOMEM;
	}
	w->n_rows++;
	*ret_row = row;
	return 0;
}

static struct window_read *find_read(const struct window_row *row, int event)
{
	for (uint32_t i = 0; i < row->n_reads; i++)
		if (row->read[i].event == event)
			return &row->read[i];
	return NULL;
}

/* Give the row a place for every event that the attribution read, before anything is counted: then
 * a sample is in the row as a whole or not at all. */
static int reserve_reads(struct window_row *row, const struct attribution *a)
{
	uint32_t n_new = 0;
	for (uint32_t i = 0; i < a->n_reads; i++)
		n_new += !find_read(row, a->read[i].event);
	if (n_new == 0)
		return 0;

	struct window_read *read = reallocarray(row->read, row->n_reads + n_new, sizeof(*read));
	if (!read)
		return -ENOMEM;
	row->read = read;
	for (uint32_t i = 0; i < a->n_reads; i++)
		if (!find_read(row, a->read[i].event))
			row->read[row->n_reads++] = (struct window_read){
				.event = a->read[i].event,
			};
	return 0;
}

static void count(struct window_row *row, const struct attribution *a)
{
	row->count += a->count;
	row->weight_ns += a->weight_ns;
	row->period += a->period;
	row->n_truncated += a->truncated;
	for (uint32_t i = 0; i < a->n_reads; i++) {
		struct window_read *read = find_read(row, a->read[i].event);
		read->value += a->read[i].value;
		read->enabled_ns += a->read[i].enabled_ns;
		read->running_ns += a->read[i].running_ns;
	}
}

/* The node of the attribution's stack; of its leaf alone where the tree is full, and none at all
 * where not even that has room. */
static int get_stack(struct stack_tree *t, const struct attribution *a, uint32_t *ret_node)
{
	int r = stack_get(t, a->frame, a->n_frames, ret_node);
	if (r != STACK_TREE_FULL)
		return r;

	t->n_refused++;
	r = stack_get(t, a->frame, 1, ret_node);
	if (r == STACK_TREE_FULL) {
		*ret_node = 0;
		r = 0;
	}
	return r;
}

int window_add(struct window *w, struct stack_tree *t, const struct attribution *a)
{
	struct window_key key = {
		.task = a->task ? a->task->id : 0,
		.hart = a->hart,
		.event = (int16_t)a->event,
		.rung = (int16_t)a->rung,
	};
	int r = get_stack(t, a, &key.stack);
	if (r)
		return r;

	struct window_row *row;
	HASH_FIND(hh, w->rows, &key, sizeof(key), row);
	if (!row) {
		if (w->n_rows >= WINDOW_ROWS_MAX)
			return WINDOW_FULL;
		r = add_row(w, &key, &row);
		if (r)
			return r;
		row->who = a->task;
	}
	r = reserve_reads(row, a);
	if (r)
		return r;

	count(row, a);
	w->n_samples += a->count;
	return 0;
}

void window_clear(struct window *w)
{
	struct window_row *row, *next;

	HASH_ITER (hh, w->rows, row, next) {
		HASH_DEL(w->rows, row);
		row_free(row);
	}
	*w = (struct window){};
}
