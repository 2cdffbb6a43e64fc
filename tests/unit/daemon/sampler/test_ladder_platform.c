/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* The ladder guided by the platform database, on machines as data: who leads on each core, that
 * what the database says is tried and not believed, and that nobody waits long for an interrupt
 * which a core is known not to have.
 */

#include <errno.h>

#include "tests/unit/core_case.h"
#include "tests/unit/test.h"

#define CLOCK                                                                                      \
	"{\"type\":\"software\",\"config\":0,\"per_us\":1000,\"fires\":true},"                     \
	"{\"type\":\"software\",\"config\":3,\"per_us\":0.001,\"fires\":true}"
#define U74 "\"mvendorid\":\"0x489\",\"marchid\":\"0x8000000000000007\",\"mimpid\":\"0x4210427\""
#define X60                                                                                        \
	"\"mvendorid\":\"0x710\",\"marchid\":\"0x8000000058000001\","                              \
	"\"mimpid\":\"0x1000000049772200\""

/* One hart of that identity, with these rules before those of the clock. */
static struct core_case one_hart(const char *identity, const char *rules)
{
	char json[2048];
	snprintf(json, sizeof(json),
		"{\"source\":\"made\",\"verified\":\"no\",\"files\":{"
		"\"/sys/devices/system/cpu/online\":\"0\\n\","
		"\"/proc/sys/kernel/arch\":\"riscv64\\n\"},"
		"\"hwprobe\":[{\"harts\":\"0\",%s}],\"rules\":[%s" CLOCK "]}",
		identity, rules);
	return core_case_made(json, NULL);
}

static void expect(const struct plan *p, enum rung rung, const char *leader, int n_siblings)
{
	ck_assert_msg(p->rung == rung, "rung %d: %s", p->rung, p->reason);
	ck_assert_str_eq(p->leader.name, leader);
	ck_assert_int_eq(p->n_siblings, n_siblings);
}

EACH_TEST(.seconds = 60);

TEST(x60_is_led_by_u_mode_cycle_with_cycles_and_instructions)
{
	struct core_case c = core_case_of("x60");
	struct plan p = core_case_plan(&c, 5, false);
	expect(&p, RUNG_LEADER, "u_mode_cycle", 2);
	ck_assert_uint_eq(p.leader.type, PERF_TYPE_RAW);
	ck_assert_uint_eq(p.leader.config, 0x22);
	ck_assert_str_eq(p.sibling[0].name, "cycles");
	ck_assert_str_eq(p.sibling[1].name, "instructions");
	ck_assert_int_eq(p.tries[0].error, EOPNOTSUPP);
	ck_assert_ptr_nonnull(strstr(p.tries[0].says, "fixed counters"));
	ck_assert_ptr_nonnull(strstr(p.tries[0].says, "(core)"));
	core_case_end(&c);
}

TEST(x60_without_the_kernel_is_led_by_u_mode_cycle_too)
{
	struct core_case c = core_case_of("x60-mainline");
	struct plan p = core_case_plan(&c, 0, true);
	expect(&p, RUNG_LEADER, "u_mode_cycle:u", 2);
	ck_assert_str_eq(p.sibling[0].name, "cycles:u");
	core_case_end(&c);
}

TEST(nobody_waits_long_for_cycles_that_are_known_not_to_interrupt)
{
	struct core_case c = core_case_of("x60-mainline");
	uint64_t before = c.kernel->now_ns(c.kernel->userdata);
	struct plan p = core_case_plan(&c, 0, false);
	uint64_t took = c.kernel->now_ns(c.kernel->userdata) - before;
	expect(&p, RUNG_LEADER, "u_mode_cycle", 2);
	ck_assert(p.tries[0].silent);
	ck_assert_ptr_nonnull(strstr(p.tries[0].says, "never interrupts"));
	ck_assert_msg(took < 30000000, "%llu ns", (unsigned long long)took);
	core_case_end(&c);
}

TEST(a_leader_that_never_fires_gives_way_to_that_of_the_next_mode)
{
	struct core_case c = one_hart(X60,
		"{\"type\":\"hardware\",\"sampling\":true,\"errno\":\"EOPNOTSUPP\"},"
		"{\"type\":\"hardware\",\"per_us\":1000},"
		"{\"type\":\"raw\",\"config\":\"0x22\",\"per_us\":900},"
		"{\"type\":\"raw\",\"config\":\"0x21\",\"per_us\":100,\"fires\":true},");
	struct plan p = core_case_plan(&c, 0, false);
	expect(&p, RUNG_LEADER, "s_mode_cycle", 2);
	ck_assert_int_eq(p.n_tries, 3);
	ck_assert(p.tries[1].silent && p.tries[1].rung == RUNG_LEADER);
	core_case_end(&c);
}

TEST(a_leader_of_the_kernels_mode_does_not_lead_where_the_kernel_is_left_out)
{
	struct core_case c = one_hart(X60,
		"{\"type\":\"hardware\",\"sampling\":true,\"errno\":\"EOPNOTSUPP\"},"
		"{\"type\":\"hardware\",\"per_us\":1000},"
		"{\"type\":\"raw\",\"config\":\"0x22\",\"per_us\":900},"
		"{\"type\":\"raw\",\"config\":\"0x21\",\"per_us\":100,\"fires\":true},");
	struct plan p = core_case_plan(&c, 0, true);
	expect(&p, RUNG_CLOCK_LEADER, "cpu-clock:u", 2);
	core_case_end(&c);
}

TEST(all_leaders_silent_leave_the_clock_to_lead)
{
	struct core_case c = one_hart(
		X60, "{\"type\":\"hardware\",\"per_us\":1000},{\"type\":\"raw\",\"per_us\":900},");
	struct plan p = core_case_plan(&c, 0, false);
	expect(&p, RUNG_CLOCK_LEADER, "cpu-clock", 2);
	ck_assert_int_eq(p.n_tries, 5);
	for (int i = 0; i < 4; i++)
		ck_assert(p.tries[i].silent && !p.tries[i].busy);
	core_case_end(&c);
}

TEST(u74_counts_under_the_clock_and_says_why_not_better)
{
	struct core_case c = core_case_of("u74");
	struct plan p = core_case_plan(&c, 2, false);
	expect(&p, RUNG_CLOCK_LEADER, "cpu-clock", 2);
	ck_assert_int_eq(p.n_tries, 2);
	ck_assert_int_eq(p.tries[0].error, EOPNOTSUPP);
	ck_assert_ptr_nonnull(strstr(p.tries[0].says, "no overflow interrupt"));
	core_case_end(&c);
}

TEST(what_the_database_says_cannot_sample_and_does_is_taken)
{
	struct core_case c =
		one_hart(U74, "{\"type\":\"hardware\",\"per_us\":1000,\"fires\":true},");
	ck_assert_str_eq(cores_platform(c.cores, 0)->name, "sifive-u74");
	struct plan p = core_case_plan(&c, 0, false);
	expect(&p, RUNG_CYCLES, "cycles", 1);
	core_case_end(&c);
}

TEST(c910_samples_by_cycles)
{
	struct core_case c = core_case_of("c910");
	ck_assert_str_eq(cores_platform(c.cores, 1)->name, "thead-c910");
	struct plan p = core_case_plan(&c, 1, false);
	expect(&p, RUNG_CYCLES, "cycles", 1);
	core_case_end(&c);
}

TEST(a_core_that_nobody_described_is_tried_like_any)
{
	struct core_case c =
		one_hart("\"mvendorid\":\"0xabc\",\"marchid\":\"0x1\",\"mimpid\":\"0x0\"",
			"{\"type\":\"hardware\",\"per_us\":1000,\"fires\":true},");
	ck_assert(cores_platform(c.cores, 0)->generic);
	struct plan p = core_case_plan(&c, 0, false);
	expect(&p, RUNG_CYCLES, "cycles", 1);
	core_case_end(&c);
}

TEST(harts_of_two_kinds_are_led_by_their_own_codes)
{
	struct made_folder folder;
	struct core_case c = core_case_two_kinds(&folder);
	struct plan big = core_case_plan(&c, 0, false), little = core_case_plan(&c, 1, false);
	expect(&big, RUNG_LEADER, "own_cycles", 2);
	expect(&little, RUNG_LEADER, "own_cycles", 2);
	ck_assert_uint_eq(big.leader.config, 0x22);
	ck_assert_uint_eq(little.leader.config, 0x33);
	core_case_end(&c);
	made_folder_remove(&folder);
}

/* The X100 has an event for cycles in every mode beside that of the user's. */
#define X100                                                                                       \
	"\"mvendorid\":\"0x710\",\"marchid\":\"0x8000000058000002\","                              \
	"\"mimpid\":\"0x33d8a600\""
#define X100_RULES                                                                                 \
	"{\"type\":\"hardware\",\"sampling\":true,\"errno\":\"EOPNOTSUPP\"},"                      \
	"{\"type\":\"hardware\",\"per_us\":1000},"                                                 \
	"{\"type\":\"raw\",\"config\":\"0x22\",\"per_us\":900,\"fires\":true},"                    \
	"{\"type\":\"raw\",\"config\":\"0x1e\",\"per_us\":1000,\"fires\":true},"

TEST(what_counts_every_mode_leads_where_the_kernel_is_profiled_too)
{
	struct core_case c = one_hart(X100, X100_RULES);
	struct plan p = core_case_plan(&c, 0, false);
	expect(&p, RUNG_LEADER, "CYCLES.HART", 2);
	p = core_case_plan(&c, 0, true);
	expect(&p, RUNG_LEADER, "u_mode_cycle:u", 2);
	core_case_end(&c);
}

TEST(k3s_harts_have_a_plan_each_of_their_own_kind)
{
	struct core_case c = core_case_of("k3-mixed");
	ck_assert_str_eq(cores_platform(c.cores, 0)->name, "spacemit-x100");
	ck_assert_str_eq(cores_platform(c.cores, 15)->name, "spacemit-a100");
	struct plan big = core_case_plan(&c, 0, false), other = core_case_plan(&c, 15, false);
	expect(&big, RUNG_CYCLES, "cycles", 1);
	expect(&other, RUNG_LEADER, "u_mode_cycle", 2);
	core_case_end(&c);
}

TEST(a_counter_that_somebody_else_has_is_busy_and_not_silent)
{
	struct core_case c = core_case_of("c910");
	replay_take_counters(c.replay, 100);
	struct plan p = core_case_plan(&c, 0, false);
	expect(&p, RUNG_CLOCK, "cpu-clock", 0);
	ck_assert(p.tries[0].silent && p.tries[0].busy);
	ck_assert_ptr_nonnull(strstr(p.tries[0].says, "another profiler"));
	core_case_end(&c);
}

TEST(a_counter_that_is_shared_still_samples)
{
	struct core_case c = core_case_of("c910");
	replay_take_counters(c.replay, 50);
	struct plan p = core_case_plan(&c, 0, false);
	expect(&p, RUNG_CYCLES, "cycles", 1);
	core_case_end(&c);
}

/* The kernel maps neither cycles nor instructions; the core's own event leads and would stand in
 * for cycles too. */
TEST(the_leader_is_never_its_own_sibling)
{
	struct made_folder f = made_folder_new();
	made_file(&f, "own.json",
		"{\"platform\":\"own\",\"title\":\"Own\",\"arch\":\"riscv\",\"source\":\"made\","
		"\"verified\":\"no\",\"cpus\":[{\"arch\":\"riscv\",\"mvendorid\":\"0x9\","
		"\"source\":\"made\",\"verified\":\"no\"}],\"events\":["
		"{\"code\":\"0x10\",\"name\":\"clk\",\"generic\":[\"cycles\"],\"says\":\"x\","
		"\"topic\":\"cycles\",\"source\":\"made\",\"verified\":\"no\"},"
		"{\"code\":\"0x20\",\"name\":\"ret\",\"generic\":[\"instructions\"],"
		"\"says\":\"x\",\"topic\":\"cycles\",\"source\":\"made\",\"verified\":\"no\"}],"
		"\"quirks\":[{\"quirk\":\"leader\",\"user\":\"clk\",\"source\":\"made\","
		"\"verified\":\"no\"}]}\n");
	struct core_case c = core_case_made(
		"{\"source\":\"made\",\"verified\":\"no\",\"files\":{"
		"\"/sys/devices/system/cpu/online\":\"0\\n\","
		"\"/proc/sys/kernel/arch\":\"riscv64\\n\"},\"hwprobe\":[{\"harts\":\"0\","
		"\"mvendorid\":\"0x9\",\"marchid\":\"0x1\",\"mimpid\":\"0x0\"}],\"rules\":["
		"{\"type\":\"raw\",\"config\":\"0x10\",\"leader\":true,\"per_us\":1000,"
		"\"fires\":true},"
		"{\"type\":\"raw\",\"config\":\"0x10\",\"per_us\":0},"
		"{\"type\":\"raw\",\"config\":\"0x20\",\"per_us\":700}," CLOCK "]}",
		f.path);
	struct plan p = core_case_plan(&c, 0, false);
	/* cycles, by the core's own code, lead at rung a: the kernel has no mapping for them */
	expect(&p, RUNG_CYCLES, "cycles", 1);
	core_case_end(&c);

	struct core_case silent = core_case_made(
		"{\"source\":\"made\",\"verified\":\"no\",\"files\":{"
		"\"/sys/devices/system/cpu/online\":\"0\\n\","
		"\"/proc/sys/kernel/arch\":\"riscv64\\n\"},\"hwprobe\":[{\"harts\":\"0\","
		"\"mvendorid\":\"0x9\",\"marchid\":\"0x1\",\"mimpid\":\"0x0\"}],\"rules\":["
		"{\"type\":\"hardware\",\"config\":0,\"sampling\":true,\"errno\":\"EOPNOTSUPP\"},"
		"{\"type\":\"raw\",\"config\":\"0x10\",\"leader\":true,\"per_us\":1000,"
		"\"fires\":true},"
		"{\"type\":\"raw\",\"config\":\"0x10\",\"per_us\":5},"
		"{\"type\":\"raw\",\"config\":\"0x20\",\"per_us\":700}," CLOCK "]}",
		f.path);
	p = core_case_plan(&silent, 0, false);
	expect(&p, RUNG_LEADER, "clk", 1);
	ck_assert_str_eq(p.sibling[0].name, "instructions");
	core_case_end(&silent);
	made_folder_remove(&f);
}
