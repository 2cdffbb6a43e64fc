/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* The ladder on machines as data: which rung each core gets, why not a better one, and that no
 * descriptor or ring of a try survives it, wherever an open fails.
 */

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/pmu/ladder.h"
#include "tests/unit/replay.h"

#define SW_RULES                                                                                   \
	"{\"type\":\"software\",\"config\":0,\"per_us\":1000,\"fires\":true},"                     \
	"{\"type\":\"software\",\"config\":3,\"per_us\":0.001,\"fires\":true}"

static struct replay *load(const char *name)
{
	char path[128];
	struct replay *r = NULL;
	struct replay_error error = {""};
	snprintf(path, sizeof path, "tests/platforms/%s.json", name);
	ck_assert_msg(replay_load(path, &r, &error) == 0, "%s", error.text);
	return r;
}

/* A machine of one hart with these rules before the software ones. */
static struct replay *made(const char *rules)
{
	char json[2048];
	struct replay *r = NULL;
	struct replay_error error = {""};
	snprintf(json, sizeof json,
		"{\"source\":\"made\",\"verified\":\"no\",\"files\":{"
		"\"/sys/devices/system/cpu/online\":\"0\\n\"},\"rules\":[%s" SW_RULES "]}",
		rules);
	ck_assert_msg(replay_parse(json, &r, &error) == 0, "%s", error.text);
	return r;
}

static int probe(struct replay *r, int hart, const struct ladder_options *o, struct plan *p)
{
	struct machine m;
	ck_assert_int_eq(machine_read(replay_kernel(r), &m), 0);
	int outcome = ladder_probe(replay_kernel(r), &m, hart, o, p);
	ck_assert_uint_eq(replay_n_events(r), 0);
	ck_assert_uint_eq(replay_n_maps(r), 0);
	ck_assert_uint_eq(replay_n_stray(r), 0);
	return outcome;
}

static struct plan plan_of(struct replay *r, int hart, const struct ladder_options *o)
{
	struct plan p;
	memset(&p, 0xa5, sizeof p); /* what is not set shows */
	ck_assert_int_eq(probe(r, hart, o, &p), 0);
	replay_free(r);
	return p;
}

static const struct ladder_options plain = {.hz = 99};
static const struct ladder_options leads = {.hz = 99, .own_leader = "r22"};

static void expect(const struct plan *p, enum rung rung, const char *leader, int n_siblings)
{
	ck_assert_msg(p->rung == rung, "rung %d: %s", p->rung, p->reason);
	ck_assert_str_eq(p->leader.name, leader);
	ck_assert_int_eq(p->n_siblings, n_siblings);
	ck_assert(p->switches == (n_siblings > 0));
	ck_assert_ptr_nonnull(strstr(p->reason, "fires"));
}

START_TEST(cycles_that_interrupt_are_rung_a)
{
	struct plan p = plan_of(load("c910"), 0, &plain);
	expect(&p, RUNG_CYCLES, "cycles", 1);
	ck_assert_str_eq(p.sibling[0].name, "instructions");
	ck_assert_int_eq(p.n_tries, 1);
	ck_assert_int_eq(p.tries[0].error, 0);
}
END_TEST

START_TEST(cycles_win_over_an_own_leader)
{
	struct plan p = plan_of(load("c910"), 0, &leads);
	expect(&p, RUNG_CYCLES, "cycles", 1);
}
END_TEST

START_TEST(x60_is_led_by_its_own_event)
{
	struct plan p = plan_of(load("x60"), 3, &leads);
	expect(&p, RUNG_LEADER, "r22", 2);
	ck_assert_str_eq(p.sibling[0].name, "cycles");
	ck_assert_str_eq(p.sibling[1].name, "instructions");
	ck_assert_int_eq(p.tries[0].error, EOPNOTSUPP);
	ck_assert_ptr_nonnull(strstr(p.tries[0].says, "interrupt"));
}
END_TEST

START_TEST(cycles_that_open_and_never_fire_give_way)
{
	struct plan p = plan_of(load("x60-mainline"), 3, &leads);
	expect(&p, RUNG_LEADER, "r22", 2);
	ck_assert_int_eq(p.tries[0].error, 0);
	ck_assert(p.tries[0].silent);
}
END_TEST

START_TEST(x60_without_a_leader_is_clocked)
{
	struct plan p = plan_of(load("x60"), 0, &plain);
	expect(&p, RUNG_CLOCK_LEADER, "cpu-clock", 2);
	ck_assert_int_eq(p.n_tries, 2);
}
END_TEST

START_TEST(u74_counts_under_the_clock)
{
	struct plan p = plan_of(load("u74"), 0, &plain);
	expect(&p, RUNG_CLOCK_LEADER, "cpu-clock", 2);
	ck_assert_int_eq(p.tries[0].error, EOPNOTSUPP);
	ck_assert(!p.user_only);
}
END_TEST

START_TEST(counter_that_cannot_leave_the_kernel_out_says_so)
{
	struct ladder_options o = {.hz = 99, .user_only = true};
	struct plan p = plan_of(load("u74"), 0, &o);
	ck_assert_int_eq(p.rung, RUNG_CLOCK_LEADER);
	ck_assert(p.leader.exclude_kernel && p.user_only);
	ck_assert_str_eq(p.leader.name, "cpu-clock:u");
	ck_assert_int_eq(p.n_siblings, 2);
	ck_assert(!p.sibling[0].exclude_kernel);
	ck_assert_str_eq(p.sibling[0].name, "cycles");
	ck_assert_ptr_nonnull(strstr(p.reason, "exclude_kernel"));
	ck_assert(p.switches);
}
END_TEST

START_TEST(silent_sampler_is_noticed)
{
	struct plan p = plan_of(load("silent"), 1, &leads);
	expect(&p, RUNG_CLOCK_LEADER, "cpu-clock", 2);
	ck_assert(p.tries[0].silent && p.tries[1].silent);
	ck_assert_ptr_nonnull(strstr(p.tries[0].says, "never"));
}
END_TEST

START_TEST(no_pmu_leaves_the_clock_alone)
{
	struct plan p = plan_of(load("x86-vm"), 0, &plain);
	expect(&p, RUNG_CLOCK, "cpu-clock", 0);
	ck_assert_int_eq(p.n_tries, 3);
	ck_assert_int_eq(p.tries[0].error, ENOENT);
	ck_assert(p.tries[1].dead_sibling);
}
END_TEST

START_TEST(harts_of_two_kinds_get_two_plans)
{
	struct plan big = plan_of(load("k3-mixed"), 7, &leads);
	struct plan other = plan_of(load("k3-mixed"), 8, &leads);
	expect(&big, RUNG_CYCLES, "cycles", 1);
	expect(&other, RUNG_LEADER, "r22", 2);
}
END_TEST

START_TEST(normal_user_gets_user_mode_alone)
{
	struct plan p = plan_of(load("paranoid2"), 0, &plain);
	ck_assert_int_eq(p.rung, RUNG_CLOCK);
	ck_assert(p.user_only && p.leader.exclude_kernel && p.leader.exclude_hv);
	ck_assert_str_eq(p.leader.name, "cpu-clock:u");
}
END_TEST

START_TEST(paranoid_3_leaves_nothing_and_names_the_sysctl)
{
	struct plan p = plan_of(load("paranoid3"), 0, &plain);
	ck_assert_int_eq(p.rung, RUNG_NONE);
	ck_assert_int_eq(p.n_siblings, 0);
	ck_assert_ptr_nonnull(strstr(p.reason, "perf_event_paranoid"));
	ck_assert_int_eq(p.tries[p.n_tries - 1].error, EACCES);
}
END_TEST

START_TEST(dead_sibling_is_dropped_and_named)
{
	struct plan p =
		plan_of(made("{\"type\":\"hardware\",\"config\":0,\"per_us\":1000,\"fires\":true},"
			     "{\"type\":\"hardware\",\"config\":1,\"per_us\":0},"),
			0, &plain);
	ck_assert_int_eq(p.rung, RUNG_CYCLES);
	ck_assert_int_eq(p.n_siblings, 0);
	ck_assert(p.tries[0].dead_sibling && !p.switches);
	ck_assert_ptr_nonnull(strstr(p.reason, "instructions"));
}
END_TEST

START_TEST(slow_sibling_is_waited_for)
{
	/* One count in 5 ms: the first samples bring 0, and that does not make it dead. */
	struct plan p =
		plan_of(made("{\"type\":\"hardware\",\"config\":0,\"per_us\":1000,\"fires\":true},"
			     "{\"type\":\"hardware\",\"config\":1,\"per_us\":0.0002},"),
			0, &plain);
	expect(&p, RUNG_CYCLES, "cycles", 1);
}
END_TEST

START_TEST(sibling_that_does_not_open_leaves_the_other)
{
	struct plan p =
		plan_of(made("{\"type\":\"hardware\",\"sampling\":true,\"errno\":\"EOPNOTSUPP\"},"
			     "{\"type\":\"hardware\",\"config\":1,\"per_us\":800},"),
			0, &plain);
	expect(&p, RUNG_CLOCK_LEADER, "cpu-clock", 1);
	ck_assert_str_eq(p.sibling[0].name, "instructions");
	ck_assert(p.tries[1].dead_sibling);
}
END_TEST

START_TEST(sibling_that_starves_its_group_is_dropped)
{
	struct plan p = plan_of(
		made("{\"type\":\"hardware\",\"config\":1,\"starves\":true},"
		     "{\"type\":\"hardware\",\"config\":0,\"per_us\":1000,\"fires\":true},"),
		0, &plain);
	ck_assert_int_eq(p.rung, RUNG_CYCLES);
	ck_assert_int_eq(p.n_siblings, 0);
	ck_assert_ptr_nonnull(strstr(p.reason, "whole group"));
}
END_TEST

START_TEST(group_lives_without_the_switch_event)
{
	struct plan p = plan_of(made("{\"type\":\"software\",\"config\":3,\"errno\":\"EINVAL\"},"
				     "{\"type\":\"hardware\",\"per_us\":1000,\"fires\":true},"),
		0, &plain);
	ck_assert_int_eq(p.rung, RUNG_CYCLES);
	ck_assert_int_eq(p.n_siblings, 1);
	ck_assert(!p.switches);
}
END_TEST

START_TEST(leader_with_no_meaning_is_told)
{
	struct ladder_options o = {.hz = 99, .own_leader = "no-such-event"};
	struct plan p = plan_of(load("x60"), 0, &o);
	ck_assert_int_eq(p.rung, RUNG_CLOCK_LEADER);
	ck_assert_ptr_nonnull(strstr(p.tries[1].says, "no-such-event"));

	o.own_leader = "r22,r23";
	p = plan_of(load("x60"), 0, &o);
	ck_assert_int_eq(p.rung, RUNG_CLOCK_LEADER);
	ck_assert_ptr_nonnull(strstr(p.tries[1].says, "more than one"));
}
END_TEST

START_TEST(clock_is_probed_in_a_few_ms)
{
	struct replay *r = load("x86-vm");
	const struct kernel *k = replay_kernel(r);
	struct plan p;
	uint64_t before = k->now_ns(k->userdata);
	ck_assert_int_eq(probe(r, 0, &plain, &p), 0);
	ck_assert_uint_le(k->now_ns(k->userdata) - before, 10000000);
	replay_free(r);
}
END_TEST

START_TEST(lowered_rate_limit_is_respected)
{
	struct replay *r = load("c910");
	replay_set_text(r, "/proc/sys/kernel/perf_event_max_sample_rate", "100\n");
	struct plan p = plan_of(r, 0, &plain);
	expect(&p, RUNG_CYCLES, "cycles", 1);
}
END_TEST

START_TEST(offline_hart_has_no_rung)
{
	struct replay *r = load("c910");
	replay_set_text(r, "/sys/devices/system/cpu/online", "0-2\n");
	struct plan p = plan_of(r, 3, &plain);
	ck_assert_int_eq(p.rung, RUNG_NONE);
	ck_assert_int_eq(p.tries[0].error, ENODEV);
}
END_TEST

static const char *const machines[] = {"c910", "x60", "x60-mainline", "u74", "silent", "x86-vm"};
static const int failures[] = {EMFILE, ENFILE, ENOMEM, EINVAL, EACCES, EBUSY, ENODEV};

/* probe() checks that nothing stays open. */
START_TEST(no_failing_open_leaks)
{
	for (size_t f = 0; f < sizeof failures / sizeof failures[0]; f++) {
		unsigned n_opens = 1;
		for (unsigned nth = 1; nth <= n_opens; nth++) {
			struct replay *r = load(machines[_i]);
			struct machine m;
			struct plan p = {.rung = RUNG_ASKED};
			ck_assert_int_eq(machine_read(replay_kernel(r), &m), 0);
			unsigned before = replay_n_opens(r);
			replay_fail_open(r, nth, failures[f]);
			int outcome = ladder_probe(replay_kernel(r), &m, 0, &leads, &p);
			n_opens = replay_n_opens(r) - before;
			ck_assert_int_le(outcome, 0);
			if (outcome < 0)
				ck_assert_int_eq(p.rung, RUNG_ASKED);
			else
				ck_assert_uint_gt(strlen(p.reason), 0);
			ck_assert_uint_eq(replay_n_events(r), 0);
			ck_assert_uint_eq(replay_n_maps(r), 0);
			ck_assert_uint_eq(replay_n_stray(r), 0);
			replay_free(r);
		}
	}
}
END_TEST

START_TEST(no_failing_ring_leaks)
{
	for (unsigned nth = 1; nth <= 6; nth++) {
		struct replay *r = load(machines[_i]);
		struct plan p;
		replay_fail_map(r, nth, EPERM);
		ck_assert_int_eq(probe(r, 0, &leads, &p), 0);
		replay_fail_map(r, nth, ENOMEM);
		int outcome = probe(r, 0, &leads, &p);
		ck_assert(outcome == 0 || outcome == -ENOMEM);
		replay_free(r);
	}
}
END_TEST

START_TEST(no_failing_ioctl_leaks)
{
	for (unsigned nth = 1; nth <= 30; nth++) {
		struct replay *r = load(machines[_i]);
		struct plan p;
		replay_fail_ioctl(r, nth, EIO);
		ck_assert_int_eq(probe(r, 0, &leads, &p), 0);
		replay_free(r);
	}
}
END_TEST

START_TEST(real_cpu_clock_fires)
{
	struct machine m;
	struct plan p;
	ck_assert_int_eq(machine_read(&kernel_real, &m), 0);
	if (!m.may_see_all) {
		printf("SKIP real_cpu_clock_fires: no right to system-wide events\n");
		return;
	}
	ck_assert_int_eq(ladder_probe(&kernel_real, &m, 0, &plain, &p), 0);
	ck_assert_msg(p.rung >= RUNG_CYCLES && p.rung <= RUNG_CLOCK, "%s", p.reason);
	ck_assert_int_eq(
		p.tries[p.n_tries - 1].error == 0 || p.tries[p.n_tries - 1].dead_sibling, 1);
}
END_TEST

int main(void)
{
	const int n = (int)(sizeof machines / sizeof machines[0]);
	Suite *s = suite_create("ladder");
	TCase *c = tcase_create("ladder");
	tcase_set_timeout(c, 60);
	tcase_add_test(c, cycles_that_interrupt_are_rung_a);
	tcase_add_test(c, cycles_win_over_an_own_leader);
	tcase_add_test(c, x60_is_led_by_its_own_event);
	tcase_add_test(c, cycles_that_open_and_never_fire_give_way);
	tcase_add_test(c, x60_without_a_leader_is_clocked);
	tcase_add_test(c, u74_counts_under_the_clock);
	tcase_add_test(c, counter_that_cannot_leave_the_kernel_out_says_so);
	tcase_add_test(c, silent_sampler_is_noticed);
	tcase_add_test(c, no_pmu_leaves_the_clock_alone);
	tcase_add_test(c, harts_of_two_kinds_get_two_plans);
	tcase_add_test(c, normal_user_gets_user_mode_alone);
	tcase_add_test(c, paranoid_3_leaves_nothing_and_names_the_sysctl);
	tcase_add_test(c, dead_sibling_is_dropped_and_named);
	tcase_add_test(c, slow_sibling_is_waited_for);
	tcase_add_test(c, sibling_that_does_not_open_leaves_the_other);
	tcase_add_test(c, sibling_that_starves_its_group_is_dropped);
	tcase_add_test(c, group_lives_without_the_switch_event);
	tcase_add_test(c, leader_with_no_meaning_is_told);
	tcase_add_test(c, clock_is_probed_in_a_few_ms);
	tcase_add_test(c, lowered_rate_limit_is_respected);
	tcase_add_test(c, offline_hart_has_no_rung);
	tcase_add_loop_test(c, no_failing_open_leaks, 0, n);
	tcase_add_loop_test(c, no_failing_ring_leaks, 0, n);
	tcase_add_loop_test(c, no_failing_ioctl_leaks, 0, n);
	tcase_add_test(c, real_cpu_clock_fires);
	suite_add_tcase(s, c);
	SRunner *runner = srunner_create(s);
	srunner_run_all(runner, CK_ENV);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
