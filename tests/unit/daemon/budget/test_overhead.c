/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/budget/overhead.c on a replayed machine whose PMU registers trap to the host: what
 * is spent, what is given up and comes back, and what a client's own budget allows. The walk is made
 * by hand, and walk.c is included for its insides.
 */

#include "tests/unit/daemon/budget/overhead_rig.inc"

#include "daemon/budget/rate_requests.h"

/* Until the first hart has its prices: 45 steps, one at each of our drains; and both. */
#define PRICED_S 15u
#define ALL_PRICED_S 75u
/* The second hart is measured by a step in ten seconds. */
#define ALL_MEASURED_S 300u
/* tests/platforms/trapping.json: a sample with its counters, a switch that is cut; in µs */
#define SAMPLE_US 21.0
#define SWITCH_US 19.5

static void begin_by(enum sampler_switches switches, bool bpf)
{
	begin_on("trapping", switches, bpf);
}

static void begin(void)
{
	begin_by(SAMPLER_SWITCHES_BEST, false);
}

EACH_TEST(.begin = begin, .end = end, .seconds = 120);

TEST(nothing_is_known_before_the_first_tick)
{
	struct overhead_spent s = spent();
	ck_assert_double_lt(s.own_part, 0);
	ck_assert_int_eq(s.worst_hart, -1);
	ck_assert_uint_eq(overhead_rate(h), 99);
}

TEST(spent_is_what_samples_and_switches_cost_by_the_prices_measured)
{
	own_part = 0.02;
	pass(ALL_PRICED_S, false);
	pass(6, true);
	struct overhead_spent s = spent();
	/* the clock moves on while the kernel works, so that fewer fit into a second */
	ck_assert_double_eq_tol(s.samples, 99, 5);
	ck_assert_double_eq_tol(s.switches, 1000, 50);
	ck_assert_int_eq(s.worst_hart, 0);
	ck_assert_double_eq_tol(s.worst_samples_part, s.samples * SAMPLE_US / 1e6, 0.0001);
	ck_assert_double_eq_tol(s.worst_switches_part, s.switches * SWITCH_US / 1e6, 0.0005);
	/* the other hart costs nothing, and is half of the machine */
	ck_assert_double_eq_tol(s.samples_part, s.worst_samples_part / 2, 1e-9);
	ck_assert_double_eq_tol(s.switches_part, s.worst_switches_part / 2, 1e-9);
	ck_assert_double_eq_tol(s.sample_ns, SAMPLE_US * 1e3, 100);
	ck_assert_double_eq_tol(s.switch_ns, SWITCH_US * 1e3, 100);
	ck_assert_double_eq_tol(s.own_part, 0.01, 0.0002);
	ck_assert_double_eq_tol(
		s.all_part, s.own_part + s.others_part + s.samples_part + s.switches_part, 1e-12);
	ck_assert_uint_eq(n_steps, 0);
}

TEST(forks_execs_and_mappings_are_counted_and_have_the_price_that_was_found)
{
	walk.n_sideband[TASK_FORK] = 100; /* before it began */
	pass(2, false);
	double cost = spent().all_part;
	ck_assert_double_eq(spent().sideband[TASK_FORK].per_second, 0);
	for (int what = 0; what < N_TASK_WORKS; what++)
		walk.n_sideband[what] += 2000;
	pass(2, false);
	struct overhead_spent s = spent();
	ck_assert_double_eq_tol(s.sideband[TASK_FORK].per_second, 1000, 50);
	ck_assert_double_lt(s.sideband[TASK_FORK].ns, 0);
	ck_assert_double_lt(s.sideband[TASK_FORK].part, 0);
	ck_assert_double_eq_tol(s.all_part, cost, 0.001);

	h->price[TASK_FORK] = (struct sideband_price){true, 20000, 19000, 21000};
	h->price[TASK_EXEC] = (struct sideband_price){true, 32000, 20000, 40000};
	h->price[TASK_MAPPING] = (struct sideband_price){true, 100, -50, 200};
	s = spent();
	ck_assert_double_eq(s.sideband[TASK_FORK].ns, 20000);
	ck_assert_double_eq(s.sideband[TASK_EXEC].ns, 12000); /* a fork was measured with it */
	ck_assert_double_lt(s.sideband[TASK_MAPPING].ns, 0);  /* not to be told from 0 */
	/* of two harts */
	ck_assert_double_eq_tol(s.sideband[TASK_FORK].part, 0.01, 0.0005);
	ck_assert_double_eq_tol(s.sideband[TASK_EXEC].part, 0.006, 0.0003);
	ck_assert_double_eq_tol(s.all_part, cost + 0.016, 0.0015);
}

TEST(throttles_are_counted_a_second_and_have_no_price)
{
	sampler->lost[0][LOSS_THROTTLE] = 1000; /* before it began */
	pass(2, false);
	double cost = spent().all_part;
	ck_assert_double_eq(spent().throttles, 0);
	sampler->lost[0][LOSS_THROTTLE] += 30;
	sampler->lost[1][LOSS_THROTTLE] += 10;
	pass(2, false);
	ck_assert_double_eq_tol(spent().throttles, 20, 1);
	ck_assert_double_eq_tol(spent().all_part, cost, 0.001);
	pass(2, false);
	ck_assert_double_eq(spent().throttles, 0);
}

TEST(what_came_before_the_prices_were_known_is_counted_once_they_are)
{
	uint64_t from_ns = now();
	pass(PRICED_S + 6, true);
	struct overhead_spent s = spent();
	double us =
		(s.samples * SAMPLE_US + s.switches * SWITCH_US) * (double)(now() - from_ns) / 1e9;
	double told = (double)sampler->lost[0][LOSS_COST];
	/* but for the first tick, which has no beginning, and the last, which is not over: 4 s */
	ck_assert_double_gt(told, 0.7 * us);
	ck_assert_double_lt(told, 1.05 * us);
	/* the other hart has that of measuring it */
	ck_assert_double_lt((double)sampler->lost[1][LOSS_COST], 0.1 * told);
}

TEST(what_is_too_much_is_given_up_in_order_and_said)
{
	pass(ALL_PRICED_S, false);
	conf.overhead_ppm = 10000; /* 0.2 % for samples, 2 % for switches */
	pass(6, true);
	ck_assert_int_eq(h->governor.step, STEP_NO_CUT);
	ck_assert(sampler->effort.in_force.no_cut && !sampler->effort.in_force.no_counters);
	ck_assert_ptr_nonnull(strstr(said, "to keep overhead within 1 %: counts are not cut"));
	pass(4, true);
	ck_assert_double_eq(spent().switches_part, 0);
	ck_assert_double_lt(spent().switch_ns, 0); /* they cost nothing now */
	ck_assert_double_eq_tol(spent().switches, 1000, 50);
	ck_assert_double_gt(spent().samples_part, 0);

	conf.overhead_ppm = 800; /* a sample without counters takes 12 µs */
	pass(6, true);
	ck_assert_int_eq(h->governor.step, STEP_RATE_2);
	ck_assert_uint_eq(overhead_rate(h), 49);
	ck_assert_uint_eq(sampler->hz, 49);
	ck_assert_uint_eq(n_said, 1); /* one line a minute */
	ck_assert_uint_eq(n_steps, 2);
}

TEST(what_was_given_up_comes_back_when_it_is_cheap_or_unlimited)
{
	pass(ALL_PRICED_S, false);
	conf.overhead_ppm = 10000;
	pass(6, true);
	ck_assert_int_eq(h->governor.step, STEP_NO_CUT);
	pass(MINUTE - 4, false);
	ck_assert_int_eq(h->governor.step, STEP_NO_CUT);
	pass(8, false);
	ck_assert_int_eq(h->governor.step, STEP_ALL);
	ck_assert(!sampler->effort.in_force.no_cut);
	ck_assert_str_eq(said, "overhead no longer limits sampling");

	pass(6, true);
	ck_assert_int_eq(h->governor.step, STEP_NO_CUT);
	conf.overhead_ppm = 0;
	pass(2, true);
	ck_assert_int_eq(h->governor.step, STEP_ALL);
}

TEST(our_own_cpu_counts_as_the_mean_of_a_minute_and_not_at_the_start)
{
	conf.overhead_ppm = 30000; /* the kernel takes 2.2 % of hart 0 */
	own_part = 0.1;            /* of a hart: 5 % of two */
	pass(MINUTE, false);
	pass(OVERHEAD_OWN_TICKS_MIN * 2 - 10, false);
	pass(6, true);
	ck_assert_int_eq(h->governor.step, STEP_ALL);
	pass(12, true);
	ck_assert_int_ne(h->governor.step, STEP_ALL);
}

/* Without counters, beside a build: our processes take 2.7 % of a hart, for execs or for samples. */
TEST(the_rate_is_given_up_for_what_samples_cost_alone, .times = 2)
{
	end();
	begin_on("x86-vm", SAMPLER_SWITCHES_BEST, false);
	conf.overhead_ppm = 10000, conf.rate = 400;
	sampler_set_rate(sampler, 400);
	own_part = 0.027, records_part = _i ? 0.025 : 0.001;
	pass(5 * MINUTE, true);
	ck_assert((overhead_rate(h) < 400) == _i);
}

TEST(time_for_clients_is_shown_and_is_not_the_budget_s)
{
	char why[256] = "";
	conf.overhead_ppm = 50000; /* for switches 2 %, and for samples 2.1 % at 999 Hz */
	own_part = 0.01;
	clients_part = 0.2; /* of a hart: 10 % of two */
	pass(2 * MINUTE, true);
	ck_assert_int_eq(h->governor.step, STEP_ALL);
	struct overhead_spent s = spent();
	ck_assert_double_eq_tol(s.own_part, 0.005, 0.0002);
	ck_assert_double_eq_tol(s.clients_part, 0.1, 0.002);
	/* answers say what all of it cost: an idle hart, its half of our processes */
	ck_assert_double_eq_tol((double)sampler->lost[1][LOSS_COST], 0.105 * 2 * MINUTE * 1e6,
		0.005 * 2 * MINUTE * 1e6);
	ck_assert_msg(overhead_allows(h, 999, conf.overhead_ppm, why, sizeof(why)), "%s", why);
	own_part += clients_part; /* as if it were for sampling */
	clients_part = 0;
	pass(MINUTE, true);
	ck_assert(!overhead_allows(h, 999, conf.overhead_ppm, why, sizeof(why)));
}

TEST(what_clients_ask_for_beyond_is_not_the_budget_s)
{
	conf.overhead_ppm = 30000;
	pass(ALL_PRICED_S, false);
	raised = true;
	own_part = 0.5;
	ck_assert_int_eq(sampler_set_rate(sampler, 999), 0);
	pass(MINUTE, true);
	ck_assert_int_eq(h->governor.step, STEP_ALL);
	/* but it is spent */
	ck_assert_double_gt(spent().worst_samples_part, 8 * 99 * SAMPLE_US / 1e6);
}

static uid_t all = (uid_t)-1;

/* What a client that wants 999 Hz within that budget is given, on a machine that was idle. */
static uint32_t given(uint32_t overhead_ppm)
{
	struct rate_requests requests = {0};
	const int client = 0;
	ck_assert_int_eq(rate_requests_set(&requests, &client, &all, 999, overhead_ppm), 0);
	raised = true;
	for (int i = 0; i < 4; i++) { /* the first of these began before it */
		ck_assert_int_eq(sampler_set_rate(sampler,
					 rate_requests_highest(&requests, overhead_rate(h))),
			0);
		pass(2, true);
		rate_requests_hold(&requests, h, now());
	}
	uint32_t hz = rate_requests_held(&requests, &client)->given_hz;
	ck_assert_uint_eq(rate_requests_highest(&requests, overhead_rate(h)), hz);
	rate_requests_clear(&requests);
	return hz;
}

TEST(a_client_s_budget_takes_of_its_rate_what_it_has_to)
{
	pass(ALL_PRICED_S, false);
	/* 2 % for switches, and of samples 2.1 % at 999 Hz */
	ck_assert_uint_eq(given(50000), 999);
	ck_assert_uint_eq(given(32000), 499);
	ck_assert_uint_eq(given(26000), 249);
}

TEST(a_client_s_budget_takes_nothing_of_always_on_sampling)
{
	pass(ALL_PRICED_S, false);
	ck_assert_uint_eq(given(1), 99);
	ck_assert_int_eq(h->governor.step, STEP_ALL);
	ck_assert_int_eq(sampler->plan[0].cut & CUT_SIBLING, CUT_SIBLING);
}

/* The figures of that tick are of both rates. */
TEST(a_client_is_not_judged_by_a_time_that_began_before_it)
{
	struct rate_requests requests = {0};
	const int client = 0;
	pass(ALL_PRICED_S, false);
	pass(1, true);
	ck_assert_int_eq(rate_requests_set(&requests, &client, &all, 999, 1), 0);
	raised = true;
	ck_assert_int_eq(sampler_set_rate(sampler, 999), 0);
	uint64_t n_ticks = h->n_ticks;
	while (h->n_ticks == n_ticks)
		pass(1, true);
	ck_assert(!rate_requests_hold(&requests, h, now()));
	ck_assert_uint_eq(rate_requests_held(&requests, &client)->given_hz, 999);
	pass(2, true);
	ck_assert(rate_requests_hold(&requests, h, now()));
	ck_assert_uint_eq(rate_requests_held(&requests, &client)->given_hz, 99);
	rate_requests_clear(&requests);
}

TEST(a_client_s_rate_comes_back_after_a_quiet_minute)
{
	struct overhead_held held = overhead_held_begin(999, 26000);
	pass(ALL_PRICED_S, false);
	raised = true;
	ck_assert_int_eq(sampler_set_rate(sampler, 999), 0);
	pass(4, true);
	ck_assert(overhead_hold(h, &held, now()));
	ck_assert_uint_eq(held.given_hz, 249);
	ck_assert_ptr_nonnull(strstr(held.governor.reason, "hart 0"));
	ck_assert_int_eq(sampler_set_rate(sampler, held.given_hz), 0);
	unsigned seconds = 0;
	while (held.given_hz < 999 && seconds < 10 * MINUTE) {
		pass(2, false);
		(void)overhead_hold(h, &held, now());
		seconds += 2;
	}
	ck_assert_uint_ge(seconds, 2 * MINUTE); /* a step a minute */
	ck_assert_uint_lt(seconds, 3 * MINUTE);
}

static bool allows(uint32_t hz, uint32_t ppm, const char *why)
{
	char text[256] = "";
	bool is = overhead_allows(h, hz, ppm, text, sizeof(text));
	ck_assert_msg(is == !*text && strstr(text, why) != NULL, "%s", text);
	return is;
}

TEST(a_rate_is_allowed_if_the_budget_would_give_all_of_it)
{
	ck_assert(allows(999, 1, "")); /* nothing speaks against it yet */
	pass(ALL_PRICED_S, false);
	pass(4, true);
	/* 2 % for switches, and of samples 2.1 % at 999 Hz */
	ck_assert(allows(999, 50000, ""));
	ck_assert(!allows(999, 32000, "hart 0"));
	ck_assert(allows(999, 0, ""));
	ck_assert(allows(0, 1, ""));
	ck_assert(allows(99, 1, ""));
}

TEST(nothing_is_allowed_where_always_on_sampling_was_lowered)
{
	conf.overhead_ppm = 1;
	pass(ALL_PRICED_S, true);
	ck_assert_int_ge(h->governor.step, STEP_RATE_2);
	ck_assert(!allows(0, conf.overhead_ppm, "samples a second are taken instead of 99"));
	ck_assert(!allows(999, conf.overhead_ppm, "instead of 99"));
	ck_assert(allows(999, 0, ""));
}

/* A walk of a client's own. */
static void begin_brief(uint32_t overhead_ppm)
{
	overhead_free(h);
	conf.overhead_ppm = overhead_ppm;
	options.brief = true;
	options.say = NULL;
	ck_assert_int_eq(overhead_new(&options, &h), 0);
}

TEST(a_walk_of_its_own_is_held_from_its_first_priced_tick)
{
	begin_brief(10000);
	unsigned seconds = 0;
	own_part = 0.5; /* as if measuring took all of that: no reason yet */
	for (; !(h->n_harts && h->hart[0].cost.ns[COST_SAMPLE] >= 0) && seconds < MINUTE; seconds++)
		pass(1, true);
	ck_assert_int_eq(h->governor.step, STEP_ALL);
	ck_assert_uint_eq(sampler->lost[0][LOSS_COST], 0); /* a part would be taken for the whole */
	own_part = 0;
	uint64_t n_ticks = h->n_ticks;
	while (h->n_ticks == n_ticks)
		pass(1, true);
	ck_assert_int_eq(h->governor.step, STEP_NO_CUT);
	ck_assert_uint_gt(sampler->lost[0][LOSS_COST], 0);
	ck_assert_uint_eq(n_said, 0);
}

TEST(a_walk_of_its_own_counts_our_cpu_by_what_a_record_costs)
{
	begin_brief(40000);
	own_part = 0.1;
	pass(PRICED_S + 4, true);
	/* 5 % of each hart by some 1100 records a second, and 2.2 % */
	ck_assert_int_eq(h->governor.step, STEP_NO_CUT);
}

TEST(a_walk_that_stops_has_all_of_its_cost)
{
	begin_brief(1000000);
	pass(PRICED_S, true);
	uint64_t from_ns = now();
	overhead_stop(h, &walk, from_ns);
	uint64_t before = sampler->lost[0][LOSS_COST];
	pass(1, true);
	overhead_stop(h, &walk, now());
	double us = (99 * SAMPLE_US + 1000 * SWITCH_US) * (double)(now() - from_ns) / 1e9;
	ck_assert_double_eq_tol((double)(sampler->lost[0][LOSS_COST] - before), us, 0.06 * us);
}

TEST(a_hart_that_goes_takes_its_count_of_switches_along)
{
	pass(ALL_PRICED_S, false);
	pass(4, true);
	unsigned n = replay_n_events(machine);
	replay_set_text(machine, "/sys/devices/system/cpu/online", "0\n");
	ck_assert_int_eq(sampler_tick(sampler), 0);
	pass(4, true);
	ck_assert_uint_lt(replay_n_events(machine), n);
	ck_assert_double_eq_tol(spent().switches, 1000, 50);
}

/* A switch takes so much longer where BPF sums up; wait until that was measured on both harts. */
static void begin_sums(enum sampler_switches switches, uint64_t each_ns)
{
	end();
	begin_by(switches, true);
	sums_case_cost(each_ns);
	pass(ALL_MEASURED_S, false);
	ck_assert_double_ge(h->hart[0].cost.ns[COST_SWITCH], 0);
	ck_assert(h->hart[0].measured && h->hart[1].measured);
}

static bool all_cut_by(unsigned cut)
{
	return sampler->plan[0].cut == cut && sampler->plan[1].cut == cut;
}

TEST(counts_are_summed_up_where_that_costs_less)
{
	begin_sums(SAMPLER_SWITCHES_CHEAPEST, 5000);
	ck_assert(all_cut_by(CUT_BPF));
	ck_assert(sampler->plan[0].summed && sampler->plan[1].summed);
	ck_assert_str_eq(sampler_cut_says(sampler), "bpf, as sums");
	ck_assert_uint_ge(n_steps, 1); /* a new segment has the new way */
	ck_assert_uint_le(n_steps, 2);
	pass(6, true);
	ck_assert_double_eq_tol(spent().worst_switches_part, spent().switches * 5e-6, 0.0002);
	ck_assert_int_eq(h->governor.step, STEP_ALL);
}

TEST(the_event_cuts_where_sums_cost_more_or_nearly_as_much)
{
	begin_sums(SAMPLER_SWITCHES_CHEAPEST, 25000);
	ck_assert_double_gt(h->hart[0].cost.ns[COST_SUMS], 24000);
	ck_assert(all_cut_by(CUT_SIBLING));
	begin_sums(SAMPLER_SWITCHES_CHEAPEST, 18500);
	ck_assert(all_cut_by(CUT_SIBLING));
	ck_assert_uint_eq(n_steps, 0);
}

TEST(sums_are_neither_measured_nor_taken_unless_they_are_asked_for)
{
	begin_sums(SAMPLER_SWITCHES_BEST, 1);
	ck_assert_double_lt(h->hart[0].cost.ns[COST_SUMS], 0);
	ck_assert_int_eq(sums_case_n_loaded(), 0);
	ck_assert(all_cut_by(CUT_SIBLING));
}

TEST(what_refuses_to_sum_up_is_not_asked_again)
{
	end();
	begin_by(SAMPLER_SWITCHES_CHEAPEST, true);
	sums_case_refuse(EPERM);
	pass(2 * ALL_PRICED_S, false);
	sums_case_refuse(0);
	pass(MINUTE, false);
	ck_assert_int_eq(sums_case_n_loaded(), 0);
	ck_assert(all_cut_by(CUT_SIBLING));
	ck_assert_uint_eq(n_steps, 0);
}

TEST(prices_that_change_change_the_way_within_the_hour)
{
	begin_sums(SAMPLER_SWITCHES_CHEAPEST, 5000);
	sums_case_cost(40000);
	pass(60 * MINUTE, false);
	pass(2 * ALL_PRICED_S, false);
	ck_assert(all_cut_by(CUT_SIBLING));
	ck_assert_int_eq(sums_case_n_watched(0) + sums_case_n_watched(1), 0);
	ck_assert_uint_le(n_steps, 4);
}

TEST(a_budget_without_the_cut_watches_nothing_and_has_the_cheaper_way_back)
{
	begin_sums(SAMPLER_SWITCHES_CHEAPEST, 15000);
	conf.overhead_ppm = 10000;
	pass(6, true);
	ck_assert_int_eq(h->governor.step, STEP_NO_CUT);
	ck_assert_int_eq(sums_case_n_watched(0) + sums_case_n_watched(1), 0);
	conf.overhead_ppm = 0;
	pass(4, false);
	ck_assert(all_cut_by(CUT_BPF));
	ck_assert_int_eq(sums_case_n_watched(0), 1);
}
