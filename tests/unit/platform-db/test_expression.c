/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "platform-db/expression.h"
#include "platform-db/pool.h"
#include "tests/unit/test.h"

#define N(table) (sizeof(table) / sizeof((table)[0]))

static struct pool *pool;

static void setup(void)
{
	pool = pool_new();
	ck_assert_ptr_nonnull(pool);
}

static void teardown(void)
{
	pool = pool_free(pool);
}

EACH_TEST(.begin = setup, .end = teardown);

/* A machine of two harts without SMT, with counts of A, B and ZERO. */
static int machine_value(
	void *userdata, enum expression_kind kind, const char *name, double *ret_value)
{
	static const struct {
		enum expression_kind kind;
		const char *name;
		double value;
	} known[] = {
		{EXPRESSION_NAME, "A", 1},
		{EXPRESSION_NAME, "B", 2},
		{EXPRESSION_NAME, "ZERO", 0},
		{EXPRESSION_NAME, "4K_LOADS", 4096},
		{EXPRESSION_NAME, "dash-event,umask=0x1", 7},
		{EXPRESSION_NAME, "pmu@event@", 8},
		{EXPRESSION_CONSTANT, "slots", 8},
		{EXPRESSION_CONSTANT, "smt_on", 0},
		{EXPRESSION_SOURCE_COUNT, "A", 1},
		{EXPRESSION_HAS_EVENT, "A", 1},
		{EXPRESSION_HAS_EVENT, "NONE", 0},
		{EXPRESSION_CPUID, "0x410fd493", 1},
	};
	const bool *constants_only = userdata;
	for (size_t i = 0; i < N(known); i++)
		if (known[i].kind == kind && strcmp(known[i].name, name) == 0 &&
			!(constants_only && *constants_only && kind == EXPRESSION_NAME)) {
			*ret_value = known[i].value;
			return 0;
		}
	return EXPRESSION_MISSING;
}

static const struct expression_source machine = {machine_value, NULL};

static const struct expression *parse(const char *text)
{
	const struct expression *e;
	struct expression_error error = {0};
	ck_assert_msg(expression_parse(pool, text, &e, &error) == 0, "'%s': %d: %s", text,
		error.column, error.text);
	return e;
}

static double value(const char *text)
{
	const struct expression *at;
	double number;
	ck_assert_msg(expression_value(parse(text), &machine, &number, &at) == 0, "%s", text);
	return number;
}

/* Values that perf's own test has, and more. Source: tools/perf/tests/expr.c of Linux 6.1. */
TEST(expressions_have_perfs_values)
{
	static const struct {
		const char *text;
		double value;
	} rows[] = {
		{"1+1", 2},
		{"A+B", 3},
		{"(B/2)%2", 1},
		{"1 - -4", 5},
		{"1 - - - 4", -3},
		{"(A-1)*2 + (B/2)%2 - -4", 5},
		{"1-1 | 1", 1},
		{"1-1 & 1", 0},
		{"6 ^ 3 & 2 | 8", 12},
		{"min(1,2) + 1", 2},
		{"max(1,2) + 1", 3},
		{"1+1 if 3*4 else 0", 2},
		{"100 if 1 else 200 if 1 else 300", 100},
		{"100 if 0 else 200 if 1 else 300", 200},
		{"100 if 0 else 200 if 0 else 300", 300},
		{".1 + 2.", 2.1},
		{"d_ratio(1, 2)", 0.5},
		{"d_ratio(2.5, 0)", 0},
		{"1.1 < 2.2", 1},
		{"2.2 < 2.2", 0},
		{"1.1e2 > 1.1e-2", 1},
		{"1 < 2 + 3 * 4 - 1", 1},
		{"10 - 2 - 3", 5},
		{"12 / 2 / 3", 2},
		{"-A * -B", 2},
		{"7.9 % 4.9", 3},
		{"4K_LOADS", 4096},
		{"dash\\-event\\,umask\\=0x1 + pmu@event@", 15},
		{"#slots * A", 8},
		{"source_count(A)", 1},
		{"has_event(A) - has_event(NONE)", 1},
		{"strcmp_cpuid_str(0x410fd493)", 1},
		{"B if has_event(NONE) else A", 1},
		{"min(A if ZERO else B, 3)", 2},
	};
	for (size_t i = 0; i < N(rows); i++)
		ck_assert_msg(fabs(value(rows[i].text) - rows[i].value) < 1e-12, "%s = %g",
			rows[i].text, value(rows[i].text));
}

TEST(malformed_text_is_refused_with_its_column)
{
	static const struct {
		const char *text;
		int column;
		const char *says;
	} rows[] = {
		{"", 1, "a value is missing before the end"},
		{"A +", 4, "a value is missing before the end"},
		{"A B", 3, "an operator is missing before 'B'"},
		{"A + * B", 5, "a value is missing before '*'"},
		{"(A", 3, "')' is missing before the end"},
		{"A)", 2, "an operator is missing before ')'"},
		{"A if B", 7, "'else' is missing before the end"},
		{"if A", 1, "a value is missing before 'if'"},
		{"min(A)", 6, "',' is missing before ')'"},
		{"max A", 5, "'(' is missing before 'A'"},
		{"d_ratio(A, B, A)", 13, "')' is missing before ','"},
		{"has_event(A + B)", 13, "')' is missing before '+'"},
		{"source_count(#slots)", 14, "source_count needs a name, not '#slots'"},
		{"A = B", 3, "'=' is not allowed in an expression"},
		{"A ? B", 3, "an operator is missing before '?'"},
		{"#", 1, "the name of a constant is missing behind '#'"},
		{"1e999", 1, "1e999 is too large"},
		{"A + \x01", 5, "a character that is not allowed in an expression"},
		{"A \\ B", 3, "'\\' is not allowed in an expression"},
	};
	for (size_t i = 0; i < N(rows); i++) {
		const struct expression *e = NULL;
		struct expression_error error = {0};
		ck_assert_int_eq(
			expression_parse(pool, rows[i].text, &e, &error), EXPRESSION_WRONG);
		ck_assert_ptr_null(e);
		ck_assert_msg(error.column == rows[i].column && !strcmp(error.text, rows[i].says),
			"'%s': %d: %s", rows[i].text, error.column, error.text);
	}
}

/* n times `unit`, and `last`. */
static char *repeated(const char *unit, size_t n, const char *last)
{
	char *text = malloc(n * strlen(unit) + strlen(last) + 1);
	ck_assert_ptr_nonnull(text);
	for (size_t i = 0; i < n; i++)
		memcpy(text + i * strlen(unit), unit, strlen(unit));
	strcpy(text + n * strlen(unit), last);
	return text;
}

TEST(length_depth_and_number_of_operands_are_limited)
{
	static const struct {
		const char *unit, *last, *says;
		size_t n;
	} rows[] = {
		{"(", "A", "nested deeper than 64", 65},
		{"A if B else ", "A", "nested deeper than 64", 65},
		{"A+", "A", "more than 2048 operators and operands", 1024},
		{"A", "", "a name of more than 127 bytes", 128},
		{"1", "", "a number of more than 63 characters", 64},
		{" ", "A", "longer than 16384 bytes", 16384},
	};
	for (size_t i = 0; i < N(rows); i++) {
		const struct expression *e;
		struct expression_error error = {0};
		_cleanup_(freep) char *text = repeated(rows[i].unit, rows[i].n, rows[i].last);
		ck_assert_int_eq(expression_parse(pool, text, &e, &error), EXPRESSION_WRONG);
		ck_assert_str_eq(error.text, rows[i].says);
	}
	/* One less is taken. */
	_cleanup_(freep) char *sum = repeated("A+", 1023, "A");
	ck_assert_double_eq(value(sum), 1024);
	_cleanup_(freep) char *minus = repeated("-", 4000, "A");
	ck_assert_double_eq(value(minus), 1);
}

TEST(what_has_no_value_is_named)
{
	static const struct {
		const char *text;
		int result, column;
		const char *name;
	} rows[] = {
		{"A + GONE", EXPRESSION_MISSING, 5, "GONE"},
		{"d_ratio(A, GONE)", EXPRESSION_MISSING, 12, "GONE"},
		{"A if GONE else B", EXPRESSION_MISSING, 6, "GONE"},
		{"#num_packages", EXPRESSION_MISSING, 1, "num_packages"},
		{"A / ZERO", EXPRESSION_UNDEFINED, 3, NULL},
		{"A % ZERO", EXPRESSION_UNDEFINED, 3, NULL},
		{"1e300 * 1e300", EXPRESSION_UNDEFINED, 7, NULL},
		{"1e30 & 1", EXPRESSION_UNDEFINED, 6, NULL},
	};
	for (size_t i = 0; i < N(rows); i++) {
		const struct expression *at = NULL;
		double number = -1;
		int result = expression_value(parse(rows[i].text), &machine, &number, &at);
		ck_assert_msg(result == rows[i].result, "%s: %d", rows[i].text, result);
		ck_assert_double_eq(number, -1);
		ck_assert_int_eq(at->column, rows[i].column);
		if (rows[i].name)
			ck_assert_str_eq(at->name, rows[i].name);
	}
	/* The branch that is not taken may lack its values. */
	ck_assert_double_eq(value("A if B else GONE"), 1);
	ck_assert_double_eq(value("GONE if ZERO else B"), 2);
}

static int count_names(void *userdata, const struct expression *e)
{
	*(int *)userdata += e->kind == EXPRESSION_NAME;
	return 0;
}

static int n_names(const struct expression *e)
{
	int n = 0;
	ck_assert_int_eq(expression_each(e, count_names, &n), 0);
	return n;
}

TEST(what_the_machine_decides_needs_no_events)
{
	static const struct {
		const char *text;
		int n_names;
	} rows[] = {
		{"A if #smt_on else B", 1},
		{"(A + B) if #smt_on else (A / (#slots - 8 + A))", 2},
		{"1.0 if A > 100.0 else 1.0", 0},
		{"d_ratio(A, 0)", 0},
		{"#slots * 2 + #slots", 0},
		{"A * #slots", 1},
		{"A if has_event(NONE) else 3", 0},
		{"1 / 0", 0},
		{"A if #unknown else B", 2},
	};
	bool constants_only = true;
	const struct expression_source constants = {machine_value, &constants_only};
	for (size_t i = 0; i < N(rows); i++) {
		const struct expression *before = parse(rows[i].text), *after, *at;
		double a = 0, b = 0;
		ck_assert_int_eq(expression_fold(pool, before, &constants, &after), 0);
		ck_assert_msg(
			n_names(after) == rows[i].n_names, "%s: %d", rows[i].text, n_names(after));
		int x = expression_value(before, &machine, &a, &at);
		int y = expression_value(after, &machine, &b, &at);
		ck_assert_int_eq(x, y);
		ck_assert_double_eq(a, b);
	}
}
