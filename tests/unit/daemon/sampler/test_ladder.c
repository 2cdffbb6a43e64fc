/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* The ladder on machines as data: which rung each core gets, why not a better one, and that no
 * descriptor or ring of a try survives it, wherever an open fails.
 */

#include <errno.h>
#include <unistd.h>

#include "daemon/sampler/ladder.h"
#include "tests/unit/replay.h"
#include "tests/unit/test.h"

#define SW_RULES                                                                                   \
	"{\"type\":\"software\",\"config\":0,\"per_us\":1000,\"fires\":true},"                     \
	"{\"type\":\"software\",\"config\":3,\"per_us\":0.001,\"fires\":true}"

static struct replay *load(const char *name)
{
	char path[128];
	struct replay *r = NULL;
	struct replay_error error = {""};
	snprintf(path, sizeof(path), "tests/platforms/%s.json", name);
	ck_assert_msg(replay_load(path, &r, &error) == 0, "%s", error.text);
	return r;
}

/* A machine of one hart with these rules before the software ones. */
static struct replay *made(const char *rules)
{
	char json[2048];
	struct replay *r = NULL;
	struct replay_error error = {""};
	snprintf(json, sizeof(json),
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
	memset(&p, 0xa5, sizeof(p)); /* what is not set shows */
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

EACH_TEST(.seconds = 60);

TEST(cycles_that_interrupt_are_rung_a)
{
	struct plan p = plan_of(load("c910"), 0, &plain);
	expect(&p, RUNG_CYCLES, "cycles", 1);
	ck_assert_str_eq(p.sibling[0].name, "instructions");
	ck_assert_int_eq(p.n_tries, 1);
	ck_assert_int_eq(p.tries[0].error, 0);
}

TEST(cycles_win_over_an_own_leader)
{
	struct plan p = plan_of(load("c910"), 0, &leads);
	expect(&p, RUNG_CYCLES, "cycles", 1);
}

TEST(x60_is_led_by_its_own_event)
{
	struct plan p = plan_of(load("x60"), 3, &leads);
	expect(&p, RUNG_LEADER, "r22", 2);
	ck_assert_str_eq(p.sibling[0].name, "cycles");
	ck_assert_str_eq(p.sibling[1].name, "instructions");
	ck_assert_int_eq(p.tries[0].error, EOPNOTSUPP);
	ck_assert_ptr_nonnull(strstr(p.tries[0].says, "interrupt"));
}

TEST(cycles_that_open_and_never_fire_give_way)
{
	struct plan p = plan_of(load("x60-mainline"), 3, &leads);
	expect(&p, RUNG_LEADER, "r22", 2);
	ck_assert_int_eq(p.tries[0].error, 0);
	ck_assert(p.tries[0].silent);
}

TEST(x60_without_a_leader_is_clocked)
{
	struct plan p = plan_of(load("x60"), 0, &plain);
	expect(&p, RUNG_CLOCK_LEADER, "cpu-clock", 2);
	ck_assert_int_eq(p.n_tries, 2);
}

TEST(u74_counts_under_the_clock)
{
	struct plan p = plan_of(load("u74"), 0, &plain);
	expect(&p, RUNG_CLOCK_LEADER, "cpu-clock", 2);
	ck_assert_int_eq(p.tries[0].error, EOPNOTSUPP);
	ck_assert(!p.user_only);
}

TEST(counter_that_cannot_leave_the_kernel_out_says_so)
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

TEST(silent_sampler_is_noticed)
{
	struct plan p = plan_of(load("silent"), 1, &leads);
	expect(&p, RUNG_CLOCK_LEADER, "cpu-clock", 2);
	ck_assert(p.tries[0].silent && p.tries[1].silent);
	ck_assert_ptr_nonnull(strstr(p.tries[0].says, "never"));
}

/* How long the hart was kept busy. */
static uint64_t time_of(struct replay *r, const struct ladder_options *o, struct plan *p)
{
	const struct kernel *k = replay_kernel(r);
	uint64_t began_ns = k->now_ns(k->userdata);
	ck_assert_int_eq(probe(r, 1, o, p), 0);
	return k->now_ns(k->userdata) - began_ns;
}

TEST(silence_is_waited_for_once_in_a_while)
{
	struct trials trials = {.next = 0};
	struct ladder_options o = leads;
	struct plan first, again, later;
	struct replay *r = load("silent");
	const struct kernel *k = replay_kernel(r);
	o.trials = &trials;
	uint64_t first_ns = time_of(r, &o, &first), again_ns = time_of(r, &o, &again);
	ck_assert_uint_lt(again_ns * 4, first_ns);
	expect(&again, RUNG_CLOCK_LEADER, "cpu-clock", 2);
	ck_assert(again.tries[0].silent && again.tries[1].silent);
	ck_assert_str_eq(again.tries[0].says, first.tries[0].says);
	for (int i = 0; i < 60; i++)
		ck_assert_int_eq(k->spin(k->userdata, 0, 1000000000u), 0);
	ck_assert_uint_gt(time_of(r, &o, &later) * 4, first_ns * 3);
	replay_free(r);
}

TEST(no_pmu_leaves_the_clock_alone)
{
	struct plan p = plan_of(load("x86-vm"), 0, &plain);
	expect(&p, RUNG_CLOCK, "cpu-clock", 0);
	ck_assert_int_eq(p.n_tries, 3);
	ck_assert_int_eq(p.tries[0].error, ENOENT);
	ck_assert(p.tries[1].dead_sibling);
}

TEST(harts_of_two_kinds_get_two_plans)
{
	struct plan big = plan_of(load("k3-mixed"), 7, &leads);
	struct plan other = plan_of(load("k3-mixed"), 8, &leads);
	expect(&big, RUNG_CYCLES, "cycles", 1);
	expect(&other, RUNG_LEADER, "r22", 2);
}

TEST(normal_user_gets_user_mode_alone)
{
	struct plan p = plan_of(load("paranoid2"), 0, &plain);
	ck_assert_int_eq(p.rung, RUNG_CLOCK);
	ck_assert(p.user_only && p.leader.exclude_kernel && p.leader.exclude_hv);
	ck_assert_str_eq(p.leader.name, "cpu-clock:u");
}

TEST(paranoid_3_leaves_nothing_and_names_the_sysctl)
{
	struct plan p = plan_of(load("paranoid3"), 0, &plain);
	ck_assert_int_eq(p.rung, RUNG_NONE);
	ck_assert_int_eq(p.n_siblings, 0);
	ck_assert_ptr_nonnull(strstr(p.reason, "perf_event_paranoid"));
	ck_assert_int_eq(p.tries[p.n_tries - 1].error, EACCES);
}

TEST(dead_sibling_is_dropped_and_named)
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

TEST(slow_sibling_is_waited_for)
{
	/* One count in 5 ms: the first samples bring 0, and that does not make it dead. */
	struct plan p =
		plan_of(made("{\"type\":\"hardware\",\"config\":0,\"per_us\":1000,\"fires\":true},"
			     "{\"type\":\"hardware\",\"config\":1,\"per_us\":0.0002},"),
			0, &plain);
	expect(&p, RUNG_CYCLES, "cycles", 1);
}

TEST(sibling_that_does_not_open_leaves_the_other)
{
	struct plan p =
		plan_of(made("{\"type\":\"hardware\",\"sampling\":true,\"errno\":\"EOPNOTSUPP\"},"
			     "{\"type\":\"hardware\",\"config\":1,\"per_us\":800},"),
			0, &plain);
	expect(&p, RUNG_CLOCK_LEADER, "cpu-clock", 1);
	ck_assert_str_eq(p.sibling[0].name, "instructions");
	ck_assert(p.tries[1].dead_sibling);
}

TEST(sibling_that_starves_its_group_is_dropped)
{
	struct plan p = plan_of(
		made("{\"type\":\"hardware\",\"config\":1,\"starves\":true},"
		     "{\"type\":\"hardware\",\"config\":0,\"per_us\":1000,\"fires\":true},"),
		0, &plain);
	ck_assert_int_eq(p.rung, RUNG_CYCLES);
	ck_assert_int_eq(p.n_siblings, 0);
	ck_assert_ptr_nonnull(strstr(p.reason, "whole group"));
}

TEST(group_lives_without_the_switch_event)
{
	struct plan p = plan_of(made("{\"type\":\"software\",\"config\":3,\"errno\":\"EINVAL\"},"
				     "{\"type\":\"hardware\",\"per_us\":1000,\"fires\":true},"),
		0, &plain);
	ck_assert_int_eq(p.rung, RUNG_CYCLES);
	ck_assert_int_eq(p.n_siblings, 1);
	ck_assert(!p.switches);
}

TEST(leader_with_no_meaning_is_told)
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

TEST(clock_is_probed_in_a_few_ms)
{
	struct replay *r = load("x86-vm");
	const struct kernel *k = replay_kernel(r);
	struct plan p;
	uint64_t before = k->now_ns(k->userdata);
	ck_assert_int_eq(probe(r, 0, &plain, &p), 0);
	ck_assert_uint_le(k->now_ns(k->userdata) - before, 10000000);
	replay_free(r);
}

TEST(lowered_rate_limit_is_respected)
{
	struct replay *r = load("c910");
	replay_set_text(r, "/proc/sys/kernel/perf_event_max_sample_rate", "100\n");
	struct plan p = plan_of(r, 0, &plain);
	expect(&p, RUNG_CYCLES, "cycles", 1);
}

/* Under load the kernel lowers its limit while hart after hart is tried. cpu-clock goes by period,
 * which no limit refuses: so it must not look as if cycles could not sample. */
TEST(limit_that_falls_during_the_climb_costs_no_rung)
{
	struct replay *r = load("c910");
	struct machine m;
	struct plan p;
	ck_assert_int_eq(machine_read(replay_kernel(r), &m), 0);
	replay_set_text(r, "/proc/sys/kernel/perf_event_max_sample_rate", "250\n");
	ck_assert_int_eq(ladder_probe(replay_kernel(r), &m, 0, &plain, &p), 0);
	expect(&p, RUNG_CYCLES, "cycles", 1);
	ck_assert_uint_eq(replay_n_events(r), 0);
	replay_free(r);
}

/* The first interrupt of an event gets lost: cycles that sample, but not before the third open. */
static struct replay *lossy;
static int n_cycles_left;

static int open_losing(void *u, struct perf_event_attr *attr, pid_t pid, int hart, int group_fd,
	unsigned long flags)
{
	struct perf_event_attr asked = *attr;
	bool samples = attr->type == PERF_TYPE_HARDWARE && attr->sample_freq > 0;
	if (samples && n_cycles_left > 0) {
		n_cycles_left--;
		asked.freq = 0;
		asked.sample_period = UINT64_MAX / 2; /* opens, counts, and is not due */
	}
	return replay_kernel(lossy)->event_open(u, &asked, pid, hart, group_fd, flags);
}

TEST(lost_first_interrupt_costs_no_rung)
{
	struct machine m;
	struct plan p;
	for (int n_lost = 1; n_lost < 4; n_lost++) {
		lossy = load("c910");
		n_cycles_left = n_lost;
		struct kernel k = *replay_kernel(lossy);
		k.event_open = open_losing;
		ck_assert_int_eq(machine_read(&k, &m), 0);
		ck_assert_int_eq(ladder_probe(&k, &m, 0, &plain, &p), 0);
		ck_assert_int_eq(p.rung, n_lost < 3 ? RUNG_CYCLES : RUNG_CLOCK_LEADER);
		if (n_lost == 3)
			ck_assert_ptr_nonnull(strstr(p.tries[0].says, "no sample in 180 ms"));
		ck_assert_uint_eq(replay_n_events(lossy), 0);
		replay_free(lossy);
	}
}

TEST(offline_hart_has_no_rung)
{
	struct replay *r = load("c910");
	replay_set_text(r, "/sys/devices/system/cpu/online", "0-2\n");
	struct plan p = plan_of(r, 3, &plain);
	ck_assert_int_eq(p.rung, RUNG_NONE);
	ck_assert_int_eq(p.tries[0].error, ENODEV);
}

static const char *const machines[] = {"c910", "x60", "x60-mainline", "u74", "silent", "x86-vm"};
static const int failures[] = {EMFILE, ENFILE, ENOMEM, EINVAL, EACCES, EBUSY, ENODEV};

/* probe() checks that nothing stays open. */
TEST(no_failing_open_leaks, .times = sizeof(machines) / sizeof(machines[0]))
{
	for (size_t f = 0; f < sizeof(failures) / sizeof(failures[0]); f++) {
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

TEST(no_failing_ring_leaks, .times = sizeof(machines) / sizeof(machines[0]))
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

TEST(no_failing_ioctl_leaks, .times = sizeof(machines) / sizeof(machines[0]))
{
	for (unsigned nth = 1; nth <= 30; nth++) {
		struct replay *r = load(machines[_i]);
		struct plan p;
		replay_fail_ioctl(r, nth, EIO);
		ck_assert_int_eq(probe(r, 0, &leads, &p), 0);
		replay_free(r);
	}
}

TEST(real_cpu_clock_fires)
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
