/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Tables that a compiler would make and tables that none would: what the runtime reads of them is
 * only which counters are sent, and whatever is wrong with one must leave everything as it was.
 */
#include <errno.h>

#include "runtime/abi.h"
#include "runtime/table.h"
#include "tests/unit/test.h"

#define N 6
#define SUM MPERF_COUNTER_SUM
#define STATE MPERF_COUNTER_STATE
#define METRIC(m) (MPERF_METRIC_##m << MPERF_VARIANT_BITS)

/* Two strings, one scope with numbers of two bytes, a nest's words and two more counters. */
static const uint8_t good[] = {
	1,
	2,
	0,
	3,
	'f',
	'o',
	'o',
	1,
	2,
	0,
	1,
	0,
	0x80,
	1,
	0xff,
	1,
	0,
	0,
	0,
	8,
	N,
	STATE,
	0,
	STATE,
	0,
	SUM,
	1,
	0,
	METRIC(TIMED_ENTRIES),
	1,
	SUM,
	1,
	0,
	METRIC(TIME_NS),
	1,
	SUM,
	2,
	0,
	METRIC(ENTRIES),
	1,
	0,
	METRIC(LOADS) | MPERF_MODELLED,
	0x7f,
	SUM,
	0,
};

#define UNTOUCHED 99
static uint8_t uses[N + 1];

static int read_table(const uint8_t *table, size_t bytes, size_t n)
{
	/* Of its own, so that a sanitizer sees what is read behind it. */
	uint8_t *copy = malloc(bytes ? bytes : 1);
	memcpy(copy, table, bytes);
	memset(uses, UNTOUCHED, sizeof(uses));
	int r = mperf_table_uses(copy, bytes, uses, n);
	free(copy);
	ck_assert_uint_eq(uses[N], UNTOUCHED);
	return r;
}

static void refused(const uint8_t *table, size_t bytes, size_t n)
{
	ck_assert_int_eq(read_table(table, bytes, n), -EBADMSG);
	for (size_t i = 0; i <= N; i++)
		ck_assert_uint_eq(uses[i], i < n ? MPERF_USE_NONE : UNTOUCHED);
}

TEST(sums_and_the_time_of_a_nest_are_sent)
{
	static const uint8_t expected[] = {MPERF_USE_NONE, MPERF_USE_NONE, MPERF_USE_SUM,
		MPERF_USE_TIME, MPERF_USE_SUM, MPERF_USE_SUM};
	ck_assert_int_eq(read_table(good, sizeof(good), N), 0);
	ck_assert_mem_eq(uses, expected, N);
}

TEST(time_without_a_nests_words_before_it_is_a_sum)
{
	static const uint8_t table[] = {
		1, 1, 0, 0, 2, SUM, 1, 0, METRIC(TIME_NS), 1, SUM, 1, 0, METRIC(TIME_NS), 1};
	ck_assert_int_eq(read_table(table, sizeof(table), 2), 0);
	ck_assert_uint_eq(uses[0], MPERF_USE_SUM);
	ck_assert_uint_eq(uses[1], MPERF_USE_SUM);
}

static const uint8_t expected_uses[N] = {MPERF_USE_NONE, MPERF_USE_NONE, MPERF_USE_SUM,
	MPERF_USE_TIME, MPERF_USE_SUM, MPERF_USE_SUM};
/* Version 2: two without use, a sum, a time, two sums; and a body that is not looked at. */
static const uint8_t runs[] = {2, 4, 0, 2, 1, 1, 2, 1, 1, 2, MPERF_PACKING_ZLIB, 0xff, 0xff};

TEST(runs_say_the_same)
{
	ck_assert_int_eq(read_table(runs, sizeof(runs), N), 0);
	ck_assert_mem_eq(uses, expected_uses, N);
}

TEST(runs_that_end_early_or_late_are_refused)
{
	for (size_t n = 0; n < 10; n++)
		refused(runs, n, N);
	refused(runs, sizeof(runs), N - 1);
	uint8_t table[sizeof(runs)];
	memcpy(table, runs, sizeof(runs));
	table[9]++; /* a counter more */
	refused(table, sizeof(table), N);
	table[9] -= 2;
	refused(table, sizeof(table), N);
}

TEST(a_run_without_end_or_of_no_use_is_refused)
{
	static const uint8_t huge[] = {
		2, 1, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1};
	static const uint8_t useless[] = {2, 1, MPERF_USE_TIME + 1, N};
	refused(huge, sizeof(huge), N);
	refused(useless, sizeof(useless), N);
}

TEST(a_time_of_version_2_needs_its_words_before_it_too)
{
	static const uint8_t table[] = {2, 2, MPERF_USE_TIME, 1, MPERF_USE_SUM, 1};
	ck_assert_int_eq(read_table(table, sizeof(table), 2), 0);
	ck_assert_uint_eq(uses[0], MPERF_USE_SUM);
}

/* Numbers are skipped eight bytes at a time: one more term each time, of one byte to three. */
TEST(counters_of_any_length_are_passed_over)
{
	for (unsigned n_terms = 0; n_terms < 30; n_terms++) {
		uint8_t table[256] = {1, 1, 0, 0, 2, SUM, (uint8_t)n_terms};
		size_t n = 7;
		for (unsigned i = 0; i < n_terms; i++) {
			for (unsigned k = 0; k < i % 3; k++)
				table[n++] = 0x80;
			table[n++] = 0;
			table[n++] = METRIC(LOADS);
			table[n++] = 0x7f;
		}
		table[n++] = STATE;
		table[n++] = 0;
		ck_assert_int_eq(read_table(table, n, 2), 0);
		ck_assert_uint_eq(uses[0], MPERF_USE_SUM);
		ck_assert_uint_eq(uses[1], MPERF_USE_NONE);
		refused(table, n - 1, 2);
	}
}

TEST(a_module_without_counters_has_a_table)
{
	static const uint8_t table[] = {1, 0, 0, 0};
	ck_assert_int_eq(read_table(table, sizeof(table), 0), 0);
}

TEST(a_table_that_ends_anywhere_is_refused)
{
	for (size_t bytes = 0; bytes < sizeof(good); bytes++)
		refused(good, bytes, N);
}

TEST(another_version_is_refused)
{
	uint8_t table[sizeof(good)];
	memcpy(table, good, sizeof(good));
	table[0] = 2;
	refused(table, sizeof(table), N);
}

TEST(another_number_of_counters_is_refused)
{
	refused(good, sizeof(good), N - 1);
	refused(good, sizeof(good), 0);
}

TEST(a_string_longer_than_the_table_is_refused)
{
	static const uint8_t table[] = {
		1, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0, 0};
	refused(table, sizeof(table), 0);
}

TEST(a_number_without_an_end_is_refused)
{
	uint8_t table[32];
	memset(table, 0x80, sizeof(table));
	refused(table, sizeof(table), N);
	table[0] = 1;
	refused(table, sizeof(table), N);
}

TEST(numbers_beyond_all_bounds_end_soon)
{
	static const uint8_t table[] = {
		1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0, 0};
	refused(table, sizeof(table), 0);
}
