/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Metrics of cores that have only some events, counted on replayed machines: what is known has its value,
 * and the rest none, with the name of the event that is missing. Never is it zero.
 */
#include <math.h>
#include <string.h>

#include "daemon/control/stat_metrics.h"
#include "tests/unit/core_case.h"
#include "tests/unit/test.h"

#define N(table) (sizeof(table) / sizeof((table)[0]))
#define RUN_NS 100000000u

struct counted {
	struct core_case core;
	struct event_list events;
	struct stat_metrics *metrics;
	struct counter *counter;
	struct counter_value last[EVENTS_MAX];
	struct metric_values values;
};

static struct counted count(struct core_case core, char *const *names, size_t n)
{
	struct counted c = {.core = core};
	struct event_error error = {""};
	struct stat_counts counts;
	const struct metric_wish wish = {names, n, false, 0};
	const struct metric_harts harts = {
		core.cores, metric_plan_platform(core.cores), core.machine.online};
	int r = stat_metrics_new(core.kernel, &harts, &wish, &c.events, &c.metrics, &error);
	ck_assert_msg(r == 0, "%d: %s", r, error.text);
	const struct counter_options o = {.events = &c.events, .cores = core.cores};
	r = counter_new(core.kernel, &core.machine, &o, &c.counter, &error);
	ck_assert_msg(r == 0, "%d: %s", r, error.text);
	ck_assert_int_eq(counter_start(c.counter), 0);
	replay_run(core.replay, 0, 100, RUN_NS);
	ck_assert_int_eq(counter_read(c.counter), 0);
	stat_counts_take(&counts, &core.machine, c.counter, c.last);
	ck_assert_int_eq(stat_metrics_values(c.metrics, &counts, &c.values), 0);
	return c;
}

static const struct metric_value *value_of(const struct counted *c, const char *name)
{
	for (size_t i = 0; i < metric_plan_n_metrics(c->metrics->plan); i++)
		if (strcmp(metric_plan_metric(c->metrics->plan, i)->metric->name, name) == 0)
			return &c->values.metric[i];
	ck_abort_msg("no metric %s", name);
	return NULL;
}

static void end(struct counted *c)
{
	metric_values_clear(&c->values);
	counter_free(c->counter);
	stat_metrics_free(c->metrics);
	core_case_end(&c->core);
}

static void must_lack(const struct counted *c, const char *metric, const char *event)
{
	const struct metric_value *v = value_of(c, metric);
	ck_assert_msg(isnan(v->value), "%s has %g", metric, v->value);
	ck_assert_msg(v->missing && strcmp(v->missing, event) == 0, "%s lacks %s", metric,
		v->missing ? v->missing : "nothing");
	ck_assert_msg(strstr(v->reason, event) != NULL, "%s: %s", metric, v->reason);
}

/* Cycles and instructions count on all three; nothing else does on these machines. */
TEST(the_ratio_that_counts_is_there_and_the_others_name_what_is_missing)
{
	static const struct {
		const char *machine;
		double ipc;
	} machines[] = {{"x60", 1200.0 / 1600}, {"u74", 700.0 / 1000}, {"c910", 2200.0 / 1850}};
	char *names[] = {"General", "Branch", "Cache"};
	for (size_t i = 0; i < N(machines); i++) {
		struct counted c = count(core_case_of(machines[i].machine), names, N(names));
		const struct metric_value *ipc = value_of(&c, "ipc");
		ck_assert_msg(fabs(ipc->value - machines[i].ipc) < 1e-6, "%s: %g",
			machines[i].machine, ipc->value);
		ck_assert_double_eq(ipc->running, 1);
		must_lack(&c, "branch_miss_rate", "branch-misses");
		must_lack(&c, "branch_mpki", "branch-misses");
		must_lack(&c, "cache_miss_rate", "cache-misses");
		must_lack(&c, "cache_mpki", "cache-misses");
		end(&c);
	}
}

/* An X60 whose firmware has branches and no mispredictions, and a cache event that stays at 0: by the core's
 * own codes, since the kernel does not map the generic ones. */
TEST(one_event_of_two_is_no_value)
{
	char *names[] = {"General", "Branch", "l1"};
	static const char machine[] =
		"{\"source\":\"made\",\"verified\":\"no\",\"files\":{"
		"\"/sys/devices/system/cpu/online\":\"0\\n\",\"/proc/sys/kernel/"
		"arch\":\"riscv64\\n\","
		"\"/proc/100/task/100/comm\":\"main\\n\"},\"hwprobe\":[{\"harts\":\"0\","
		"\"mvendorid\":\"0x1\",\"marchid\":\"0x1\",\"mimpid\":\"0x0\"}],\"rules\":["
		"{\"type\":\"hardware\",\"config\":0,\"per_us\":1000},"
		"{\"type\":\"hardware\",\"config\":1,\"per_us\":500},"
		"{\"type\":\"raw\",\"config\":1,\"per_us\":100},"
		"{\"type\":\"raw\",\"config\":3,\"per_us\":0}]}";
	struct made_folder f = made_folder_new();
	made_file(&f, "mine.json",
		"{\"platform\": \"mine\", \"title\": \"Mine\", \"arch\": \"riscv\", \"source\": "
		"\"s\", "
		"\"verified\": \"no\", \"cpus\": [{\"arch\": \"riscv\", \"mvendorid\": \"0x1\", "
		"\"source\": \"s\", \"verified\": \"no\"}],\n\"events\": [\n"
		"{\"name\": \"br\", \"code\": 1, \"topic\": \"t\", \"generic\": [\"branches\"], "
		"\"source\": \"s\", \"verified\": \"no\"},\n"
		"{\"name\": \"br_miss\", \"code\": 2, \"topic\": \"t\", \"generic\": "
		"[\"branch-misses\"], \"source\": \"s\", \"verified\": \"no\"},\n"
		"{\"name\": \"never\", \"code\": 3, \"topic\": \"t\", \"source\": \"s\", "
		"\"verified\": \"no\"}],\n\"metrics\": [\n"
		"{\"MetricName\": \"ipc\", \"MetricExpr\": \"instructions / cycles\", "
		"\"MetricGroup\": \"General\", \"source\": \"s\", \"verified\": \"no\"},\n"
		"{\"MetricName\": \"branches_per_instruction\", \"MetricExpr\": "
		"\"branches / instructions\", \"MetricGroup\": \"Branch\", \"source\": \"s\", "
		"\"verified\": \"no\"},\n"
		"{\"MetricName\": \"branch_miss_rate\", \"MetricExpr\": "
		"\"branch\\\\-misses / branches\", \"MetricGroup\": \"Branch\", \"source\": \"s\", "
		"\"verified\": \"no\"},\n"
		"{\"MetricName\": \"l1\", \"MetricExpr\": \"instructions / never\", \"source\": "
		"\"s\", "
		"\"verified\": \"no\"}]}\n");
	struct counted c = count(core_case_made(machine, f.path), names, N(names));
	ck_assert_double_eq_tol(value_of(&c, "ipc")->value, 0.5, 1e-9);
	ck_assert_double_eq_tol(value_of(&c, "branches_per_instruction")->value, 0.2, 1e-9);
	must_lack(&c, "branch_miss_rate", "branch-misses");
	ck_assert(isnan(value_of(&c, "l1")->value));
	ck_assert_str_eq(value_of(&c, "l1")->reason, "nothing to divide by: a count in it is 0");
	end(&c);
	made_folder_remove(&f);
}

/* Others have the counters: what never ran is no zero. */
TEST(an_event_that_never_got_a_counter_is_named)
{
	char *names[] = {"General"};
	struct core_case core = core_case_of("c910");
	replay_take_counters(core.replay, 100);
	struct counted c = count(core, names, N(names));
	const struct metric_value *ipc = value_of(&c, "ipc");
	ck_assert(isnan(ipc->value));
	ck_assert_ptr_nonnull(ipc->missing);
	ck_assert_msg(strstr(ipc->reason, "was not counted") != NULL, "%s", ipc->reason);
	end(&c);
}
