/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The plan of a stat in words, on machines whose counters are known.
 */
#include <string.h>

#include "daemon/metric/plan_says.h"
#include "tests/unit/core_case.h"
#include "tests/unit/test.h"

static struct plan_says *says(
	const struct core_case *c, const char *events, const struct metric_plan *metrics)
{
	struct plan_says *s = NULL;
	struct event_list list = {0};
	if (events)
		list = core_case_events(c, events);
	const struct planned planned = {
		.kernel = c->kernel,
		.cores = c->cores,
		.harts = &c->machine.online,
		.events = &list,
		.n_by_name = (size_t)list.n_events,
		.metrics = metrics,
	};
	ck_assert_int_eq(plan_says_new(&planned, &s), 0);
	return s;
}

static void must_say(const struct plan_says *s, const char *const *lines)
{
	size_t n = 0;
	for (; lines[n]; n++)
		ck_assert_msg(s->line[n] && strcmp(s->line[n], lines[n]) == 0, "'%s', not '%s'",
			s->line[n] ? s->line[n] : "(no line)", lines[n]);
	ck_assert_msg(!s->line[n], "also '%s'", s->line[n]);
}

/* The U74 has two programmable counters, 3 and 4, and the fixed ones. */
TEST(events_that_do_not_fit_take_turns)
{
	static const char *const lines[] = {
		"set 1 of 2 of the events by name: cycles on counter 0; instructions on "
		"counter 2; r102 on counter 3; r202 on counter 4",
		"set 2 of 2 of the events by name: r402 on counter 3; page-faults, which "
		"needs "
		"no counter",
		"the kernel rotates these 2, every 4 ms (perf_event_mux_interval_ms): "
		"counts are scaled by time enabled / time counted",
		NULL};
	struct core_case c = core_case_of("u74");
	replay_set_text(
		c.replay, "/sys/bus/event_source/devices/cpu/perf_event_mux_interval_ms", "4\n");
	_cleanup_(plan_says_freep) struct plan_says *s =
		says(&c, "cycles,riscv_instret:u,{r102,r202},{r402,page-faults}", NULL);
	ck_assert_ptr_nonnull(strstr(s->line[0], "riscv_instret:u on counter 2"));
	s = plan_says_free(s);
	s = says(&c, "cycles,instructions,{r102,r202},{r402,page-faults}", NULL);
	must_say(s, lines);
	core_case_end(&c);
}

TEST(a_group_that_no_counters_hold_is_named)
{
	struct core_case c = core_case_of("u74");
	_cleanup_(plan_says_freep) struct plan_says *s = says(&c, "{r102,r202,r402}", NULL);
	ck_assert_str_eq(s->line[2], "the group of r102 has more events than counters: they are "
				     "counted outside the group, at different times");
	ck_assert_str_eq(s->line[3],
		"the kernel rotates these 2: counts are scaled by time enabled / time counted");
	core_case_end(&c);
}

/* C906: event N counts on counter N + 2 alone. */
TEST(an_event_with_one_counter_has_that)
{
	struct core_case c = core_case_made(
		"{\"source\":\"made\",\"verified\":\"no\",\"files\":{"
		"\"/sys/devices/system/cpu/online\":\"0\\n\","
		"\"/proc/device-tree/compatible\":\"sipeed,lichee-rv allwinner,sun20i-d1\","
		"\"/proc/sys/kernel/arch\":\"riscv64\\n\"},\"hwprobe\":[{\"harts\":\"0\","
		"\"mvendorid\":\"0x5b7\",\"marchid\":\"0x0\",\"mimpid\":\"0x0\"}],\"rules\":[]}",
		NULL);
	static const char *const lines[] = {
		"set 1 of 1 of the events by name: L1_ICACHE_ACCESS on counter 3; "
		"L1_ICACHE_MISS on counter 4; r6 on counter 8",
		"all are counted at the same time, except while another program holds a counter "
		"that they need",
		NULL};
	_cleanup_(plan_says_freep) struct plan_says *s =
		says(&c, "{L1_ICACHE_ACCESS,L1_ICACHE_MISS,r6}", NULL);
	must_say(s, lines);
	core_case_end(&c);
}

/* Nine backend events on eight counters are two passes; eight, of which one is two added up, are one. */
TEST(expressions_of_a_bank_are_placed_in_it)
{
	struct core_case c = core_case_riscv(CORE_KUNMINGHU);
	_cleanup_(plan_says_freep) struct plan_says *s = says(&c,
		"{backend:7,backend:8,backend:65,backend:66,backend:67,backend:68,backend:69,"
		"backend:70,backend:71}",
		NULL);
	ck_assert_ptr_nonnull(strstr(s->line[1], "set 2 of 2 of the events by name: "));
	s = plan_says_free(s);
	s = says(&c,
		"{backend:7+8,backend:65,backend:66,backend:67,backend:68,backend:69,backend:70,"
		"backend:71,xs/memory/44/,xs/frontend/21/,cycles,instructions}",
		NULL);
	ck_assert_str_eq(s->line[0],
		"set 1 of 1 of the events by name: backend:7+8 on counter 11; backend:65 on "
		"counter 12; backend:66 on counter 13; backend:67 on counter 14; backend:68 on "
		"counter 15; backend:69 on counter 16; backend:70 on counter 17; backend:71 on "
		"counter 18; xs/memory/44/ on counter 19; xs/frontend/21/ on counter 3; cycles on "
		"counter 0; instructions on counter 2");
	core_case_end(&c);
}

static struct metric_plan *plan(const struct core_case *c, char *name)
{
	struct metric_plan *p = NULL;
	struct event_error error = {""};
	ck_assert_msg(metric_plan_new(c->kernel, &c->machine, c->cores, &name, 1, &p, &error) == 0,
		"%s", error.text);
	return p;
}

TEST(passes_of_metrics_are_said_with_their_counters)
{
	static const char *const lines[] = {
		"pass 1 of 1: instructions on counter 2; cycles on counter 0",
		"all are counted at the same time, except while another program holds a counter "
		"that they need",
		NULL};
	struct core_case c = core_case_riscv(CORE_KUNMINGHU);
	_cleanup_(metric_plan_freep) struct metric_plan *p = plan(&c, "ipc");
	_cleanup_(plan_says_freep) struct plan_says *s = says(&c, NULL, p);
	must_say(s, lines);
	core_case_end(&c);
}

#define ORIGIN "\"source\": \"s\", \"verified\": \"no\""

/* One programmable counter: what needs two of it is split. An event that nobody knows costs its metric. */
TEST(metrics_that_are_left_out_are_said_with_the_reason)
{
	static const char *const lines[] = {
		"pass 1 of 2: a on counter 3; cycles on counter 0; page-faults, which needs no "
		"counter",
		"pass 2 of 2: b on counter 3",
		"split needs more events than there are counters: they are counted at different "
		"times",
		"lacking is left out, since nothing cannot be counted: column 1: unknown event "
		"'nothing'",
		"no plan with fewer passes counts each metric's events together",
		"the kernel rotates these 2: counts are scaled by time enabled / time counted",
		NULL};
	struct made_folder f = made_folder_new();
	made_file(&f, "mine.json",
		"{\"platform\": \"mine\", \"title\": \"Mine\", \"arch\": \"riscv\", " ORIGIN
		",\n\"cpus\": [{\"arch\": \"riscv\", \"mvendorid\": \"0x1\", " ORIGIN
		"}],\n\"quirks\": [{\"quirk\": \"counters\", \"mask\": \"0x8\", " ORIGIN
		"}],\n\"events\": [\n{\"name\": \"a\", \"code\": 1, \"topic\": \"t\", " ORIGIN
		"},\n{\"name\": \"b\", \"code\": 2, \"topic\": \"t\", " ORIGIN
		"}],\n\"metrics\": [\n{\"MetricName\": \"whole\", \"MetricExpr\": "
		"\"a / cycles + page\\\\-faults\", \"MetricGroup\": \"G\", " ORIGIN
		"},\n{\"MetricName\": \"split\", \"MetricExpr\": \"a / b\", \"MetricGroup\": "
		"\"G\", " ORIGIN "}]}\n");
	made_file(&f, "vendor/mapfile.csv", "0x1-0x1-0x0,v1,theirs,core\n");
	made_file(&f, "vendor/theirs/metrics.json",
		"[{\"MetricName\": \"lacking\", \"MetricExpr\": \"nothing / cycles\", "
		"\"MetricGroup\": \"G\"}]\n");
	struct core_case c = core_case_made("{\"source\":\"made\",\"verified\":\"no\",\"files\":{"
					    "\"/sys/devices/system/cpu/online\":\"0\\n\",\"/proc/"
					    "sys/kernel/arch\":\"riscv64\\n\"},"
					    "\"hwprobe\":[{\"harts\":\"0\",\"mvendorid\":\"0x1\","
					    "\"marchid\":\"0x1\",\"mimpid\":"
					    "\"0x0\"}],\"rules\":[]}",
		f.path);
	_cleanup_(metric_plan_freep) struct metric_plan *p = plan(&c, "G");
	_cleanup_(plan_says_freep) struct plan_says *s = says(&c, NULL, p);
	must_say(s, lines);
	core_case_end(&c);
	made_folder_remove(&f);
}

TEST(many_lines_are_cut_and_counted)
{
	struct core_case c = core_case_of("u74");
	char text[EVENTS_MAX * 8] = "";
	for (int i = 0; i < EVENTS_MAX; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s{r%x02}",
			i ? "," : "", i + 1);
	_cleanup_(plan_says_freep) struct plan_says *s = says(&c, text, NULL);
	ck_assert_uint_le(s->n_lines, PLAN_LINES_MAX);
	ck_assert_str_eq(s->line[s->n_lines - 2], "and 4 more of them");
	ck_assert_ptr_nonnull(strstr(s->line[s->n_lines - 1], "the kernel rotates these 32"));
	core_case_end(&c);
}

TEST(what_always_on_sampling_holds_is_planned_around)
{
	struct core_case c = core_case_of("zen4");
	const char *const events = "{r1,r2,r3},{r4,r5,r6}";
	_cleanup_(plan_says_freep) struct plan_says *s = says(&c, events, NULL);
	ck_assert_ptr_nonnull(strstr(s->line[0], "set 1 of 1 of the events by name: "));
	s = plan_says_free(s);
	cores_hold(c.cores, 2, 0x3);
	s = says(&c, events, NULL);
	ck_assert_ptr_nonnull(strstr(s->line[0], "set 1 of 2 of the events by name: "));
	ck_assert_str_eq(s->line[s->n_lines - 1],
		"always-on sampling uses 2 counters of each of these "
		"harts all the time; the plan uses the others");
	core_case_end(&c);
}
