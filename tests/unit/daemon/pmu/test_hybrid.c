/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * An x86 hybrid: four harts of P cores and two of E cores, whose PMUs are cpu_core, with the type of raw
 * events, and cpu_atom, with one of its own. Each kind is planned and counted by its own events.
 */
#include <errno.h>
#include <string.h>

#include "daemon/count/counter.h"
#include "daemon/count/rotation.h"
#include "daemon/metric/metric_plan.h"
#include "tests/unit/core_case.h"
#include "tests/unit/test.h"

#define N(table) (sizeof(table) / sizeof((table)[0]))
#define P_HART 0
#define E_HART 4
#define RUN_US 1000u

static struct core_case c;

static void setup(void)
{
	c = core_case_of("alderlake");
}

static void teardown(void)
{
	core_case_end(&c);
}

EACH_TEST(.begin = setup, .end = teardown);

static struct metric_plan *plan_of(int hart, char *const *names, size_t n)
{
	struct metric_plan *plan = NULL;
	struct event_error error = {""};
	const struct platform *p = cores_platform(c.cores, hart);
	const struct metric_harts harts = {c.cores, p, cores_of(c.cores, p)};
	int r = metric_plan_for(c.kernel, &harts, names, n, &plan, &error);
	ck_assert_msg(r == 0, "%d: %s", r, error.text);
	return plan;
}

/* Count for a millisecond on one hart of each kind. */
static struct counter *count(const char *events, const pid_t *pids, const struct hart_set *harts)
{
	struct event_list list = core_case_events(&c, events);
	const struct counter_options o = {.events = &list,
		.pids = pids,
		.n_pids = pids != NULL,
		.harts = harts,
		.cores = c.cores};
	struct event_error error = {""};
	struct counter *counter = NULL;
	int r = counter_new(c.kernel, &c.machine, &o, &counter, &error);
	ck_assert_msg(r == 0, "%s", error.text);
	ck_assert_int_eq(counter_start(counter), 0);
	replay_run(c.replay, P_HART, 100, RUN_US * 1000);
	replay_run(c.replay, E_HART, 100, RUN_US * 1000);
	ck_assert_int_eq(counter_read(counter), 0);
	return counter;
}

static const struct perf_event_attr *attr_on(const struct counter *counter, int event, int hart)
{
	for (size_t i = 0; i < counter->n_targets; i++)
		if (counter->target[i].hart == hart)
			return replay_attr(
				c.replay, counter->fd[(size_t)event * counter->n_targets + i]);
	ck_abort_msg("hart %d is no target", hart);
	return NULL;
}

TEST(harts_are_of_two_kinds)
{
	ck_assert(cores_differ(c.cores));
	ck_assert_int_eq(cores_kind(c.cores, 0), P_HART);
	ck_assert_int_eq(cores_kind(c.cores, 1), E_HART);
	ck_assert_int_eq(cores_kind(c.cores, 5), -1);
}

/* Slots lead, and shares need no counter but their own: two levels in one pass of ten. */
TEST(the_tree_of_p_cores_is_one_pass_led_by_slots)
{
	char *names[] = {"TopdownL1", "TopdownL2"};
	_cleanup_(metric_plan_freep) struct metric_plan *first = plan_of(P_HART, names, 1);
	_cleanup_(metric_plan_freep) struct metric_plan *both = plan_of(P_HART, names, 2);
	ck_assert_str_eq(metric_plan_events(first, 0),
		"{slots,topdown-retiring,topdown-fe-bound,topdown-bad-spec,topdown-be-bound,"
		"int_misc.uop_dropping}");
	ck_assert_ptr_null(metric_plan_events(first, 1));
	ck_assert_int_eq(strncmp(metric_plan_events(both, 0), "{slots,", strlen("{slots,")), 0);
	ck_assert_ptr_null(metric_plan_events(both, 1));
	ck_assert_uint_eq(metric_plan_n_metrics(both), 12);
}

TEST(the_tree_of_e_cores_is_one_pass_beside_fixed_cycles)
{
	char *names[] = {"TopdownL1"};
	_cleanup_(metric_plan_freep) struct metric_plan *plan = plan_of(E_HART, names, N(names));
	ck_assert_str_eq(metric_plan_events(plan, 0),
		"{topdown_retiring.all,cpu_clk_unhalted.core,topdown_fe_bound.all,"
		"topdown_be_bound.all}");
	ck_assert_ptr_null(metric_plan_events(plan, 1));
}

TEST(the_shares_of_p_cores_open_behind_slots)
{
	char *names[] = {"TopdownL1", "TopdownL2"};
	_cleanup_(metric_plan_freep) struct metric_plan *plan = plan_of(P_HART, names, N(names));
	struct hart_set harts = cores_of(c.cores, cores_platform(c.cores, P_HART));
	struct counter *counter = count(metric_plan_events(plan, 0), NULL, &harts);
	ck_assert_int_eq(counter->events.n_events, 10);
	for (int e = 0; e < counter->events.n_events; e++)
		ck_assert_msg(counter->value[e].error == 0, "%s: %d", counter->events.event[e].name,
			counter->value[e].error);
	ck_assert_uint_eq(counter->value[0].value, 30000 * RUN_US);
	ck_assert_uint_eq(attr_on(counter, 1, P_HART)->type, PERF_TYPE_RAW);
	ck_assert_uint_eq(attr_on(counter, 1, P_HART)->config, 0x8000);
	counter_free(counter);
}

TEST(raw_codes_of_e_cores_open_on_their_pmu)
{
	char *names[] = {"TopdownL1"};
	_cleanup_(metric_plan_freep) struct metric_plan *plan = plan_of(E_HART, names, N(names));
	struct hart_set harts = cores_of(c.cores, cores_platform(c.cores, E_HART));
	struct counter *counter = count(metric_plan_events(plan, 0), NULL, &harts);
	for (int e = 0; e < counter->events.n_events; e++) {
		ck_assert_int_eq(counter->value[e].error, 0);
		ck_assert_uint_eq(attr_on(counter, e, E_HART)->type, 10);
	}
	ck_assert_uint_eq(attr_on(counter, 0, E_HART)->config, 0xc2);
	ck_assert_uint_eq(counter->value[0].value, 8000 * RUN_US);
	counter_free(counter);
}

/* One name, and the code of the hart: what it counts there is what the name says. */
TEST(a_name_of_both_kinds_has_the_code_of_each)
{
	struct counter *counter =
		count("br_inst_retired.all_branches,inst_retired.any_p", NULL, NULL);
	ck_assert_uint_eq(counter->value[0].value, (1000 + 400) * RUN_US);
	ck_assert_uint_eq(counter->value[1].value, (8000 + 3000) * RUN_US);
	ck_assert_uint_eq(attr_on(counter, 0, P_HART)->type, PERF_TYPE_RAW);
	ck_assert_uint_eq(attr_on(counter, 0, E_HART)->type, 10);
	counter_free(counter);
}

TEST(generic_events_and_raw_codes_of_a_process_count_on_both_kinds)
{
	const pid_t pid = 100;
	struct counter *counter = count("cycles,instructions,rc4", &pid, NULL);
	ck_assert_uint_eq(counter->n_targets, 6);
	ck_assert_uint_eq(counter->value[0].value, (5000 + 4000) * RUN_US);
	ck_assert_uint_eq(counter->value[1].value, (8000 + 3000) * RUN_US);
	ck_assert_uint_eq(counter->value[2].value, (1000 + 400) * RUN_US);
	counter_free(counter);
	counter = count("rc4", &pid, NULL);
	ck_assert_uint_eq(counter->value[0].value, (1000 + 400) * RUN_US);
	counter_free(counter);
}

/* 0xc4 is branches on both: the user asked for those of one kind. */
TEST(an_event_of_a_named_pmu_stays_on_its_harts)
{
	struct counter *counter = count("cpu_core/event=0xc4/,cpu_atom/event=0xc4/", NULL, NULL);
	ck_assert_uint_eq(counter->value[0].value, 1000 * RUN_US);
	ck_assert_uint_eq(counter->value[1].value, 400 * RUN_US);
	ck_assert_ptr_null(attr_on(counter, 0, E_HART));
	ck_assert_ptr_null(attr_on(counter, 1, P_HART));
	counter_free(counter);
}

TEST(each_kind_samples_by_its_cycles)
{
	struct plan p = core_case_plan(&c, P_HART, false), e = core_case_plan(&c, E_HART, false);
	ck_assert_int_eq(p.rung, RUNG_CYCLES);
	ck_assert_int_eq(e.rung, RUNG_CYCLES);
}

TEST(passes_turn_as_the_pmu_of_cores_says)
{
	ck_assert_uint_eq(rotation_ns(c.kernel), 4000000);
	replay_set_text(c.replay,
		"/sys/bus/event_source/devices/cpu_core/perf_event_mux_interval_ms", "x\n");
	ck_assert_uint_eq(rotation_ns(c.kernel), 0);
}

/* A kernel that maps generic events for a PMU that config names, and not otherwise. */
TEST(a_generic_event_names_its_pmu_where_the_kernel_wants_that)
{
	char json[2048];
	snprintf(json, sizeof(json),
		"{\"source\":\"made\",\"verified\":\"no\",\"files\":{"
		"\"/sys/devices/system/cpu/online\":\"0-1\\n\","
		"\"/proc/sys/kernel/arch\":\"x86_64\\n\",\"/proc/cpuinfo\":\""
		"processor : 0\\nvendor_id : GenuineIntel\\ncpu family : 6\\nmodel : 151\\n"
		"stepping : 2\\n\\nprocessor : 1\\nvendor_id : GenuineIntel\\ncpu family : 6\\n"
		"model : 151\\nstepping : 2\\n\","
		"\"/sys/bus/event_source/devices/cpu_core/type\":\"4\\n\","
		"\"/sys/bus/event_source/devices/cpu_core/cpus\":\"0\\n\","
		"\"/sys/bus/event_source/devices/cpu_atom/type\":\"10\\n\","
		"\"/sys/bus/event_source/devices/cpu_atom/cpus\":\"1\\n\"},\"rules\":["
		"{\"type\":\"hardware\",\"config\":0,\"harts\":\"0\",\"per_us\":5},"
		"{\"type\":\"hardware\",\"config\":\"0xa00000000\",\"harts\":\"1\","
		"\"per_us\":4}]}");
	struct core_case made = core_case_made(json, NULL);
	struct event_list list = core_case_events(&made, "cycles");
	const struct counter_options o = {.events = &list, .cores = made.cores};
	struct event_error error = {""};
	struct counter *counter = NULL;
	ck_assert_int_eq(counter_new(made.kernel, &made.machine, &o, &counter, &error), 0);
	ck_assert_uint_eq(counter_n_fds(counter), 2);
	ck_assert_int_eq(hart_set_count(&counter->by_raw[0]), 0);
	counter_free(counter);
	core_case_end(&made);
}
