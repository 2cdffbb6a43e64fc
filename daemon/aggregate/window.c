/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* A window is a table of counters. A thousand samples of one task at one place become one row, so
 * the stored size grows with the variety of what ran, not with the sampling rate. Rows are found by
 * one fixed key of sixteen bytes, in an open-addressing table whose slots hold part of the key's
 * hash, so a lookup touches two cache lines; the values of a group are a short list at the row that
 * is searched linearly, since a group has few members.
 *
 * The owner of a window sets its bounds; nothing here looks at the clock.
 */

#include "daemon/aggregate/window.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/attribute/sweep.h"
#include "proto/base/array.h"
#include "proto/base/hash.h"

#define SLOTS_FIRST 256u /* a power of two, like all sizes; doubled when three quarters are taken */
#define CHUNK_ROWS 64u   /* in one allocation */

struct window_slot {
	struct window_row *row; /* NULL: free */
	uint64_t hash;
};

struct window_chunk {
	struct window_chunk *next;
	uint32_t n_used;
	struct window_row row[CHUNK_ROWS];
};

_Static_assert(sizeof(struct window_key) == 16, "the key is hashed as two words: no padding in it");

static uint64_t hash_key(const struct window_key *key)
{
	uint64_t word[2];
	memcpy(word, key, sizeof(word));
	return hash_words(word[0], word[1]);
}

static bool key_equal(const struct window_key *a, const struct window_key *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

/* The slot of the key, or the free one where it belongs. */
static struct window_slot *find_slot(
	const struct window *w, uint64_t hash, const struct window_key *key)
{
	size_t mask = w->n_slots - 1, at = hash & mask;
	while (w->slot[at].row &&
		(w->slot[at].hash != hash || !key_equal(&w->slot[at].row->key, key)))
		at = (at + 1) & mask;
	return &w->slot[at];
}

static int reserve_slots(struct window *w)
{
	if (w->n_slots && w->n_rows < w->n_slots / 4 * 3)
		return 0;

	struct window grown = *w;
	grown.n_slots = w->n_slots ? w->n_slots * 2 : SLOTS_FIRST;
	grown.slot = calloc(grown.n_slots, sizeof(*grown.slot));
	if (!grown.slot)
		return -ENOMEM;
	for (size_t i = 0; i < w->n_slots; i++)
		if (w->slot[i].row)
			*find_slot(&grown, w->slot[i].hash, &w->slot[i].row->key) = w->slot[i];
	free(w->slot);
	*w = grown;
	return 0;
}

static int reserve_row(struct window *w)
{
	if (w->chunk && w->chunk->n_used < CHUNK_ROWS)
		return 0;
	struct window_chunk *chunk = calloc(1, sizeof(*chunk));
	if (!chunk)
		return -ENOMEM;
	chunk->next = w->chunk;
	w->chunk = chunk;
	return 0;
}

static int add_row(
	struct window *w, uint64_t hash, const struct window_key *key, struct window_row **ret_row)
{
	int r = reserve_slots(w);
	if (!r)
		r = reserve_row(w);
	if (!r && w->pool && !quota_take(w->pool, w->pool_uid, POOL_BYTES_MAX, WINDOW_ROW_BYTES))
		r = WINDOW_FULL;
	if (r)
		return r;

	struct window_row *row = &w->chunk->row[w->chunk->n_used++];
	row->key = *key;
	row->number = w->n_rows;
	*find_slot(w, hash, key) = (struct window_slot){row, hash};
	if (w->last)
		w->last->hh.next = row;
	else
		w->rows = row;
	w->last = row;
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

/* Make room in the row for every event that the attribution read before anything is counted, so
 * that a sample is counted completely or not at all. */
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

static void count(struct window_row *row, const struct attribution *a, bool truncated)
{
	row->count += a->count;
	row->weight_ns += a->weight_ns;
	row->period += a->period;
	row->n_truncated += truncated ? (uint32_t)a->count : 0;
	row->n_uncounted += (uint32_t)a->uncounted;
	for (uint32_t i = 0; i < a->n_reads; i++) {
		struct window_read *read = find_read(row, a->read[i].event);
		read->value += a->read[i].value;
		read->enabled_ns += a->read[i].enabled_ns;
		read->running_ns += a->read[i].running_ns;
	}
}

/* Make room for the moments of its samples. 0, WINDOW_FULL, -ENOMEM. */
static int reserve_moments(struct window *w, const struct attribution *a)
{
	if (!w->keeps_moments || a->count == 0)
		return 0;
	if (a->count > WINDOW_MOMENTS_MAX - w->n_moments)
		return WINDOW_FULL;
	return array_grow(&w->moment, &w->size_moments, w->n_moments + (uint32_t)a->count,
		sizeof(*w->moment));
}

static void keep_moments(
	struct window *w, const struct window_row *row, const struct attribution *a)
{
	const uint64_t first_ns = a->first_ns ? a->first_ns : a->time_ns;
	const uint64_t step_ns = a->count > 1 ? (a->time_ns - first_ns) / (a->count - 1) : 0;
	for (uint64_t i = 0; w->keeps_moments && i < a->count; i++)
		w->moment[w->n_moments++] = (struct window_moment){
			.time_ns = first_ns + i * step_ns, .row = row->number};
}

/* The node of the attribution's stack; of its leaf only if the tree is full, and 0 if not even the
 * leaf fits. */
static int get_stack(struct stack_tree *t, const struct attribution *a, uint32_t *ret_node)
{
	t->uid = task_account(a->task);
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
	uint64_t n_refused = t->n_refused;
	int r = reserve_moments(w, a);
	if (r == 0)
		r = get_stack(t, a, &key.stack);
	if (r)
		return r;

	uint64_t hash = hash_key(&key);
	struct window_row *row = w->n_slots ? find_slot(w, hash, &key)->row : NULL;
	if (!row) {
		if (w->n_rows >= WINDOW_ROWS_MAX)
			return WINDOW_FULL;
		r = add_row(w, hash, &key, &row);
		if (r)
			return r;
		row->who = a->task;
		row->is_offcpu = a->is_offcpu;
	}
	r = reserve_reads(row, a);
	if (r == 0)
		r = seconds_add(&w->seconds, a, w->start_ns);
	if (r)
		return r;

	count(row, a, a->truncated || t->n_refused > n_refused);
	keep_moments(w, row, a);
	w->n_samples += attribution_samples(a);
	return 0;
}

int window_add_time(struct window *w, const struct window_time *time)
{
	int r = array_grow(&w->time, &w->size_times, w->n_times + 1, sizeof(*w->time));
	if (r == 0)
		w->time[w->n_times++] = *time;
	return r;
}

int window_add_ended(struct window *w, struct task *process)
{
	if (w->n_ended == WINDOW_ENDED_MAX)
		return 0;
	int r = array_grow(&w->ended, &w->size_ended, w->n_ended + 1, sizeof(struct task *));
	if (r == 0)
		w->ended[w->n_ended++] = process;
	return r;
}

void window_clear(struct window *w)
{
	for (struct window_chunk *chunk = w->chunk, *next; chunk; chunk = next) {
		next = chunk->next;
		for (uint32_t i = 0; i < chunk->n_used; i++)
			free(chunk->row[i].read);
		free(chunk);
	}
	free(w->slot);
	free(w->time);
	free(w->ended);
	free(w->moment);
	loop_window_clear(&w->loops);
	seconds_clear(&w->seconds);
	if (w->pool)
		quota_give(w->pool, w->pool_uid, (uint64_t)w->n_rows * WINDOW_ROW_BYTES);
	*w = (struct window){
		.pool = w->pool,
		.pool_uid = w->pool_uid,
		.keeps_moments = w->keeps_moments,
		.seconds.are_kept = w->seconds.are_kept,
	};
}

void window_keep(const struct window *w, struct sweep *s)
{
	for (const struct window_row *row = w->rows; row; row = row->hh.next)
		sweep_keep_task(s, row->who);
	for (uint32_t i = 0; i < w->n_times; i++)
		sweep_keep_task(s, w->time[i].who);
	for (uint32_t i = 0; i < w->n_ended; i++)
		sweep_keep_task(s, w->ended[i]);
}
