/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * What a daemon says, and what it does not: a message is understood whole or not at all.
 */
#include <errno.h>

#include "runtime/ask.h"
#include "tests/unit/test.h"

static const struct mperf_feed_ask ask_good = {
	.head = {.type = MPERF_ASK, .bytes = sizeof(ask_good)},
	.period_ms = 250,
	.now = 1,
};
static const struct mperf_feed_grant grant_good = {
	.head = {.type = MPERF_GRANT, .bytes = sizeof(grant_good)},
	.thread = 7,
	.n = MPERF_GRANTS_MAX,
};

static void refused(const void *message, size_t bytes)
{
	struct ask ask;
	memset(&ask, 0x5a, sizeof(ask));
	struct ask before = ask;
	ck_assert_int_eq(mperf_ask_parse(message, bytes, &ask), -EBADMSG);
	ck_assert_mem_eq(&ask, &before, sizeof(ask));
}

TEST(a_period_and_a_round_at_once_are_asked_for)
{
	struct ask ask;
	ck_assert_int_eq(mperf_ask_parse(&ask_good, sizeof(ask_good), &ask), 0);
	ck_assert_int_eq(ask.type, MPERF_ASK);
	ck_assert_uint_eq(ask.period_ms, 250);
	ck_assert(ask.now);
}

TEST(the_period_may_stay)
{
	struct mperf_feed_ask m = ask_good;
	m.period_ms = 0;
	m.now = 0;
	struct ask ask;
	ck_assert_int_eq(mperf_ask_parse(&m, sizeof(m), &ask), 0);
	ck_assert_uint_eq(ask.period_ms, 0);
	ck_assert(!ask.now);
}

TEST(counters_are_granted)
{
	struct ask ask;
	ck_assert_int_eq(mperf_ask_parse(&grant_good, sizeof(grant_good), &ask), 0);
	ck_assert_int_eq(ask.type, MPERF_GRANT);
	ck_assert_uint_eq(ask.thread, 7);
	ck_assert_uint_eq(ask.n, MPERF_GRANTS_MAX);
}

TEST(a_selection_is_understood)
{
	struct {
		struct mperf_feed_select m;
		char globs[8];
	} m = {.m = {.head = {.type = MPERF_SELECT, .bytes = sizeof(m)}, .globs_bytes = 8}};
	struct ask ask;
	ck_assert_int_eq(mperf_ask_parse(&m, sizeof(m), &ask), 0);
	ck_assert_int_eq(ask.type, MPERF_SELECT);
	m.m.globs_bytes = 7;
	refused(&m, sizeof(m));
	m.m.globs_bytes = UINT32_MAX;
	refused(&m, sizeof(m));
}

TEST(tables_are_wanted_or_not)
{
	struct mperf_feed_want m = {
		.head = {.type = MPERF_WANT, .bytes = sizeof(m)}, .object = 5, .wanted = 1};
	struct ask ask;
	ck_assert_int_eq(mperf_ask_parse(&m, sizeof(m), &ask), 0);
	ck_assert_int_eq(ask.type, MPERF_WANT);
	ck_assert_uint_eq(ask.object, 5);
	ck_assert(ask.wanted);
	m.wanted = 0;
	ck_assert_int_eq(mperf_ask_parse(&m, sizeof(m), &ask), 0);
	ck_assert(!ask.wanted);
	m.wanted = 2;
	refused(&m, sizeof(m));
}

TEST(a_message_that_is_cut_is_refused)
{
	for (size_t bytes = 0; bytes < sizeof(ask_good); bytes++) {
		struct mperf_feed_ask m = ask_good;
		refused(&m, bytes);
		m.head.bytes = (uint32_t)bytes;
		refused(&m, bytes);
	}
}

TEST(a_message_that_is_longer_than_it_says_is_refused)
{
	struct {
		struct mperf_feed_ask m;
		uint64_t more;
	} m = {.m = ask_good};
	refused(&m, sizeof(m));
	m.m.head.bytes = sizeof(m);
	refused(&m, sizeof(m));
}

TEST(periods_out_of_range_are_refused)
{
	static const uint32_t bad[] = {
		1, MPERF_PERIOD_MS_MIN - 1, MPERF_PERIOD_MS_MAX + 1, UINT32_MAX};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct mperf_feed_ask m = ask_good;
		m.period_ms = bad[i];
		refused(&m, sizeof(m));
	}
}

TEST(more_counters_than_there_may_be_are_refused)
{
	struct mperf_feed_grant m = grant_good;
	m.n = MPERF_GRANTS_MAX + 1;
	refused(&m, sizeof(m));
}

TEST(what_a_program_says_is_refused_from_a_daemon)
{
	struct mperf_feed_ask m = ask_good;
	for (uint16_t type = 0; type < 100; type++) {
		m.head.type = type;
		if (type != MPERF_ASK && type != MPERF_GRANT && type != MPERF_SELECT &&
			type != MPERF_WANT)
			refused(&m, sizeof(m));
	}
	m = ask_good;
	m.head.reserved = 1;
	refused(&m, sizeof(m));
	m = ask_good;
	m.now = 2;
	refused(&m, sizeof(m));
}
