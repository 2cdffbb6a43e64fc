/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/budget/cost.c on replayed machines, whose clock moves on at each sample and at each
 * counter that is read
 */

#include "daemon/budget/cost.h"

#include <errno.h>

#include "tests/unit/sampler_case.h"
#include "tests/unit/sums_case.h"
#include "tests/unit/test.h"

#define STEPS_MAX 300 /* of one hart: 5 kinds, of 12 pairs at most, and of 36 disturbed ones */

static struct replay *machine;
static struct sampler *sampler;
static const struct sampler_options usual = {.hz = 99, .stacks = SAMPLER_STACKS_FP};

static void begin(const char *name, const struct sampler_options *o)
{
	machine = case_load(name);
	sampler = case_sampler(machine, o);
	ck_assert_int_eq(sampler_start(sampler), 0);
}

static struct hart_cost measured(int hart)
{
	struct cost_measure m;
	struct hart_cost cost = HART_COST_UNKNOWN;
	unsigned events = replay_n_events(machine), n = 0;
	int r;
	cost_begin(&m, &sampler->found[hart], hart);
	while ((r = cost_step(&m, sampler, &cost)) == COST_MORE) {
		ck_assert_int_eq(m.hart, hart);
		ck_assert_uint_lt(++n, STEPS_MAX);
		/* nothing stays open between two steps */
		ck_assert_uint_eq(replay_n_events(machine), events);
	}
	ck_assert_int_eq(r, 0);
	ck_assert_int_eq(m.hart, -1);
	return cost;
}

TEST(a_trapping_pmu_is_priced_as_its_data_say)
{
	begin("trapping", &usual);
	struct hart_cost c = measured(1);
	ck_assert_double_eq_tol(c.ns[COST_SWITCH], 19500, 50);
	ck_assert_double_eq_tol(c.ns[COST_COUNTED], 21000, 50);
	ck_assert_double_eq_tol(c.ns[COST_SAMPLE], 12000, 50);
	ck_assert_double_eq_tol(c.ns[COST_CLOCK], 3000, 50);
	case_end(machine, sampler);
}

static struct kernel with_neighbour;
static const struct kernel *alone;
static unsigned n_works, disturbed_each;

/* Number of pieces of work from one interruption to the next. Each lasts 3 ms. */
static int work_beside(void *u, int hart, unsigned n, uint64_t *ret_ns)
{
	int r = alone->work(u, hart, n, ret_ns);
	if (++n_works % disturbed_each != 0 || n_works == 1) /* which finds how long a step takes */
		return r;
	*ret_ns += 3000000;
	return KERNEL_DISTURBED;
}

static struct hart_cost measured_beside(unsigned each)
{
	begin("trapping", &usual);
	alone = sampler->kernel;
	with_neighbour = *alone;
	with_neighbour.work = work_beside;
	sampler->kernel = &with_neighbour;
	disturbed_each = each;
	struct hart_cost c = measured(1);
	sampler->kernel = alone;
	case_end(machine, sampler);
	return c;
}

/* Two of three pairs have one disturbed piece of work. */
TEST(a_neighbour_on_the_hart_is_not_in_the_price)
{
	struct hart_cost c = measured_beside(3);
	ck_assert_double_eq_tol(c.ns[COST_COUNTED], 21000, 50);
	ck_assert_double_eq_tol(c.ns[COST_SAMPLE], 12000, 50);
	ck_assert_double_eq_tol(c.ns[COST_CLOCK], 3000, 50);
}

TEST(a_hart_without_a_quiet_moment_has_a_price_all_the_same)
{
	struct hart_cost c = measured_beside(1);
	ck_assert_double_ge(c.ns[COST_CLOCK], 0);
}

TEST(other_prices_in_the_data_are_other_prices_here)
{
	begin("trapping", &usual);
	replay_set_costs(machine, 700, 100, 40);
	struct hart_cost c = measured(0);
	ck_assert_double_eq_tol(c.ns[COST_SWITCH], 180, 5);
	ck_assert_double_eq_tol(c.ns[COST_COUNTED], 780, 5);
	ck_assert_double_eq_tol(c.ns[COST_SAMPLE], 740, 5);
	ck_assert_double_eq_tol(c.ns[COST_CLOCK], 700, 5);
	case_end(machine, sampler);
}

TEST(a_machine_that_costs_nothing_is_priced_at_nothing)
{
	begin("pc", &usual);
	struct hart_cost c = measured(0);
	for (int kind = 0; kind < N_COSTS; kind++)
		if (kind != COST_SUMS) /* a replayed machine has no BPF */
			ck_assert_double_eq_tol(c.ns[kind], 0, 1);
	ck_assert_double_lt(c.ns[COST_SUMS], 0);
	case_end(machine, sampler);
}

TEST(without_counters_only_the_clock_has_a_price)
{
	begin("x86-vm", &usual);
	replay_set_costs(machine, 2000, 100, 40);
	struct hart_cost c = measured(0);
	ck_assert_double_lt(c.ns[COST_SWITCH], 0);
	ck_assert_double_lt(c.ns[COST_COUNTED], 0);
	ck_assert_double_eq_tol(c.ns[COST_CLOCK], 2000, 5);
	ck_assert_double_eq(c.ns[COST_SAMPLE], c.ns[COST_CLOCK]);
	ck_assert_double_eq(cost_of_sample(&c, false, true), c.ns[COST_CLOCK]);
	case_end(machine, sampler);
}

TEST(a_clock_that_leads_counters_has_prices_with_and_without_them)
{
	begin("u74", &usual);
	replay_set_costs(machine, 2000, 100, 3000);
	ck_assert_int_eq(sampler->found[0].rung, RUNG_CLOCK_LEADER);
	struct hart_cost c = measured(0);
	double counters = 3000.0 * sampler->found[0].n_siblings;
	ck_assert_double_eq_tol(c.ns[COST_COUNTED], 2000 + counters, 30);
	ck_assert_double_eq_tol(c.ns[COST_CLOCK], 2000, 30);
	ck_assert_double_eq_tol(c.ns[COST_SWITCH], 100 + counters, 30);
	ck_assert_double_eq(c.ns[COST_SAMPLE], c.ns[COST_CLOCK]);
	case_end(machine, sampler);
}

TEST(an_exhausted_resource_is_reported_and_all_is_closed)
{
	begin("trapping", &usual);
	struct cost_measure m;
	struct hart_cost cost;
	unsigned events = replay_n_events(machine);
	cost_begin(&m, &sampler->found[0], 0);
	ck_assert_int_eq(cost_step(&m, sampler, &cost), COST_MORE);
	replay_fail_open(machine, 2, EMFILE);
	ck_assert_int_eq(cost_step(&m, sampler, &cost), -EMFILE);
	ck_assert_int_eq(m.hart, -1);
	ck_assert_uint_eq(replay_n_events(machine), events);
	case_end(machine, sampler);
}

TEST(what_is_refused_stays_unknown_and_the_rest_is_measured)
{
	begin("trapping", &usual);
	struct cost_measure m;
	struct hart_cost cost = HART_COST_UNKNOWN;
	int r;
	cost_begin(&m, &sampler->found[0], 0);
	ck_assert_int_eq(cost_step(&m, sampler, &cost), COST_MORE);
	replay_fail_map(machine, 1, EPERM);
	while ((r = cost_step(&m, sampler, &cost)) == COST_MORE)
		;
	ck_assert_int_eq(r, 0);
	ck_assert_double_lt(cost.ns[COST_SWITCH], 0);
	ck_assert_double_eq_tol(cost.ns[COST_COUNTED], 21000, 50);
	case_end(machine, sampler);
}

TEST(a_hart_that_we_may_not_run_on_has_no_price)
{
	begin("trapping", &usual);
	struct cost_measure m;
	struct hart_cost cost = HART_COST_UNKNOWN;
	int r;
	cost_begin(&m, &sampler->found[1], 1);
	replay_set_text(machine, "/sys/devices/system/cpu/online", "0\n");
	while ((r = cost_step(&m, sampler, &cost)) == COST_MORE)
		;
	ck_assert_int_eq(r, 0);
	for (int kind = 0; kind < N_COSTS; kind++)
		ck_assert_double_lt(cost.ns[kind], 0);
	case_end(machine, sampler);
}

TEST(a_group_that_never_runs_has_no_price)
{
	begin("trapping", &usual);
	replay_pin_counters(machine, true);
	struct hart_cost c = measured(0);
	ck_assert_double_lt(c.ns[COST_COUNTED], 0);
	ck_assert_double_eq_tol(c.ns[COST_CLOCK], 3000, 50);
	case_end(machine, sampler);
}

/* The session's own does, where a core has one counter for each event. */
TEST(a_group_that_others_keep_counters_from_has_the_price_of_one_that_runs)
{
	begin("trapping", &usual);
	replay_take_counters(machine, 100);
	struct hart_cost c = measured(0);
	ck_assert_double_eq_tol(c.ns[COST_SWITCH], 19500, 50);
	ck_assert_double_eq_tol(c.ns[COST_COUNTED], 21000, 50);
	case_end(machine, sampler);
}

#define SUMS_NS 700 /* that a switch costs more while the made-up program reads a group */

TEST(sums_by_bpf_have_a_price_of_their_own_and_the_cheaper_way_is_preferred)
{
	struct sampler_options o = usual;
	struct event_error error = {""};
	o.switches = SAMPLER_SWITCHES_CHEAPEST;
	machine = case_load("trapping");
	ck_assert_int_eq(sampler_new(sums_case_kernel(machine), &o, &sampler, &error), 0);
	sums_case_cost(SUMS_NS);
	ck_assert_int_eq(sampler_start(sampler), 0);
	struct hart_cost c = measured(1);
	ck_assert_double_eq_tol(c.ns[COST_SWITCH], 19500, 50);
	ck_assert_double_eq_tol(c.ns[COST_SUMS], SUMS_NS, 5);
	ck_assert(cost_prefers_sums(&c));
	ck_assert_double_eq_tol(cost_of_switch(&c, true), SUMS_NS, 5);
	ck_assert_int_eq(sums_case_n_loaded(), 1);
	ck_assert_int_eq(sums_case_n_watched(1), 0);
	case_end(machine, sampler);
	ck_assert_int_eq(sums_case_n_loaded(), 0);
}

TEST(sums_are_preferred_where_they_cost_clearly_less_or_nothing_else_has_a_price)
{
	struct hart_cost c = HART_COST_UNKNOWN;
	ck_assert(!cost_prefers_sums(&c));
	c.ns[COST_SUMS] = 700;
	ck_assert(cost_prefers_sums(&c));
	c.ns[COST_SWITCH] = 720;
	ck_assert(!cost_prefers_sums(&c));
	c.ns[COST_SWITCH] = 1500;
	ck_assert(cost_prefers_sums(&c));
	c.ns[COST_SUMS] = -1;
	ck_assert(!cost_prefers_sums(&c));
}

/* Software events stand in for counters. */
TEST(the_running_kernel_has_a_price_for_either_way, .seconds = 60)
{
	const struct sampler_options o = {.hz = 99, .switches = SAMPLER_SWITCHES_CHEAPEST};
	struct event_error error = {""};
	struct event_list events = case_events(NULL, "{cpu-clock,page-faults,context-switches}");
	ck_assert_msg(sampler_new(&kernel_real, &o, &sampler, &error) == 0, "%s", error.text);
	struct plan plan = {
		.rung = RUNG_CLOCK_LEADER,
		.leader = events.event[0],
		.sibling = {events.event[1], events.event[2]},
		.n_siblings = 2,
		.switches = true,
	};
	struct cost_measure m;
	struct hart_cost c = HART_COST_UNKNOWN;
	int r;
	cost_begin(&m, &plan, 0);
	while ((r = cost_step(&m, sampler, &c)) == COST_MORE)
		;
	ck_assert_int_eq(r, 0);
	ck_assert_double_ge(c.ns[COST_SWITCH], 0);
	if (sampler->programs.program[SWITCH_SUMS])
		ck_assert_double_ge(c.ns[COST_SUMS], 0);
	else
		printf("SKIP the_running_kernel_has_a_price_for_either_way: no sums: %s\n",
			strerror(sampler->programs.error[SWITCH_SUMS]));
	printf("    sums cost %.2f x the sibling, and are %s\n",
		c.ns[COST_SUMS] / c.ns[COST_SWITCH],
		cost_prefers_sums(&c) ? "preferred" : "not preferred");
	sampler_free(sampler);
}

/* On this machine: a price is no error, whatever it is. */
TEST(the_running_kernel_does_fixed_work_and_switches, .seconds = 60)
{
	uint64_t few_ns = 0, many_ns = 0, switch_ns = 0;
	const struct kernel *k = &kernel_real;
	ck_assert_int_ge(k->work(k->userdata, 0, 200, &few_ns), 0); /* a neighbour may disturb it */
	ck_assert_int_ge(
		k->work(k->userdata, 0, 20000, &many_ns), 0); /* a neighbour may disturb it */
	ck_assert_uint_gt(few_ns, 0);
	ck_assert_uint_gt(many_ns, 10 * few_ns);
	ck_assert_int_eq(k->switch_work(k->userdata, 0, 100, &switch_ns), 0);
	ck_assert_uint_gt(switch_ns, 1000);
	ck_assert_int_lt(k->work(k->userdata, 100000, 1, &few_ns), 0);
	ck_assert_int_lt(k->switch_work(k->userdata, -1, 2, &few_ns), 0);
}
