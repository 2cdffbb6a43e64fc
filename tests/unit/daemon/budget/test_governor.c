/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/budget/governor.c by replay: loads over hours, tick by tick, and what is given up
 * and comes back
 */

#include "daemon/budget/governor.h"

#include "daemon/sampler/effort.h"
#include "tests/unit/sampler_case.h"
#include "tests/unit/test.h"

#define TICK_S (GOVERNOR_TICK_NS / SECOND)
#define HOUR_S 3600u

/* What test_cost.c measures on tests/platforms/trapping.json; and a good machine. */
static const struct hart_cost trapping = {{[COST_SWITCH] = 19500,
	[COST_COUNTED] = 21000,
	[COST_SAMPLE] = 12000,
	[COST_CLOCK] = 3000}};
static const struct hart_cost good = {
	{[COST_SWITCH] = 600, [COST_COUNTED] = 2000, [COST_SAMPLE] = 1500, [COST_CLOCK] = 1200}};

static struct governor g;
static struct governor_hart hart[2];
static struct governor_load load;
static uint64_t now_s;
static unsigned n_changes;

static void begin(void)
{
	g = (struct governor){0};
	now_s = 1000;
	n_changes = 0;
	for (int i = 0; i < 2; i++)
		hart[i] = (struct governor_hart){
			.number = 4 + i, .busy = 0.3, .cost = good, .counts = true, .cuts = true};
	load = (struct governor_load){
		.budget = 0.01, .hz = 99, .hart = hart, .n_harts = 2, .callers = true};
}

EACH_TEST(.begin = begin);

static void price(struct hart_cost c)
{
	hart[0].cost = hart[1].cost = c;
}

/* So many seconds of that load. */
static void pass(unsigned seconds)
{
	for (unsigned i = 0; i < seconds; i += TICK_S) {
		now_s += TICK_S;
		n_changes += governor_tick(&g, &load, now_s * SECOND);
	}
}

TEST(a_good_machine_gives_nothing_up)
{
	hart[0].switches = 5000; /* 0.3 % of it */
	hart[0].busy = hart[1].busy = 1;
	load.own = 0.003;
	load.record_ns = 500;
	pass(HOUR_S);
	ck_assert_int_eq(g.step, STEP_ALL);
	ck_assert_uint_eq(n_changes, 0);
	ck_assert_str_eq(g.reason, "");
}

TEST(a_trapping_machine_that_only_switches_is_not_cut)
{
	price(trapping);
	hart[1].switches = 50000; /* 97 % of it */
	pass(2 * TICK_S - 1);
	ck_assert_int_eq(g.step, STEP_NO_CUT);
	ck_assert_ptr_nonnull(strstr(g.reason, "cutting counts at switches cost hart 5 97.5 %"));
	ck_assert_ptr_nonnull(strstr(g.reason, "19.5 µs each, 50000 a second"));
	/* and samples with counters are within the budget: 99 × 0.3 × 21 µs */
	pass(HOUR_S);
	ck_assert_int_eq(g.step, STEP_NO_CUT);
	ck_assert_uint_eq(n_changes, 1);
}

TEST(groups_are_given_up_before_all_else_and_come_back)
{
	char says[EFFORT_TEXT_BYTES];
	load.groups = 0.02;
	pass(2 * TICK_S);
	ck_assert_int_eq(g.step, STEP_NO_GROUPS);
	ck_assert(g.effort.no_groups && !g.effort.no_cut && !g.effort.no_counters);
	ck_assert_str_eq(effort_says(&g.effort, says), "topdown-groups are not counted");
	ck_assert(strstr(g.reason, "rotating topdown-groups costs each hart 2.0 %"));
	load.groups = 0.001; /* another profiler has ended, and they turn less often */
	pass(70);
	ck_assert_int_eq(g.step, STEP_ALL);
	ck_assert(!g.effort.no_groups);
}

TEST(without_groups_there_is_none_to_give_up)
{
	price(trapping);
	hart[0].switches = 20000;
	pass(2 * TICK_S);
	ck_assert_int_eq(g.step, STEP_NO_CUT);
	ck_assert(!g.effort.no_groups);
}

TEST(a_burst_of_one_tick_costs_nothing)
{
	price(trapping);
	for (int i = 0; i < 1000; i++) {
		hart[0].switches = i % 2 ? 20000 : 10;
		pass(TICK_S);
	}
	ck_assert_uint_eq(n_changes, 0);
}

TEST(a_quiet_machine_gets_its_cut_back_after_a_minute)
{
	price(trapping);
	hart[0].switches = 20000;
	pass(10);
	ck_assert_int_eq(g.step, STEP_NO_CUT);
	hart[0].switches = 100; /* 0.2 % */
	pass(58);
	ck_assert_int_eq(g.step, STEP_NO_CUT);
	pass(6);
	ck_assert_int_eq(g.step, STEP_ALL);
	ck_assert_str_eq(g.reason, "");
	ck_assert_uint_eq(n_changes, 2);
}

TEST(near_the_budget_nothing_comes_back)
{
	price(trapping);
	hart[0].switches = 20000;
	pass(10);
	hart[0].switches = 380;          /* 0.74 % */
	hart[0].busy = hart[1].busy = 1; /* 0.21 % for samples: more than 0.85 in all */
	pass(HOUR_S);
	ck_assert_int_eq(g.step, STEP_NO_CUT);
	hart[0].busy = hart[1].busy = 0.3;
	pass(64);
	ck_assert_int_eq(g.step, STEP_ALL);
}

TEST(steps_come_in_their_order)
{
	price(trapping);
	hart[0].busy = 1;
	load.budget = 0.0015; /* 99 samples with counters cost 0.21 %, without 0.12 % */
	pass(10);
	ck_assert_int_eq(g.step, STEP_NO_COUNTERS);
	load.budget = 0.0008;
	pass(10);
	ck_assert_int_eq(g.step, STEP_RATE_2);
	load.budget = 0.0003;
	pass(10);
	ck_assert_int_eq(g.step, STEP_RATE_4);
	load.budget = 0.00013; /* 12 samples a second: 0.0144 %, by cpu-clock 0.0036 % */
	pass(10);
	ck_assert_int_eq(g.step, STEP_CLOCK);
	ck_assert_uint_eq(n_changes, 4);
	ck_assert(g.effort.no_cut && g.effort.no_counters && g.effort.clock_only);
	ck_assert(!g.effort.no_callers);
	ck_assert_uint_eq(g.effort.rate_part, 8);
	ck_assert_uint_eq(governor_rate(g.step, 99), 12);
}

TEST(it_comes_back_one_step_at_a_time)
{
	price(trapping);
	hart[0].busy = 1;
	load.budget = 0.00013;
	pass(10);
	ck_assert_int_eq(g.step, STEP_CLOCK);
	load.budget = 0.01;
	static const enum governor_step steps[] = {
		STEP_RATE_8, STEP_RATE_4, STEP_RATE_2, STEP_NO_COUNTERS, STEP_NO_CUT, STEP_ALL};
	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		pass(62);
		ck_assert_int_eq(g.step, steps[i]);
	}
}

TEST(without_counters_there_is_no_cut_to_give_up)
{
	for (int i = 0; i < 2; i++)
		hart[i] = (struct governor_hart){.busy = 1,
			.switches = 100000,
			.by_clock = true,
			.cost = {{[COST_SWITCH] = -1,
				[COST_SUMS] = -1,
				[COST_COUNTED] = -1,
				[COST_SAMPLE] = 1500,
				[COST_CLOCK] = 1500}}};
	load.own = 0.004;
	pass(HOUR_S);
	ck_assert_int_eq(g.step, STEP_ALL);
	ck_assert(!g.effort.no_cut && g.effort.rate_part == 1);
	load.budget =
		0.0041; /* 99 samples of 1.5 µs are 0.015 %, and their records 0.3 % of our own 0.4 % */
	load.record_ns = 30000;
	hart[0].busy = hart[1].busy = 1;
	pass(10);
	ck_assert_int_eq(g.step, STEP_RATE_2);
	ck_assert(!g.effort.no_cut && !g.effort.no_counters && g.effort.rate_part == 2);
}

/* By the sibling half of the hart, and our processes read a record of each. */
TEST(sums_are_priced_as_sums_and_bring_no_records)
{
	for (int i = 0; i < 2; i++) {
		hart[i].switches = 5000;
		hart[i].cost.ns[COST_SWITCH] = 100000;
		hart[i].cost.ns[COST_SUMS] = 1000;
		hart[i].sums = true;
	}
	load.record_ns = 1000000;
	load.own = 0.001;
	pass(HOUR_S);
	ck_assert_int_eq(g.step, STEP_ALL);
	ck_assert_double_eq_tol(governor_predict(&load, STEP_ALL, STEP_ALL), 0.006, 0.001);
	ck_assert_double_eq_tol(governor_predict(&load, STEP_ALL, STEP_NO_CUT), 0.001, 0.001);
	hart[0].sums = hart[1].sums = false;
	pass(10);
	ck_assert_int_eq(g.step, STEP_NO_CUT);
	ck_assert_ptr_nonnull(strstr(g.reason, "100.0 µs"));
}

TEST(what_does_not_help_is_not_given_up)
{
	load.own = 0.05; /* names, say: no record costs much */
	load.record_ns = 100;
	pass(HOUR_S);
	ck_assert_int_eq(g.step, STEP_ALL);
	ck_assert_uint_eq(n_changes, 0);
}

/* Execs alone cost more than the budget: no step keeps it. */
TEST(in_a_budget_that_cannot_be_kept_samples_have_their_part)
{
	hart[0].busy = hart[1].busy = 1;
	load.own = 0.012;
	price((struct hart_cost){{[COST_SWITCH] = 600,
		[COST_COUNTED] = 40000,
		[COST_SAMPLE] = 40000,
		[COST_CLOCK] = 40000}});
	pass(HOUR_S); /* 0.4 %, a quarter of all */
	ck_assert_int_eq(g.step, STEP_ALL);
	ck_assert_uint_eq(n_changes, 0);
	load.budget = 0.005;
	pass(2 * TICK_S); /* half of the rate costs 0.2 %, a quarter 0.1 % */
	ck_assert_int_eq(g.step, STEP_RATE_2);
	pass(HOUR_S);
	ck_assert_int_eq(g.step, STEP_RATE_2);
	load.record_ns =
		4000; /* fewer records, each of which costs more than before: 0.22 % and 0.02 % */
	pass(HOUR_S);
	ck_assert_int_eq(g.step, STEP_RATE_2);
	load.own = 0.0005; /* the load has ended, and the owner allows more */
	load.budget = 0.01;
	pass(90);
	ck_assert_int_eq(g.step, STEP_NO_COUNTERS);
}

/* A virtual machine on which a sample costs 64 µs, beside builds: an eighth of the rate would keep the budget, but what
 * costs are execs and names. */
TEST(samples_are_not_given_up_for_what_else_costs)
{
	hart[0].busy = hart[1].busy = 1;
	price((struct hart_cost){{[COST_SWITCH] = -1,
		[COST_SUMS] = -1,
		[COST_COUNTED] = -1,
		[COST_SAMPLE] = 64000,
		[COST_CLOCK] = 64000}});
	for (int i = 0; i < 2; i++)
		hart[i].counts = hart[i].cuts = false;
	load.own = 0.011;
	load.record_ns = 25000;
	ck_assert_double_lt(governor_predict(&load, STEP_ALL, STEP_RATE_8), load.budget);
	pass(10); /* half of the rate costs 0.32 % there and 0.12 % of our own */
	ck_assert_int_eq(g.step, STEP_RATE_2);
	load.own = 0.0099;
	pass(HOUR_S);
	ck_assert_int_eq(g.step, STEP_RATE_2);
	ck_assert_uint_eq(n_changes, 1);

	price(good); /* on hardware */
	load.own = 0.012;
	load.record_ns = 4000;
	pass(120); /* still too much, but not for samples */
	ck_assert_int_eq(g.step, STEP_ALL);
	pass(HOUR_S);
	ck_assert_uint_eq(n_changes, 2);
}

/* A better virtual machine beside make and short programs: within the budget at the full rate, until compilers that it has
 * not met are named for a minute. That is no reason to sample less. */
TEST(a_burst_of_names_costs_no_samples)
{
	hart[0].busy = hart[1].busy = 1;
	price((struct hart_cost){{[COST_SWITCH] = -1,
		[COST_SUMS] = -1,
		[COST_COUNTED] = -1,
		[COST_SAMPLE] = 40000,
		[COST_CLOCK] = 40000}});
	for (int i = 0; i < 2; i++)
		hart[i].counts = hart[i].cuts = false;
	load.own = 0.0044;
	load.record_ns = 12000;
	pass(120);
	load.own = 0.015;
	pass(60);
	load.own = 0.0044;
	pass(HOUR_S);
	ck_assert_int_eq(g.step, STEP_ALL);
	ck_assert_uint_eq(n_changes, 0);

	g.step = STEP_RATE_2; /* for whatever reason: it comes back */
	load.own -= 99 * 12e-6 / 2;
	pass(70);
	ck_assert_int_eq(g.step, STEP_ALL);
}

TEST(records_that_our_processes_read_count_too)
{
	hart[0].switches = 9000; /* 0.54 % in the kernel */
	load.own = 0.006;        /* of which 9030 records a second, at 1 µs, on two harts: 0.45 % */
	load.record_ns = 1000;
	pass(10);
	ck_assert_int_eq(g.step, STEP_NO_CUT);
	load.own = 0.0015;
	hart[0].switches = 8000; /* 0.48 + 0.15 + 0.4 % is too much to come back */
	pass(HOUR_S);
	ck_assert_int_eq(g.step, STEP_NO_CUT);
	hart[0].switches = 4000;
	pass(62);
	ck_assert_int_eq(g.step, STEP_ALL);
}

TEST(a_load_that_comes_and_goes_is_not_followed_for_ever)
{
	price(trapping);
	static const unsigned periods_s[] = {4, 10, 30, 70, 130, 300, 700};
	for (size_t p = 0; p < sizeof(periods_s) / sizeof(*periods_s); p++) {
		begin();
		price(trapping);
		unsigned first_hour = 0;
		for (unsigned at = 0; at < 4 * HOUR_S; at += TICK_S) {
			hart[0].switches = at / periods_s[p] % 2 ? 10 : 20000;
			pass(TICK_S);
			if (at + TICK_S == HOUR_S)
				first_hour = n_changes;
		}
		ck_assert_msg(first_hour <= 20, "period %u s: %u changes in the first hour",
			periods_s[p], first_hour);
		ck_assert_msg(n_changes - first_hour <= 3 * 13,
			"period %u s: %u changes in three more hours", periods_s[p],
			n_changes - first_hour);
		ck_assert_uint_ge(n_changes, 1);
	}
}

TEST(each_return_that_fails_makes_the_next_wait_longer)
{
	price(trapping);
	uint64_t wait_s = 60;
	for (int i = 0; i < 6; i++) {
		hart[0].switches = 20000;
		pass(10);
		ck_assert_int_eq(g.step, STEP_NO_CUT);
		ck_assert_uint_eq(g.back_ns, wait_s * SECOND);
		hart[0].switches = 10;
		pass((unsigned)wait_s - 4);
		ck_assert_int_eq(g.step, STEP_NO_CUT);
		pass(10);
		ck_assert_int_eq(g.step, STEP_ALL);
		wait_s = 2 * wait_s > 600 ? 600 : 2 * wait_s;
	}
	/* one that held for ten minutes has not failed */
	pass(600);
	hart[0].switches = 20000;
	pass(10);
	ck_assert_uint_eq(g.back_ns, 60 * SECOND);
}

TEST(no_budget_is_no_limit_and_all_comes_back_at_once)
{
	price(trapping);
	hart[0].switches = 20000;
	pass(10);
	ck_assert_int_eq(g.step, STEP_NO_CUT);
	load.budget = 0;
	pass(TICK_S);
	ck_assert_int_eq(g.step, STEP_ALL);
	pass(HOUR_S);
	ck_assert_int_eq(g.step, STEP_ALL);
}

TEST(the_busiest_hart_decides)
{
	price(trapping);
	hart[1].switches = 700; /* 1.4 % of it, 0.7 % of the machine */
	pass(10);
	ck_assert_int_eq(g.step, STEP_NO_CUT);
	ck_assert_double_gt(governor_predict(&load, g.step, STEP_ALL), 0.0136);
	ck_assert_double_lt(governor_predict(&load, g.step, STEP_NO_CUT), 0.001);
}

TEST(a_low_rate_is_not_lowered_to_nothing)
{
	ck_assert_uint_eq(governor_rate(STEP_ALL, 99), 99);
	ck_assert_uint_eq(governor_rate(STEP_RATE_2, 99), 49);
	ck_assert_uint_eq(governor_rate(STEP_RATE_8, 50), 10);
	ck_assert_uint_eq(governor_rate(STEP_RATE_8, 7), 7);
	ck_assert_uint_eq(governor_rate(STEP_NO_CALLERS, 1), 1);
}

TEST(costs_that_are_not_known_yet_are_none)
{
	price(HART_COST_UNKNOWN);
	hart[0].switches = 1e6;
	pass(HOUR_S);
	ck_assert_int_eq(g.step, STEP_ALL);
}

/* --- the whole, on a replayed machine --------------------------------------------------------- */

static struct hart_cost measured(struct sampler *s, int at)
{
	struct cost_measure m;
	struct hart_cost cost;
	int r;
	cost_begin(&m, &s->found[at], at);
	while ((r = cost_step(&m, s, &cost)) == COST_MORE)
		;
	ck_assert_int_eq(r, 0);
	return cost;
}

/* What a switch takes there now, in ns. */
static double a_switch(struct replay *r, int at)
{
	const struct kernel *k = replay_kernel(r);
	uint64_t ns = 0;
	ck_assert_int_eq(k->switch_work(k->userdata, at, 1000, &ns), 0);
	return (double)ns / 1000;
}

/* As two tasks that only switch would find it: 20 µs more for each switch, until the cut is given up. */
TEST(a_session_on_a_trapping_machine_stops_costing_at_switches)
{
	const struct sampler_options usual = {.hz = 99, .stacks = SAMPLER_STACKS_FP};
	struct replay *machine = case_load("trapping");
	double plain_ns = a_switch(machine, 0);
	struct sampler *s = case_sampler(machine, &usual);
	ck_assert_int_eq(sampler_start(s), 0);
	case_drain(s);
	double cut_ns = a_switch(machine, 0);
	ck_assert_double_gt(cut_ns, 6 * plain_ns);

	for (int i = 0; i < 2; i++)
		hart[i].cost = measured(s, i);
	hart[0].switches = 1e9 / cut_ns;
	pass(2 * TICK_S - 1);
	ck_assert_int_eq(g.step, STEP_NO_CUT);
	case_drain(s);
	ck_assert_int_eq(sampler_set_effort(s, &g.effort), 0);
	ck_assert_double_lt(a_switch(machine, 0), 1.02 * plain_ns);

	/* at rest all of it comes back */
	hart[0].switches = 20;
	pass(64);
	ck_assert_int_eq(g.step, STEP_ALL);
	ck_assert_int_eq(sampler_set_effort(s, &g.effort), 0);
	ck_assert_double_eq_tol(a_switch(machine, 0), cut_ns, 1);
	case_end(machine, s);
}
