/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Choose the rows to show, and put them in order. The rows with most time are chosen, and with a
 * loop also the loops around it, since a loop alone shows little. Then the loops of one nest are
 * grouped, each after the loop around it; nests are sorted by the time of their chosen rows.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/query/loops/roofline_private.h"
#include "proto/base/memory.h"

#define NO_ROW UINT32_MAX

/* The time by which rows are chosen: for loops their own, unless asked otherwise. */
static double time_ns(const struct roofline *r, const struct roof_row *row)
{
	bool self = r->q.by == ROOFLINE_LOOP && !r->q.inclusive;
	return self ? row->self_ns : row->total.time_ns;
}

static double work(const struct roofline *r, const struct roof_row *row)
{
	bool self = r->q.by == ROOFLINE_LOOP && !r->q.inclusive;
	return (self ? r->groups.self : r->groups.total)[row->group].value[LOOP_INSTRUCTIONS];
}

static int falling(double a, double b)
{
	return (a < b) - (a > b);
}

static int compare_time(const void *a, const void *b, void *userdata)
{
	const struct roof_row *x = a, *y = b;
	const struct roofline *r = userdata;
	int order = falling(time_ns(r, x), time_ns(r, y));
	if (order == 0)
		order = falling(work(r, x), work(r, y));
	return order ? order : (x->group > y->group) - (x->group < y->group);
}

/* --- choosing --------------------------------------------------------------------------------- */

struct choice {
	uint32_t *row; /* by group; NO_ROW: none */
	bool *chosen;  /* by row */
	uint32_t n, limit;
};

/* Choose a row and the loops around it, or none of them if that is too many; the first row is always
 * chosen. */
static void choose(const struct roofline *r, struct choice *c, uint32_t row)
{
	uint32_t n = 0;
	for (uint32_t i = r->rows.row[row].group + 1; i != 0; i = roofline_loop_around(r, i - 1))
		n += c->row[i - 1] != NO_ROW && !c->chosen[c->row[i - 1]];
	if (c->n + n > c->limit) {
		c->chosen[row] |= c->n == 0;
		c->n += c->n == 0;
		return;
	}
	for (uint32_t i = r->rows.row[row].group + 1; i != 0; i = roofline_loop_around(r, i - 1))
		if (c->row[i - 1] != NO_ROW)
			c->chosen[c->row[i - 1]] = true;
	c->n += n;
}

/* Keep the first rows, up to the limit, with the loops around them. */
static int cut(struct roofline *r)
{
	_cleanup_(freep) uint32_t *row = malloc(((size_t)r->groups.n + 1) * sizeof(*row));
	_cleanup_(freep) bool *chosen = calloc((size_t)r->rows.n + 1, sizeof(*chosen));
	struct choice c = {.row = row, .chosen = chosen, .limit = r->q.limit};
	if (!row || !chosen)
		return -ENOMEM;
	for (uint32_t i = 0; i < r->groups.n; i++)
		row[i] = NO_ROW;
	for (uint32_t i = 0; i < r->rows.n; i++)
		row[r->rows.row[i].group] = i;
	for (uint32_t i = 0; i < r->rows.n && c.n < c.limit; i++)
		choose(r, &c, i);
	uint32_t n = 0;
	for (uint32_t i = 0; i < r->rows.n; i++)
		if (chosen[i])
			r->rows.row[n++] = r->rows.row[i];
	r->rows.n = n;
	return 0;
}

/* --- nests ------------------------------------------------------------------------------------ */

/* The time of each nest, by group of its outermost loop. */
struct nests {
	double *ns, *work;
	const struct roofline *r;
};

static uint32_t outermost(const struct roofline *r, uint32_t group)
{
	for (uint32_t i = group + 1; i != 0; i = roofline_loop_around(r, i - 1))
		group = i - 1;
	return group;
}

static void sum(struct nests *n)
{
	const struct roofline *r = n->r;
	for (uint32_t i = 0; i < r->rows.n; i++) {
		const struct roof_row *row = &r->rows.row[i];
		uint32_t nest = outermost(r, row->group);
		double ns = fmax(time_ns(r, row), 0), amount = work(r, row);
		if (r->q.inclusive) { /* the outermost has all */
			n->ns[nest] = fmax(n->ns[nest], ns);
			n->work[nest] = fmax(n->work[nest], amount);
		} else {
			n->ns[nest] += ns;
			n->work[nest] += amount;
		}
	}
}

/* The last ordinal of a nest's path, as 12 of "1.3.12". */
static unsigned long ordinal(const struct roofline *r, uint32_t group)
{
	const char *path = text_of(&r->facts.texts, r->facts.sites.site[group].nest);
	const char *last = path ? strrchr(path, '.') : NULL;
	return last ? strtoul(last + 1, NULL, 10) : 0;
}

static int compare_siblings(const struct roofline *r, uint32_t a, uint32_t b)
{
	unsigned long i = ordinal(r, a), j = ordinal(r, b);
	uint32_t k = r->facts.sites.site[a].line, l = r->facts.sites.site[b].line;
	int order = (i > j) - (i < j);
	if (order == 0)
		order = (k > l) - (k < l);
	return order ? order : (a > b) - (a < b);
}

/* The number of loops around a group. A row's depth ends at UINT8_MAX. */
static uint32_t depth_of(const struct roofline *r, uint32_t group)
{
	uint32_t depth = 0;
	for (uint32_t i = roofline_loop_around(r, group); i != 0;
		i = roofline_loop_around(r, i - 1))
		depth++;
	return depth;
}

/* Order two loops of one nest: the outer one first. If neither is inside the other, order the loops
 * around them that have the same parent. */
static int compare_inside(
	const struct roofline *r, const struct roof_row *x, const struct roof_row *y)
{
	uint32_t a = x->group, b = y->group;
	uint32_t i = depth_of(r, a), j = depth_of(r, b);
	for (uint32_t depth = i; depth > j; depth--)
		a = roofline_loop_around(r, a) - 1;
	for (uint32_t depth = j; depth > i; depth--)
		b = roofline_loop_around(r, b) - 1;
	if (a == b)
		return (i > j) - (i < j);
	while (roofline_loop_around(r, a) != roofline_loop_around(r, b)) {
		a = roofline_loop_around(r, a) - 1;
		b = roofline_loop_around(r, b) - 1;
	}
	return compare_siblings(r, a, b);
}

static int compare_place(const void *a, const void *b, void *userdata)
{
	const struct roof_row *x = a, *y = b;
	const struct nests *n = userdata;
	uint32_t i = outermost(n->r, x->group), j = outermost(n->r, y->group);
	if (i == j)
		return compare_inside(n->r, x, y);
	int order = falling(n->ns[i], n->ns[j]);
	if (order == 0)
		order = falling(n->work[i], n->work[j]);
	return order ? order : (i > j) - (i < j);
}

static int arrange(struct roofline *r)
{
	size_t n = (size_t)r->groups.n + 1;
	_cleanup_(freep) double *ns = calloc(n, sizeof(*ns));
	_cleanup_(freep) double *amount = calloc(n, sizeof(*amount));
	struct nests nests = {ns, amount, r};
	if (!ns || !amount)
		return -ENOMEM;
	sum(&nests);
	qsort_r(r->rows.row, r->rows.n, sizeof(*r->rows.row), compare_place, &nests);
	return 0;
}

int roofline_order(struct roofline *r)
{
	int outcome = 0;
	qsort_r(r->rows.row, r->rows.n, sizeof(*r->rows.row), compare_time, r);
	if (r->q.limit > 0 && r->rows.n > r->q.limit)
		outcome = cut(r);
	return outcome == 0 && r->q.by == ROOFLINE_LOOP ? arrange(r) : outcome;
}
