/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Whose time it is: nests made by hand, with measured time, samples and counts, and the time that
 * each loop gets.
 */
#include <math.h>
#include <stdlib.h>

#include "daemon/query/loops/roofline_private.h"
#include "tests/unit/test.h"

#define SITES_MAX 8
#define SAMPLE_NS 1e7

/* A loop as the program and the samples say. */
struct given {
	uint32_t parent; /* index + 1 */
	double measured_ns, instructions, calls;
	uint64_t samples;
	double copied; /* a copy: accesses that it is taken to make */
};

static struct fact_site site[SITES_MAX];
static struct roof_sums self[SITES_MAX], total[SITES_MAX];
static struct roofline r;
static struct roof_time *self_time, *total_time; /* by group */

static bool callers; /* samples tell who called a copy */

static void clear(uint32_t n)
{
	roof_times_clear(&r.times);
	r = (struct roofline){.groups = {.n = n, .self = self, .total = total},
		.facts.sites.site = site,
		.facts.samples.callers = callers};
}

static void find_times(void)
{
	roof_times_clear(&r.times);
	ck_assert_int_eq(roofline_times(&r), 0);
	self_time = r.times.self;
	total_time = r.times.total;
}

/* What loops ran inside a site is in its total. */
static void sum_totals(uint32_t n)
{
	for (uint32_t i = n; i > 0; i--)
		if (site[i - 1].parent) {
			total[site[i - 1].parent - 1].samples += total[i - 1].samples;
			total[site[i - 1].parent - 1].sampled_ns += total[i - 1].sampled_ns;
		}
}

static void give(const struct given *given, uint32_t n)
{
	clear(n);
	for (uint32_t i = 0; i < n; i++) {
		site[i] = (struct fact_site){
			.kind = given[i].copied ? LOOP_SITE_CALLEE : LOOP_SITE_LOOP,
			.parent = given[i].parent,
			.line = i + 1};
		self[i] = (struct roof_sums){.samples = given[i].samples,
			.sampled_ns = SAMPLE_NS * (double)given[i].samples,
			.value = {[LOOP_TIME_NS] = given[i].measured_ns,
				[LOOP_INSTRUCTIONS] = given[i].instructions,
				[LOOP_CALLS] = given[i].calls,
				[LOOP_LOADS] = given[i].copied,
				[LOOP_BYTES_LOADED] = 8 * given[i].copied}};
		r.facts.samples.taken.ns += self[i].sampled_ns;
		total[i] = self[i];
	}
	sum_totals(n);
	find_times();
}

/* A function of these loops, whose parents are counted from the function: 0 is the function. */
static void give_function(const struct given *given, uint32_t n)
{
	clear(n + 1);
	r.q.by = ROOFLINE_FUNCTION;
	site[0] = (struct fact_site){.kind = LOOP_SITE_FUNCTION};
	self[0] = total[0] = (struct roof_sums){0};
	for (uint32_t i = 0; i < n; i++) {
		site[i + 1] = (struct fact_site){
			.kind = LOOP_SITE_LOOP, .parent = given[i].parent + 1, .line = i + 1};
		self[i + 1] = (struct roof_sums){.samples = given[i].samples,
			.sampled_ns = SAMPLE_NS * (double)given[i].samples,
			.value = {[LOOP_TIME_NS] = given[i].measured_ns,
				[LOOP_INSTRUCTIONS] = given[i].instructions}};
		r.facts.samples.taken.ns += self[i + 1].sampled_ns;
		total[i + 1] = self[i + 1];
	}
	sum_totals(n + 1);
	find_times();
}

static void near(double value, double wanted)
{
	ck_assert_msg(
		fabs(value - wanted) <= 1e-6 * fabs(wanted) + 1e-9, "%g, not %g", value, wanted);
}

/* Children never add up to more than the row, rows never to more than the whole. */
static void check_sums(void)
{
	double own_ns = 0;
	for (uint32_t i = 0; i < r.groups.n; i++) {
		double inside_ns = fmax(self_time[i].ns, 0);
		if (site[i].kind != LOOP_SITE_LOOP)
			continue;
		for (uint32_t k = i + 1; k < r.groups.n; k++)
			if (site[k].parent == i + 1)
				inside_ns += total_time[k].ns;
		ck_assert_msg(inside_ns <= total_time[i].ns * (1 + 1e-9), "row %u: %g > %g", i,
			inside_ns, total_time[i].ns);
		own_ns += fmax(self_time[i].ns, 0);
	}
	ck_assert(own_ns <= r.times.whole_ns * (1 + 1e-9));
}

TEST(a_nest_of_one_loop_has_the_measured_time)
{
	give((const struct given[]){{.measured_ns = 5e8, .instructions = 1, .samples = 40}}, 1);
	near(self_time[0].ns, 5e8);
	ck_assert_int_eq(self_time[0].clock, ROOF_MEASURED);
	check_sums();
}

/* Loops of a function, of threads that counted for so long; of its samples these hit no line of a
 * loop. */
static void give_clocks(const struct given *given, uint32_t n, double span_ns, uint64_t elsewhere)
{
	give_function(given, n);
	self[0].samples = elsewhere;
	self[0].sampled_ns = SAMPLE_NS * (double)elsewhere;
	total[0].samples += elsewhere;
	total[0].sampled_ns += self[0].sampled_ns;
	for (uint32_t i = 0; i < n; i++)
		self[i + 1].value[LOOP_CALLS] = given[i].calls;
	r.q.by = ROOFLINE_LOOP;
	r.groups.span_ns = span_ns;
	r.facts.samples.taken.n = total[0].samples;
	r.facts.samples.taken.ns = total[0].sampled_ns;
	find_times();
	check_sums();
}

static const struct given two_nests[] = {{.measured_ns = 3e9, .instructions = 1, .samples = 100},
	{.measured_ns = 1e9, .instructions = 1, .samples = 60}};

TEST(nests_that_waited_have_the_cpu_time_of_samples)
{
	give_clocks(two_nests, 2, 4e9, 40);
	near(self_time[1].ns, 1.5e9);
	near(total_time[1].ns, 1.5e9);
	near(self_time[1].error, sqrt(1. / 200));
	ck_assert_int_eq(self_time[1].clock, ROOF_SAMPLED);
	ck_assert_int_eq(total_time[1].clock, ROOF_SAMPLED);
	near(self_time[2].ns, 0.5e9);
	near(r.times.waited_ns, 2e9);
	near(roofline_cpu_share(&r), 0.5);
}

TEST(where_no_thread_waited_times_are_the_measured_ones)
{
	give_clocks(two_nests, 2, 2.1e9, 40);
	near(self_time[1].ns, 3e9);
	ck_assert_int_eq(self_time[1].clock, ROOF_MEASURED);
	near(r.times.waited_ns, 0);
}

TEST(what_a_function_has_by_samples_is_enough_for_its_nests)
{
	give_clocks(two_nests, 2, 6e9, 200);
	near(self_time[1].ns, 3e9);
	near(r.times.waited_ns, 0);
}

TEST(a_nest_that_waited_is_divided_by_samples)
{
	give_clocks((const struct given[]){{.measured_ns = 9e9, .instructions = 1, .samples = 100},
			    {.parent = 1, .instructions = 1, .samples = 200}},
		2, 9e9, 0);
	near(self_time[1].ns, 1e9);
	near(self_time[2].ns, 2e9);
	near(total_time[1].ns, 3e9);
}

TEST(a_nest_with_calls_keeps_its_wall_time)
{
	give_clocks(
		(const struct given[]){
			{.measured_ns = 9e9, .instructions = 1, .calls = 7, .samples = 300}},
		1, 9e9, 0);
	near(self_time[1].ns, 3e9);
	near(total_time[1].ns, 9e9);
	ck_assert_int_eq(total_time[1].clock, ROOF_MEASURED);
	near(r.times.waited_ns, 0);
}

TEST(without_samples_a_nest_is_divided_by_instructions)
{
	give((const struct given[]){{.measured_ns = 8e6, .instructions = 1, .samples = 1},
		     {.parent = 1, .instructions = 3}},
		2);
	near(self_time[0].ns, 2e6);
	near(self_time[1].ns, 6e6);
	near(total_time[0].ns, 8e6);
	ck_assert_int_eq(self_time[1].clock, ROOF_SHARED);
	check_sums();
}

TEST(samples_divide_a_nest_that_calls_nothing)
{
	give((const struct given[]){{.measured_ns = 8e8, .instructions = 100, .samples = 20},
		     {.parent = 1, .instructions = 100, .samples = 60}},
		2);
	near(self_time[0].ns, 2e8);
	near(self_time[1].ns, 6e8);
	near(self_time[1].error, sqrt(0.25 / (80 * 0.75)));
	ck_assert_int_eq(self_time[1].clock, ROOF_SAMPLED);
	check_sums();
}

TEST(all_samples_in_one_loop_still_leave_an_error)
{
	give((const struct given[]){{.measured_ns = 8e8, .instructions = 100},
		     {.parent = 1, .instructions = 100, .samples = 50}},
		2);
	near(self_time[1].ns, 8e8);
	near(self_time[1].error, 1.0 / 50);
	near(self_time[0].ns, 0);
	check_sums();
}

TEST(loops_with_few_samples_share_what_these_say)
{
	give((const struct given[]){{.measured_ns = 1e9, .instructions = 30, .samples = 2},
		     {.parent = 1, .instructions = 10, .samples = 2},
		     {.parent = 1, .instructions = 500, .samples = 96}},
		3);
	near(self_time[2].ns, 0.96e9);
	near(self_time[0].ns, 0.03e9);
	near(self_time[1].ns, 0.01e9);
	check_sums();
}

TEST(time_of_calls_is_no_loops_own)
{
	/* 20 samples in its lines of a nest that took 100 of them; the rest was in what it called */
	give(
		(const struct given[]){
			{.measured_ns = 1e9, .instructions = 10, .calls = 50, .samples = 4},
			{.parent = 1, .instructions = 1000, .samples = 16}},
		2);
	near(self_time[1].ns, 0.16e9);
	near(self_time[0].ns, 0.04e9);
	near(total_time[0].ns, 1e9);
	check_sums();
}

TEST(a_loop_that_samples_never_hit_though_it_took_long_only_called)
{
	/* as a loop that starts parallel regions, which are another nest */
	give((const struct given[]){{.measured_ns = 1e9, .instructions = 1000, .calls = 50},
		     {.measured_ns = 9e8, .instructions = 10, .samples = 90}},
		2);
	near(self_time[0].ns, 0);
	near(total_time[0].ns, 1e9);
	near(self_time[1].ns, 9e8);
	/* where no loop was ever hit there may be no lines, and it says nothing */
	give((const struct given[]){{.measured_ns = 1e9, .instructions = 1000, .calls = 50}}, 1);
	near(self_time[0].ns, 1e9);
}

TEST(more_samples_than_measured_time_are_scaled_down)
{
	give(
		(const struct given[]){
			{.measured_ns = 1e8, .instructions = 10, .calls = 1, .samples = 10},
			{.parent = 1, .instructions = 10, .samples = 10}},
		2);
	near(self_time[0].ns, 0.5e8);
	near(self_time[1].ns, 0.5e8);
	check_sums();
}

TEST(a_loop_that_nobody_measured_has_its_samples)
{
	give((const struct given[]){{.instructions = 10, .samples = 1},
		     {.parent = 1, .instructions = 10, .samples = 3}, {.instructions = 10}},
		3);
	near(self_time[0].ns, SAMPLE_NS);
	near(total_time[0].ns, 4 * SAMPLE_NS);
	near(self_time[2].ns, 0); /* no sample hit it */
	ck_assert_int_eq(self_time[2].clock, ROOF_NO_CLOCK);
	check_sums();
}

TEST(without_lines_no_sample_says_that_a_loop_took_no_time)
{
	clear(2);
	site[0] = (struct fact_site){.kind = LOOP_SITE_FUNCTION};
	site[1] = (struct fact_site){.kind = LOOP_SITE_LOOP, .parent = 1};
	self[0] = total[0] = (struct roof_sums){.samples = 30, .sampled_ns = 30 * SAMPLE_NS};
	self[1] = total[1] = (struct roof_sums){.value = {[LOOP_INSTRUCTIONS] = 10}};
	r.facts.samples.taken.ns = 30 * SAMPLE_NS;
	find_times();
	ck_assert(self_time[1].ns < 0);
	ck_assert_int_eq(self_time[1].clock, ROOF_NO_CLOCK);
}

TEST(a_function_has_all_of_the_time_that_its_loops_have)
{
	give_function((const struct given[]){{.instructions = 10, .samples = 20},
			      {.parent = 1, .instructions = 10, .samples = 20}},
		2);
	near(total_time[0].ns, 40 * SAMPLE_NS);
	near(r.times.whole_ns, 40 * SAMPLE_NS); /* so its share is 1 */
}

TEST(a_function_is_measured_where_all_its_nests_are_and_samples_are_few)
{
	const struct given all[] = {{.measured_ns = 5e6, .instructions = 10},
		{.parent = 1, .instructions = 10}, {.measured_ns = 2e6, .instructions = 10},
		{.instructions = 0}};
	give_function(all, 4);
	near(total_time[0].ns, 7e6);
	ck_assert_int_eq(total_time[0].clock, ROOF_MEASURED);
	/* few samples are more than nests alone can say: the function has other code */
	give_function((const struct given[]){{.measured_ns = 5e6, .samples = 3}}, 1);
	near(total_time[0].ns, 3 * SAMPLE_NS);
	ck_assert_int_eq(total_time[0].clock, ROOF_SAMPLED);
	/* and less, if its nests took longer */
	give_function((const struct given[]){{.measured_ns = 5e7, .samples = 3}}, 1);
	near(total_time[0].ns, 5e7);
	ck_assert_int_eq(total_time[0].clock, ROOF_MEASURED);
}

TEST(a_function_that_also_ran_loops_without_a_clock_has_only_samples)
{
	give_function((const struct given[]){{.measured_ns = 5e6, .instructions = 10},
			      {.instructions = 1000}},
		2);
	ck_assert_int_eq(total_time[0].clock, ROOF_NO_CLOCK);
	ck_assert(total_time[0].ns < 0);
	give_function((const struct given[]){{.measured_ns = 5e6, .instructions = 10},
			      {.instructions = 1000, .samples = 3}},
		2);
	ck_assert_int_eq(total_time[0].clock, ROOF_SAMPLED);
	near(total_time[0].ns, 3 * SAMPLE_NS);
}

TEST(whatever_is_said_children_are_no_more_than_their_row)
{
	srand(1);
	for (unsigned round = 0; round < 20000; round++) {
		struct given given[SITES_MAX];
		for (uint32_t i = 0; i < SITES_MAX; i++) {
			given[i] = (struct given){.parent = (uint32_t)rand() % (i + 1),
				.instructions = rand() % 3 ? rand() % 1000 : 0,
				.calls = rand() % 4 ? 0 : rand() % 10,
				.samples = rand() % 2 ? (uint64_t)rand() % 40 : 0};
			bool is_copy = given[i].parent && !given[given[i].parent - 1].copied &&
				       rand() % 4 == 0;
			given[i].copied = is_copy ? rand() % 1000 + 1 : 0;
			if (given[i].parent && given[given[i].parent - 1].copied)
				given[i].parent = 0;
			bool measured = given[i].parent ? rand() % 9 == 0 : rand() % 3 > 0;
			given[i].measured_ns =
				measured && !given[i].copied ? (double)(rand() % 1000000000) : 0;
		}
		callers = rand() % 2;
		give(given, SITES_MAX);
		check_sums();
	}
}

/* --- copies ----------------------------------------------------------------------------------- */

TEST(without_samples_a_copy_has_a_part_of_its_nest_by_work)
{
	give((const struct given[]){{.measured_ns = 1e9, .instructions = 100},
		     {.parent = 1, .copied = 300}},
		2);
	near(self_time[0].ns, 0.25e9);
	near(self_time[1].ns, 0.75e9);
	ck_assert_int_eq(self_time[1].clock, ROOF_SHARED);
	near(total_time[0].ns, 1e9);
}

TEST(a_copy_whose_samples_have_callers_is_like_a_loop)
{
	callers = true;
	give((const struct given[]){{.measured_ns = 1e9, .instructions = 1e6, .samples = 25},
		     {.parent = 1, .copied = 300, .samples = 75}},
		2);
	near(self_time[0].ns, 0.25e9);
	near(self_time[1].ns, 0.75e9);
	ck_assert_int_eq(self_time[1].clock, ROOF_SAMPLED);
}

TEST(a_copy_whose_samples_have_no_callers_has_no_time)
{
	callers = false;
	give((const struct given[]){{.measured_ns = 1e9, .instructions = 1e6},
		     {.parent = 1, .instructions = 1e6, .samples = 40},
		     {.parent = 1, .copied = 300}},
		3);
	near(self_time[1].ns, 40 * SAMPLE_NS);
	ck_assert_int_eq(self_time[2].clock, ROOF_NO_CLOCK);
	ck_assert(self_time[2].ns < 0);
	near(total_time[0].ns, 1e9);
	/* also where the loop around it has hardly any sample, but many more in loops elsewhere */
	give((const struct given[]){{.measured_ns = 1e9, .instructions = 1e6},
		     {.parent = 1, .copied = 300}, {.instructions = 1, .samples = 30}},
		3);
	ck_assert(self_time[1].ns < 0);
	ck_assert(self_time[0].ns <= SAMPLE_NS);
}

TEST(a_copy_of_a_nest_that_nobody_measured_has_samples_or_nothing)
{
	callers = false;
	give((const struct given[]){{.instructions = 1e6, .samples = 40},
		     {.parent = 1, .copied = 300}},
		2);
	ck_assert_int_eq(self_time[1].clock, ROOF_NO_CLOCK);
	ck_assert(self_time[1].ns < 0);
	callers = true;
	give((const struct given[]){{.instructions = 1e6, .samples = 40},
		     {.parent = 1, .copied = 300, .samples = 20}},
		2);
	near(self_time[1].ns, 20 * SAMPLE_NS);
	near(total_time[0].ns, 60 * SAMPLE_NS);
}

/* Samples in a copy are in its function, not in the nest's lines: those that are missing are no waiting. */
TEST(copies_without_callers_do_not_pass_for_waiting)
{
	callers = false;
	r.groups.span_ns = 0;
	give((const struct given[]){{.measured_ns = 4e9, .instructions = 1e6, .samples = 100},
		     {.parent = 1, .copied = 300}},
		2);
	near(total_time[0].ns, 4e9);
	ck_assert(r.times.waited_ns == 0);
}
