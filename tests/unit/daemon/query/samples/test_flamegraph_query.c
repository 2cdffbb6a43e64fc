/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* The call tree of a flame graph: merged by names, callers before callees, siblings in order. */

#include "daemon/decode/offcpu.h"
#include "tests/unit/stored.h"
#include "tests/unit/test.h"

static struct stored s, other;
static struct stored_answer a;

static void end(void)
{
	if (*s.folder)
		stored_end(&s);
	if (*other.folder)
		stored_end(&other);
	memset(&s, 0, sizeof(s));
	memset(&other, 0, sizeof(other));
	memset(&a, 0, sizeof(a));
}

EACH_TEST(.end = end, .seconds = 60);

static void ask(const struct query_filter *filter)
{
	memset(&a, 0, sizeof(a));
	int r = stored_flamegraph(s.db, filter, &a);
	ck_assert_msg(r == 0, "%d: %s", r, a.error.text);
	ck_assert_uint_eq(a.n_told, 1);
}

static size_t node(const char *function)
{
	int c = stored_column(&a, "function");
	for (size_t i = 0; i < a.n_rows; i++)
		if (strcmp(a.cell[i][c].text, function) == 0)
			return i;
	ck_abort_msg("no node %s", function);
}

TEST(stacks_merge_by_name_under_their_process)
{
	stored_begin_clock(&s);
	struct task *t = stored_task(&s, 100, 100, "prog");
	struct task *worker = stored_task(&s, 100, 101, "worker");
	struct task *u = stored_task(&s, 200, 200, "also");
	struct frame *f = stored_function(&s, "/bin/prog", "f");
	struct frame *f2 = stored_function(&s, "/bin/prog", "f"); /* another address of f */
	struct frame *root = stored_function(&s, "/bin/prog", "main");
	stored_add(&s, &(struct stored_sample){.task = t, .weight_ns = 10, .frame = {f, root}});
	stored_add(&s, &(struct stored_sample){.task = t, .weight_ns = 20, .frame = {f2, root}});
	stored_add(&s, &(struct stored_sample){.task = worker, .weight_ns = 5, .frame = {root}});
	stored_add(&s, &(struct stored_sample){.task = u, .weight_ns = 7, .frame = {f, root}});
	stored_seal(&s);
	ask(NULL);
	ck_assert_str_eq(stored_folded(&a), "also;main;f 7\nprog;main 5\nprog;main;f 30\n");
	ck_assert_uint_eq(a.n_rows, 6);
	ck_assert_int_eq(a.unit[stored_column(&a, "value")], MPERF__UNIT__UNIT_NS);
	ck_assert_uint_eq(a.samples, 4);
}

TEST(stacks_of_waits_end_in_what_was_waited_for)
{
	stored_folder(&s);
	stored_event(&s, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, "cpu-clock");
	const int lock = stored_event(&s, EVENT_TYPE_OFFCPU, OFFCPU_LOCK, "waiting:lock");
	const int disk = stored_event(&s, EVENT_TYPE_OFFCPU, OFFCPU_DISK, "waiting:disk");
	const int hart = stored_event(&s, EVENT_TYPE_OFFCPU, OFFCPU_HART, "waiting:hart");
	stored_begin(&s);
	struct task *t = stored_task(&s, 100, 100, "prog");
	struct frame *f = stored_function(&s, "/bin/prog", "f");
	struct frame *root = stored_function(&s, "/bin/prog", "main");
	const struct stored_sample samples[] = {
		{.task = t, .weight_ns = 10, .frame = {f, root}},
		{.task = t, .event = lock, .weight_ns = 1, .frame = {f, root}},
		{.task = t, .event = disk, .weight_ns = 2, .frame = {f, root}},
		{.task = t, .event = lock, .weight_ns = 4, .frame = {root}},
		{.task = t, .event = lock, .weight_ns = 8},
		{.task = t, .event = hart, .weight_ns = 16, .frame = {f, root}},
	};
	for (size_t i = 0; i < sizeof(samples) / sizeof(*samples); i++)
		stored_add(&s, &samples[i]);
	stored_seal(&s);
	ask(&(struct query_filter){.event = "waiting", .by_wait = true});
	ck_assert_str_eq(stored_folded(&a), "prog;[unknown];waiting:lock 8\n"
					    "prog;main;f;waiting:disk 2\n"
					    "prog;main;f;waiting:lock 1\n"
					    "prog;main;waiting:lock 4\n");
	ck_assert_str_eq(stored_text(&a, node("waiting:disk"), "kind"), "waiting");
	ck_assert_str_eq(stored_text(&a, node("f"), "kind"), "user");
	ask(&(struct query_filter){.event = "waiting"});
	ck_assert_str_eq(stored_folded(&a), "prog;[unknown] 8\nprog;main 4\nprog;main;f 3\n");
	/* samples of CPU time have no waits */
	ask(&(struct query_filter){.by_wait = true});
	ck_assert_str_eq(stored_folded(&a), "prog;main;f 10\n");
	ask(&(struct query_filter){.event = "waiting:hart", .by_wait = true});
	ck_assert_str_eq(stored_folded(&a), "prog;main;f;waiting:hart 16\n");
}

TEST(inlined_functions_are_nodes)
{
	stored_begin_clock(&s);
	struct task *t = stored_task(&s, 100, 100, "prog");
	struct frame *f = stored_frame(&s, FILE_ELF, "/bin/prog", 16);
	struct frame *g = stored_frame(&s, FILE_ELF, "/bin/prog", 32);
	stored_name(f, "deep@a.h:5", "mid@b.h:60", "symbol@c.c:7", NULL);
	stored_name(g, "mid@b.h:50", "symbol@c.c:9", NULL);
	stored_add(&s, &(struct stored_sample){.task = t, .weight_ns = 10, .frame = {f}});
	stored_add(&s, &(struct stored_sample){.task = t, .weight_ns = 20, .frame = {g}});
	stored_seal(&s);
	ask(NULL);
	ck_assert_str_eq(stored_folded(&a), "prog;symbol;mid 20\nprog;symbol;mid;deep 10\n");
	ck_assert_str_eq(stored_text(&a, node("symbol"), "kind"), "user");
	ck_assert_str_eq(stored_text(&a, node("mid"), "kind"), "inlined");
	ck_assert_str_eq(stored_text(&a, node("mid"), "source"), "b.h");
	ck_assert_double_eq(stored_real(&a, node("mid"), "line"), 50);
	ck_assert_double_eq(stored_real(&a, node("symbol"), "line"), 7);
}

TEST(kinds_of_code_are_told)
{
	stored_begin_clock(&s);
	struct task *t = stored_task(&s, 100, 100, "prog");
	struct frame *kernel = stored_frame(&s, FILE_KERNEL, "[kernel]", 8);
	struct frame *module = stored_frame(&s, FILE_MODULE, "[nf_tables]", 8);
	struct frame *jit = stored_frame(&s, FILE_PERF_MAP, "/tmp/perf-1.map", 8);
	struct frame *user = stored_function(&s, "/bin/prog", "user");
	struct frame *lost = stored_frame(&s, FILE_UNKNOWN, "", 8);
	stored_name(kernel, "k", NULL);
	stored_name(module, "m", NULL);
	stored_name(jit, "j", NULL);
	lost->state = FRAME_UNNAMED;
	stored_add(
		&s, &(struct stored_sample){.task = t, .frame = {module, kernel, jit, user, lost}});
	stored_seal(&s);
	ask(NULL);
	ck_assert_str_eq(stored_folded(&a), "prog;[unknown];user;j;k;m 10000000\n");
	ck_assert_str_eq(stored_text(&a, node("k"), "kind"), "kernel");
	ck_assert_str_eq(stored_text(&a, node("m"), "kind"), "kernel");
	ck_assert_str_eq(stored_text(&a, node("m"), "module"), "[nf_tables]");
	ck_assert_str_eq(stored_text(&a, node("j"), "kind"), "jit");
	ck_assert_str_eq(stored_text(&a, node("[unknown]"), "kind"), "unknown");
	ck_assert(stored_absent(&a, node("prog"), "module"));
}

TEST(siblings_stand_in_order_of_their_names)
{
	stored_begin_clock(&s);
	const char *const names[] = {"m", "c", "x", "a"};
	struct task *t = stored_task(&s, 100, 100, "prog");
	struct frame *root = stored_function(&s, "/bin/prog", "main");
	for (size_t i = 0; i < 4; i++)
		stored_add(
			&s, &(struct stored_sample){.task = t,
				    .weight_ns = i + 1,
				    .frame = {stored_function(&s, "/bin/prog", names[i]), root}});
	stored_seal(&s);
	ask(NULL);
	ck_assert_str_eq(
		stored_folded(&a), "prog;main;a 4\nprog;main;c 2\nprog;main;m 1\nprog;main;x 3\n");
}

TEST(sample_without_a_stack_is_unknown)
{
	stored_begin_clock(&s);
	struct task *t = stored_task(&s, 100, 100, "prog");
	stored_add(&s, &(struct stored_sample){.task = t, .weight_ns = 3});
	stored_add(&s, &(struct stored_sample){.task = t,
			       .weight_ns = 4,
			       .frame = {stored_function(&s, "/bin/prog", "f")}});
	stored_add(&s, &(struct stored_sample){.weight_ns = 5});
	stored_seal(&s);
	ask(NULL);
	ck_assert_str_eq(stored_folded(&a), "[unknown];[unknown] 5\nprog;[unknown] 3\nprog;f 4\n");
}

TEST(values_are_of_the_event_asked_for)
{
	stored_begin_group(&s);
	struct task *t = stored_task(&s, 100, 100, "prog");
	struct frame *f = stored_function(&s, "/bin/prog", "f");
	struct frame *g = stored_function(&s, "/bin/prog", "g");
	stored_add(&s, &(struct stored_sample){.task = t,
			       .frame = {f},
			       .n_reads = 2,
			       .read = {{1, 100, 10, 5}, {2, 1, 10, 10}}});
	stored_add(&s, &(struct stored_sample){.task = t, .frame = {g}});
	stored_seal(&s);
	ask(&(struct query_filter){.event = "cycles"});
	ck_assert_str_eq(stored_folded(&a), "prog;f 200\n");
	ck_assert_int_eq(a.unit[stored_column(&a, "value")], MPERF__UNIT__UNIT_COUNT);
	ask(&(struct query_filter){.event = "cpu-clock"});
	ck_assert_int_eq(a.unit[stored_column(&a, "value")], MPERF__UNIT__UNIT_NS);
	ck_assert_str_eq(stored_folded(&a), "prog;f 10000000\nprog;g 10000000\n");
}

/* f is counted in three of four samples, g in none; switches are counted on hart 0. */
TEST(counts_say_how_many_samples_they_cover)
{
	stored_folder(&s);
	stored_event(&s, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, "cpu-clock");
	stored_event(&s, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, "cycles");
	stored_uncut(&s, 0);
	stored_begin(&s);
	struct task *t = stored_task(&s, 100, 100, "prog");
	struct frame *f = stored_function(&s, "/bin/prog", "f");
	struct frame *g = stored_function(&s, "/bin/prog", "g");
	struct frame *root = stored_function(&s, "/bin/prog", "main");
	stored_add(&s, &(struct stored_sample){.task = t,
			       .count = 4,
			       .weight_ns = 40,
			       .uncounted = 1,
			       .frame = {f, root},
			       .n_reads = 1,
			       .read = {{1, 300, 30, 30}}});
	stored_add(&s, &(struct stored_sample){.task = t,
			       .count = 2,
			       .weight_ns = 20,
			       .uncounted = 2,
			       .frame = {g, root}});
	stored_seal(&s);
	struct query_filter cycles = {.event = "cycles"};
	ask(&cycles);
	ck_assert_str_eq(stored_folded(&a), "prog;main;f 300\n");
	ck_assert_double_eq(stored_real(&a, node("f"), "samples"), 4);
	ck_assert_double_eq(stored_real(&a, node("f"), "counted"), 3);
	/* g has no box: its samples are its caller's */
	ck_assert_double_eq(stored_real(&a, node("main"), "samples"), 2);
	ck_assert_double_eq(stored_real(&a, node("main"), "counted"), 0);
	ck_assert_double_eq(a.uncounted_share, 0.5);
	/* of time all is known */
	ask(NULL);
	ck_assert_uint_eq(a.n_columns, 9);
	ck_assert_str_eq(stored_folded(&a), "prog;main;f 40\nprog;main;g 20\n");
}

TEST(event_that_is_not_there_fails_before_any_row)
{
	stored_begin_clock(&s);
	stored_seal(&s);
	struct query_filter filter = {.event = "cycles"};
	ck_assert_int_eq(stored_flamegraph(s.db, &filter, &a), QUERY_FAILED);
	ck_assert_uint_eq(a.n_columns, 0);
	ck_assert_ptr_nonnull(strstr(a.error.text, "cycles"));
}

TEST(filter_leaves_no_empty_branches)
{
	stored_begin_clock(&s);
	struct task *t = stored_task(&s, 100, 100, "prog");
	struct task *u = stored_task(&s, 200, 200, "quux");
	stored_add(&s, &(struct stored_sample){.task = t,
			       .weight_ns = 1,
			       .frame = {stored_function(&s, "/bin/prog", "f")}});
	stored_add(&s, &(struct stored_sample){.task = u,
			       .weight_ns = 2,
			       .frame = {stored_function(&s, "/bin/quux", "g")}});
	stored_seal(&s);
	ask(&(struct query_filter){.pid = (int32_t[]){200}, .n_pids = 1});
	ck_assert_uint_eq(a.n_rows, 2);
	ck_assert_str_eq(stored_folded(&a), "quux;g 2\n");
	ask(&(struct query_filter){.pid = (int32_t[]){1}, .n_pids = 1});
	ck_assert_uint_eq(a.n_rows, 0);
}

TEST(segments_merge_by_name)
{
	struct stored *const both[] = {&s, &other};
	for (size_t i = 0; i < 2; i++) {
		stored_begin_clock(both[i]);
		struct task *t = stored_task(both[i], 100, 100, "prog");
		if (i == 1)
			stored_add(
				both[i], &(struct stored_sample){.task = t,
						 .weight_ns = 1,
						 .frame = {stored_function(both[i], "/b", "new")}});
		struct frame *f = stored_function(both[i], "/b", "f");
		stored_add(
			both[i], &(struct stored_sample){.task = t, .weight_ns = 10, .frame = {f}});
		stored_seal(both[i]);
	}
	struct answer answer = stored_answer(&a);
	struct query_source two[] = {{.db = s.db}, {.db = other.db}};
	ck_assert_int_eq(query_flamegraph(two, 2, &(struct query_filter){0}, &answer, &a.error), 0);
	ck_assert_str_eq(stored_folded(&a), "prog;f 20\nprog;new 1\n");
}

TEST(deep_stacks_do_not_recurse)
{
	stored_begin_clock(&s);
	struct task *t = stored_task(&s, 100, 100, "prog");
	struct frame *frames[STACK_FRAMES_MAX];
	for (uint32_t i = 0; i < STACK_FRAMES_MAX; i++) {
		frames[i] = stored_frame(&s, FILE_ELF, "/bin/prog", i);
		frames[i]->state = FRAME_UNNAMED;
	}
	struct attribution deep = {.task = t,
		.rung = RUNG_CLOCK,
		.count = 1,
		.weight_ns = 9,
		.frame = frames,
		.n_frames = STACK_FRAMES_MAX};
	ck_assert_int_eq(window_add(&s.window, &s.stacks, &deep), 0);
	stored_seal(&s);
	a.stop_after = 10;
	ck_assert_int_eq(stored_flamegraph(s.db, NULL, &a), 77);
	for (size_t i = 0; i < 10; i++) /* a chain: each is the parent of the next */
		ck_assert_double_eq(stored_real(&a, i, "parent"), (double)i);
	memset(&a, 0, sizeof(a));
	ck_assert_int_eq(stored_hotspots(s.db, "function", NULL, &a), 0);
	ck_assert_double_eq(stored_real(&a, 0, "total"), 1);
}

TEST(callback_that_has_enough_stops_the_query)
{
	stored_begin_clock(&s);
	struct task *t = stored_task(&s, 100, 100, "prog");
	stored_add(&s, &(struct stored_sample){
			       .task = t, .frame = {stored_function(&s, "/bin/prog", "f")}});
	stored_seal(&s);
	a.stop_after = 1;
	ck_assert_int_eq(stored_flamegraph(s.db, NULL, &a), 77);
	ck_assert_uint_eq(a.n_rows, 1);
	ck_assert_uint_eq(a.n_told, 0);
}
