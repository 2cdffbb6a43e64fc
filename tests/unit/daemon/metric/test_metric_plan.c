/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Metrics of described cores on replayed machines: their events, groups and values.
 */
#include <math.h>
#include <string.h>

#include "daemon/metric/constants.h"
#include "daemon/metric/metric_plan.h"
#include "platform-db/expression.h"
#include "tests/unit/core_case.h"
#include "tests/unit/test.h"

#define N(table) (sizeof(table) / sizeof((table)[0]))

static struct metric_plan *plan(const struct core_case *c, char *const *names, size_t n)
{
	struct metric_plan *p = NULL;
	struct event_error error = {""};
	int r = metric_plan_new(c->kernel, &c->machine, c->cores, names, n, &p, &error);
	ck_assert_msg(r == 0, "%d: %s", r, error.text);
	return p;
}

static const struct planned_metric *metric_of(const struct metric_plan *p, const char *name)
{
	for (size_t i = 0; i < metric_plan_n_metrics(p); i++)
		if (strcmp(metric_plan_metric(p, i)->metric->name, name) == 0)
			return metric_plan_metric(p, i);
	ck_abort_msg("no metric %s", name);
	return NULL;
}

/* Events with a counter each, and two fixed ones. */
TEST(the_papers_metrics_are_counted_in_one_pass)
{
	char *names[] = {"paper_branch_miss_rate", "l1d_miss_rate", "l1i_miss_rate",
		"scoreboard_full", "fetch_empty", "dtlb_miss_rate", "itlb_miss_rate", "ipc"};
	struct core_case c = core_case_riscv(CORE_CVA6);
	_cleanup_(metric_plan_freep) struct metric_plan *p = plan(&c, names, N(names));
	for (size_t i = 0; i < N(names); i++)
		ck_assert_int_eq(metric_of(p, names[i])->fate, PLAN_WHOLE);
	ck_assert_ptr_nonnull(metric_plan_events(p, 0));
	ck_assert_ptr_null(metric_plan_events(p, 1));
	core_case_end(&c);
}

/* Three levels of nodes: nine backend events on eight counters, since two are one. */
TEST(kunminghus_tree_is_counted_in_one_pass)
{
	char *names[] = {"TopdownL1", "TopdownL2", "topdownl3"};
	struct core_case c = core_case_riscv(CORE_KUNMINGHU);
	_cleanup_(metric_plan_freep) struct metric_plan *p = plan(&c, names, N(names));
	ck_assert_uint_eq(metric_plan_n_metrics(p), 15);
	for (size_t i = 0; i < 15; i++)
		ck_assert_int_eq(metric_plan_metric(p, i)->fate, PLAN_WHOLE);
	ck_assert_ptr_null(metric_plan_events(p, 1));
	const char *events = metric_plan_events(p, 0);
	ck_assert_int_eq(events[0], '{');
	ck_assert_ptr_nonnull(strstr(events, "INST_SPEC_AND_RECOVERY"));
	core_case_end(&c);
}

/* Each index of an event means another one in the other banks, and Linux cannot choose a bank. */
TEST(what_firmware_must_know_is_named)
{
	char *names[] = {"TopdownL1", "ipc"};
	struct core_case c = core_case_riscv(CORE_KUNMINGHU);
	_cleanup_(metric_plan_freep) struct metric_plan *tree = plan(&c, names, 1);
	_cleanup_(metric_plan_freep) struct metric_plan *fixed = plan(&c, names + 1, 1);
	const char *condition = metric_plan_condition(tree);
	ck_assert_ptr_nonnull(condition);
	ck_assert_msg(
		strstr(condition,
			"1 of these events need firmware that knows which counters of this core") !=
				NULL &&
			strstr(condition, "the code of Front_Bubble counts ") != NULL,
		"%s", condition);
	ck_assert_ptr_null(metric_plan_condition(fixed));
	core_case_end(&c);
}

static struct core_case pc_of(const char *vendor, int family, int model)
{
	char json[1536];
	snprintf(json, sizeof(json),
		"{\"source\":\"made\",\"verified\":\"no\",\"files\":{"
		"\"/sys/devices/system/cpu/online\":\"0-1\\n\","
		"\"/sys/devices/system/cpu/smt/active\":\"1\\n\","
		"\"/proc/sys/kernel/arch\":\"x86_64\\n\",\"/proc/cpuinfo\":\""
		"processor : 0\\nvendor_id : %s\\ncpu family : %d\\nmodel : %d\\nstepping : 1\\n\\n"
		"processor : 1\\nvendor_id : %s\\ncpu family : %d\\nmodel : %d\\nstepping : 1\\n\\n"
		"\"},\"rules\":[{\"type\":\"raw\",\"per_us\":1}]}",
		vendor, family, model, vendor, family, model);
	return core_case_made(json, NULL);
}

/* Five events on a fixed counter and four others; six on six; shares that need no counter, led by slots. */
TEST(level_one_of_x86_cores_is_counted_in_one_pass)
{
	static const struct {
		const char *vendor, *events;
		int family, model;
	} cores[] = {
		{"GenuineIntel",
			"{uops_retired.retire_slots,cpu_clk_unhalted.thread_any,"
			"idq_uops_not_delivered.core,uops_issued.any,int_misc.recovery_cycles_any}",
			6, 0x55},
		{"GenuineIntel",
			"{slots,topdown-retiring,topdown-fe-bound,topdown-bad-spec,topdown-be-"
			"bound,"
			"int_misc.uop_dropping,int_misc.recovery_begins}",
			6, 0x6a},
		{"AuthenticAMD",
			"{ex_ret_ops,ls_not_halted_cyc,de_no_dispatch_per_slot.no_ops_from_"
			"frontend,"
			"de_src_op_disp.all,de_no_dispatch_per_slot.backend_stalls,"
			"de_no_dispatch_per_slot.smt_contention}",
			25, 0x11},
	};
	for (size_t i = 0; i < N(cores); i++) {
		char *names[] = {"TopdownL1"};
		struct core_case c = pc_of(cores[i].vendor, cores[i].family, cores[i].model);
		_cleanup_(metric_plan_freep) struct metric_plan *p = plan(&c, names, N(names));
		ck_assert_str_eq(metric_plan_events(p, 0), cores[i].events);
		ck_assert_ptr_null(metric_plan_events(p, 1));
		core_case_end(&c);
	}
}

/* Intel's shares count only where slots leads their group, whatever else is counted. */
TEST(slots_lead_their_group)
{
	char *names[] = {"ipc", "TopdownL1"};
	struct core_case c = pc_of("GenuineIntel", 6, 0x6a);
	_cleanup_(metric_plan_freep) struct metric_plan *p = plan(&c, names, N(names));
	ck_assert_int_eq(strncmp(metric_plan_events(p, 0), "{slots,", strlen("{slots,")), 0);
	const double counts[] = {5000, 300, 100, 2000, 1000, 500, 1500, 0, 0};
	const char *missing = NULL;
	double value = -1;
	ck_assert_str_eq(metric_plan_events(p, 0),
		"{slots,instructions,cycles,topdown-retiring,topdown-fe-bound,topdown-bad-spec,"
		"topdown-be-bound,int_misc.uop_dropping,int_misc.recovery_begins}");
	ck_assert_int_eq(
		metric_inputs_value(metric_plan_inputs(p), 0, counts, &value, &missing), 0);
	ck_assert_double_eq(value, 3);
	core_case_end(&c);
}

TEST(constants_of_the_machine_are_read)
{
	static const struct {
		const char *name;
		double value;
	} constants[] = {{"num_cpus", 4}, {"NUM_CPUS_ONLINE", 4}, {"num_cores", 2},
		{"num_packages", 1}, {"smt_on", 1}, {"core_wide", 0}};
	struct core_case c = core_case_of("pc");
	char path[96];
	double value = -1;
	ck_assert_int_eq(
		machine_constant(c.kernel, &c.machine.online, "smt_on", &value), CONSTANT_UNKNOWN);
	ck_assert_int_eq(machine_constant(c.kernel, &c.machine.online, "num_cores", &value),
		CONSTANT_UNKNOWN);
	ck_assert_int_eq(
		machine_constant(c.kernel, &c.machine.online, "slots", &value), CONSTANT_UNKNOWN);
	replay_set_text(c.replay, "/sys/devices/system/cpu/smt/active", "1\n");
	for (int hart = 0; hart < 4; hart++) {
		snprintf(path, sizeof(path),
			"/sys/devices/system/cpu/cpu%d/topology/core_cpus_list", hart);
		replay_set_text(c.replay, path, hart % 2 ? "1,3\n" : "0,2\n");
		snprintf(path, sizeof(path),
			"/sys/devices/system/cpu/cpu%d/topology/package_cpus_list", hart);
		replay_set_text(c.replay, path, "0-3\n");
	}
	for (size_t i = 0; i < N(constants); i++) {
		ck_assert_int_eq(
			machine_constant(c.kernel, &c.machine.online, constants[i].name, &value),
			0);
		ck_assert_msg(value == constants[i].value, "%s: %g", constants[i].name, value);
	}
	core_case_end(&c);
}

TEST(a_plan_says_what_its_metrics_need_and_which_pass_has_it)
{
	char *names[] = {"ipc"};
	struct core_case c = core_case_riscv(CORE_KUNMINGHU);
	_cleanup_(metric_plan_freep) struct metric_plan *p = plan(&c, names, N(names));
	const struct planned_metric *m = metric_plan_metric(p, 0);
	ck_assert_str_eq(metric_plan_input(p, m, 0), "instructions");
	ck_assert_str_eq(metric_plan_input(p, m, 1), "cycles");
	ck_assert_ptr_null(metric_plan_input(p, m, 2));
	ck_assert_uint_eq(metric_plan_n_passes(p), 1);
	ck_assert(metric_plan_is_minimal(p));
	ck_assert_uint_eq(metric_plan_pass(p, 1), 0);
	core_case_end(&c);
}

TEST(values_are_of_the_metrics_own_pass)
{
	char *names[] = {"ipc"};
	struct core_case c = core_case_riscv(CORE_KUNMINGHU);
	_cleanup_(metric_plan_freep) struct metric_plan *p = plan(&c, names, N(names));
	const double counts[] = {300, 100}, lacking[] = {300, NAN}, none[] = {300, 0};
	const char *missing = NULL;
	double value = -1;
	ck_assert_str_eq(metric_plan_events(p, 0), "{instructions,cycles}");
	ck_assert(metric_plan_needs(p, metric_plan_metric(p, 0), 1));
	ck_assert_int_eq(
		metric_inputs_value(metric_plan_inputs(p), 0, counts, &value, &missing), 0);
	ck_assert_double_eq(value, 3);
	ck_assert_int_eq(metric_inputs_value(metric_plan_inputs(p), 0, lacking, &value, &missing),
		EXPRESSION_MISSING);
	ck_assert_str_eq(missing, "cycles");
	ck_assert_int_eq(metric_inputs_value(metric_plan_inputs(p), 0, none, &value, &missing),
		EXPRESSION_UNDEFINED);
	core_case_end(&c);
}

TEST(unknown_metrics_are_refused_by_name)
{
	char *names[] = {"ipc", "TopdownL9"};
	struct core_case c = core_case_riscv(CORE_KUNMINGHU);
	struct metric_plan *p = NULL;
	struct event_error error = {""};
	ck_assert_int_eq(
		metric_plan_new(c.kernel, &c.machine, c.cores, names, N(names), &p, &error),
		METRIC_UNKNOWN);
	ck_assert_ptr_null(p);
	ck_assert_str_eq(
		error.text, "XiangShan Kunminghu knows no metric or group named 'TopdownL9'");
	core_case_end(&c);
}
