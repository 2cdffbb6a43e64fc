/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * We search for one kind after the other, each among the functions that are left: the same name is better
 * evidence than the same callers. Two functions become a pair only if each is
 * clearly the best match of the other; by name only if it is the only match.
 */
#include "daemon/compare/renames.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct search {
	const struct gather *g;
	struct function_rename *renames;
	size_t gone[RENAME_ROWS_MAX], new[RENAME_ROWS_MAX];
	size_t n_gone, n_new;
	double total[2]; /* samples */
};

static bool is_free(const struct search *s, size_t row)
{
	return s->renames[row].kind == RENAME_NONE;
}

static void pair_up(struct search *s, enum rename_kind kind, size_t gone, size_t new)
{
	s->renames[gone] = (struct function_rename){kind, new};
	s->renames[new] = (struct function_rename){kind, gone};
}

static const char *function_of(const struct gather *g, size_t row)
{
	const char *names[GATHER_PARTS];
	gather_names(g, row, names);
	return names[0] ? names[0] : "";
}

/* --- moved ------------------------------------------------------------------------------------ */

/* Do both rows have the same name? For loops all names must agree but the second, their place in
 * the function: another compiler may number them differently. */
static bool has_name_of(const struct gather *g, size_t row, size_t other)
{
	const char *names[GATHER_PARTS], *others[GATHER_PARTS];
	if (!gather_is_by_loop(g))
		return strcmp(function_of(g, row), function_of(g, other)) == 0;
	gather_names(g, row, names);
	gather_names(g, other, others);
	for (size_t i = 0; i < GATHER_PARTS; i++)
		if (!names[i] || !others[i] || (i != 1 && strcmp(names[i], others[i]) != 0))
			return false;
	return true;
}

/* The only row of the list with the name of this one; SIZE_MAX: none, or several. */
static size_t only_one(const struct gather *g, const size_t *list, size_t n, size_t row)
{
	size_t found = SIZE_MAX, times = 0;
	for (size_t i = 0; i < n; i++)
		if (has_name_of(g, list[i], row)) {
			found = list[i];
			times++;
		}
	return times == 1 ? found : SIZE_MAX;
}

static void find_moved(struct search *s)
{
	for (size_t i = 0; i < s->n_gone; i++) {
		const char *name = function_of(s->g, s->gone[i]);
		const size_t new = only_one(s->g, s->new, s->n_new, s->gone[i]);
		if (*name && *name != '[' && new != SIZE_MAX &&
			!gather_is_of_build(s->g, s->gone[i]) &&
			only_one(s->g, s->gone, s->n_gone, s->gone[i]) != SIZE_MAX)
			pair_up(s, RENAME_MOVED, s->gone[i], new);
	}
}

/* --- renamed ---------------------------------------------------------------------------------- */

static double share_of(const struct search *s, size_t row, bool candidate)
{
	return gather_sums(s->g, row, candidate).samples / s->total[candidate];
}

/* Strength of the evidence that a function got another name; 0: none. */
static double alike(const struct search *s, size_t gone, size_t new)
{
	const double a = share_of(s, gone, false), b = share_of(s, new, true);
	const double ratio = a > b ? a / b : b / a;
	if (!is_free(s, gone) || !is_free(s, new) || ratio > RENAME_SHARE_RATIO)
		return 0;
	if (gather_is_there(s->g, gone, true) || gather_is_there(s->g, new, false))
		return 0; /* it is on the other side too, if only as a caller */
	const double callers = gather_callers_alike(s->g, gone, new);
	return callers >= RENAME_CALLERS_ALIKE ? callers / ratio : 0;
}

/* The best match of a row among the rows of the other side; SIZE_MAX: none is clearly the best. */
static size_t best(const struct search *s, size_t row, bool candidate)
{
	const size_t *list = candidate ? s->gone : s->new;
	const size_t n = candidate ? s->n_gone : s->n_new;
	size_t found = SIZE_MAX;
	double most = 0, second = 0;
	for (size_t i = 0; i < n; i++) {
		const double a = candidate ? alike(s, list[i], row) : alike(s, row, list[i]);
		if (a > most) {
			second = most;
			most = a;
			found = list[i];
		} else if (a > second) {
			second = a;
		}
	}
	return most >= RENAME_SURER * second ? found : SIZE_MAX;
}

static void find_renamed(struct search *s)
{
	for (size_t i = 0; i < s->n_gone; i++) {
		const size_t gone = s->gone[i], new = best(s, gone, false);
		if (new != SIZE_MAX && best(s, new, true) == gone)
			pair_up(s, RENAME_RENAMED, gone, new);
	}
}

/* --- inlined ---------------------------------------------------------------------------------- */

static void find_inlined(struct search *s, const size_t *list, size_t n, bool other)
{
	for (size_t i = 0; i < n; i++)
		if (is_free(s, list[i]) && gather_inlined(s->g, list[i], other) > 0)
			s->renames[list[i]] = (struct function_rename){.kind = RENAME_INLINED};
}

/* --- the rows of one side alone --------------------------------------------------------------- */

struct weighed {
	size_t row;
	double was, is; /* samples */
};

static int by_samples(const void *a, const void *b)
{
	const struct weighed *x = a, *y = b;
	const double p = x->was + x->is, q = y->was + y->is;
	return p != q ? (p < q ? 1 : -1) : (x->row > y->row) - (x->row < y->row);
}

/* The hottest rows, those of one side alone into the lists. 0 or -ENOMEM. */
static int list_rows(struct search *s, size_t n_rows)
{
	_cleanup_(freep) struct weighed *of = calloc(n_rows + 1, sizeof(*of));
	if (!of)
		return -ENOMEM;
	for (size_t i = 0; i < n_rows; i++)
		of[i] = (struct weighed){
			i, gather_sums(s->g, i, false).samples, gather_sums(s->g, i, true).samples};
	qsort(of, n_rows, sizeof(*of), by_samples);
	for (size_t i = 0; i < n_rows; i++) {
		if (of[i].was > 0 && of[i].is <= 0 && s->n_gone < RENAME_ROWS_MAX)
			s->gone[s->n_gone++] = of[i].row;
		else if (of[i].was <= 0 && of[i].is > 0 && s->n_new < RENAME_ROWS_MAX)
			s->new[s->n_new++] = of[i].row;
	}
	return 0;
}

int renames_find(const struct gather *g, size_t n_rows, struct function_rename **ret_renames)
{
	const struct answer_column *columns;
	const bool by_loop = gather_is_by_loop(g);
	struct function_rename *renames = calloc(n_rows + 1, sizeof(*renames));
	_cleanup_(freep) struct search *s = calloc(1, sizeof(*s));
	int r = renames && s ? 0 : -ENOMEM;

	if (r == 0 && (by_loop || gather_columns(g, &columns) == 2)) { /* function and module */
		s->g = g;
		s->renames = renames;
		s->total[0] = gather_total(g, false).samples;
		s->total[1] = gather_total(g, true).samples;
		r = list_rows(s, n_rows);
	}
	if (r == 0 && s->g)
		find_moved(s);
	if (r == 0 && s->g && !by_loop) {
		find_inlined(s, s->gone, s->n_gone, true);
		find_inlined(s, s->new, s->n_new, false);
		find_renamed(s);
	}
	if (r < 0) {
		free(renames);
		return r;
	}
	*ret_renames = renames;
	return 0;
}
