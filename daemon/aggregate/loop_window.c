/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A window of loop counts. There are far fewer rows than of samples, so chained hashing is enough.
 * Sums saturate at the largest number that the store has: larger ones are invalid.
 */
#include "daemon/aggregate/loop_window.h"

#include <errno.h>
#include <stdlib.h>

#include "proto/base/hash.h"

#define SLOTS_FIRST 256u

static uint32_t slot_of(const struct loop_window *w, const struct task *who,
	const struct loop_site *site, const struct loop_site *region)
{
	uint64_t of_site = hash_words((uintptr_t)site, (uintptr_t)region);
	return (uint32_t)hash_words((uintptr_t)who, of_site) & (w->n_slots - 1);
}

static int reserve(struct loop_window *w)
{
	if (w->n_rows < w->n_slots)
		return 0;
	uint32_t n = w->n_slots ? 2 * w->n_slots : SLOTS_FIRST;
	struct loop_row **slot = calloc(n, sizeof(*slot));
	if (!slot)
		return -ENOMEM;
	free(w->slot);
	w->slot = slot;
	w->n_slots = n;
	for (struct loop_row *row = w->rows; row; row = row->next) {
		struct loop_row **at = &slot[slot_of(w, row->who, row->site, row->region)];
		row->chain = *at;
		*at = row;
	}
	return 0;
}

static struct loop_row *find(
	const struct loop_window *w, const struct task *who, const struct loop_counts *c)
{
	if (w->n_slots == 0)
		return NULL;
	struct loop_row *row = w->slot[slot_of(w, who, c->site, c->region)];
	while (row && (row->who != who || row->site != c->site || row->region != c->region))
		row = row->chain;
	return row;
}

/* The user of a task's rows. Rows of unknown tasks, such as of a program that has ended since,
 * belong to nobody, and have a share of their own. */
static int user_get(struct loop_window *w, const struct task *who, struct loop_user **ret_user)
{
	uid_t uid = task_account(who);
	struct loop_user *user = w->users;
	while (user && user->uid != uid)
		user = user->next;
	if (!user) {
		user = calloc(1, sizeof(*user));
		if (!user)
			return -ENOMEM;
		user->uid = uid;
		user->next = w->users;
		w->users = user;
	}
	*ret_user = user;
	return 0;
}

static int row_new(struct loop_window *w, struct task *who, const struct loop_counts *c,
	struct loop_row **ret_row)
{
	struct loop_user *user;
	if (w->n_rows >= LOOP_WINDOW_ROWS_MAX)
		return LOOP_WINDOW_FULL;
	int r = user_get(w, who, &user);
	if (r == 0 && user->n_rows >= LOOP_WINDOW_ROWS_PER_USER_MAX)
		return LOOP_WINDOW_USER_FULL;
	if (r == 0)
		r = reserve(w);
	struct loop_row *row = r == 0 ? calloc(1, sizeof(*row)) : NULL;
	if (!row)
		return -ENOMEM;
	row->who = who;
	row->site = loop_site_ref(c->site);
	row->region = loop_site_ref(c->region);
	struct loop_row **at = &w->slot[slot_of(w, who, c->site, c->region)];
	row->chain = *at;
	*at = row;
	if (w->last)
		w->last->next = row;
	else
		w->rows = row;
	w->last = row;
	w->n_rows++;
	user->n_rows++;
	*ret_row = row;
	return 0;
}

int loop_window_add(struct loop_window *w, struct loop_sites *sites, struct task *who,
	const struct loop_counts *c)
{
	struct loop_row *row = find(w, who, c);
	w->sites = sites;
	w->granted = c->granted ? c->granted : w->granted;
	if (!row) {
		int r = row_new(w, who, c, &row);
		if (r != 0)
			return r;
	}
	row->was_granted |= c->was_granted;
	for (unsigned i = 0; i < N_LOOP_VALUES; i++) {
		uint64_t sum;
		if (__builtin_add_overflow(row->value[i], c->value[i], &sum) || sum > INT64_MAX)
			sum = INT64_MAX;
		row->value[i] = sum;
	}
	return 0;
}

void loop_window_keep(const struct loop_window *w, struct sweep *s)
{
	for (const struct loop_row *row = w->rows; row; row = row->next) {
		sweep_keep_task(s, row->who);
		for (const struct loop_site *site = row->site; site; site = site->parent)
			sweep_keep_frame(s, site->frame);
	}
}

void loop_window_clear(struct loop_window *w)
{
	for (struct loop_row *row = w->rows, *next; row; row = next) {
		next = row->next;
		loop_site_unref(w->sites, row->site);
		loop_site_unref(w->sites, row->region);
		free(row);
	}
	for (struct loop_user *user = w->users, *next; user; user = next) {
		next = user->next;
		free(user);
	}
	free(w->slot);
	*w = (struct loop_window){0};
}
