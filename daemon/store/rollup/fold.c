/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Keeping an hour small
 *
 *      heavy ├─ as they are ─┼─ without callers ─┼─ without program ─┼─ without function ─┤ light
 *
 * Rows are sorted by weight, and as many of the lightest as it takes get a coarser key, under which
 * many of them meet. Where one step would take more than half of the room away from what is heavy,
 * it does not go that far, and what it has made coarser is folded further by the next. So what is
 * heavy keeps its callers, its program and its name, however long the tail; and whatever is merged
 * stays in the sums.
 */

#include <errno.h>
#include <stdlib.h>

#include "daemon/store/rollup/rollup_private.h"

enum fold { FOLD_CALLERS, FOLD_PROGRAMS, FOLD_FUNCTIONS, N_FOLDS };

static int fold_key(struct rollup *r, enum fold fold, const struct key *key, struct key *ret_key)
{
	uint32_t task = sum_task(key), stack = sum_stack(key);
	int outcome = 0;
	if (fold == FOLD_CALLERS)
		outcome = rollup_leaf(r, stack, &stack);
	else if (fold == FOLD_PROGRAMS)
		outcome = rollup_other_program(r, task, &task);
	else
		outcome = rollup_other_stack(r, stack, &stack);
	if (outcome == 0 && fold == FOLD_FUNCTIONS)
		outcome = rollup_other_program(r, 0, &task);
	*ret_key = *key;
	ret_key->part[0] = (uint64_t)task << 32 | stack;
	return outcome;
}

/* By falling weight; what weighs the same in the order in which it came, so that the same source
 * gives the same file. */
static int compare(const void *a, const void *b, void *userdata)
{
	const struct sum_rows *rows = userdata;
	uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
	const struct sum *x = &rows->sum[i], *y = &rows->sum[j];
	if (x->weight_ns != y->weight_ns)
		return x->weight_ns < y->weight_ns ? 1 : -1;
	if (x->count != y->count)
		return x->count < y->count ? 1 : -1;
	return (i > j) - (i < j);
}

/* One step of folding: rows in the order of their weight, and the keys that the light ones get. */
struct step {
	enum fold fold;
	uint32_t *order;
	struct key *coarse; /* by position in order */
	uint32_t n_kept;
};

/* How many of the heaviest stay as they are: as many as leave room for what the others come to, but
 * half of the room at least, unless there is no next step to make up for it. */
static int divide(struct rollup *r, struct step *s, const struct sum_rows *rows, uint32_t n_max)
{
	struct key_table met = {0};
	uint32_t n = rows->keys.n_keys, least = s->fold + 1 < N_FOLDS ? n_max / 2 : 0, index;
	int outcome = 0;
	while (n > least && n + met.n_keys > n_max && outcome == 0) {
		n--;
		outcome = fold_key(r, s->fold, &rows->keys.key[s->order[n]], &s->coarse[n]);
		if (outcome == 0)
			outcome = rollup_table_outcome(r, key_get(&met, &s->coarse[n], &index));
	}
	key_table_clear(&met);
	s->n_kept = n;
	return outcome;
}

/* Move the heavy rows to `result`, and make those that are left coarser. */
static int take_step(struct rollup *r, struct step *s, struct sum_rows *rows, uint32_t n_max,
	struct sum_rows *result)
{
	struct sum_rows light = {0};
	uint32_t n = rows->keys.n_keys;
	for (uint32_t i = 0; i < n; i++)
		s->order[i] = i;
	qsort_r(s->order, n, sizeof(*s->order), compare, rows);
	int outcome = divide(r, s, rows, n_max);
	for (uint32_t i = 0; i < n && outcome == 0; i++) {
		const struct key *key = &rows->keys.key[s->order[i]];
		const struct sum *sum = &rows->sum[s->order[i]];
		if (i < s->n_kept)
			outcome = sums_merge(r, result, key, sum, false);
		else
			outcome = sums_merge(r, &light, &s->coarse[i], sum,
				s->fold == FOLD_CALLERS &&
					sum_stack(key) != sum_stack(&s->coarse[i]));
	}
	sum_rows_clear(rows);
	*rows = light;
	return outcome;
}

static int fold_all(
	struct rollup *r, struct sum_rows *rows, uint32_t n_max, struct sum_rows *result)
{
	int outcome = 0;
	for (enum fold fold = 0; fold < N_FOLDS && outcome == 0; fold++) {
		uint32_t n = rows->keys.n_keys;
		if (n <= n_max)
			break;
		struct step step = {
			.fold = fold,
			.order = calloc(n, sizeof(*step.order)),
			.coarse = calloc(n, sizeof(*step.coarse)),
		};
		outcome = step.order && step.coarse ? take_step(r, &step, rows, n_max, result)
						    : -ENOMEM;
		free(step.order);
		free(step.coarse);
		n_max -= step.n_kept;
	}
	for (uint32_t i = 0; i < rows->keys.n_keys && outcome == 0; i++)
		outcome = sums_merge(r, result, &rows->keys.key[i], &rows->sum[i], false);
	return outcome;
}

/* A row of a user of whom so much detail is left. */
static int share_key(
	struct rollup *r, enum share_level level, const struct key *key, struct key *ret_key)
{
	uint32_t stack = sum_stack(key);
	int outcome = 0;
	if (level >= SHARE_FOLDED)
		outcome = rollup_other_stack(r, stack, &stack);
	else if (level >= SHARE_LEAF)
		outcome = rollup_leaf(r, stack, &stack);
	*ret_key = *key;
	ret_key->part[0] = (uint64_t)sum_task(key) << 32 | stack;
	return outcome;
}

static uint64_t row_bytes(const struct rollup *r, const struct sum *sum)
{
	uint64_t bytes = SHARE_SAMPLE_BYTES;
	for (uint32_t i = sum->reading; i != 0; i = r->sums.reading[i - 1].next)
		bytes += SHARE_READING_BYTES;
	return bytes;
}

/* Move a row to the result, with the detail that its user has room for, and charge it. */
static int share_row(struct rollup *r, const struct key *key, const struct sum *sum, uint32_t cause,
	struct sum_rows *result)
{
	uid_t uid = rollup_uid(r, sum_task(key));
	struct key as;
	uint32_t n = result->keys.n_keys;
	int outcome = share_key(r, share_level(r->shares, uid), key, &as);
	bool cut = sum_stack(&as) != sum_stack(key);
	if (outcome == 0)
		outcome = sums_merge(r, result, &as, sum, cut);
	if (outcome == 0 && cut && sum->count > 0)
		outcome = sums_add_loss(r, key->part[2], cause, sum->count);
	if (outcome == 0 && result->keys.n_keys > n)
		share_charge(r->shares, uid, row_bytes(r, sum));
	return outcome;
}

int sums_fold_shares(struct rollup *r)
{
	struct sum_rows result = {0}, rows = r->sums.rows;
	uint32_t n = rows.keys.n_keys, cause;
	if (!r->shares || n == 0)
		return 0;
	uint32_t *order = calloc(n, sizeof(*order));
	if (!order)
		return -ENOMEM;
	r->sums.rows = (struct sum_rows){0};
	shares_refill(r->shares, r->shares->filled_ns);
	for (uint32_t i = 0; i < n; i++)
		order[i] = i;
	qsort_r(order, n, sizeof(*order), compare, &rows);
	int outcome =
		rollup_table_outcome(r, text_get(&r->texts, loss_kinds[LOSS_SHARE].name, &cause));
	for (uint32_t i = 0; i < n && outcome == 0; i++)
		outcome =
			share_row(r, &rows.keys.key[order[i]], &rows.sum[order[i]], cause, &result);
	free(order);
	sum_rows_clear(&rows);
	r->sums.rows = result;
	return outcome;
}

int sums_fold(struct rollup *r, uint32_t n_max)
{
	if (r->sums.rows.keys.n_keys <= n_max)
		return 0;
	struct sum_rows result = {0}, rows = r->sums.rows;
	r->sums.rows = (struct sum_rows){0};
	int outcome = fold_all(r, &rows, n_max, &result);
	sum_rows_clear(&rows);
	r->sums.rows = result;
	return outcome;
}
