/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Tables of counters as the pass writes them, and as nobody should.
 */

#include <zlib.h>

#include "daemon/loops/cause.h"
#include "daemon/loops/table.h"
#include "proto/base/memory.h"
#include "tests/unit/daemon/loops/told.h"
#include "tests/unit/test.h"

/* On the heap and to the byte, so that a sanitizer sees the first one too many. */
static int parse(const uint8_t *bytes, size_t n, struct loop_table *ret_table)
{
	_cleanup_(freep) uint8_t *copy = malloc(n ? n : 1);
	ck_assert_ptr_nonnull(copy);
	memcpy(copy, bytes, n);
	return loop_table_parse(copy, n, ret_table);
}

static void refused(const struct told *t, int outcome)
{
	struct loop_table table, before;
	memset(&table, 0x5a, sizeof(table));
	before = table;
	ck_assert_int_eq(parse(t->bytes, t->n, &table), outcome);
	ck_assert_mem_eq(&table, &before, sizeof(table));
}

/* Version, the empty string, and n scopes to follow. */
static void begin(struct told *t, uint64_t n_scopes)
{
	t->n = 0;
	told_byte(t, MPERF_TABLE_VERSION_FIRST);
	told_byte(t, 1);
	told_byte(t, 0);
	told_unsigned(t, n_scopes);
}

static void scope(struct told *t, uint8_t kind, uint64_t parent)
{
	told_byte(t, kind);
	told_unsigned(t, parent);
	told_put(t, "\0\0\0\0\0\0\0\0", 8);
}

TEST(scopes_counters_and_terms_come_out)
{
	struct told t;
	struct loop_table table;
	told_table(&t);
	ck_assert_int_eq(parse(t.bytes, t.n, &table), 0);
	ck_assert_uint_eq(table.n_scopes, 2);
	ck_assert_uint_eq(table.scope[1].parent, 1);
	ck_assert_uint_eq(table.scope[1].depth, 1);
	ck_assert_str_eq(table.text + table.scope[1].function, "walk");
	ck_assert_str_eq(table.text + table.scope[1].nest, "1");
	ck_assert_uint_eq(table.scope[1].line_last, 14);
	ck_assert_uint_eq(table.n_counters, TOLD_COUNTERS);
	ck_assert_uint_eq(table.first[1], 2);
	ck_assert_int_eq(table.term[1].factor, -2);
	ck_assert_uint_eq(table.term[1].value, LOOP_VALUE(LOOP_ITERATIONS, false));
	ck_assert(!table.scalable);
	loop_table_clear(&table);
}

TEST(an_empty_table_is_one)
{
	struct told t;
	struct loop_table table;
	begin(&t, 0);
	told_byte(&t, 0);
	ck_assert_int_eq(parse(t.bytes, t.n, &table), 0);
	ck_assert_uint_eq(table.n_counters, 0);
	loop_table_clear(&table);
}

TEST(an_unknown_metric_is_counted_and_left_out)
{
	struct told t;
	struct loop_table table;
	begin(&t, 1);
	scope(&t, MPERF_SCOPE_FUNCTION, 0);
	told_put(&t, "\x01\x00\x02", 3); /* a counter of two terms */
	told_byte(&t, 0);
	told_unsigned(&t, 1000u << MPERF_VARIANT_BITS);
	told_byte(&t, 1);
	told_byte(&t, 0);
	told_unsigned(
		&t, MPERF_METRIC_LOADS << MPERF_VARIANT_BITS | MPERF_SCALABLE | MPERF_MODELLED);
	told_signed(&t, INT64_MIN);
	ck_assert_int_eq(parse(t.bytes, t.n, &table), 0);
	ck_assert_uint_eq(table.n_unknown, 1);
	ck_assert_uint_eq(table.n_terms, 1);
	ck_assert(table.scalable && table.term[0].scalable);
	ck_assert_uint_eq(table.term[0].value, LOOP_VALUE(LOOP_LOADS, true));
	ck_assert_int_eq(table.term[0].factor, INT64_MIN);
	loop_table_clear(&table);
}

TEST(a_long_name_is_cut)
{
	struct told t = {.n = 0};
	struct loop_table table;
	_cleanup_(freep) uint8_t *long_one = malloc(3 * LOOP_TEXT_BYTES_MAX);
	ck_assert_ptr_nonnull(long_one);
	told_byte(&t, MPERF_TABLE_VERSION_FIRST);
	told_byte(&t, 2);
	told_byte(&t, 0);
	told_unsigned(&t, 2 * LOOP_TEXT_BYTES_MAX);
	memcpy(long_one, t.bytes, t.n);
	memset(long_one + t.n, 'x', 2 * LOOP_TEXT_BYTES_MAX);
	memcpy(long_one + t.n + 2 * LOOP_TEXT_BYTES_MAX, "\0\0", 2);
	ck_assert_int_eq(loop_table_parse(long_one, t.n + 2 * LOOP_TEXT_BYTES_MAX + 2, &table), 0);
	ck_assert_uint_eq(strlen(table.text + 1), LOOP_TEXT_BYTES_MAX);
	loop_table_clear(&table);
}

TEST(a_table_cut_anywhere_is_refused)
{
	struct told t;
	told_table(&t);
	for (size_t n = t.n; n-- > 0;) {
		t.n = n;
		refused(&t, FEED_TABLE_MALFORMED);
	}
}

TEST(what_follows_the_end_is_refused)
{
	struct told t;
	told_table(&t);
	told_byte(&t, 0);
	refused(&t, FEED_TABLE_MALFORMED);
}

TEST(another_version_is_refused)
{
	struct told t;
	told_table(&t);
	t.bytes[0] = MPERF_TABLE_VERSION + 1;
	refused(&t, FEED_TABLE_MALFORMED);
}

TEST(a_scope_in_itself_or_in_a_later_one_is_refused)
{
	struct told t;
	for (uint64_t parent = 1; parent <= 2; parent++) {
		begin(&t, 2);
		scope(&t, MPERF_SCOPE_LOOP, parent);
		scope(&t, MPERF_SCOPE_LOOP, 0);
		told_byte(&t, 0);
		refused(&t, FEED_TABLE_MALFORMED);
	}
}

TEST(a_scope_in_a_block_is_refused)
{
	struct told t;
	begin(&t, 2);
	scope(&t, MPERF_SCOPE_BLOCK, 0);
	scope(&t, MPERF_SCOPE_LOOP, 1);
	told_byte(&t, 0);
	refused(&t, FEED_TABLE_MALFORMED);
}

TEST(scopes_nested_without_end_are_refused)
{
	struct told t;
	begin(&t, LOOP_DEPTH_MAX + 1);
	for (uint64_t i = 0; i <= LOOP_DEPTH_MAX; i++)
		scope(&t, MPERF_SCOPE_LOOP, i);
	told_byte(&t, 0);
	refused(&t, FEED_TABLE_MALFORMED);
}

TEST(a_kind_that_is_none_is_refused)
{
	struct told t;
	static const uint8_t kinds[] = {0, 3, 6, 255};
	for (size_t i = 0; i < sizeof(kinds); i++) {
		begin(&t, 1);
		scope(&t, kinds[i], 0);
		told_byte(&t, 0);
		refused(&t, FEED_TABLE_MALFORMED);
	}
}

TEST(a_term_of_a_scope_that_is_not_there_is_refused)
{
	struct told t;
	begin(&t, 1);
	scope(&t, MPERF_SCOPE_LOOP, 0);
	told_put(&t, "\x01\x00\x01\x01\x08\x01", 6);
	refused(&t, FEED_TABLE_MALFORMED);
}

TEST(a_state_with_terms_is_refused)
{
	struct told t;
	begin(&t, 1);
	scope(&t, MPERF_SCOPE_LOOP, 0);
	told_put(&t, "\x01\x01\x01\x00\x08\x01", 6);
	refused(&t, FEED_TABLE_MALFORMED);
}

TEST(a_number_without_end_is_refused)
{
	struct told t = {.n = 0};
	told_byte(&t, MPERF_TABLE_VERSION_FIRST);
	for (int i = 0; i < 12; i++)
		told_byte(&t, 0x80);
	refused(&t, FEED_TABLE_MALFORMED);
	/* one that ends, beyond 64 bits */
	t.n = 1;
	for (int i = 0; i < 9; i++)
		told_byte(&t, 0xff);
	told_byte(&t, 0x7f);
	refused(&t, FEED_TABLE_MALFORMED);
}

TEST(more_things_than_bytes_are_refused_before_room_is_made)
{
	struct told t;
	begin(&t, 1ull << 40);
	refused(&t, FEED_TABLE_MALFORMED);
	begin(&t, 0);
	told_unsigned(&t, UINT64_MAX);
	refused(&t, FEED_TABLE_MALFORMED);
}

TEST(string_0_is_the_empty_one)
{
	struct told t = {.n = 0};
	told_byte(&t, MPERF_TABLE_VERSION_FIRST);
	told_byte(&t, 1);
	told_string(&t, "x");
	told_put(&t, "\0\0", 2);
	refused(&t, FEED_TABLE_MALFORMED);
	t.n = 1;
	told_put(&t, "\0\0\0", 3); /* no string at all */
	refused(&t, FEED_TABLE_MALFORMED);
}

/* --- version 2 -------------------------------------------------------------------------------- */

/* A body: strings "", "walk", "rand", one name that is defined, and what was put into `scopes`. */
static void body_begin(struct told *t, uint64_t n_scopes)
{
	t->n = 0;
	told_byte(t, 3);
	told_string(t, "");
	told_string(t, "walk");
	told_string(t, "rand");
	told_byte(t, 1);
	told_put(t, "\x01\x02\x03\x04\x05\x06\x07\x88", 8);
	told_unsigned(t, n_scopes);
}

static void named(struct told *t, uint8_t kind, uint64_t parent, uint8_t name)
{
	told_byte(t, kind);
	told_unsigned(t, parent);
	told_byte(t, name);
	told_put(t, "\0\0\0\0\0\0\0", 7);
}

/* A word that is not sent, and calls of rand: 1000 for each unit. */
static void body_end(struct told *t)
{
	told_put(t, "\x02\0\x01\x01", 4);
	told_unsigned(t, MPERF_METRIC_ENTRIES << MPERF_VARIANT_BITS);
	told_signed(t, 1000);
}

static void good_body(struct told *t)
{
	body_begin(t, 2);
	named(t, MPERF_SCOPE_FUNCTION, 0, 1);
	named(t, MPERF_SCOPE_CALLEE, 1, 2);
	body_end(t);
}

static const char good_runs[] = {MPERF_TABLE_VERSION, 2, MPERF_USE_NONE, 1, MPERF_USE_SUM, 1};

static void pack(struct told *t, const struct told *body, uint64_t n_said)
{
	uLongf n = sizeof(t->bytes) - 32;
	uint8_t packed[sizeof(t->bytes)];
	ck_assert_int_eq(compress2(packed, &n, body->bytes, body->n, 9), Z_OK);
	t->n = 0;
	told_put(t, good_runs, sizeof(good_runs));
	told_byte(t, MPERF_PACKING_ZLIB);
	told_unsigned(t, n_said);
	told_put(t, packed, n);
}

static void leave_unpacked(struct told *t, const struct told *body)
{
	t->n = 0;
	told_put(t, good_runs, sizeof(good_runs));
	told_byte(t, MPERF_PACKING_NONE);
	told_unsigned(t, body->n);
	told_put(t, body->bytes, body->n);
}

static void is_good(const struct told *t)
{
	struct loop_table table;
	ck_assert_int_eq(parse(t->bytes, t->n, &table), 0);
	ck_assert_uint_eq(table.n_scopes, 2);
	ck_assert_uint_eq(table.scope[1].kind, MPERF_SCOPE_CALLEE);
	ck_assert_str_eq(table.text + table.scope[1].function, "rand");
	ck_assert_uint_eq(table.n_defined, 1);
	ck_assert_uint_eq(table.defined[0], 0x8807060504030201);
	ck_assert_uint_eq(table.n_counters, 2);
	ck_assert_uint_eq(table.first[1], 0);
	ck_assert_int_eq(table.term[0].factor, 1000);
	ck_assert_uint_eq(table.term[0].value, LOOP_VALUE(LOOP_ENTRIES, false));
	loop_table_clear(&table);
}

TEST(callees_and_defined_names_come_out_packed_or_not)
{
	struct told t, body;
	good_body(&body);
	leave_unpacked(&t, &body);
	is_good(&t);
	pack(&t, &body, body.n);
	is_good(&t);
}

TEST(a_packed_table_cut_or_changed_anywhere_is_refused_or_whole)
{
	struct told t, body;
	good_body(&body);
	pack(&t, &body, body.n);
	for (size_t n = t.n; n-- > 0;) {
		struct told less = t;
		less.n = n;
		refused(&less, FEED_TABLE_MALFORMED);
	}
	for (size_t i = 0; i < t.n; i++) {
		struct told other = t;
		struct loop_table table;
		other.bytes[i] ^= 0x41;
		int r = parse(other.bytes, other.n, &table);
		ck_assert(r == 0 || r == FEED_TABLE_MALFORMED || r == FEED_TABLE_LIMIT);
		if (r == 0)
			loop_table_clear(&table);
	}
}

TEST(a_body_of_another_length_than_said_is_refused)
{
	struct told t, body;
	good_body(&body);
	pack(&t, &body, body.n - 1);
	refused(&t, FEED_TABLE_MALFORMED);
	pack(&t, &body, body.n + 1);
	refused(&t, FEED_TABLE_MALFORMED);
	pack(&t, &body, body.n);
	told_byte(&t, 0); /* something behind it */
	refused(&t, FEED_TABLE_MALFORMED);
	leave_unpacked(&t, &body);
	told_byte(&t, 0);
	refused(&t, FEED_TABLE_MALFORMED);
}

TEST(a_body_much_longer_than_its_packed_form_is_refused_before_room_is_made)
{
	struct told t, body = {.n = 0};
	for (size_t i = 0; i < sizeof(body.bytes); i++)
		told_byte(&body, 0);
	pack(&t, &body, body.n);
	refused(&t, FEED_TABLE_MALFORMED);
	good_body(&body);
	pack(&t, &body, LOOP_TABLE_BYTES_MAX + 1);
	refused(&t, FEED_TABLE_LIMIT);
	pack(&t, &body, UINT64_MAX);
	refused(&t, FEED_TABLE_LIMIT);
}

TEST(runs_that_are_not_those_of_the_counters_are_refused)
{
	static const char *const runs[] = {
		"\x02\x01\x01\x01", "\x02\x01\x01\x03", "\x02\x01\x03\x02", "\x02\x01\x00\x02"};
	struct told t, body;
	good_body(&body);
	for (size_t i = 0; i < sizeof(runs) / sizeof(*runs); i++) {
		t.n = 0;
		told_put(&t, runs[i], 4);
		told_byte(&t, MPERF_PACKING_NONE);
		told_unsigned(&t, body.n);
		told_put(&t, body.bytes, body.n);
		refused(&t, FEED_TABLE_MALFORMED);
	}
}

static void refuse_scopes(
	uint8_t kind_1, uint64_t parent_1, uint8_t kind_2, uint64_t parent_2, uint8_t name)
{
	struct told t, body;
	body_begin(&body, 2);
	named(&body, kind_1, parent_1, 1);
	named(&body, kind_2, parent_2, name);
	body_end(&body);
	leave_unpacked(&t, &body);
	refused(&t, FEED_TABLE_MALFORMED);
}

TEST(a_callee_without_caller_or_name_or_with_something_in_it_is_refused)
{
	refuse_scopes(MPERF_SCOPE_FUNCTION, 0, MPERF_SCOPE_CALLEE, 0, 2);
	refuse_scopes(MPERF_SCOPE_FUNCTION, 0, MPERF_SCOPE_CALLEE, 1, 0);
	refuse_scopes(MPERF_SCOPE_FUNCTION, 0, MPERF_SCOPE_CALLEE, 2, 2); /* in itself */
	refuse_scopes(MPERF_SCOPE_CALLEE, 0, MPERF_SCOPE_LOOP, 1, 1);
	refuse_scopes(MPERF_SCOPE_CALLEE, 2, MPERF_SCOPE_FUNCTION, 0, 1); /* in a later one */
}

TEST(a_block_may_hold_a_callee)
{
	struct told t, body;
	struct loop_table table;
	body_begin(&body, 2);
	named(&body, MPERF_SCOPE_BLOCK, 0, 1);
	named(&body, MPERF_SCOPE_CALLEE, 1, 2);
	body_end(&body);
	leave_unpacked(&t, &body);
	ck_assert_int_eq(parse(t.bytes, t.n, &table), 0);
	loop_table_clear(&table);
}

TEST(version_1_has_no_callees)
{
	struct told t;
	t.n = 0;
	told_put(&t, "\x01\x02\0\x01x\x02", 6);
	named(&t, MPERF_SCOPE_FUNCTION, 0, 1);
	named(&t, MPERF_SCOPE_CALLEE, 1, 1);
	told_byte(&t, 0);
	refused(&t, FEED_TABLE_MALFORMED);
}

TEST(more_defined_names_than_bytes_are_refused)
{
	struct told t, body;
	t.n = 0;
	body.n = 0;
	told_put(&body, "\x01\0", 2);
	told_unsigned(&body, 1ull << 60);
	leave_unpacked(&t, &body);
	refused(&t, FEED_TABLE_MALFORMED);
}
