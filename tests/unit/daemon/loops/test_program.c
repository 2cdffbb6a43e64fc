/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * What a program's messages come to: sums per loop and region, once a round, never below zero.
 */

#include "daemon/loops/program.h"
#include "tests/unit/daemon/loops/told.h"
#include "tests/unit/test.h"

struct rig {
	struct program *program;
	struct loop_sites sites;
	struct budget all;
	uint64_t causes[N_FEED_CAUSES];
	/* sums of what came out, of the loop and of the function, in any region */
	uint64_t loop[N_LOOP_VALUES], function[N_LOOP_VALUES], in_region[N_LOOP_VALUES];
	uint64_t callee[N_LOOP_VALUES]; /* of callees */
	uint64_t span_ns, spent_ns;
	char region[64];
	unsigned n_taken;
};

static int take(void *userdata, const struct loop_counts *c)
{
	struct rig *g = userdata;
	g->n_taken++;
	if (c->region) {
		const char *name = c->region->key.subprogram;
		snprintf(g->region, sizeof(g->region), "%s", name);
	}
	for (unsigned i = 0; i < N_LOOP_VALUES; i++) {
		if (c->site->key.kind == LOOP_SITE_LOOP)
			g->loop[i] += c->value[i];
		if (c->site->key.kind == LOOP_SITE_FUNCTION)
			g->function[i] += c->value[i];
		if (c->site->key.kind == LOOP_SITE_CALLEE)
			g->callee[i] += c->value[i];
		if (c->region && c->site->key.kind == LOOP_SITE_LOOP)
			g->in_region[i] += c->value[i];
	}
	if (c->site->key.kind == LOOP_SITE_REGION && !c->region)
		g->span_ns += c->value[LOOP_VALUE(LOOP_SPAN_NS, false)];
	return 0;
}

static int tell(struct rig *g, const struct told *t)
{
	uint8_t *copy = malloc(t->n ? t->n : 1);
	ck_assert_ptr_nonnull(copy);
	memcpy(copy, t->bytes, t->n);
	int r = program_take(g->program, copy, t->n);
	free(copy);
	return r;
}

static void rig_make(struct rig *g)
{
	memset(g, 0, sizeof(*g));
	g->all.max = 1 << 20;
	const struct program_options o = {
		.sites = &g->sites,
		.causes = g->causes,
		.budget = &g->all,
		.memory_max = 1 << 19,
		.take = take,
		.userdata = g,
	};
	ck_assert_int_eq(program_new(&o, &g->program), 0);
}

/* A program that said hello, has one object with told_table, and thread 3. */
static void rig_announced(struct rig *g, uint32_t vscale)
{
	struct told t, table;
	rig_make(g);
	told_hello(&t, 100, vscale);
	ck_assert_int_eq(tell(g, &t), 0);
	told_object(&t, 0, TOLD_COUNTERS, 1);
	ck_assert_int_eq(tell(g, &t), 0);
	told_table(&table);
	told_table_message(&t, 0, 0, 0, TOLD_COUNTERS, &table);
	ck_assert_int_eq(tell(g, &t), 0);
	told_thread(&t, 3, 77);
	ck_assert_int_eq(tell(g, &t), 0);
}

/* Nothing is left of it. */
static void rig_clear(struct rig *g)
{
	program_free(g->program);
	ck_assert_uint_eq(g->all.used, 0);
	ck_assert_uint_eq(g->sites.n_sites, 0);
	loop_sites_clear(&g->sites);
}

static void count(struct rig *g, uint64_t one, uint64_t two)
{
	struct told t;
	told_deltas(&t, 3, 0, one, two, 150);
	ck_assert_int_eq(tell(g, &t), 0);
}

static void end_round(struct rig *g, uint64_t until_ns)
{
	struct told t;
	told_round(&t, until_ns);
	ck_assert_int_eq(tell(g, &t), 0);
}

static uint64_t iterations(const struct rig *g)
{
	return g->loop[LOOP_VALUE(LOOP_ITERATIONS, false)];
}

TEST(counts_go_out_when_the_round_is_complete)
{
	struct rig g;
	rig_announced(&g, 0);
	count(&g, 3, 106);
	ck_assert_uint_eq(g.n_taken, 0);
	end_round(&g, 200);
	ck_assert_uint_eq(iterations(&g), 100);
	ck_assert_uint_eq(g.loop[LOOP_VALUE(LOOP_BYTES_LOADED, false)], 1060);
	ck_assert_uint_eq(g.function[LOOP_VALUE(LOOP_ENTRIES, false)], 3);
	ck_assert_uint_eq(g.span_ns, 100); /* from its hello to the round */
	rig_clear(&g);
}

TEST(what_is_below_zero_is_taken_off_the_next_round)
{
	struct rig g;
	rig_announced(&g, 0);
	count(&g, 5, 4); /* iterations: -6, in mid-function */
	end_round(&g, 200);
	ck_assert_uint_eq(iterations(&g), 0);
	ck_assert_uint_eq(g.loop[LOOP_VALUE(LOOP_BYTES_LOADED, false)], 40);
	count(&g, 0, 10);
	end_round(&g, 300);
	ck_assert_uint_eq(iterations(&g), 4);
	rig_clear(&g);
}

TEST(parts_of_one_round_are_one_sum)
{
	struct rig g;
	rig_announced(&g, 0);
	count(&g, 5, 0);
	count(&g, 0, 30);
	end_round(&g, 200);
	ck_assert_uint_eq(iterations(&g), 20);
	rig_clear(&g);
}

TEST(sums_wrap_as_counters_do)
{
	struct rig g;
	rig_announced(&g, 0);
	count(&g, 0, UINT64_MAX - 1); /* -2 */
	count(&g, 0, 9);
	end_round(&g, 200);
	ck_assert_uint_eq(iterations(&g), 7);
	ck_assert_uint_eq(g.loop[LOOP_VALUE(LOOP_BYTES_LOADED, false)], 70);
	rig_clear(&g);
}

TEST(what_is_counted_in_a_region_is_told_with_it)
{
	struct rig g;
	struct told t;
	rig_announced(&g, 0);
	told_region(&t, 1, 0, "solve");
	ck_assert_int_eq(tell(&g, &t), 0);
	told_deltas(&t, 3, 1, 0, 8, 150);
	ck_assert_int_eq(tell(&g, &t), 0);
	count(&g, 0, 5);
	end_round(&g, 200);
	ck_assert_uint_eq(iterations(&g), 13);
	ck_assert_uint_eq(g.in_region[LOOP_VALUE(LOOP_ITERATIONS, false)], 8);
	ck_assert_str_eq(g.region, "solve");
	rig_clear(&g);
}

TEST(a_thread_that_goes_hands_out_what_it_has)
{
	struct rig g;
	struct told t;
	rig_announced(&g, 0);
	count(&g, 0, 5);
	told_gone(&t, MPERF_GONE_THREAD, 3);
	ck_assert_int_eq(tell(&g, &t), 0);
	ck_assert_uint_eq(iterations(&g), 5);
	ck_assert_int_eq(tell(&g, &t), 0);
	ck_assert_uint_eq(g.causes[FEED_UNANNOUNCED], 1);
	rig_clear(&g);
}

TEST(an_object_that_goes_may_come_again)
{
	struct rig g;
	struct told t, table;
	rig_announced(&g, 0);
	count(&g, 0, 5);
	told_gone(&t, MPERF_GONE_OBJECT, 0);
	ck_assert_int_eq(tell(&g, &t), 0);
	told_object(&t, 0, TOLD_COUNTERS, 1);
	ck_assert_int_eq(tell(&g, &t), 0);
	told_table(&table);
	told_table_message(&t, 0, 0, 0, TOLD_COUNTERS, &table);
	ck_assert_int_eq(tell(&g, &t), 0);
	count(&g, 0, 6);
	end_round(&g, 200);
	ck_assert_uint_eq(iterations(&g), 11);
	rig_clear(&g);
}

TEST(copies_of_a_loop_are_one_site)
{
	struct rig g;
	struct told t, table;
	rig_announced(&g, 0);
	ck_assert_uint_eq(g.sites.n_sites, 2);
	told_object(&t, 1, TOLD_COUNTERS, 1);
	ck_assert_int_eq(tell(&g, &t), 0);
	told_table(&table);
	told_table_message(&t, 1, 0, 0, TOLD_COUNTERS, &table);
	ck_assert_int_eq(tell(&g, &t), 0);
	ck_assert_uint_eq(g.sites.n_sites, 2);
	rig_clear(&g);
}

/* --- callees ---------------------------------------------------------------------------------- */

/* Version 2, not packed: a function that calls one named `callee`, and a counter of these calls, each of
 * which copies `bytes`; what is defined is `defined`. */
static void callee_table(struct told *t, const char *callee, const char *defined, int64_t bytes)
{
	struct told body = {.n = 0};
	uint64_t hash = mperf_name_hash(defined, strlen(defined));
	told_byte(&body, 3);
	told_string(&body, "");
	told_string(&body, "walk");
	told_string(&body, callee);
	told_byte(&body, 1);
	for (unsigned i = 0; i < sizeof(hash); i++)
		told_byte(&body, (uint8_t)(hash >> (8 * i)));
	told_byte(&body, 2);
	told_put(&body, "\x02\0\x01\0\0\0\0\0\0\0", 10);   /* a function, */
	told_put(&body, "\x05\x01\x02\0\0\0\0\0\0\0", 10); /* and its callee */
	told_put(&body, "\x01\x02\x01", 3);
	told_unsigned(&body, MPERF_METRIC_ENTRIES << MPERF_VARIANT_BITS);
	told_signed(&body, 1);
	told_byte(&body, 1);
	told_unsigned(&body, MPERF_METRIC_BYTES_LOADED << MPERF_VARIANT_BITS);
	told_signed(&body, bytes);
	t->n = 0;
	told_put(t, "\x02\x01\x01\x01\0", 5);
	told_unsigned(t, body.n);
	told_put(t, body.bytes, body.n);
}

/* Objects 0, which has such a table, and 1, whose only function is of the name `other`. */
static void rig_calling(struct rig *g, int64_t bytes, const char *other)
{
	struct told t, table;
	rig_make(g);
	told_hello(&t, 100, 0);
	ck_assert_int_eq(tell(g, &t), 0);
	for (uint32_t object = 0; object < 2; object++) {
		told_object(&t, object, 1, 1);
		ck_assert_int_eq(tell(g, &t), 0);
		callee_table(&table, "rand", object ? other : "walk", bytes);
		told_table_message(&t, object, 0, 0, 1, &table);
		ck_assert_int_eq(tell(g, &t), 0);
	}
	told_thread(&t, 3, 77);
	ck_assert_int_eq(tell(g, &t), 0);
	told_delta(&t, 3, 0, 5, 150);
	ck_assert_int_eq(tell(g, &t), 0);
	end_round(g, 200);
}

TEST(a_callee_that_no_module_defines_comes_out)
{
	struct rig g;
	rig_calling(&g, 0, "stroll");
	ck_assert_uint_eq(g.callee[LOOP_VALUE(LOOP_ENTRIES, false)], 5);
	rig_clear(&g);
}

TEST(a_callee_that_another_object_defines_does_not)
{
	struct rig g;
	rig_calling(&g, 0, "rand");
	ck_assert_uint_eq(g.callee[LOOP_VALUE(LOOP_ENTRIES, false)], 0);
	rig_clear(&g);
}

TEST(what_a_callee_moves_comes_out_though_it_is_counted_elsewhere)
{
	struct rig g;
	rig_calling(&g, 64, "rand");
	ck_assert_uint_eq(g.callee[LOOP_VALUE(LOOP_ENTRIES, false)], 0);
	ck_assert_uint_eq(g.callee[LOOP_VALUE(LOOP_BYTES_LOADED, false)], 5 * 64);
	rig_clear(&g);
}

/* A library that is loaded later, and one that goes. */
TEST(what_is_defined_follows_the_objects_that_there_are)
{
	struct rig g;
	struct told t, table;
	rig_calling(&g, 0, "stroll");
	told_object(&t, 2, 1, 1);
	ck_assert_int_eq(tell(&g, &t), 0);
	callee_table(&table, "drand48", "rand", 0);
	told_table_message(&t, 2, 0, 0, 1, &table);
	ck_assert_int_eq(tell(&g, &t), 0);
	told_delta(&t, 3, 0, 5, 250);
	ck_assert_int_eq(tell(&g, &t), 0);
	end_round(&g, 300);
	ck_assert_uint_eq(g.callee[LOOP_VALUE(LOOP_ENTRIES, false)], 5);
	told_gone(&t, MPERF_GONE_OBJECT, 2);
	ck_assert_int_eq(tell(&g, &t), 0);
	told_delta(&t, 3, 0, 7, 350);
	ck_assert_int_eq(tell(&g, &t), 0);
	end_round(&g, 400);
	ck_assert_uint_eq(g.callee[LOOP_VALUE(LOOP_ENTRIES, false)], 12);
	rig_clear(&g);
}

/* ---------------------------------------------------------------------------------------------- */

TEST(the_first_message_is_hello)
{
	struct rig g;
	struct told t;
	rig_make(&g);
	told_round(&t, 5);
	ck_assert_int_eq(tell(&g, &t), FEED_NO_HELLO);
	told_hello(&t, 1, 0);
	t.bytes[8] ^= 1;
	ck_assert_int_eq(tell(&g, &t), FEED_NO_HELLO);
	told_version(&t, 0);
	ck_assert_int_eq(tell(&g, &t), FEED_VERSION);
	told_version(&t, MPERF_FEED_VERSION + 1);
	ck_assert_int_eq(tell(&g, &t), FEED_VERSION);
	ck_assert_uint_eq(g.causes[FEED_NO_HELLO], 2);
	rig_clear(&g);
}

TEST(a_table_above_its_limit_is_counted_as_lost)
{
	struct rig g;
	struct told t, table = {.bytes = {MPERF_TABLE_VERSION_FIRST}, .n = 1};
	const uint32_t n = LOOP_TABLE_BYTES_MAX + 1;
	uint64_t lost = 0;
	rig_announced(&g, 0);
	g.program->o.lost_tables = &lost;
	told_object(&t, 1, 1, 1);
	ck_assert_int_eq(tell(&g, &t), 0);
	told_table_message(&t, 1, 0, 0, 1, &table);
	memcpy(t.bytes + offsetof(struct mperf_feed_table, table_bytes), &n, sizeof(n));
	ck_assert_int_eq(tell(&g, &t), 0);
	ck_assert_uint_eq(g.causes[FEED_TABLE_LIMIT], 1);
	ck_assert_uint_eq(lost, 1);
	count(&g, 1, 2); /* what else it counts is taken */
	ck_assert_uint_eq(g.causes[FEED_UNANNOUNCED], 0);
	ck_assert_uint_eq(lost, 1);
	rig_clear(&g);
}

TEST(what_a_refused_table_counts_takes_nothing_from_others)
{
	struct rig g;
	struct told t, table;
	const uint32_t n = LOOP_TABLE_BYTES_MAX + 1;
	rig_make(&g);
	told_hello(&t, 100, 0);
	ck_assert_int_eq(tell(&g, &t), 0);
	told_object(&t, 0, 3 * TOLD_COUNTERS, 3);
	ck_assert_int_eq(tell(&g, &t), 0);
	told_table(&table);
	for (uint32_t module = 0; module < 3; module++) {
		told_table_message(&t, 0, module, module * TOLD_COUNTERS, TOLD_COUNTERS, &table);
		if (module == 1)
			memcpy(t.bytes + offsetof(struct mperf_feed_table, table_bytes), &n,
				sizeof(n));
		ck_assert_int_eq(tell(&g, &t), 0);
	}
	told_thread(&t, 3, 77);
	ck_assert_int_eq(tell(&g, &t), 0);
	/* the second counter of each module, in one message */
	struct {
		struct mperf_feed_deltas m;
		struct mperf_delta delta[3];
	} deltas = {.m = {.head = {.type = MPERF_DELTAS, .bytes = sizeof(deltas)},
			    .thread = 3,
			    .n = 3,
			    .from_ns = 120,
			    .until_ns = 150},
		.delta = {{.counter = 1, .delta = 10}, {.counter = 3, .delta = 10},
			{.counter = 5, .delta = 10}}};
	for (unsigned i = 0; i <= PROGRAM_FAULTS_MAX; i++)
		ck_assert_int_eq(
			program_take(g.program, (const uint8_t *)&deltas, sizeof(deltas)), 0);
	end_round(&g, 200);
	ck_assert_uint_eq(iterations(&g), 2 * 10 * (PROGRAM_FAULTS_MAX + 1));
	ck_assert_uint_eq(g.causes[FEED_UNANNOUNCED], PROGRAM_FAULTS_MAX + 1);
	rig_clear(&g);
}

/* A file with another's build id and names may say that its loops are nested in others. */
TEST(users_share_no_loops)
{
	struct rig g, other;
	struct told t, table;
	rig_announced(&g, 0);
	const uint32_t n = g.sites.n_sites;
	rig_make(&other);
	other.program->o.sites = &g.sites;
	other.program->o.uid = 1000;
	told_hello(&t, 100, 0);
	ck_assert_int_eq(tell(&other, &t), 0);
	told_object(&t, 0, TOLD_COUNTERS, 1);
	ck_assert_int_eq(tell(&other, &t), 0);
	told_table(&table);
	told_table_message(&t, 0, 0, 0, TOLD_COUNTERS, &table);
	ck_assert_int_eq(tell(&other, &t), 0);
	ck_assert_uint_eq(g.sites.n_sites, 2 * n);
	program_free(other.program);
	rig_clear(&g);
}

TEST(a_message_of_every_wrong_length_is_hung_up_on)
{
	struct rig g;
	struct told t, whole;
	rig_announced(&g, 0);
	told_deltas(&whole, 3, 0, 1, 1, 150);
	for (size_t n = 0; n < whole.n; n++) {
		t = whole;
		t.n = n;
		ck_assert_int_eq(tell(&g, &t), FEED_LENGTH);
		/* a head that agrees does not help */
		if (n < sizeof(struct mperf_feed_head))
			continue;
		memcpy(t.bytes + 4, &(uint32_t){(uint32_t)n}, 4);
		ck_assert_int_eq(tell(&g, &t), FEED_LENGTH);
	}
	rig_clear(&g);
}

TEST(region_names_end_where_they_say)
{
	struct rig g;
	struct told t;
	rig_announced(&g, 0);
	told_region(&t, 1, 0, "solve");
	t.bytes[t.n - 1] = 'x';
	ck_assert_int_eq(tell(&g, &t), FEED_LENGTH);
	told_region(&t, 1, 0, "solve");
	t.bytes[sizeof(struct mperf_feed_region) + 2] = '\0';
	ck_assert_int_eq(tell(&g, &t), FEED_LENGTH);
	rig_clear(&g);
}

TEST(modules_that_share_a_counter_are_refused)
{
	struct rig g;
	struct told t, table;
	rig_make(&g);
	told_hello(&t, 1, 0);
	ck_assert_int_eq(tell(&g, &t), 0);
	told_object(&t, 0, 4, 2);
	ck_assert_int_eq(tell(&g, &t), 0);
	told_table(&table);
	told_table_message(&t, 0, 0, 1, TOLD_COUNTERS, &table);
	ck_assert_int_eq(tell(&g, &t), 0);
	told_table_message(&t, 0, 1, 2, TOLD_COUNTERS, &table);
	ck_assert_int_eq(tell(&g, &t), FEED_TABLE_MALFORMED);
	rig_clear(&g);
}

TEST(counters_beyond_the_object_are_passed_over)
{
	struct rig g;
	struct told t, table;
	rig_make(&g);
	told_hello(&t, 1, 0);
	ck_assert_int_eq(tell(&g, &t), 0);
	told_object(&t, 0, 1, 1);
	ck_assert_int_eq(tell(&g, &t), 0);
	told_table(&table);
	told_table_message(&t, 0, 0, 0, TOLD_COUNTERS, &table);
	ck_assert_int_eq(tell(&g, &t), 0);
	ck_assert_uint_eq(g.causes[FEED_COUNTER], 1);
	rig_clear(&g);
}

TEST(a_program_above_its_memory_is_hung_up_on)
{
	struct rig g;
	struct told t;
	rig_make(&g);
	told_hello(&t, 1, 0);
	ck_assert_int_eq(tell(&g, &t), 0);
	told_object(&t, 0, 0, PROGRAM_MODULES_MAX);
	ck_assert_int_eq(tell(&g, &t), FEED_MEMORY);
	rig_clear(&g);
}

TEST(faults_have_an_end)
{
	struct rig g;
	struct told t;
	rig_announced(&g, 0);
	told_gone(&t, MPERF_GONE_THREAD, 9);
	int r = 0;
	unsigned n = 0;
	for (; r == 0 && n <= PROGRAM_FAULTS_MAX; n++)
		r = tell(&g, &t);
	ck_assert_int_eq(r, FEED_FAULTS);
	ck_assert_uint_eq(n, PROGRAM_FAULTS_MAX);
	rig_clear(&g);
}

TEST(rounds_do_not_run_backwards)
{
	struct rig g;
	struct told t;
	rig_announced(&g, 0);
	end_round(&g, 300);
	told_round(&t, 299);
	ck_assert_int_eq(tell(&g, &t), 0);
	ck_assert_uint_eq(g.causes[FEED_TIME], 1);
	rig_clear(&g);
}
