/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A function that is on one side only may have been renamed, which its callers show. Or it may now be inlined, which
 * inlined code of its name shows. Filters of the question do not apply here: a function has the same callers in each
 * process.
 */
#include "daemon/compare/gather_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Pairs of functions and callers of one side; a recording has some thousand. Further pairs are left
 * out, which only makes renames less certain. */
#define CALLERS_KEYS_MAX (1u << 20)

/* First parts of keys. */
enum {
	FACT_INLINED = 1, /* function, side: samples in its code that was inlined into others */
	FACT_CALLERS,     /* function, side: its own samples with a known caller */
	FACT_CALLER,      /* function, side, caller: those of one caller */
	FACT_EXISTS,      /* function, side: the function is in some stack, not inlined */
};

/* *ret_i: the key's index; KEY_NONE: there is no room for it. */
static int add(struct callers *c, const struct key *key, double samples, uint32_t *ret_i)
{
	*ret_i = key_find(&c->keys, key);
	if (*ret_i == KEY_NONE && c->keys.n_keys >= CALLERS_KEYS_MAX)
		return 0;
	int r = key_get(&c->keys, key, ret_i);
	if (r == 0)
		r = array_grow(&c->fact, &c->size, *ret_i + 1, sizeof(*c->fact));
	if (r == 0)
		c->fact[*ret_i].samples += samples;
	return r;
}

static int add_caller(
	struct callers *c, uint32_t function, bool candidate, uint32_t caller, double samples)
{
	uint32_t all, one;
	int r = add(c, &(struct key){{FACT_CALLERS, function, candidate}}, samples, &all);
	const uint32_t n = c->keys.n_keys;
	if (r == 0)
		r = add(c, &(struct key){{FACT_CALLER, function, candidate, caller}}, samples,
			&one);
	if (r == 0 && all != KEY_NONE && one == n) { /* it is new */
		c->fact[one].next = c->fact[all].next;
		c->fact[all].next = one + 1;
	}
	return r;
}

/* The function whose name is in a column, the build of its file in the next (NULL: it has a symbol). */
static int function_text(struct text_table *texts, bool candidate, sqlite3_stmt *s, int column,
	uint32_t *ret_function)
{
	return gather_function_text(texts, (const char *)sqlite3_column_text(s, column),
		(const char *)sqlite3_column_text(s, column + 1), candidate, ret_function);
}

static int take(
	struct callers *c, struct text_table *texts, uint64_t kind, bool candidate, sqlite3_stmt *s)
{
	const double samples = (double)sqlite3_column_int64(s, 0);
	uint32_t function, caller, i;
	int r = function_text(texts, candidate, s, 1, &function);
	if (r == 0 && kind == FACT_CALLER)
		r = function_text(texts, candidate, s, 3, &caller);
	if (r == 0 && function != 0)
		r = kind == FACT_CALLER
			    ? add_caller(c, function, candidate, caller, samples)
			    : add(c, &(struct key){{kind, function, candidate}}, samples, &i);
	return r < 0 ? r : 0;
}

static int read_all(struct callers *c, struct text_table *texts, uint64_t kind, bool candidate,
	sqlite3 *db, const char *sql, struct query_error *ret_error)
{
	sqlite3_stmt *s;
	int r = 0, step = sqlite3_prepare_v2(db, sql, -1, &s, NULL);
	while ((step == SQLITE_OK || step == SQLITE_ROW) && r == 0)
		if ((step = sqlite3_step(s)) == SQLITE_ROW)
			r = take(c, texts, kind, candidate, s);
	sqlite3_finalize(s);
	if (r != 0 || step == SQLITE_DONE)
		return r;
	snprintf(ret_error->text, sizeof(ret_error->text), "the file is damaged: %s",
		sqlite3_errmsg(db));
	ret_error->kind = MPERF__FAILURE_KIND__FAILURE_BROKEN;
	return QUERY_FAILED;
}

/* The builds of code without a symbol (loaded_build). */
#define BUILDS                                                                                     \
	"builds AS MATERIALIZED (SELECT r.id AS frame, coalesce(lower(hex(i.build_id)), '') AS "   \
	"build FROM frame r JOIN file i ON i.id = r.file AND i.kind = 1 WHERE r.state <> "         \
	"2) "

int callers_read(struct callers *c, struct text_table *texts, bool candidate, sqlite3 *db,
	struct query_error *ret_error)
{
	/* sum up samples by stack first: there are far fewer stacks than rows */
	static const char inlined[] =
		"WITH leaf AS (SELECT stack, sum(count) AS n FROM sample GROUP BY stack) "
		"SELECT sum(n), f.name, NULL FROM leaf JOIN stack k ON k.id = leaf.stack "
		"JOIN place p ON p.frame = k.frame AND p.inlined = 1 "
		"JOIN function f ON f.id = p.function GROUP BY f.id";
	static const char callers[] =
		"WITH leaf AS (SELECT stack, sum(count) AS n FROM sample GROUP BY stack), " BUILDS
		"SELECT sum(n), f.name, b.build, g.name, d.build FROM leaf "
		"JOIN stack k ON k.id = leaf.stack "
		"JOIN stack c ON c.id = k.parent "
		"JOIN place p ON p.frame = k.frame AND p.inlined = 0 "
		"JOIN function f ON f.id = p.function "
		"LEFT JOIN builds b ON b.frame = k.frame "
		"JOIN place q ON q.frame = c.frame AND q.inlined = 0 "
		"JOIN function g ON g.id = q.function "
		"LEFT JOIN builds d ON d.frame = c.frame GROUP BY f.id, b.build, g.id, d.build";
	static const char there[] = "WITH " BUILDS "SELECT DISTINCT 1, f.name, b.build "
				    "FROM place p JOIN function f ON f.id = p.function "
				    "LEFT JOIN builds b ON b.frame = p.frame WHERE p.inlined = 0";
	int r = read_all(c, texts, FACT_INLINED, candidate, db, inlined, ret_error);
	if (r == 0)
		r = read_all(c, texts, FACT_CALLER, candidate, db, callers, ret_error);
	return r == 0 ? read_all(c, texts, FACT_EXISTS, candidate, db, there, ret_error) : r;
}

void callers_clear(struct callers *c)
{
	key_table_clear(&c->keys);
	free(c->fact);
}

static uint64_t function_of(const struct gather *g, size_t row)
{
	return (uint32_t)g->keys.key[g->table.key[row]].part[0];
}

double gather_inlined(const struct gather *g, size_t row, bool candidate)
{
	const struct key key = {{FACT_INLINED, function_of(g, row), candidate}};
	const uint32_t i = key_find(&g->callers.keys, &key);
	return i == KEY_NONE ? 0 : g->callers.fact[i].samples;
}

bool gather_is_there(const struct gather *g, size_t row, bool candidate)
{
	const struct key key = {{FACT_EXISTS, function_of(g, row), candidate}};
	return key_find(&g->callers.keys, &key) != KEY_NONE;
}

static const struct caller_fact *callers_of(
	const struct gather *g, uint64_t function, bool candidate)
{
	static const struct caller_fact none = {0};
	const struct key key = {{FACT_CALLERS, function, candidate}};
	const uint32_t i = key_find(&g->callers.keys, &key);
	return i == KEY_NONE ? &none : &g->callers.fact[i];
}

double gather_callers_alike(const struct gather *g, size_t baseline, size_t candidate)
{
	const uint64_t was = function_of(g, baseline), is = function_of(g, candidate);
	const struct caller_fact *before = callers_of(g, was, false),
				 *after = callers_of(g, is, true);
	double alike = 0;
	if (before->samples <= 0 || after->samples <= 0)
		return 0;
	for (uint32_t i = before->next; i != 0; i = g->callers.fact[i - 1].next) {
		const uint64_t caller_was = g->callers.keys.key[i - 1].part[3];
		/* a function that calls itself does so by its new name */
		const uint64_t caller = caller_was == was ? is : caller_was;
		const uint32_t k =
			key_find(&g->callers.keys, &(struct key){{FACT_CALLER, is, true, caller}});
		const double a = g->callers.fact[i - 1].samples / before->samples;
		const double b = k == KEY_NONE ? 0 : g->callers.fact[k].samples / after->samples;
		alike += a < b ? a : b;
	}
	return alike;
}
