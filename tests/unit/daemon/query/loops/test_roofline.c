/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Figures of a roofline from sums that are known.
 */
#include <math.h>

#include "daemon/query/loops/roofline_private.h"
#include "tests/unit/test.h"

static const struct roof_costs costs = {.update_ns = 0.5, .clock_ns = 30};

static void near(double value, double wanted)
{
	ck_assert_msg(
		fabs(value - wanted) <= 1e-12 * fabs(wanted), "%.17g is not %.17g", value, wanted);
}

TEST(correction_is_that_of_the_equations)
{
	/* A = 40, I = 100, U = 10: OMAF 0.4, NMAF 60/120, MF 1.25, CF 1.125 */
	near(roof_correction(40, 100, 10), 1.125);
}

TEST(without_updates_nothing_is_corrected)
{
	near(roof_correction(40, 100, 0), 1);
	near(roof_correction(0, 0, 0), 1);
	near(roof_correction(0, 0, 5), 1);
}

TEST(without_accesses_updates_alone_cost)
{
	near(roof_correction(0, 100, 10), 1.1);
}

/* Of 200 ns. */
static struct roof_figures figures(
	const struct roof_sums *s, enum roof_clock clock, enum roofline_ops ops)
{
	return roof_figures_of(s, &(struct roof_time){clock, 200}, ops, &costs);
}

TEST(rates_are_over_the_time)
{
	struct roof_sums s = {.value = {[LOOP_FP64_OPS] = 600,
				      [LOOP_FP32_OPS] = 200,
				      [LOOP_INT_OPS] = 50,
				      [LOOP_BYTES_LOADED] = 300,
				      [LOOP_BYTES_STORED] = 100,
				      [LOOP_LANES_ISSUED] = 8,
				      [LOOP_LANES_ACTIVE] = 6}};
	struct roof_figures f = figures(&s, ROOF_MEASURED, ROOFLINE_FP);
	near(f.ops_per_ns, 4);
	near(f.bytes_per_ns, 2);
	near(f.ops_per_byte, 2);
	near(f.lanes, 0.75);
	near(figures(&s, ROOF_MEASURED, ROOFLINE_SP).ops_per_ns, 1);
	near(figures(&s, ROOF_MEASURED, ROOFLINE_DP).ops_per_ns, 3);
	near(figures(&s, ROOF_MEASURED, ROOFLINE_INT).ops_per_byte, 0.125);
}

TEST(what_was_not_measured_is_absent)
{
	struct roof_sums s = {.value = {[LOOP_FP64_OPS] = 600}};
	struct roof_figures f = figures(&s, ROOF_NO_CLOCK, ROOFLINE_FP);
	ck_assert(f.time_ns < 0 && f.ops_per_ns < 0 && f.bytes_per_ns < 0 && f.ops_per_byte < 0);
	ck_assert(f.bytes_per_ns_corrected < 0 && f.lanes < 0 && f.cost < 0);
	near(f.ops, 600);
}

TEST(counting_costs_its_updates_and_looks_at_the_clock)
{
	struct roof_sums s = {
		.value = {[LOOP_UPDATES] = 40, [LOOP_ENTRIES] = 1, [LOOP_TIMED_ENTRIES] = 1}};
	near(figures(&s, ROOF_MEASURED, ROOFLINE_FP).cost, (40 * 0.5 + 2 * 30) / 200);
	struct roof_costs here = roof_costs_measure();
	ck_assert(here.update_ns > 0.01 && here.clock_ns > here.update_ns);
}

TEST(errors_are_those_of_chance_and_of_the_clock)
{
	struct roof_sums s = {
		.value = {[LOOP_ENTRIES] = 2, [LOOP_TIMED_ENTRIES] = 2}, .samples = 16};
	near(figures(&s, ROOF_SAMPLED, ROOFLINE_FP).error, 0.25);
	near(figures(&s, ROOF_MEASURED, ROOFLINE_FP).error, 30.0 / 100);
	s.value[LOOP_TIMED_ENTRIES] = 0; /* as of a region */
	near(figures(&s, ROOF_MEASURED, ROOFLINE_FP).error, 30.0 / 100);
	s.value[LOOP_TIMED_ENTRIES] = 2;
	s.value[LOOP_ENTRIES] = 50; /* of which 2 stand for all */
	near(figures(&s, ROOF_MEASURED, ROOFLINE_FP).error, hypot(30.0 / 4, 1 / sqrt(2)));
	ck_assert(figures(&s, ROOF_SHARED, ROOFLINE_FP).error < 0);
	ck_assert(figures(&s, ROOF_SPAN, ROOFLINE_FP).error < 0);
}

TEST(words_that_are_none_are_refused)
{
	ck_assert_int_eq(roofline_by_parse("region"), ROOFLINE_REGION);
	ck_assert_int_eq(roofline_by_parse("regio"), -1);
	ck_assert_int_eq(roofline_by_parse(""), -1);
	ck_assert_int_eq(roofline_ops_parse("dp"), ROOFLINE_DP);
	ck_assert_int_eq(roofline_ops_parse("DP"), -1);
}

TEST(every_value_is_found_by_its_name)
{
	const struct loop_granted granted = {
		.name = {"task-clock", "instructions"}, .is_time = {true}};
	char name[LOOP_METRIC_NAME_BYTES];
	ck_assert_ptr_null(loop_value_name(0, &granted, name));
	ck_assert_ptr_null(loop_value_name(N_LOOP_VALUES, &granted, name));
	ck_assert_uint_eq(loop_value_find("modelled"), 0);
	ck_assert_uint_eq(loop_value_find(""), 0);
	for (unsigned i = 2; i < LOOP_VALUE(LOOP_GRANTED, false); i++) {
		ck_assert_ptr_nonnull(loop_value_name(i, &granted, name));
		ck_assert_uint_eq(loop_value_find(name), i);
		ck_assert_ptr_nonnull(loop_value_unit(i, &granted));
	}
	/* what was granted is called as its list says, and never as a metric of our own */
	unsigned first = LOOP_VALUE(LOOP_GRANTED, false), second = first + 2;
	ck_assert_str_eq(loop_value_name(first, &granted, name), "granted:task-clock");
	ck_assert_str_eq(loop_value_unit(first, &granted), "ns");
	ck_assert_str_eq(loop_value_name(second, &granted, name), "granted:instructions");
	ck_assert_str_eq(loop_value_unit(second, &granted), "count");
	ck_assert_uint_eq(loop_value_find(name), 0);
	ck_assert_ptr_null(loop_value_name(first, NULL, name));
	ck_assert_ptr_null(loop_value_name(second + 2, &granted, name));
}
