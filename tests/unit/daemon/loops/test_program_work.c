/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A table and a round that are too much for one turn of the loop go on in later ones, and a program
 * that goes in the middle leaves nothing.
 */

#include "daemon/loops/program.h"
#include "tests/unit/daemon/loops/told.h"
#include "tests/unit/test.h"

#define SCOPES 10000u
#define PIECE 16000u

struct rig {
	struct program *program;
	struct loop_sites sites;
	struct budget all;
	uint64_t causes[N_FEED_CAUSES];
	unsigned n_taken;
};

static struct rig rig;
static uint8_t table[1 << 20];
static uint32_t n_table;

static int take(void *userdata, const struct loop_counts *c)
{
	struct rig *g = userdata;
	g->n_taken += c->site->key.kind == LOOP_SITE_FUNCTION;
	return 0;
}

static void put(uint32_t value)
{
	for (; value > 127; value >>= 7)
		table[n_table++] = (uint8_t)(value | 128);
	table[n_table++] = (uint8_t)value;
}

/* A scope for each of n names, and a counter of its entries. */
static void make_table(uint32_t n)
{
	n_table = 0;
	put(MPERF_TABLE_VERSION_FIRST);
	put(n + 1);
	put(0);
	for (uint32_t i = 0; i < n; i++) {
		put(3);
		for (int shift = 0; shift < 15; shift += 5)
			table[n_table++] = (uint8_t)('A' + (i >> shift & 31));
	}
	put(n);
	for (uint32_t i = 0; i < n; i++) {
		put(MPERF_SCOPE_FUNCTION);
		put(0);
		put(i + 1);
		for (int field = 0; field < 7; field++)
			put(0);
	}
	put(n);
	for (uint32_t i = 0; i < n; i++) {
		put(MPERF_COUNTER_SUM);
		put(1);
		put(i);
		put(1 << MPERF_VARIANT_BITS); /* entries */
		put(1);
	}
}

static void tell(const struct told *t)
{
	ck_assert_int_eq(program_take(rig.program, t->bytes, t->n), 0);
}

static void tell_table(uint32_t n_counters)
{
	static uint8_t packet[sizeof(struct mperf_feed_table) + PIECE];
	for (uint32_t at = 0; at < n_table; at += PIECE) {
		uint32_t n = n_table - at < PIECE ? n_table - at : PIECE;
		const struct mperf_feed_table m = {
			.head = {.type = MPERF_TABLE, .bytes = (uint32_t)sizeof(m) + n},
			.n_counters = n_counters,
			.table_bytes = n_table,
			.offset = at,
		};
		memcpy(packet, &m, sizeof(m));
		memcpy(packet + sizeof(m), table + at, n);
		ck_assert(!program_is_at_work(rig.program));
		ck_assert_int_eq(program_take(rig.program, packet, sizeof(m) + n), 0);
	}
}

static void begin(uint32_t n, uint64_t memory)
{
	struct told t;
	memset(&rig, 0, sizeof(rig));
	rig.all.max = memory;
	const struct program_options o = {
		.sites = &rig.sites,
		.causes = rig.causes,
		.budget = &rig.all,
		.memory_max = memory,
		.take = take,
		.userdata = &rig,
	};
	ck_assert_int_eq(program_new(&o, &rig.program), 0);
	told_hello(&t, 100, 0);
	tell(&t);
	told_object(&t, 0, n, 1);
	tell(&t);
	make_table(n);
	tell_table(n);
}

/* How often it was to be called. */
static unsigned work(void)
{
	unsigned n = 0;
	for (; program_is_at_work(rig.program); n++)
		ck_assert_int_eq(program_work(rig.program), 0);
	return n;
}

static void end(void)
{
	program_free(rig.program);
	ck_assert_uint_eq(rig.all.used, 0);
	ck_assert_uint_eq(rig.sites.n_sites, 0);
	loop_sites_clear(&rig.sites);
}

TEST(a_large_table_becomes_sites_in_several_turns)
{
	begin(SCOPES, 1 << 26);
	ck_assert(program_is_at_work(rig.program));
	uint32_t before = rig.sites.n_sites;
	ck_assert_uint_lt(before, SCOPES);
	ck_assert_int_eq(program_work(rig.program), 0);
	ck_assert_uint_gt(rig.sites.n_sites, before);
	work();
	ck_assert_uint_eq(rig.sites.n_sites, SCOPES);
	ck_assert_uint_eq(rig.causes[FEED_TABLE_MALFORMED], 0);
	end();
}

TEST(a_small_one_does_so_at_once)
{
	begin(100, 1 << 26);
	ck_assert(!program_is_at_work(rig.program));
	ck_assert_uint_eq(rig.sites.n_sites, 100);
	end();
}

static void tell_deltas(uint32_t first, uint32_t n)
{
	static uint8_t packet[sizeof(struct mperf_feed_deltas) + 2000 * sizeof(struct mperf_delta)];
	const struct mperf_feed_deltas m = {
		.head = {.type = MPERF_DELTAS,
			.bytes = (uint32_t)(sizeof(m) + n * sizeof(struct mperf_delta))},
		.thread = 3,
		.n = n,
		.from_ns = 120,
		.until_ns = 150,
	};
	memcpy(packet, &m, sizeof(m));
	for (uint32_t i = 0; i < n; i++) {
		const struct mperf_delta delta = {.counter = first + i, .delta = 1};
		memcpy(packet + sizeof(m) + i * sizeof(delta), &delta, sizeof(delta));
	}
	ck_assert_int_eq(program_take(rig.program, packet, m.head.bytes), 0);
}

/* Each of the scopes counts once. */
static void begin_counting(void)
{
	struct told t;
	begin(SCOPES, 1 << 26);
	work();
	told_thread(&t, 3, 77);
	tell(&t);
	for (uint32_t first = 0; first < SCOPES; first += 2000)
		tell_deltas(first, 2000);
}

TEST(a_large_round_goes_out_in_several_turns)
{
	struct told t;
	begin_counting();
	told_round(&t, 200);
	tell(&t);
	ck_assert(program_is_at_work(rig.program));
	ck_assert_uint_gt(rig.n_taken, 0);
	ck_assert_uint_lt(rig.n_taken, SCOPES);
	ck_assert_uint_gt(work(), 1);
	ck_assert_uint_eq(rig.n_taken, SCOPES);
	end();
}

TEST(what_goes_hands_out_in_several_turns, .times = 2)
{
	struct told t;
	begin_counting();
	told_gone(&t, _i ? MPERF_GONE_OBJECT : MPERF_GONE_THREAD, _i ? 0 : 3);
	tell(&t);
	ck_assert(program_is_at_work(rig.program));
	ck_assert_uint_lt(rig.n_taken, SCOPES / 2);
	ck_assert_uint_gt(work(), 1);
	ck_assert_uint_eq(rig.n_taken, SCOPES);
	/* it is gone */
	tell(&t);
	ck_assert_uint_eq(rig.causes[FEED_UNANNOUNCED], 1);
	end();
}

TEST(a_program_that_goes_in_the_middle_leaves_nothing, .times = 2)
{
	begin(SCOPES, 1 << 26);
	ck_assert(program_is_at_work(rig.program));
	if (_i) {
		struct told t;
		told_gone(&t, MPERF_GONE_OBJECT, 0);
		tell(&t);
		ck_assert(!program_is_at_work(rig.program));
	}
	end();
}

/* Refused as one is that has no room at once. */
TEST(a_table_that_finds_no_room_later_is_refused)
{
	begin(SCOPES, 1700000);
	ck_assert(program_is_at_work(rig.program));
	int r = 0;
	while (r == 0 && program_is_at_work(rig.program))
		r = program_work(rig.program);
	ck_assert_int_eq(r, FEED_MEMORY);
	ck_assert(!program_is_at_work(rig.program));
	ck_assert_uint_eq(rig.sites.n_sites, 0);
	end();
}
