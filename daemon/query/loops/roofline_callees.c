/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Name the uncounted code that a loop or function calls. Copies are left out: the bytes that they
 * move are counted, and they have rows as if they were loops.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/query/loops/roofline_private.h"
#include "daemon/query/scan.h"

#define CALLEES_NAMED 3   /* in one text */
#define CALLEES_MAX 64    /* callees distinguished in one row; loops call fewer */
#define CALLEE_CHARS "60" /* characters of a name: C++ has longer ones */

struct callee {
	uint32_t name; /* text; 0: all further ones */
	double calls, ns;
};

struct callees {
	struct callee one[CALLEES_MAX];
	unsigned n;
	double other_calls; /* calls of callees without room */
};

bool roofline_is_callee(const struct roofline *r, uint32_t group)
{
	return r->q.by != ROOFLINE_THREAD && r->facts.sites.site[group].kind == LOOP_SITE_CALLEE;
}

bool roofline_is_copy(const struct roofline *r, uint32_t group)
{
	const double *v = r->groups.self[group].value;
	return roofline_is_callee(r, group) && v[LOOP_BYTES_LOADED] + v[LOOP_BYTES_STORED] > 0;
}

bool roofline_is_loop(const struct roofline *r, uint32_t group)
{
	const struct loop_facts *f = &r->facts;
	if (!roofline_is_copy(r, group))
		return r->q.by != ROOFLINE_THREAD && f->sites.site[group].kind == LOOP_SITE_LOOP;
	uint32_t caller = loop_facts_owner(f, f->sites.site[group].parent);
	return caller != 0 && f->sites.site[caller - 1].kind == LOOP_SITE_LOOP;
}

int roofline_find_inside(struct roofline *r)
{
	const struct loop_facts *f = &r->facts;
	if (r->q.by != ROOFLINE_LOOP && r->q.by != ROOFLINE_FUNCTION)
		return 0;
	r->nests.first_inside = calloc((size_t)r->groups.n + 1, sizeof(*r->nests.first_inside));
	r->nests.next_inside = calloc((size_t)r->groups.n + 1, sizeof(*r->nests.next_inside));
	if (!r->nests.first_inside || !r->nests.next_inside)
		return -ENOMEM;
	for (uint32_t i = 0; i < r->groups.n; i++) {
		uint32_t around = loop_facts_owner(f, f->sites.site[i].parent);
		if (f->sites.site[i].kind != LOOP_SITE_LOOP || around == 0 || around > i)
			continue;
		r->nests.next_inside[i] = r->nests.first_inside[around - 1];
		r->nests.first_inside[around - 1] = i + 1;
	}
	return 0;
}

static bool is_unseen(const struct roofline *r, uint32_t group)
{
	return roofline_is_callee(r, group) && !roofline_is_copy(r, group) &&
	       r->groups.self[group].value[LOOP_ENTRIES] > 0;
}

bool roofline_has_callees(const struct roofline *r)
{
	for (uint32_t i = 0; r->nests.first_inside && i < r->groups.n; i++)
		if (is_unseen(r, i))
			return true;
	return false;
}

static void add(struct callees *c, const struct roofline *r, uint32_t group)
{
	const struct roof_sums *s = &r->groups.self[group];
	uint32_t name = r->facts.sites.site[group].readable;
	unsigned i = 0;
	while (i < c->n && c->one[i].name != name)
		i++;
	if (i == CALLEES_MAX) {
		c->other_calls += s->value[LOOP_ENTRIES];
		return;
	}
	if (i == c->n)
		c->one[c->n++] = (struct callee){.name = name};
	c->one[i].calls += s->value[LOOP_ENTRIES];
	c->one[i].ns += s->sampled_ns;
}

/* Recurses as deep as loops are nested: LOOP_DEPTH_MAX. */
static void collect(struct callees *c, const struct roofline *r, uint32_t group)
{
	const struct fact_site *site = r->facts.sites.site;
	for (uint32_t i = site[group].first_callee; i != 0; i = site[i - 1].next_callee)
		if (i <= r->groups.n && is_unseen(r, i - 1))
			add(c, r, i - 1);
	for (uint32_t i = r->nests.first_inside[group]; i != 0; i = r->nests.next_inside[i - 1])
		collect(c, r, i - 1);
}

/* Most time first, then most calls. */
static int compare(const void *a, const void *b)
{
	const struct callee *x = a, *y = b;
	if (x->ns != y->ns)
		return x->ns < y->ns ? 1 : -1;
	if (x->calls != y->calls)
		return x->calls < y->calls ? 1 : -1;
	return (x->name > y->name) - (x->name < y->name);
}

static size_t put(char *text, size_t n, const struct roofline *r, const struct callee *c)
{
	const char *name = text_of(&r->facts.texts, c->name);
	int length = snprintf(text, n, "%lld calls of %." CALLEE_CHARS "s",
		(long long)integer_of(c->calls), name ? name : "");
	if (c->ns > 0 && length > 0 && (size_t)length < n)
		length += snprintf(text + length, n - (size_t)length, " (%.3g ms)", c->ns / 1e6);
	return length > 0 ? (size_t)length : 0;
}

size_t roofline_callees(const struct roofline *r, uint32_t group, char *ret_text, size_t n)
{
	struct callees c = {.n = 0};
	size_t at = 0;
	if (!r->nests.first_inside)
		return 0;
	collect(&c, r, group);
	qsort(c.one, c.n, sizeof(*c.one), compare);
	for (unsigned i = 0; i < c.n && i < CALLEES_NAMED && at < n; i++) {
		if (i > 0)
			at += (size_t)snprintf(ret_text + at, n - at, ", ");
		at += at < n ? put(ret_text + at, n - at, r, &c.one[i]) : 0;
	}
	for (unsigned i = CALLEES_NAMED; i < c.n; i++)
		c.other_calls += c.one[i].calls;
	if (c.other_calls > 0 && at < n)
		at += (size_t)snprintf(ret_text + at, n - at, ", %lld of others",
			(long long)integer_of(c.other_calls));
	return at < n ? at : n - 1;
}

void roof_nests_clear(struct roof_nests *n)
{
	free(n->first_inside);
	free(n->next_inside);
}
