/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/budget/cost.c on replayed machines, whose clock moves on at each sample and at each
 * counter that is read
 */

#include "daemon/budget/cost.h"

#include <errno.h>

#include "tests/unit/sampler_case.h"
#include "tests/unit/sums_case.h"
#include "tests/unit/test.h"

#define STEPS_MAX 100 /* of one hart: 5 kinds, of 18 rounds at most */

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

static struct hart_cost measured_beside(
	int (*gaps)(void *u, int hart, uint64_t ns, struct kernel_gaps *ret_gaps))
{
	begin("trapping", &usual);
	alone = sampler->kernel;
	with_neighbour = *alone;
	with_neighbour.clock_gaps = gaps;
	sampler->kernel = &with_neighbour;
	struct hart_cost c = measured(1);
	sampler->kernel = alone;
	case_end(machine, sampler);
	return c;
}

static void ck_trapping(const struct hart_cost *c)
{
	ck_assert_double_eq_tol(c->ns[COST_COUNTED], 21000, 50);
	ck_assert_double_eq_tol(c->ns[COST_SAMPLE], 12000, 50);
	ck_assert_double_eq_tol(c->ns[COST_CLOCK], 3000, 50);
}

/* Another thread, ticks and devices take the hart between any two samples, for 3 ms each. */
static int gaps_between(void *u, int hart, uint64_t ns, struct kernel_gaps *ret_gaps)
{
	struct kernel_gaps found, *g = ret_gaps;
	int r = alone->clock_gaps(u, hart, ns, &found);
	*g = (struct kernel_gaps){.begin_ns = found.begin_ns, .end_ns = found.end_ns};
	for (unsigned i = 0; r == 0 && i < found.n && g->n < KERNEL_GAPS_MAX - 1; i++) {
		g->gap[g->n].from_ns = found.gap[i].from_ns - 3000000;
		g->gap[g->n++].to_ns = found.gap[i].from_ns;
		g->gap[g->n++] = found.gap[i];
	}
	return r;
}

TEST(interruptions_between_samples_are_in_no_price)
{
	struct hart_cost c = measured_beside(gaps_between);
	ck_trapping(&c);
}

/* Every third sample is followed by another thread before the clock is read again. */
static int gaps_longer(void *u, int hart, uint64_t ns, struct kernel_gaps *ret_gaps)
{
	int r = alone->clock_gaps(u, hart, ns, ret_gaps);
	for (unsigned i = 0; r == 0 && i < ret_gaps->n; i += 3)
		ret_gaps->gap[i].from_ns -= 3000000;
	return r;
}

TEST(a_neighbour_that_follows_a_sample_is_not_in_the_price)
{
	struct hart_cost c = measured_beside(gaps_longer);
	ck_trapping(&c);
}

/* The clock is read after every second sample. */
static int gaps_of_two(void *u, int hart, uint64_t ns, struct kernel_gaps *ret_gaps)
{
	int r = alone->clock_gaps(u, hart, ns, ret_gaps);
	struct kernel_gaps *g = ret_gaps;
	for (unsigned i = 0; r == 0 && i < g->n / 2; i++) {
		g->gap[i].from_ns = g->gap[2 * i].from_ns;
		g->gap[i].to_ns = g->gap[2 * i + 1].to_ns;
	}
	g->n /= 2;
	return r;
}

TEST(samples_in_one_gap_share_its_time)
{
	struct hart_cost c = measured_beside(
		gaps_of_two); /* at the longer period, since each seems to take long */
	ck_assert_double_eq_tol(c.ns[COST_CLOCK], (3000 + 250000 + 3000) / 2, 100);
}

/* The reading ended early. */
static int gaps_full(void *u, int hart, uint64_t ns, struct kernel_gaps *ret_gaps)
{
	int r = alone->clock_gaps(u, hart, ns, ret_gaps);
	if (r == 0 && ret_gaps->n > 2) {
		ret_gaps->n = 2;
		ret_gaps->end_ns = ret_gaps->gap[1].to_ns;
	}
	return r;
}

TEST(samples_after_the_reading_ended_have_no_part_in_the_price)
{
	struct hart_cost c = measured_beside(gaps_full);
	ck_trapping(&c);
}

/* Others switch there as often. */
static int switches_of_others(void *u, int hart, unsigned n, uint64_t *ret_ns)
{
	uint64_t others_ns;
	int r = alone->switch_work(u, hart, n, ret_ns);
	return r == 0 ? alone->switch_work(u, hart, n, &others_ns) : r;
}

TEST(switches_of_others_have_no_part_in_the_price)
{
	begin("trapping", &usual);
	alone = sampler->kernel;
	with_neighbour = *alone;
	with_neighbour.switch_work = switches_of_others;
	sampler->kernel = &with_neighbour;
	struct hart_cost c = measured(1);
	ck_assert_double_eq_tol(c.ns[COST_SWITCH], 19500, 50);
	sampler->kernel = alone;
	case_end(machine, sampler);
}

/* Every third time a switch takes 2 µs more. */
static unsigned n_works;

static int noisy_switches(void *u, int hart, unsigned n, uint64_t *ret_ns)
{
	int r = alone->switch_work(u, hart, n, ret_ns);
	*ret_ns += n_works++ % 3 == 0 ? 2000 * n : 0;
	return r;
}

TEST(a_price_that_noise_hides_is_said_as_a_bound)
{
	begin("trapping", &usual);
	replay_set_costs(machine, 700, 100, 40);
	alone = sampler->kernel;
	with_neighbour = *alone;
	with_neighbour.switch_work = noisy_switches;
	sampler->kernel = &with_neighbour;
	struct hart_cost c = measured(0);
	ck_assert_double_ge(c.most_ns[COST_SWITCH], 180);
	ck_assert_double_le(c.most_ns[COST_SWITCH], 2200);
	ck_assert_double_eq(c.most_ns[COST_CLOCK], 0);
	ck_assert_double_eq_tol(c.ns[COST_CLOCK], 700, 5);
	sampler->kernel = alone;
	case_end(machine, sampler);
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
TEST(the_running_kernel_reads_the_clock_and_switches, .seconds = 60)
{
	uint64_t switch_ns = 0;
	struct kernel_gaps g = {.n = 0};
	const struct kernel *k = &kernel_real;
	ck_assert_int_eq(k->clock_gaps(k->userdata, 0, 10000000, &g), 0);
	ck_assert(g.end_ns - g.begin_ns >= 10000000 || g.n == KERNEL_GAPS_MAX);
	for (unsigned i = 0; i < g.n; i++) {
		ck_assert_uint_ge(g.gap[i].from_ns, i ? g.gap[i - 1].to_ns : g.begin_ns);
		ck_assert_uint_gt(g.gap[i].to_ns - g.gap[i].from_ns, g.usual_ns);
		ck_assert_uint_le(g.gap[i].to_ns, g.end_ns);
	}
	ck_assert_int_eq(k->switch_work(k->userdata, 0, 100, &switch_ns), 0);
	ck_assert_uint_gt(switch_ns, 1000);
	ck_assert_int_lt(k->clock_gaps(k->userdata, 100000, 1, &g), 0);
	ck_assert_int_lt(k->switch_work(k->userdata, -1, 2, &switch_ns), 0);
}
