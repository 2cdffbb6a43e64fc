/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Metrics of cores that have only some events, counted on replayed machines: what is known has its value,
 * and the rest none, with the name of the event that is missing. Never is it zero.
 */
#include <math.h>
#include <string.h>

#include "daemon/metric/live_metrics.h"
#include "tests/unit/core_case.h"
#include "tests/unit/test.h"

#define N(table) (sizeof(table) / sizeof((table)[0]))
#define RUN_NS 100000000u

struct counted {
	struct core_case core;
	struct event_list events;
	struct live_metrics *metrics;
	struct counter *counter;
	struct counter_value last[EVENTS_MAX];
	struct metric_values values;
};

static struct counted count(struct core_case core, char *const *names, size_t n)
{
	struct counted c = {.core = core};
	struct event_error error = {""};
	struct counts counts;
	const struct metric_wish wish = {names, n, false, 0};
	const struct metric_harts harts = {
		core.cores, metric_plan_platform(core.cores), core.machine.online};
	int r = live_metrics_new(core.kernel, &harts, &wish, &c.events, &c.metrics, &error);
	ck_assert_msg(r == 0, "%d: %s", r, error.text);
	const struct counter_options o = {.events = &c.events, .cores = core.cores};
	r = counter_new(core.kernel, &core.machine, &o, &c.counter, &error);
	ck_assert_msg(r == 0, "%d: %s", r, error.text);
	ck_assert_int_eq(counter_start(c.counter), 0);
	replay_run(core.replay, 0, 100, RUN_NS);
	ck_assert_int_eq(counter_read(c.counter), 0);
	counts_take(&counts, &core.machine, c.counter, c.last);
	ck_assert_int_eq(live_metrics_values(c.metrics, &counts, &c.values), 0);
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
	live_metrics_free(c->metrics);
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

/* --- a roofline by counters ------------------------------------------------------------------- */

/* A hart of that core, on which each raw event counts 3 a microsecond, and task-clock ns. */
static struct core_case core_with_counters(const char *arch, const char *identity)
{
	char json[1536];
	snprintf(json, sizeof(json),
		"{\"source\":\"made\",\"verified\":\"no\",\"files\":{"
		"\"/sys/devices/system/cpu/online\":\"0\\n\",\"/proc/sys/kernel/arch\":\"%s\\n\","
		"\"/proc/100/task/100/comm\":\"main\\n\"%s,\"rules\":["
		"{\"type\":\"software\",\"per_us\":1000},{\"type\":\"raw\",\"per_us\":3}]}",
		arch, identity);
	return core_case_made(json, NULL);
}

#define ARM(midr)                                                                                  \
	"aarch64", ",\"/sys/devices/system/cpu/cpu0/regs/identification/midr_el1\":\"" midr "\\n"  \
		   "\"}"
#define X86(vendor, family, model)                                                                 \
	"x86_64", ",\"/proc/cpuinfo\":\"processor : 0\\nvendor_id : " vendor                       \
		  "\\ncpu family : " family "\\nmodel : " model "\\nstepping : 1\\n\\n\"}"
#define RISCV(vendor, arch, imp)                                                                   \
	"riscv64", "},\"hwprobe\":[{\"harts\":\"0\",\"mvendorid\":\"" vendor                       \
		   "\",\"marchid\":\"" arch "\",\"mimpid\":\"" imp "\"}]"

/* From the events of a kernel to the figures of a row. 3 of each event in 1000 ns of task-clock: on Intel 1 + 2 + 4
 * + 8 + 16 operations for each, on AMD one, on Arm one and one for each 128 bits. */
TEST(operations_and_bytes_of_cores_that_count_both_have_values)
{
	static const struct {
		const char *arch, *identity;
		double operations, lines;
		size_t n_passes;
	} cores[] = {
		{X86("GenuineIntel", "6", "85"), 31, 1, 2},  /* Skylake: four counters */
		{X86("GenuineIntel", "6", "140"), 31, 1, 1}, /* Tiger Lake: eight */
		{X86("GenuineIntel", "6", "143"), 31, 1, 1}, /* Sapphire Rapids */
		{X86("AuthenticAMD", "25", "17"), 1, 2, 1},  /* Zen 4 */
		{X86("AuthenticAMD", "26", "2"), 1, 1, 1},   /* Zen 5 */
		{ARM("0x410fd490"), 2, 1, 1},                /* Neoverse N2 */
		{ARM("0x410fd493"), 2, 1, 1},
		{ARM("0x410fd400"), 3, 1, 1}, /* V1: vectors of 256 bits */
		{ARM("0x410fd4f0"), 2, 1, 1}, /* V2 */
		{ARM("0x410fd8e0"), 2, 1, 1}, /* N3 */
		{ARM("0x410fd840"), 2, 1, 1}, /* V3 */
	};
	char *names[] = {"fp_gflops", "dram_gbytes", "fp_per_dram_byte", "Roofline"};
	for (size_t i = 0; i < N(cores); i++) {
		struct counted c = count(
			core_with_counters(cores[i].arch, cores[i].identity), names, N(names));
		ck_assert_uint_eq(metric_plan_n_passes(c.metrics->plan), cores[i].n_passes);
		double gflops = 0.003 * cores[i].operations, gbytes = 0.003 * 64 * cores[i].lines;
		double tolerance = cores[i].n_passes == 1 ? 1e-6 : 0.05; /* turns end in between */
		const struct metric_value *v = value_of(&c, "fp_gflops");
		ck_assert_msg(fabs(v->value / gflops - 1) < tolerance, "%zu: %g, not %g (%s)", i,
			v->value, gflops, v->reason);
		v = value_of(&c, "dram_gbytes");
		ck_assert_msg(fabs(v->value / gbytes - 1) < tolerance, "%zu: %g, not %g (%s)", i,
			v->value, gbytes, v->reason);
		v = value_of(&c, "fp_per_dram_byte");
		ck_assert_msg(fabs(v->value / (gflops / gbytes) - 1) < tolerance, "%zu: %g (%s)", i,
			v->value, v->reason);
		end(&c);
	}
}

/* The cores of the boards, and those of Arm without SVE: what is missing is named before anything is opened. */
TEST(cores_that_lack_an_event_say_which)
{
	static const struct {
		const char *arch, *identity, *says;
	} cores[] = {
		{RISCV("0x489", "0x8000000000000007", "0x4210427"),
			"SiFive U74 has no dram_gbytes: no event counts lines from memory"},
		{RISCV("0x710", "0x8000000058000001", "0x1000000049772200"),
			"SpacemiT X60 has no fp_gflops: no event counts floating-point operations"},
		{RISCV("0x602", "0x3", "0x0"), "has no fp_gflops: no event counts"},
		{RISCV("0x86f", "0x19", "0x0"), "has no fp_gflops: no event counts"},
		{RISCV("0x31e", "0x8000000000008a45", "0x0"),
			"has no dram_gbytes: no event counts lines from memory"},
		{ARM("0x413fd0c1"), "Arm Neoverse N1 has no fp_gflops: no event counts "
				    "floating-point operations: VFP_SPEC and ASE_SPEC count "
				    "instructions of any width"},
		{ARM("0x410fd083"), "has no fp_gflops: no event counts"}, /* Cortex-A72 */
		{X86("GenuineIntel", "6", "60"), "has no fp_gflops: no event counts"}, /* Haswell */
		{X86("SomebodyElse", "1", "1"), "knows no metric or group named 'fp_gflops'"},
	};
	char *names[] = {"fp_gflops", "dram_gbytes", "fp_per_dram_byte", "Roofline"};
	for (size_t i = 0; i < N(cores); i++) {
		struct core_case c = core_with_counters(cores[i].arch, cores[i].identity);
		struct event_list events = {.n_events = 0};
		struct live_metrics *metrics = NULL;
		struct event_error error = {""};
		const struct metric_wish wish = {names, N(names), false, 0};
		const struct metric_harts harts = {
			c.cores, metric_plan_platform(c.cores), c.machine.online};
		ck_assert_int_eq(
			live_metrics_new(c.kernel, &harts, &wish, &events, &metrics, &error),
			METRIC_UNKNOWN);
		ck_assert_msg(strstr(error.text, cores[i].says) != NULL, "%zu: %s", i, error.text);
		core_case_end(&c);
	}
}

/* Two events that were counted for half of the time, always alike. So the only error is that of rotation: each
 * count may lack a hundredth, or have it too much. */
TEST(a_ratio_is_no_further_off_than_rotation_lets_one_of_its_counts_be)
{
	char *names[] = {"General"};
	struct core_case core = core_case_of("c910");
	replay_take_counters(core.replay, 50);
	struct counted c = count(core, names, N(names));
	struct counts counts;
	_cleanup_(jackknife_freep) struct jackknife *jackknife = NULL;
	ck_assert_int_eq(jackknife_new((size_t)c.events.n_events, 0, &jackknife), 0);
	for (uint64_t i = 0; i < 10; i++) {
		counts_read(jackknife, c.counter, (i + 1) * RUN_NS, 0);
		replay_run(core.replay, 0, 100, RUN_NS);
		ck_assert_int_eq(counter_read(c.counter), 0);
	}
	counts_take(&counts, &core.machine, c.counter, c.last);
	counts.jackknife = jackknife;
	for (int hundredths = 0; hundredths < 2; hundredths++) {
		counts.rotation = 0.01 * hundredths;
		metric_values_clear(&c.values);
		ck_assert_int_eq(live_metrics_values(c.metrics, &counts, &c.values), 0);
		const struct metric_value *ipc = value_of(&c, "ipc");
		ck_assert_double_eq_tol(ipc->running, 0.5, 0.01);
		ck_assert_double_eq_tol(ipc->error, counts.rotation * ipc->value, 1e-9);
		ck_assert_double_eq_tol(counts_error(&counts, 0),
			counts.rotation * counts.count[0].count, 1e-3 * counts.count[0].count);
	}
	end(&c);
}
