/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * What counted entries of a function in two bodies stand for.
 */
#include <math.h>

#include "daemon/query/loops/facts_private.h"
#include "tests/unit/test.h"

enum { ENTRIES = LOOP_ENTRIES, COUNTED = LOOP_COUNTED_ENTRIES, OPS = LOOP_FP64_OPS };

static uint32_t site(
	struct loop_facts *f, uint8_t kind, uint8_t flags, const char *nest, uint32_t in)
{
	uint32_t number;
	const struct fact_site_key key = {.kind = kind,
		.flags = flags,
		.subprogram = "spmv",
		.source = "spmv.c",
		.nest = nest,
		.inlined_at = "",
		.build_id = "",
		.line = 7,
		.parent = in};
	ck_assert_int_eq(loop_facts_site(f, &key, &number), 0);
	return number;
}

static void set(struct loop_facts *f, uint32_t of, uint32_t region, unsigned metric, uint64_t value)
{
	struct fact *fact;
	const struct key key = FACT_KEY(of, region, 0, 0);
	ck_assert_int_eq(loop_facts_get(f, &key, &fact), 0);
	fact->value[LOOP_VALUE(metric, false)] = value;
}

static uint64_t get(struct loop_facts *f, uint32_t of, uint32_t region, unsigned metric)
{
	struct fact *fact;
	const struct key key = FACT_KEY(of, region, 0, 0);
	ck_assert_int_eq(loop_facts_get(f, &key, &fact), 0);
	return fact->value[LOOP_VALUE(metric, false)];
}

/* A function with a nest of two loops. */
struct nest {
	struct loop_facts f;
	uint32_t function, outer, inner;
};

static void begin(struct nest *n, uint8_t flags)
{
	*n = (struct nest){0};
	n->function = site(&n->f, LOOP_SITE_FUNCTION, flags, "", 0);
	n->outer = site(&n->f, LOOP_SITE_LOOP, flags, "1", n->function);
	n->inner = site(&n->f, LOOP_SITE_LOOP, 0, "1.1", n->outer);
}

TEST(counts_are_multiplied_by_entries_over_counted_entries)
{
	struct nest n;
	begin(&n, MPERF_SCOPE_CLONED);
	set(&n.f, n.function, 0, ENTRIES, 1000);
	set(&n.f, n.function, 0, COUNTED, 10);
	set(&n.f, n.function, 0, OPS, 30);
	loop_facts_scale(&n.f);
	ck_assert_uint_eq(get(&n.f, n.function, 0, OPS), 3000);
	ck_assert_uint_eq(get(&n.f, n.function, 0, ENTRIES), 1000);
	ck_assert_uint_eq(get(&n.f, n.function, 0, COUNTED), 10);
	ck_assert(n.f.scaled.any);
	ck_assert_uint_eq(n.f.scaled.n_scarce, 0);
	loop_facts_clear(&n.f);
}

TEST(a_nest_has_a_ratio_of_its_own_and_loops_inside_have_it_too)
{
	struct nest n;
	begin(&n, MPERF_SCOPE_CLONED);
	set(&n.f, n.function, 0, ENTRIES, 1000);
	set(&n.f, n.function, 0, COUNTED, 10);
	set(&n.f, n.outer, 0, ENTRIES, 60);
	set(&n.f, n.outer, 0, COUNTED, 3);
	set(&n.f, n.outer, 0, OPS, 5);
	set(&n.f, n.inner, 0, ENTRIES, 7);
	set(&n.f, n.inner, 0, OPS, 11);
	loop_facts_scale(&n.f);
	ck_assert_uint_eq(get(&n.f, n.outer, 0, OPS), 100);
	ck_assert_uint_eq(get(&n.f, n.outer, 0, ENTRIES), 60);
	ck_assert_uint_eq(get(&n.f, n.inner, 0, ENTRIES), 140);
	ck_assert_uint_eq(get(&n.f, n.inner, 0, OPS), 220);
	loop_facts_clear(&n.f);
}

TEST(time_and_what_counting_cost_are_of_all_entries_already)
{
	struct nest n;
	begin(&n, MPERF_SCOPE_CLONED);
	set(&n.f, n.outer, 0, ENTRIES, 100);
	set(&n.f, n.outer, 0, COUNTED, 10);
	set(&n.f, n.outer, 0, LOOP_TIME_NS, 5000);
	set(&n.f, n.outer, 0, LOOP_TIMED_ENTRIES, 100);
	set(&n.f, n.outer, 0, LOOP_UPDATES, 120);
	loop_facts_scale(&n.f);
	ck_assert_uint_eq(get(&n.f, n.outer, 0, LOOP_TIME_NS), 5000);
	ck_assert_uint_eq(get(&n.f, n.outer, 0, LOOP_TIMED_ENTRIES), 100);
	ck_assert_uint_eq(get(&n.f, n.outer, 0, LOOP_UPDATES), 120);
	loop_facts_clear(&n.f);
}

TEST(where_all_entries_count_nothing_changes)
{
	struct nest n;
	begin(&n, MPERF_SCOPE_CLONED);
	set(&n.f, n.function, 0, ENTRIES, 3);
	set(&n.f, n.function, 0, COUNTED, 3);
	set(&n.f, n.function, 0, OPS, 7);
	loop_facts_scale(&n.f);
	ck_assert_uint_eq(get(&n.f, n.function, 0, OPS), 7);
	ck_assert(!n.f.scaled.any);
	loop_facts_clear(&n.f);
}

TEST(a_function_in_one_body_is_left_alone)
{
	struct nest n;
	begin(&n, 0);
	set(&n.f, n.function, 0, ENTRIES, 1000);
	set(&n.f, n.function, 0, COUNTED, 10); /* a liar's */
	set(&n.f, n.function, 0, OPS, 7);
	loop_facts_scale(&n.f);
	ck_assert_uint_eq(get(&n.f, n.function, 0, OPS), 7);
	ck_assert_uint_eq(loop_facts_counted_by(&n.f, n.inner), 0);
	loop_facts_clear(&n.f);
}

TEST(what_counted_once_or_never_is_scarce)
{
	struct nest n;
	begin(&n, MPERF_SCOPE_CLONED);
	set(&n.f, n.function, 0, ENTRIES, 30);
	set(&n.f, n.function, 0, COUNTED, 1);
	set(&n.f, n.outer, 0, ENTRIES, 20);
	loop_facts_scale(&n.f);
	ck_assert_uint_eq(n.f.scaled.n_scarce, 2);
	loop_facts_clear(&n.f);
}

TEST(counts_without_a_counted_entry_stay_as_they_are)
{
	struct nest n;
	begin(&n, MPERF_SCOPE_CLONED);
	set(&n.f, n.function, 0, ENTRIES, 30);
	set(&n.f, n.function, 0, OPS, 4);
	loop_facts_scale(&n.f);
	ck_assert_uint_eq(get(&n.f, n.function, 0, OPS), 4);
	loop_facts_clear(&n.f);
}

TEST(regions_have_ratios_of_their_own)
{
	struct nest n;
	begin(&n, MPERF_SCOPE_CLONED);
	for (uint32_t region = 1; region <= 2; region++) {
		set(&n.f, n.function, region, ENTRIES, 100 * region);
		set(&n.f, n.function, region, COUNTED, 50);
		set(&n.f, n.function, region, OPS, 10);
	}
	loop_facts_scale(&n.f);
	ck_assert_uint_eq(get(&n.f, n.function, 1, OPS), 20);
	ck_assert_uint_eq(get(&n.f, n.function, 2, OPS), 40);
	loop_facts_clear(&n.f);
}

TEST(made_up_counts_do_not_wrap)
{
	struct nest n;
	begin(&n, MPERF_SCOPE_CLONED);
	set(&n.f, n.function, 0, ENTRIES, UINT64_MAX);
	set(&n.f, n.function, 0, COUNTED, 1);
	set(&n.f, n.function, 0, OPS, UINT64_MAX);
	loop_facts_scale(&n.f);
	ck_assert_uint_eq(get(&n.f, n.function, 0, OPS), UINT64_MAX);
	loop_facts_clear(&n.f);
}

TEST(the_error_is_that_of_a_part_of_all)
{
	ck_assert_double_eq(loop_share_error(100, 100), 0);
	ck_assert_double_eq(loop_share_error(100, 0), 0);
	ck_assert_double_eq(loop_share_error(0, 0), 0);
	ck_assert_double_eq_tol(loop_share_error(1000000, 100), 0.1, 1e-4);
	ck_assert_double_eq_tol(loop_share_error(2, 1), sqrt(0.5), 1e-12);
}
