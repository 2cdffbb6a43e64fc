/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* What doctor tells the owner of a board of each hart, on machines as data. */

#include <errno.h>

#include "daemon/doctor/diagnose.h"
#include "tests/unit/core_case.h"
#include "tests/unit/test.h"

#define FINDINGS_MAX 64

static struct {
	char topic[32], state[8], says[1024], remedy[512];
} found[FINDINGS_MAX];
static int n;

static int take(void *userdata, const struct diagnosis *d)
{
	(void)userdata;
	ck_assert_int_lt(n, FINDINGS_MAX);
	snprintf(found[n].topic, sizeof(found[n].topic), "%s", d->topic);
	snprintf(found[n].state, sizeof(found[n].state), "%s", d->state);
	snprintf(found[n].says, sizeof(found[n].says), "%s", d->says);
	snprintf(found[n].remedy, sizeof(found[n].remedy), "%s", d->remedy);
	n++;
	return 0;
}

static void diagnose(struct core_case *c, int hart, double share)
{
	struct plan p = core_case_plan(c, hart, !c->machine.may_see_kernel);
	const struct diagnose_question q = {
		.kernel = c->kernel,
		.machine = &c->machine,
		.cores = c->cores,
		.hart = hart,
		.plan = &p,
		.counted_share = share,
	};
	n = 0;
	ck_assert_int_eq(diagnose_hart(&q, take, NULL), 0);
	for (int i = 0; i < n; i++) {
		ck_assert_uint_gt(strlen(found[i].says), 0);
		if (strcmp(found[i].state, "warn") == 0 || strcmp(found[i].state, "fail") == 0)
			ck_assert_uint_gt(strlen(found[i].remedy), 0);
	}
}

/* The first finding of that topic with this in its sentence. */
static int must_find(const char *topic, const char *says)
{
	for (int i = 0; i < n; i++)
		if (strcmp(found[i].topic, topic) == 0 && strstr(found[i].says, says))
			return i;
	ck_abort_msg("no finding on %s says '%s'", topic, says);
	return -1;
}

static bool has(const char *topic)
{
	for (int i = 0; i < n; i++)
		if (strcmp(found[i].topic, topic) == 0)
			return true;
	return false;
}

static void must_mend(int i, const char *remedy)
{
	ck_assert_msg(strstr(found[i].remedy, remedy) != NULL, "'%s' says nothing of '%s'",
		found[i].remedy, remedy);
}

EACH_TEST(.seconds = 60);

TEST(vectors_are_told_with_their_width)
{
	struct core_case c = core_case_of("x60");
	diagnose(&c, 0, 1);
	must_find("core", "vectors of 256 bits: RVV 1.0");
	core_case_end(&c);
}

TEST(an_x60_is_told_whole)
{
	struct core_case c = core_case_of("x60");
	diagnose(&c, 0, 1);
	must_find("core", "SpacemiT X60, riscv 0x710/0x8000000058000001/0x1000000049772200");
	must_find("core", "RVV 1.0");
	ck_assert_str_eq(found[must_find("sampling", "rung b")].state, "ok");
	must_find("sampling", "leader u_mode_cycle, with counters");
	must_mend(must_find("sampling", "rung a not taken"), "core: no remedy");
	must_find("counters", "16 programmable counters (mask 0x7fff8)");
	must_find("modes", "ignore it");
	must_find("errata", "L2 events ignore exclude_kernel");
	must_find("errata", "not verified on a board");
	core_case_end(&c);
}

TEST(where_no_event_of_the_core_opens_its_counters_are_none)
{
	struct core_case c = core_case_of("zen4");
	struct plan p = core_case_plan(&c, 0, false);
	struct diagnose_question q = {.kernel = c.kernel,
		.machine = &c.machine,
		.cores = c.cores,
		.hart = 0,
		.plan = &p,
		.counted_share = 1};
	n = 0;
	ck_assert_int_eq(diagnose_hart(&q, take, NULL), 0);
	must_find("counters", "6 programmable counters");
	/* as on a virtual machine without a PMU */
	p.rung = RUNG_CLOCK;
	p.n_tries = 2;
	p.tries[0] = (struct rung_try){.rung = RUNG_CYCLES, .error = ENOENT};
	p.tries[1] = (struct rung_try){.rung = RUNG_CLOCK_LEADER, .error = ENOENT};
	n = 0;
	ck_assert_int_eq(diagnose_hart(&q, take, NULL), 0);
	must_find("counters", "no counter can be used here");
	for (int i = 0; i < n; i++)
		ck_assert(!strstr(found[i].says, "6 programmable counters"));
	core_case_end(&c);
}

TEST(a_u74_is_told_that_nothing_gives_it_an_interrupt)
{
	struct core_case c = core_case_of("u74");
	diagnose(&c, 1, 1);
	must_find("core", "SiFive U74");
	must_find("sampling", "rung c");
	must_mend(must_find("sampling", "rung a not taken"), "core: no remedy");
	must_find("counters", "2 programmable counters");
	int modes = must_find("modes", "cannot count user mode separately");
	ck_assert_str_eq(found[modes].state, "warn");
	must_mend(modes, "Sscofpmf");
	core_case_end(&c);
}

TEST(a_u74s_plain_user_is_not_told_to_leave_out_the_kernel_that_he_leaves_out)
{
	struct core_case c = core_case_of("u74-user");
	diagnose(&c, 1, 1);
	must_find("sampling", "rung d");
	int i = must_find("sampling", "rung a not taken");
	ck_assert_ptr_nonnull(strstr(found[i].says, "Sscofpmf"));
	must_mend(i, "kernel.perf_event_paranoid=1");
	for (int j = 0; j < n; j++) {
		ck_assert_ptr_null(strstr(found[j].remedy, "modifier"));
		ck_assert_ptr_null(strstr(found[j].remedy, "of your own"));
	}
	core_case_end(&c);
}

TEST(a_c910_has_nothing_to_mend)
{
	struct core_case c = core_case_of("c910");
	diagnose(&c, 0, 1);
	must_find("core", "T-Head C910");
	must_find("sampling", "rung a");
	ck_assert_str_eq(found[must_find("modes", "can be counted separately")].state, "ok");
	for (int i = 0; i < n; i++)
		ck_assert_str_ne(found[i].state, "fail");
	core_case_end(&c);
}

TEST(an_unknown_core_says_how_to_add_it)
{
	struct core_case c = core_case_made(
		"{\"source\":\"made\",\"verified\":\"no\",\"files\":{"
		"\"/sys/devices/system/cpu/online\":\"0\\n\","
		"\"/proc/sys/kernel/arch\":\"riscv64\\n\"},\"hwprobe\":[{\"harts\":\"0\","
		"\"mvendorid\":\"0xabc\",\"marchid\":\"0x1\",\"mimpid\":\"0x0\"}],\"rules\":["
		"{\"type\":\"software\",\"config\":0,\"per_us\":1000,\"fires\":true}]}",
		NULL);
	diagnose(&c, 0, 1);
	int core = must_find("core", "0xabc/0x1/0x0");
	ck_assert_str_eq(found[core].state, "info");
	must_mend(core, "/etc/mperf/platforms.d");
	must_mend(core, "0xabc");
	/* no PMU in sysfs: neither driver nor firmware */
	must_mend(must_find("sampling", "rung a not taken"), "CONFIG_RISCV_PMU_SBI");
	ck_assert(!has("modes"));
	core_case_end(&c);
}

TEST(firmware_that_maps_nothing_is_told_from_a_driver_that_is_not_there)
{
	struct core_case c = core_case_made(
		"{\"source\":\"made\",\"verified\":\"no\",\"files\":{"
		"\"/sys/devices/system/cpu/online\":\"0\\n\","
		"\"/sys/bus/event_source/devices/cpu/type\":\"4\\n\","
		"\"/proc/sys/kernel/arch\":\"riscv64\\n\"},\"hwprobe\":[{\"harts\":\"0\","
		"\"mvendorid\":\"0xabc\",\"marchid\":\"0x1\",\"mimpid\":\"0x0\"}],\"rules\":["
		"{\"type\":\"software\",\"config\":0,\"per_us\":1000,\"fires\":true}]}",
		NULL);
	diagnose(&c, 0, 1);
	must_mend(must_find("sampling", "rung a not taken"), "riscv,event-to-mhpmcounters");
	core_case_end(&c);
}

TEST(a_silent_sampler_is_firmwares_or_the_drivers)
{
	struct core_case c = core_case_of("silent");
	diagnose(&c, 0, 1);
	int i = must_find("sampling", "never interrupts");
	must_mend(i, "firmware");
	must_mend(i, "Sscofpmf");
	core_case_end(&c);
}

TEST(a_machine_without_a_pmu_names_its_host)
{
	struct core_case c = core_case_of("x86-vm");
	diagnose(&c, 0, 1);
	must_find("sampling", "rung d");
	must_mend(must_find("sampling", "rung a not taken"), "host");
	core_case_end(&c);
}

TEST(paranoid_3_fails_and_names_the_sysctl)
{
	struct core_case c = core_case_of("paranoid3");
	diagnose(&c, 0, 1);
	int i = must_find("sampling", "no event can sample");
	ck_assert_str_eq(found[i].state, "fail");
	must_mend(i, "perf_event_paranoid");
	core_case_end(&c);
}

TEST(shared_counters_are_told_with_their_share)
{
	struct core_case c = core_case_of("c910");
	diagnose(&c, 0, 0.62);
	int i = must_find("counters", "62 % of the time");
	ck_assert_str_eq(found[i].state, "warn");
	must_mend(i, "other profiler");
	core_case_end(&c);
}

TEST(a_counter_in_use_is_told)
{
	struct core_case c = core_case_of("c910");
	replay_take_counters(c.replay, 100);
	diagnose(&c, 0, 1);
	must_mend(must_find("sampling", "never gets a counter"), "end the other profiler");
	core_case_end(&c);
}

static int refuse(void *userdata, const struct diagnosis *d)
{
	(void)d;
	return ++*(int *)userdata == 3 ? 7 : 0;
}

TEST(a_hart_whose_switches_are_only_counted_says_so, .times = 3)
{
	static const unsigned cut[] = {CUT_SIBLING, CUT_COUNT, CUT_NONE};
	static const char *const says[] = {"only counted", "no sample has counts"};
	struct core_case c = core_case_of("u74");
	struct plan p = core_case_plan(&c, 0, false);
	p.cut = (uint8_t)cut[_i];
	const struct diagnose_question q = {
		.kernel = c.kernel,
		.machine = &c.machine,
		.cores = c.cores,
		.plan = &p,
		.counted_share = 1,
	};
	n = 0;
	ck_assert_int_eq(diagnose_hart(&q, take, NULL), 0);
	if (_i > 0)
		ck_assert_str_eq(found[must_find("sampling", says[_i - 1])].state,
			_i == 1 ? "info" : "warn");
	for (int i = 0; i < n && _i == 0; i++)
		ck_assert_ptr_null(strstr(found[i].says, "context switches"));
	core_case_end(&c);
}

TEST(telling_stops_when_nobody_listens)
{
	struct core_case c = core_case_of("x60");
	struct plan p = core_case_plan(&c, 0, false);
	const struct diagnose_question q = {
		.kernel = c.kernel,
		.machine = &c.machine,
		.cores = c.cores,
		.plan = &p,
		.counted_share = 1,
	};
	int n_told = 0;
	ck_assert_int_eq(diagnose_hart(&q, refuse, &n_told), 7);
	ck_assert_int_eq(n_told, 3);
	core_case_end(&c);
}
