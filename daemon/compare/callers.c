/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A function that is on one side only may have another name, or be inlined now. Its callers, and
 * inlined code of its name in other functions, show both. Filters of the question do not apply here:
 * a function has the same callers in each process.
 */
#include "daemon/compare/gather_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Pairs of functions and callers of one side; a recording has some thousand. What comes beyond is
 * left out, and only makes names less sure. */
#define KIN_KEYS_MAX (1u << 20)

/* A text without what compilers append. 0, KEY_TABLE_FULL, -ENOMEM. */
static int name_id(struct gather *g, const char *name, uint32_t *ret_id)
{
	_cleanup_(freep) char *bare = name ? strndup(name, gather_name_length(name)) : NULL;
	if (name && !bare)
		return -ENOMEM;
	return text_get(&g->texts, bare, ret_id);
}

/* *ret_i: the key's index; KEY_NONE: there is no room for it. */
static int add(struct gather *g, const struct key *key, double samples, uint32_t *ret_i)
{
	struct kin *k = &g->kin;
	*ret_i = key_find(&k->keys, key);
	if (*ret_i == KEY_NONE && k->keys.n_keys >= KIN_KEYS_MAX)
		return 0;
	int r = key_get(&k->keys, key, ret_i);
	if (r == 0)
		r = array_grow(&k->fact, &k->size, *ret_i + 1, sizeof(*k->fact));
	if (r == 0)
		k->fact[*ret_i].samples += samples;
	return r;
}

static int add_caller(
	struct gather *g, uint32_t function, bool candidate, uint32_t caller, double samples)
{
	struct kin *k = &g->kin;
	uint32_t all, one;
	int r = add(g, &(struct key){{KIN_CALLERS, function, candidate}}, samples, &all);
	const uint32_t n = k->keys.n_keys;
	if (r == 0)
		r = add(g, &(struct key){{KIN_CALLER, function, candidate, caller}}, samples, &one);
	if (r == 0 && all != KEY_NONE && one == n) { /* it is new */
		k->fact[one].next = k->fact[all].next;
		k->fact[all].next = one + 1;
	}
	return r;
}

static int take(struct gather *g, uint64_t kind, bool candidate, sqlite3_stmt *s)
{
	const double samples = (double)sqlite3_column_int64(s, 1);
	uint32_t function, caller, i;
	int r = name_id(g, (const char *)sqlite3_column_text(s, 0), &function);
	if (r == 0 && kind == KIN_CALLER)
		r = name_id(g, (const char *)sqlite3_column_text(s, 2), &caller);
	if (r == 0 && function != 0)
		r = kind == KIN_CALLER
			    ? add_caller(g, function, candidate, caller, samples)
			    : add(g, &(struct key){{kind, function, candidate}}, samples, &i);
	return r < 0 ? r : 0;
}

static int read_all(struct gather *g, uint64_t kind, bool candidate, sqlite3 *db, const char *sql,
	struct query_error *ret_error)
{
	sqlite3_stmt *s;
	int r = 0, step = sqlite3_prepare_v2(db, sql, -1, &s, NULL);
	while ((step == SQLITE_OK || step == SQLITE_ROW) && r == 0)
		if ((step = sqlite3_step(s)) == SQLITE_ROW)
			r = take(g, kind, candidate, s);
	sqlite3_finalize(s);
	if (r != 0 || step == SQLITE_DONE)
		return r;
	snprintf(ret_error->text, sizeof(ret_error->text), "the file is damaged: %s",
		sqlite3_errmsg(db));
	ret_error->kind = MPERF__FAILURE_KIND__FAILURE_BROKEN;
	return QUERY_FAILED;
}

int kin_read(struct gather *g, bool candidate, sqlite3 *db, struct query_error *ret_error)
{
	/* samples by stack first: there are far fewer stacks than rows */
	static const char inlined[] =
		"WITH leaf AS (SELECT stack, sum(count) AS n FROM sample GROUP BY stack) "
		"SELECT f.name, sum(n) FROM leaf JOIN stack k ON k.id = leaf.stack "
		"JOIN place p ON p.frame = k.frame AND p.inlined = 1 "
		"JOIN function f ON f.id = p.function GROUP BY f.id";
	static const char callers[] =
		"WITH leaf AS (SELECT stack, sum(count) AS n FROM sample GROUP BY stack) "
		"SELECT f.name, sum(n), g.name FROM leaf JOIN stack k ON k.id = leaf.stack "
		"JOIN stack c ON c.id = k.parent "
		"JOIN place p ON p.frame = k.frame AND p.inlined = 0 "
		"JOIN function f ON f.id = p.function "
		"JOIN place q ON q.frame = c.frame AND q.inlined = 0 "
		"JOIN function g ON g.id = q.function GROUP BY f.id, g.id";
	static const char there[] = "SELECT DISTINCT f.name, 1 FROM place p "
				    "JOIN function f ON f.id = p.function WHERE p.inlined = 0";
	int r = read_all(g, KIN_INLINED, candidate, db, inlined, ret_error);
	if (r == 0)
		r = read_all(g, KIN_CALLER, candidate, db, callers, ret_error);
	return r == 0 ? read_all(g, KIN_THERE, candidate, db, there, ret_error) : r;
}

void kin_clear(struct kin *k)
{
	key_table_clear(&k->keys);
	free(k->fact);
}

static uint64_t function_of(const struct gather *g, size_t row)
{
	return g->keys.key[g->key[row]].part[0];
}

double gather_inlined(const struct gather *g, size_t row, bool candidate)
{
	const struct key key = {{KIN_INLINED, function_of(g, row), candidate}};
	const uint32_t i = key_find(&g->kin.keys, &key);
	return i == KEY_NONE ? 0 : g->kin.fact[i].samples;
}

bool gather_is_there(const struct gather *g, size_t row, bool candidate)
{
	const struct key key = {{KIN_THERE, function_of(g, row), candidate}};
	return key_find(&g->kin.keys, &key) != KEY_NONE;
}

static const struct kin_fact *callers_of(const struct gather *g, uint64_t function, bool candidate)
{
	static const struct kin_fact none = {0};
	const struct key key = {{KIN_CALLERS, function, candidate}};
	const uint32_t i = key_find(&g->kin.keys, &key);
	return i == KEY_NONE ? &none : &g->kin.fact[i];
}

double gather_callers_alike(const struct gather *g, size_t baseline, size_t candidate)
{
	const uint64_t was = function_of(g, baseline), is = function_of(g, candidate);
	const struct kin_fact *before = callers_of(g, was, false), *after = callers_of(g, is, true);
	double alike = 0;
	if (before->samples <= 0 || after->samples <= 0)
		return 0;
	for (uint32_t i = before->next; i != 0; i = g->kin.fact[i - 1].next) {
		const uint64_t caller_was = g->kin.keys.key[i - 1].part[3];
		/* a function that calls itself does so by its new name */
		const uint64_t caller = caller_was == was ? is : caller_was;
		const uint32_t k =
			key_find(&g->kin.keys, &(struct key){{KIN_CALLER, is, true, caller}});
		const double a = g->kin.fact[i - 1].samples / before->samples;
		const double b = k == KEY_NONE ? 0 : g->kin.fact[k].samples / after->samples;
		alike += a < b ? a : b;
	}
	return alike;
}
