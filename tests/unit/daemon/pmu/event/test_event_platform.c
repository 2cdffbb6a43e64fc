/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Names and codes of the platform database as events: what -e takes, which code each kind of core
 * gets, and what stands in for a generic event that the kernel does not map.
 */

#include <errno.h>

#include "daemon/count/counter.h"
#include "daemon/pmu/event/event_on_core.h"
#include "daemon/sampler/sampler.h"
#include "tests/unit/core_case.h"
#include "tests/unit/test.h"

static char *refused(const struct core_case *c, const char *text)
{
	static struct event_error error;
	struct event_list list = {0};
	error.text[0] = '\0';
	ck_assert_int_ne(event_parse_for(c->kernel, c->cores, text, &list, &error), 0);
	ck_assert_int_eq(list.n_events, 0);
	return error.text;
}

EACH_TEST(.seconds = 60);

TEST(a_platforms_names_and_aliases_are_events)
{
	struct core_case c = core_case_of("x60");
	struct event_list l =
		core_case_events(&c, "u_mode_cycle,U_MODE_CYCLE:u,{l2_miss:k,TLB.L1D.LOAD.MISS}");
	ck_assert_int_eq(l.n_events, 4);
	ck_assert_uint_eq(l.event[0].type, PERF_TYPE_RAW);
	ck_assert_uint_eq(l.event[0].config, 0x22);
	ck_assert_str_eq(l.event[0].pmu, "raw");
	ck_assert(l.event[0].by_platform && !l.event[0].exclude_kernel);
	ck_assert(l.event[1].exclude_kernel);
	ck_assert_str_eq(l.event[2].name, "l2_miss:k");
	ck_assert(l.event[2].exclude_user && l.event[2].group == 0);
	ck_assert_uint_eq(l.event[3].config, 0x15);
	core_case_end(&c);
}

TEST(generic_names_and_raw_codes_stay_the_kernels)
{
	struct core_case c = core_case_of("x60");
	struct event_list l = core_case_events(&c, "cycles,dTLB-load-misses,r22");
	ck_assert_uint_eq(l.event[0].type, PERF_TYPE_HARDWARE);
	ck_assert_uint_eq(l.event[1].type, PERF_TYPE_HW_CACHE);
	ck_assert(!l.event[2].by_platform);
	core_case_end(&c);
}

TEST(a_near_miss_of_a_platforms_name_is_offered)
{
	struct core_case c = core_case_of("x60");
	ck_assert_ptr_nonnull(strstr(refused(&c, "u_mode_cycel"), "'u_mode_cycle'"));
	ck_assert_ptr_nonnull(strstr(refused(&c, "cycles,l2_mis"), "'l2_miss'"));
	core_case_end(&c);
}

TEST(another_cores_name_is_unknown_here)
{
	struct core_case c = core_case_of("u74");
	ck_assert_ptr_nonnull(strstr(refused(&c, "u_mode_cycle"), "unknown event"));
	ck_assert_ptr_nonnull(strstr(refused(&c, "u_mode_cycle:u"), "unknown event"));
	core_case_end(&c);
}

TEST(a_platforms_name_is_cut_at_nothing)
{
	struct core_case c = core_case_of("x60");
	ck_assert_ptr_nonnull(strstr(refused(&c, "u_mode_cycle:z"), "'z'"));
	ck_assert_ptr_nonnull(strstr(refused(&c, "u_mode_cycle:"), "modifiers"));
	ck_assert_ptr_nonnull(strstr(refused(&c, "u_mode"), "unknown event"));
	ck_assert_ptr_nonnull(strstr(refused(&c, "xu_mode_cycleu_mode_cycle"), "unknown event"));
	core_case_end(&c);
}

TEST(an_alias_of_sysfs_comes_before_the_platforms_name)
{
	struct core_case c = core_case_of("x60");
	replay_set_text(c.replay, "/sys/bus/event_source/devices/spacemit/type", "9\n");
	replay_set_text(
		c.replay, "/sys/bus/event_source/devices/spacemit/format/event", "config:0-7\n");
	replay_set_text(c.replay, "/sys/bus/event_source/devices/spacemit/events/u_mode_cycle",
		"event=0x77\n");
	struct event_list l = core_case_events(&c, "u_mode_cycle:u");
	ck_assert_uint_eq(l.event[0].type, 9);
	ck_assert_uint_eq(l.event[0].config, 0x77);
	ck_assert_str_eq(l.event[0].pmu, "spacemit");
	ck_assert(!l.event[0].by_platform && l.event[0].exclude_kernel);
	core_case_end(&c);
}

TEST(an_alias_that_two_pmus_have_is_nobodys)
{
	struct core_case c = core_case_of("x60");
	static const char *const files[][2] = {
		{"/sys/bus/event_source/devices/a/type", "9\n"},
		{"/sys/bus/event_source/devices/a/format/event", "config:0-7\n"},
		{"/sys/bus/event_source/devices/a/events/twice", "event=0x1\n"},
		{"/sys/bus/event_source/devices/b/type", "10\n"},
		{"/sys/bus/event_source/devices/b/format/event", "config:0-7\n"},
		{"/sys/bus/event_source/devices/b/events/twice", "event=0x1\n"},
		{"/sys/bus/event_source/devices/b/events/l2_miss", "nosuchfield=0x1\n"},
	};
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		replay_set_text(c.replay, files[i][0], files[i][1]);
	ck_assert_ptr_nonnull(strstr(refused(&c, "twice"), "unknown event"));
	/* and one that does not parse leaves the name to the platform */
	ck_assert(core_case_events(&c, "l2_miss").event[0].by_platform);
	core_case_end(&c);
}

TEST(an_event_is_opened_by_each_harts_own_code)
{
	struct made_folder folder;
	struct core_case c = core_case_two_kinds(&folder);
	struct event_list l = core_case_events(&c, "own_cycles");
	struct sampler_options o = {.hz = 99, .events = &l, .cores = c.cores};
	struct event_error error = {""};
	struct sampler *s = NULL;
	ck_assert_msg(sampler_new(c.kernel, &o, &s, &error) == 0, "%s", error.text);
	ck_assert_int_eq(s->events.n_events, 1);
	uint64_t code[2] = {0, 0};
	for (size_t i = 0; i < s->streams.n_streams; i++) {
		const struct stream *t = &s->streams.stream[i];
		if (t->role == STREAM_SAMPLER)
			code[t->hart] = replay_attr(c.replay, t->fd)->config;
	}
	ck_assert_uint_eq(code[0], 0x22);
	ck_assert_uint_eq(code[1], 0x33);
	sampler_free(s);
	core_case_end(&c);
	made_folder_remove(&folder);
}

TEST(what_one_kind_of_core_lacks_samples_on_the_other)
{
	struct made_folder folder;
	struct core_case c = core_case_two_kinds(&folder);
	struct event_list l = core_case_events(&c, "cpu-clock,big_only");
	struct sampler_options o = {.hz = 99, .events = &l, .cores = c.cores};
	struct event_error error = {""};
	struct sampler *s = NULL;
	ck_assert_msg(sampler_new(c.kernel, &o, &s, &error) == 0, "%s", error.text);
	unsigned n[2] = {0, 0};
	for (size_t i = 0; i < s->streams.n_streams; i++)
		n[s->streams.stream[i].hart] += s->streams.stream[i].role == STREAM_SAMPLER;
	ck_assert_uint_eq(n[0], 2);
	ck_assert_uint_eq(n[1], 1);
	sampler_free(s);
	core_case_end(&c);
	made_folder_remove(&folder);
}

TEST(a_generic_event_is_sampled_by_the_cores_own_code)
{
	struct made_folder folder;
	struct core_case c = core_case_two_kinds(&folder);
	struct event_list l = core_case_events(&c, "L1-dcache-loads");
	struct sampler_options o = {.hz = 99, .events = &l, .cores = c.cores};
	struct event_error error = {""};
	struct sampler *s = NULL;
	ck_assert_msg(sampler_new(c.kernel, &o, &s, &error) == 0, "%s", error.text);
	/* it stays the generic event for all who read the figures */
	ck_assert_uint_eq(s->events.event[0].type, PERF_TYPE_HW_CACHE);
	ck_assert(hart_set_has(&s->book.by_raw[0], 0) && hart_set_has(&s->book.by_raw[0], 1));
	for (size_t i = 0; i < s->streams.n_streams; i++) {
		const struct stream *t = &s->streams.stream[i];
		if (t->role == STREAM_SAMPLER)
			ck_assert_uint_eq(
				replay_attr(c.replay, t->fd)->config, t->hart == 0 ? 0x55 : 0x66);
	}
	sampler_free(s);
	core_case_end(&c);
	made_folder_remove(&folder);
}

static uint64_t count(struct core_case *c, const char *events, const pid_t *pids, size_t n_pids,
	struct counter **ret_counter)
{
	struct event_list l = core_case_events(c, events);
	struct counter_options o = {
		.events = &l, .pids = pids, .n_pids = n_pids, .cores = c->cores};
	struct event_error error = {""};
	ck_assert_msg(counter_new(c->kernel, &c->machine, &o, ret_counter, &error) == 0, "%s",
		error.text);
	ck_assert_int_eq(counter_start(*ret_counter), 0);
	replay_run(c->replay, 0, 100, 1000000);
	replay_run(c->replay, 1, 100, 1000000);
	ck_assert_int_eq(counter_read(*ret_counter), 0);
	return (*ret_counter)->value[0].value;
}

TEST(a_sum_is_made_of_each_harts_own_code)
{
	struct made_folder folder;
	struct core_case c = core_case_two_kinds(&folder);
	struct counter *counter = NULL;
	ck_assert_uint_eq(count(&c, "own_cycles", NULL, 0, &counter), 1000000 + 800000);
	counter_free(counter);
	ck_assert_uint_eq(count(&c, "L1-dcache-loads", NULL, 0, &counter), 50000 + 60000);
	ck_assert(hart_set_has(&counter->by_raw[0], 1));
	counter_free(counter);
	core_case_end(&c);
	made_folder_remove(&folder);
}

TEST(a_process_is_counted_on_each_kind_of_core)
{
	struct made_folder folder;
	struct core_case c = core_case_two_kinds(&folder);
	struct counter *counter = NULL;
	const pid_t pids[] = {100};
	ck_assert_uint_eq(count(&c, "own_cycles", pids, 1, &counter), 1000000 + 800000);
	ck_assert_uint_eq(counter->n_targets, 2);
	counter_free(counter);
	/* what every core counts alike needs no column for each hart */
	ck_assert_uint_gt(count(&c, "cpu-clock", pids, 1, &counter), 0);
	ck_assert_uint_eq(counter->n_targets, 1);
	counter_free(counter);
	core_case_end(&c);
	made_folder_remove(&folder);
}

TEST(what_neither_kernel_nor_platform_knows_stays_unknown)
{
	struct made_folder folder;
	struct core_case c = core_case_two_kinds(&folder);
	struct event_list l = core_case_events(&c, "LLC-loads");
	struct counter_options o = {.events = &l, .cores = c.cores};
	struct counter *counter = NULL;
	struct event_error error = {""};
	ck_assert_int_eq(counter_new(c.kernel, &c.machine, &o, &counter, &error), COUNTER_REFUSED);
	ck_assert_ptr_nonnull(strstr(error.text, "LLC-loads"));
	struct sampler_options so = {.hz = 99, .events = &l, .cores = c.cores};
	struct sampler *s = NULL;
	error.text[0] = '\0';
	ck_assert_int_eq(sampler_new(c.kernel, &so, &s, &error), SAMPLER_REFUSED);
	ck_assert_ptr_nonnull(strstr(error.text, "LLC-loads"));
	core_case_end(&c);
	made_folder_remove(&folder);
}

TEST(a_platforms_event_is_probed_where_it_is)
{
	struct made_folder folder;
	struct core_case c = core_case_two_kinds(&folder);
	struct event_list l = core_case_events(&c, "big_only,own_cycles,LLC-loads,r99");
	ck_assert_int_eq(event_probe_for(c.kernel, &c.machine, c.cores, &l.event[0]), 0);
	ck_assert_int_eq(event_probe_for(c.kernel, &c.machine, c.cores, &l.event[1]), 0);
	ck_assert_int_eq(event_probe_for(c.kernel, &c.machine, c.cores, &l.event[2]), -ENOENT);
	ck_assert_int_eq(event_probe_for(c.kernel, &c.machine, c.cores, &l.event[3]), -ENOENT);
	core_case_end(&c);
	made_folder_remove(&folder);
}

TEST(exclusion_that_is_refused_counts_all_modes_and_is_remembered)
{
	struct core_case c = core_case_of("u74");
	struct event_list l = core_case_events(&c, "cycles:u,cpu-clock:u");
	struct counter_options o = {.events = &l, .cores = c.cores};
	struct counter *counter = NULL;
	struct event_error error = {""};
	ck_assert_int_eq(counter_new(c.kernel, &c.machine, &o, &counter, &error), 0);
	ck_assert_uint_eq(counter->unexcluded, 1);
	ck_assert_int_eq(counter->value[0].error, 0);
	counter_free(counter);

	struct event_list group = core_case_events(&c, "{cpu-clock:u,cycles:u}");
	struct sampler_options so = {.hz = 99, .events = &group, .cores = c.cores};
	struct sampler *s = NULL;
	ck_assert_msg(sampler_new(c.kernel, &so, &s, &error) == 0, "%s", error.text);
	ck_assert_uint_eq(s->limits.unexcluded, 2);
	ck_assert_uint_eq(s->lost[0][LOSS_SIBLING], 0);
	ck_assert(s->events.event[0].exclude_kernel && !s->events.event[1].exclude_kernel);
	sampler_free(s);
	core_case_end(&c);
}

TEST(without_the_right_to_the_kernel_refused_exclusion_stays_refused)
{
	struct core_case c = core_case_of("u74");
	c.machine.may_see_kernel = false;
	struct event_list l = core_case_events(&c, "cycles:u");
	struct counter_options o = {.events = &l, .cores = c.cores};
	struct counter *counter = NULL;
	struct event_error error = {""};
	ck_assert_int_eq(counter_new(c.kernel, &c.machine, &o, &counter, &error), COUNTER_REFUSED);
	ck_assert_ptr_null(counter);
	core_case_end(&c);
}

/* --- names of one architecture, and codes by their fields --------------------------------------- */

TEST(names_of_riscv_are_events_on_riscv_alone)
{
	struct core_case c = core_case_of("x60");
	struct event_list l = core_case_events(&c, "riscv_cycles:u,{riscv_instret,cycles}");
	ck_assert_uint_eq(l.event[0].type, PERF_TYPE_HARDWARE);
	ck_assert_uint_eq(l.event[0].config, PERF_COUNT_HW_CPU_CYCLES);
	ck_assert(l.event[0].exclude_kernel && !l.event[0].by_platform);
	ck_assert_str_eq(l.event[0].name, "riscv_cycles:u");
	ck_assert_uint_eq(l.event[1].config, PERF_COUNT_HW_INSTRUCTIONS);
	core_case_end(&c);
	c = core_case_of("pc");
	ck_assert_str_eq(refused(&c, "riscv_instret"),
		"column 1: 'riscv_instret' is the name on another architecture: here it is "
		"'instructions'");
	core_case_end(&c);
}

TEST(codes_are_composed_of_fields)
{
	static const struct {
		const char *text;
		uint64_t code;
		bool user;
	} events[] = {
		{"backend:INST_SPEC+RECOVERY_BUBBLE", UINT64_C(0x40000002007), false},
		{"backend:INST_SPEC+RECOVERY_BUBBLE:u", UINT64_C(0x40000002007), true},
		{"xs/backend/INST_SPEC+RECOVERY_BUBBLE/", UINT64_C(0x40000002007), false},
		{"xs/frontend/Fetch_Latency_Bound/u", 22, true},
		{"xs/frontend/Fetch_Latency_Bound/:u", 22, true},
		{"xs/EVENT0=7,EVENT1=8,OP_TYPE0=ADD/", UINT64_C(0x40000002007), false},
		{"XS/EVENT0=22/u", 22, true},
		{"memory:44", 44, false},
	};
	struct core_case c = core_case_riscv(CORE_KUNMINGHU);
	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
		struct event_list l = core_case_events(&c, events[i].text);
		ck_assert_int_eq(l.n_events, 1);
		ck_assert_uint_eq(l.event[0].type, PERF_TYPE_RAW);
		ck_assert_uint_eq(l.event[0].config, events[i].code);
		ck_assert(l.event[0].exclude_kernel == events[i].user);
		ck_assert_str_eq(l.event[0].name, events[i].text);
	}
	struct event_list l = core_case_events(
		&c, "{backend:INST_SPEC,xs/frontend/22/}:u,xs/EVENT0=1,EVENT1=2/,cycles");
	ck_assert_int_eq(l.n_events, 4);
	ck_assert_str_eq(l.event[0].name, "backend:INST_SPEC:u");
	ck_assert_str_eq(l.event[1].name, "xs/frontend/22/:u");
	ck_assert_str_eq(l.event[3].name, "cycles");
	core_case_end(&c);
}

TEST(codes_that_are_wrong_are_refused_where_they_are)
{
	static const char *const texts[][2] = {
		{"backend:INST_SPEK", "column 9: XiangShan Kunminghu has no event 'INST_SPEK'"},
		{"cycles,xs/backend/1+/", "column 21: an event is missing"},
		{"xs/middle/1/", "column 11: XiangShan Kunminghu has no bank of counters 'middle'"},
		{"xs//", "column 4: an event or field is missing"},
		{"xs/backend//", "column 12: an event or field is missing"},
		{"xs/backend", "has no closing '/'"},
		{"xs/a/b/c/", "column 9: a fourth '/' in one event"},
		{"xs/EVENT0/", "'EVENT0' gives no field a value, such as EVENT0=1"},
		{"xs/EVENT0=1,/", "column 13: '' gives no field a value"},
		{"xs/EVENT9=1/", "have no field 'EVENT9'"},
		{"xs/EVENT0=0/", "code 0 counts nothing"},
		{"xs/backend/1/z", "'z' is not a modifier"},
		{"backend:", "a name is missing after ':'"},
		{"backend:1:", "modifiers are missing"},
		{"ys/backend/1/", "a third '/'"},
	};
	struct core_case c = core_case_riscv(CORE_KUNMINGHU);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		ck_assert_msg(strstr(refused(&c, texts[i][0]), texts[i][1]) != NULL, "%s: %s",
			texts[i][0], refused(&c, texts[i][0]));
	core_case_end(&c);
}

/* Source: riscv_pmu_sbi.c of Linux 6.12 and 6.18, whose event format says "config:0-47", "config:0-55". */
TEST(bits_that_linux_does_not_pass_are_refused)
{
	static const char format[] = "/sys/bus/event_source/devices/cpu/format/event";
	static const char four[] = "backend:1+2+3+4", inhibit[] = "xs/EVENT0=1,MINH=1/";
	struct core_case c = core_case_riscv(CORE_KUNMINGHU);
	ck_assert_str_eq(refused(&c, four),
		"column 9: OP_TYPE2 needs bits 54-50 of the code, but this kernel passes only 47-0 "
		"(55-0 "
		"from Linux 6.18 on, with SBI 3.0): combine two events, or count each one "
		"separately");
	ck_assert_str_eq(refused(&c, inhibit),
		"column 4: MINH (bit 62) never reaches the counter, since Linux sets these bits "
		"itself: use the modifiers u and k to exclude modes");
	replay_set_text(c.replay, format, "config:0-47\n");
	ck_assert_ptr_nonnull(strstr(refused(&c, four), "passes only 47-0"));
	replay_set_text(c.replay, format, "config:0-55\n");
	ck_assert_uint_eq(core_case_events(&c, four).event[0].config >> 50, 4);
	ck_assert_ptr_nonnull(strstr(refused(&c, inhibit), "MINH (bit 62) never reaches"));
	replay_set_text(c.replay, format, "config:0-63\n");
	ck_assert_ptr_nonnull(strstr(refused(&c, inhibit), "MINH (bit 62) never reaches"));
	replay_set_text(c.replay, format, "nonsense\n");
	ck_assert_ptr_nonnull(strstr(refused(&c, four), "passes only 47-0"));
	core_case_end(&c);
}

TEST(a_tracepoint_is_still_one_where_banks_have_names)
{
	struct core_case c = core_case_riscv(CORE_KUNMINGHU);
	replay_set_text(c.replay, "/sys/kernel/tracing/events/sched/sched_switch/id", "316\n");
	ck_assert_uint_eq(
		core_case_events(&c, "sched:sched_switch").event[0].type, PERF_TYPE_TRACEPOINT);
	core_case_end(&c);
}
