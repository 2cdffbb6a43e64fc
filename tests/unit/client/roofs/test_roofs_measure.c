/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * What measuring works out: intervals, levels of made-up sweeps; and that each kernel this machine
 * can run does what its row of the table says.
 */
#include <math.h>
#include <stdlib.h>

#include "client/roofs/caches.h"
#include "client/roofs/measure/measure.h"
#include "client/roofs/measure/probe.h"
#include "client/roofs/measure/scope.h"
#include "client/roofs/measure/statistics.h"
#include "client/roofs/measure/sweep.h"
#include "proto/base/memory.h"
#include "tests/unit/test.h"

TEST(nine_repeats_give_the_second_and_the_eighth)
{
	const double nine[] = {9, 1, 8, 2, 7, 3, 6, 4, 5};
	struct middle m = statistics_middle(nine, 9, false);
	ck_assert_double_eq(m.value, 5);
	ck_assert_double_eq(m.low, 2);
	ck_assert_double_eq(m.high, 8);
	m = statistics_middle(nine, 9, true);
	ck_assert_double_eq(m.low, 1);
	ck_assert_double_eq(m.high, 9);
}

/* Source: H. A. David, H. N. Nagaraja, "Order Statistics", table of 7.1: at least 95 %. */
TEST(ranks_are_those_of_the_table)
{
	static const size_t rank[][2] = {{1, 1}, {5, 1}, {6, 1}, {8, 1}, {9, 2}, {11, 2}, {12, 3},
		{15, 4}, {20, 6}, {25, 8}};
	for (size_t i = 0; i < sizeof(rank) / sizeof(*rank); i++)
		ck_assert_uint_eq(statistics_rank(rank[i][0]), rank[i][1]);
}

TEST(an_even_number_of_repeats_has_its_middle_between_two)
{
	const double six[] = {1, 2, 3, 4, 5, 100};
	ck_assert_double_eq(statistics_middle(six, 6, false).value, 3.5);
	ck_assert_double_eq(statistics_middle(six, 6, false).high, 100);
	ck_assert_double_eq(statistics_middle(six, 1, false).value, 1);
}

TEST(a_rate_that_falls_over_time_is_throttled)
{
	const double falls[] = {100, 100, 100, 98, 98, 98, 96, 96, 96};
	const double rises[] = {96, 96, 96, 98, 98, 98, 100, 100, 100};
	double first = 0, last = 0;
	ck_assert(statistics_throttled(falls, 9, &first, &last));
	ck_assert_double_eq(first, 100);
	ck_assert_double_eq(last, 96);
	ck_assert(!statistics_throttled(rises, 9, &first, &last));
	ck_assert(!statistics_throttled(falls, 5, &first, &last));
}

/* --- levels ----------------------------------------------------------------------------------- */

/* A sweep to 1 GiB over caches of these sizes with these rates; between two it falls over `slope`
 * octaves; each point is off by up to `noise`. */
static size_t made(const uint64_t *cache, const double *rate, size_t n_caches, double slope,
	double noise, struct sweep_point *ret_point)
{
	size_t n = sweep_sizes(4096, 1u << 30, 2048, ret_point);
	unsigned random = 1;
	for (size_t i = 0; i < n; i++) {
		double value = rate[0];
		for (size_t k = 0; k < n_caches; k++) {
			double over = log2((double)ret_point[i].bytes / (double)cache[k]);
			double part = over <= 0                     ? 0
				      : slope == 0 || over >= slope ? 1
								    : over / slope;
			value *= pow(rate[k + 1] / rate[k], part);
		}
		random = random * 1103515245 + 12345;
		ret_point[i].rate = value * (1 - noise * (random >> 16 & 0x7fff) / 32768.0);
	}
	return n;
}

static void must_find(
	const uint64_t *cache, const double *rate, size_t n_caches, double slope, double noise)
{
	struct sweep_point point[SWEEP_POINTS_MAX];
	struct level level[SWEEP_LEVELS_MAX];
	size_t n = made(cache, rate, n_caches, slope, noise, point);
	ck_assert_uint_eq(sweep_levels(point, n, &(struct sweep_hint){0}, level), n_caches + 1);
	for (size_t i = 0; i < n_caches; i++) {
		double knee = (double)level[i].knee / (double)cache[i];
		ck_assert_msg(knee > 0.7 && knee < 1.4, "L%zu: %f", i + 1, knee);
		ck_assert_uint_le(level[i].bytes, cache[i]);
		ck_assert_double_eq_tol(level[i].rate, rate[i], 0.15 * rate[i]);
	}
	ck_assert_str_eq(level[n_caches].name, "DRAM");
	ck_assert_uint_eq(level[n_caches].knee, 0);
	ck_assert_uint_eq(level[n_caches].bytes, point[n - 1].bytes);
}

TEST(levels_are_found_without_knowing_sizes)
{
	const uint64_t server[] = {48 << 10, 2 << 20, 64 << 20}, board[] = {32 << 10, 512 << 10};
	const double fast[] = {400, 180, 90, 14}, slow[] = {16, 8, 3};
	for (int noise = 0; noise <= 8; noise += 4)
		for (int slope = 0; slope <= 2; slope++) {
			must_find(server, fast, 3, slope, noise / 100.0);
			must_find(board, slow, 2, slope, noise / 100.0);
		}
}

TEST(a_level_as_fast_as_the_one_before_is_no_level)
{
	const uint64_t cache[] = {32 << 10, 1 << 20};
	const double rate[] = {16, 15, 3};
	struct sweep_point point[SWEEP_POINTS_MAX];
	struct level level[SWEEP_LEVELS_MAX];
	size_t n = made(cache, rate, 2, 0, 0, point);
	ck_assert_uint_eq(sweep_levels(point, n, &(struct sweep_hint){0}, level), 2);
	ck_assert_str_eq(level[1].name, "DRAM");
}

TEST(what_falls_to_the_end_has_no_memory)
{
	const uint64_t cache[] = {32 << 10, 64 << 20};
	const double rate[] = {16, 8, 1};
	struct sweep_point point[SWEEP_POINTS_MAX];
	struct level level[SWEEP_LEVELS_MAX];
	size_t n = made(cache, rate, 2, 6, 0, point);
	size_t found = sweep_levels(point, n, &(struct sweep_hint){0}, level);
	ck_assert_uint_ge(found, 1);
	ck_assert_uint_gt(level[found - 1].knee, 0);
	ck_assert_uint_eq(sweep_levels(point, 3, &(struct sweep_hint){0}, level), 0);
}

TEST(what_a_cache_may_hold_is_no_memory)
{
	const uint64_t cache[] = {32 << 10, 1 << 20};
	const double rate[] = {16, 8, 3};
	struct sweep_point point[SWEEP_POINTS_MAX];
	struct level level[SWEEP_LEVELS_MAX];
	size_t n = made(cache, rate, 2, 0, 0, point);
	/* sizes of L1 and L2 are not known */
	struct sweep_hint three = {.cache = {0, 0, 1u << 30}, .n_caches = 3},
			  two = {.cache = {0, 1u << 30}, .n_caches = 2};
	ck_assert(!sweep_is_stated(&three));
	ck_assert_uint_eq(sweep_levels(point, n, &three, level), 3);
	ck_assert_str_eq(level[2].name, "L3");

	/* behind as many levels as there are caches, it is memory, however large they claim to be */
	ck_assert_uint_eq(sweep_levels(point, n, &two, level), 3);
	ck_assert_str_eq(level[2].name, "DRAM");

	/* a sweep that ended early */
	while (point[n - 1].bytes > 3 << 20)
		n--;
	ck_assert_uint_eq(sweep_levels(point, n, &(struct sweep_hint){0}, level), 3);
	ck_assert_str_eq(level[2].name, "L3");
}

TEST(memory_that_others_disturb_is_one_level)
{
	const uint64_t cache[] = {32 << 10, 1 << 20, 128 << 20};
	const double rate[] = {16, 8, 3, 2};
	struct sweep_point point[SWEEP_POINTS_MAX];
	struct level level[SWEEP_LEVELS_MAX];
	size_t n = made(cache, rate, 3, 0, 0, point);
	const struct sweep_hint two = {.cache = {0, 1 << 20}, .n_caches = 2};
	ck_assert_uint_eq(sweep_levels(point, n, &two, level), 3);
	ck_assert_str_eq(level[2].name, "DRAM");
	ck_assert_double_eq(level[2].rate, 2);
}

/* --- levels of stated sizes ------------------------------------------------------------------- */

static const struct sweep_hint zen = {.cache = {32 << 10, 1 << 20, 32 << 20}, .n_caches = 3};
static const double zen_rate[] = {220, 110, 80, 24};

static void has_level(const struct level *level, const char *name, uint64_t least, uint64_t most)
{
	ck_assert_str_eq(level->name, name);
	ck_assert_msg(level->bytes >= least && level->bytes <= most,
		"%s is measured with %llu bytes", name, (unsigned long long)level->bytes);
}

static void has_levels_of_zen(const struct sweep_point *point, size_t n)
{
	struct level level[SWEEP_LEVELS_MAX];
	ck_assert_uint_eq(sweep_levels(point, n, &zen, level), 4);
	has_level(&level[0], "L1", 4 << 10, 32 << 10);
	has_level(&level[1], "L2", 33 << 10, 1 << 20);
	has_level(&level[2], "L3", 1025 << 10, 32 << 20);
	has_level(&level[3], "DRAM", 64 << 20, 1 << 30);
	ck_assert_uint_eq(level[0].knee, 32 << 10);
	ck_assert_uint_eq(level[2].knee, 32 << 20);
	ck_assert_uint_eq(level[3].knee, 0);
}

TEST(stated_sizes_give_levels_their_names)
{
	struct sweep_point point[SWEEP_POINTS_MAX];
	for (int noise = 0; noise <= 8; noise += 4)
		has_levels_of_zen(point, made(zen.cache, zen_rate, 3, 0.5, noise / 100.0, point));
}

/* A neighbour slowed the sizes of L1, so that they looked like L2's: by order they were one level, which was
 * measured with half of 1 MiB and called L1. */
TEST(what_a_neighbour_merges_stays_two_levels)
{
	struct sweep_point point[SWEEP_POINTS_MAX];
	size_t n = made(zen.cache, zen_rate, 3, 0, 0.04, point);
	for (size_t i = 0; i < n; i++)
		if (point[i].bytes <= 32 << 10)
			point[i].rate = 112;
	has_levels_of_zen(point, n);
}

/* It slowed a part of L3: that is no level of its own. */
TEST(what_a_neighbour_divides_stays_one_level)
{
	struct sweep_point point[SWEEP_POINTS_MAX];
	size_t n = made(zen.cache, zen_rate, 3, 0, 0.04, point);
	for (size_t i = 0; i < n; i++)
		if (point[i].bytes > 13776 << 10 && point[i].bytes <= 32 << 20)
			point[i].rate = 40;
	has_levels_of_zen(point, n);
	while (point[n - 1].bytes > 128 << 20) /* as far as a quick run goes */
		n--;
	has_levels_of_zen(point, n);
}

TEST(a_stated_level_without_a_steady_rate_is_not_found)
{
	struct sweep_point point[SWEEP_POINTS_MAX];
	struct level level[SWEEP_LEVELS_MAX];
	size_t n = made(zen.cache, zen_rate, 3, 0, 0, point);
	for (size_t i = 0; i < n; i++)
		if (point[i].bytes > 32 << 10 && point[i].bytes <= 1 << 20)
			point[i].rate = 220 / pow(2, 1 + (double)i / 3);
	ck_assert_uint_eq(sweep_levels(point, n, &zen, level), 3);
	ck_assert_str_eq(level[0].name, "L1");
	ck_assert_str_eq(level[1].name, "L3");
	ck_assert_str_eq(level[2].name, "DRAM");

	/* a virtual machine states an L3 of which it has nothing */
	n = made(zen.cache, (const double[]){220, 110, 24, 24}, 3, 0, 0, point);
	ck_assert_uint_eq(sweep_levels(point, n, &zen, level), 3);
	ck_assert_str_eq(level[1].name, "L2");
	ck_assert_str_eq(level[2].name, "DRAM");

	/* a sweep that ended before memory */
	n = made(zen.cache, zen_rate, 3, 0, 0, point);
	while (point[n - 1].bytes >= 64 << 20)
		n--;
	ck_assert_uint_eq(sweep_levels(point, n, &zen, level), 3);
	ck_assert_str_eq(level[2].name, "L3");
}

TEST(caches_by_documents_are_those_of_the_harts_kind)
{
	static const char text[] = "0-3:32768/1,524288/4;4,5:65536/1,1048576/0";
	struct machine_caches c = caches_of(text, 2);
	ck_assert_uint_eq(c.n_levels, 2);
	ck_assert_uint_eq(c.level[0].bytes, 32768);
	ck_assert_uint_eq(c.level[1].bytes, 524288);
	ck_assert_uint_eq(c.level[1].n_sharing, 4);
	ck_assert(caches_are_stated(&c));
	c = caches_of(text, 5);
	ck_assert_uint_eq(c.level[1].bytes, 1048576);
	ck_assert_uint_eq(c.level[1].n_sharing, 2); /* not said: all of them */
	c = caches_of(text, 6);
	ck_assert_uint_eq(c.n_levels, 0);
	ck_assert(!caches_are_stated(&c));
}

TEST(texts_that_are_no_caches_say_nothing)
{
	static const char *const texts[] = {"", "0", "0:", ":1/1", "0:1", "0:1/", "0:0/1", "0:1/1x",
		"x:1/1", ";", "0:a/1", "0;0", "99999:1/1"};
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		ck_assert_msg(caches_of(texts[i], 0).n_levels == 0, "%s", texts[i]);
}

TEST(sizes_that_do_not_ascend_state_nothing)
{
	ck_assert(sweep_is_stated(&zen));
	ck_assert(!sweep_is_stated(&(struct sweep_hint){.n_caches = 0}));
	ck_assert(!sweep_is_stated(&(struct sweep_hint){.cache = {32 << 10, 0}, .n_caches = 2}));
	ck_assert(!sweep_is_stated(
		&(struct sweep_hint){.cache = {64 << 10, 32 << 10}, .n_caches = 2}));
}

/* --- what disturbs ---------------------------------------------------------------------------- */

TEST(of_slowed_repeats_the_upper_quartile_is_the_roof)
{
	const double slowed[] = {100, 55, 98, 60, 99, 50, 52, 97, 58};
	ck_assert_double_eq(statistics_upper(slowed, 9), 98);
	ck_assert_double_eq(statistics_upper(slowed, 1), 100);
	ck_assert_double_eq(statistics_upper(slowed, 2), 100);
}

TEST(a_run_beside_others_is_called_disturbed)
{
	char text[ROOF_NOTE_BYTES];
	const struct tally calm = {.n_repeats = 900, .n_disturbed = 45},
			   taken = {.n_repeats = 900, .n_disturbed = 450};
	measure_disturbed(&(struct measure_load){0.5, 2, 10}, &calm, text);
	ck_assert_str_eq(text, "");
	measure_disturbed(&(struct measure_load){13, 2, 10}, &calm, text);
	ck_assert_str_eq(text,
		"other programs used 1.30 of 2 harts meanwhile, and 5 % of the repeats "
		"lost a hart to others");
	measure_disturbed(&(struct measure_load){0, 2, 10}, &taken, text); /* a hypervisor's */
	ck_assert_str_eq(text,
		"other programs used 0.00 of 2 harts meanwhile, and 50 % of the repeats "
		"lost a hart to others");
	measure_disturbed(&(struct measure_load){3, 64, 10}, &(struct tally){0}, text);
	ck_assert_str_eq(text, "");
}

TEST(one_disturbed_point_makes_no_level)
{
	const uint64_t cache[] = {32 << 10};
	const double rate[] = {16, 4};
	struct sweep_point point[SWEEP_POINTS_MAX];
	struct level level[SWEEP_LEVELS_MAX];
	size_t n = made(cache, rate, 1, 0, 0, point);
	point[4].rate = 1;
	point[n - 10].rate = 30;
	ck_assert_uint_eq(sweep_levels(point, n, &(struct sweep_hint){0}, level), 2);
}

TEST(sizes_ascend_in_whole_blocks)
{
	struct sweep_point point[SWEEP_POINTS_MAX];
	size_t n = sweep_sizes(4096, 1u << 30, 2048, point);
	ck_assert_uint_gt(n, 60);
	for (size_t i = 0; i < n; i++) {
		ck_assert_uint_eq(point[i].bytes % 2048, 0);
		ck_assert(i == 0 || point[i].bytes > point[i - 1].bytes);
	}
	ck_assert_uint_le(sweep_sizes(1, UINT64_MAX / 4096, 1, point), SWEEP_POINTS_MAX);
}

/* --- kernels ---------------------------------------------------------------------------------- */

TEST(kernels_do_what_their_table_says)
{
	_cleanup_(freep) struct probe *probe = calloc(n_kernels, sizeof(*probe));
	size_t n_right = 0;
	ck_assert_ptr_nonnull(probe);
	ck_assert_int_eq(probe_kernels(0, probe), 0);
	for (size_t i = 0; i < n_kernels; i++) {
		ck_assert_msg(
			probe[i].verdict != PROBE_WRONG, "%s: %s", kernels[i].name, probe[i].fault);
		n_right += probe[i].verdict == PROBE_RIGHT;
	}
	ck_assert_uint_ge(n_right, 12); /* scalars are everywhere */
}

TEST(a_wrong_count_is_found)
{
	struct kernel wrong = kernels[0];
	char fault[ROOF_NOTE_BYTES] = "";
	wrong.per++;
	ck_assert_int_eq(kernel_check(&kernels[0], fault), 0);
	ck_assert_int_eq(kernel_check(&wrong, fault), 1);
	ck_assert_str_ne(fault, "");
}

static uint64_t stores_nothing(uint64_t passes, uint64_t bytes, void *a, void *b, void *c)
{
	(void)a;
	(void)b;
	(void)c;
	return passes * bytes;
}

TEST(a_kernel_that_moves_nothing_is_found)
{
	static const char *const patterns[] = {"store", "copy", "2:1", "triad", "nt-store"};
	char fault[ROOF_NOTE_BYTES];
	for (size_t i = 0; i < sizeof(patterns) / sizeof(*patterns); i++) {
		struct kernel k = {
			.name = "x",
			.limit = ROOF_MEMORY,
			.unit = "scalar",
			.precision = "",
			.memory = stores_nothing,
			.operation = patterns[i],
			.per = 1,
			.nontemporal = patterns[i][0] == 'n',
		};
		ck_assert_int_eq(kernel_check(&k, fault), 1);
	}
}
