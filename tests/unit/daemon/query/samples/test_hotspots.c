/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Hotspots: shares that can be worked out by hand, of sessions made by hand. */

#include <unistd.h>

#include "tests/unit/stored.h"
#include "tests/unit/test.h"

static struct stored s;
static struct stored_answer a;

static void end(void)
{
	if (*s.folder)
		stored_end(&s);
	memset(&s, 0, sizeof(s));
	memset(&a, 0, sizeof(a));
}

EACH_TEST(.end = end, .seconds = 60);

static void ask(const char *by, const struct query_filter *filter)
{
	memset(&a, 0, sizeof(a));
	int r = stored_hotspots(s.db, by, filter, &a);
	ck_assert_msg(r == 0, "%d: %s", r, a.error.text);
	ck_assert_uint_eq(a.n_told, 1);
}

static void share_is(const char *row, const char *column, double share)
{
	ck_assert_double_eq_tol(stored_real(&a, stored_row(&a, row), column), share, 1e-9);
}

TEST(functions_have_self_and_total_shares)
{
	stored_begin_clock(&s);
	stored_program(&s);
	stored_seal(&s);
	ask("function", NULL);
	ck_assert_uint_eq(a.n_rows, 3);
	ck_assert_str_eq(a.cell[0][0].text, "hot");
	share_is("hot", "self", 0.6);
	share_is("hot", "total", 0.7);
	share_is("main", "self", 0.3);
	share_is("main", "total", 1);
	share_is("do_fault", "self", 0.1);
	share_is("main", "samples", 3);
	share_is("main", "self_ns", 30);
	ck_assert_str_eq(stored_text(&a, 2, "module"), "[kernel]");
	ck_assert_int_eq(stored_column(&a, "cycles"), -1);
	ck_assert_int_eq(stored_column(&a, "ipc"), -1);
}

TEST(recursion_counts_a_stack_once)
{
	stored_begin_clock(&s);
	struct task *t = stored_task(&s, 100, 100, "prog");
	struct frame *f = stored_function(&s, "/bin/prog", "f");
	struct frame *again = stored_function(&s, "/bin/prog", "f"); /* another call site */
	struct frame *g = stored_function(&s, "/bin/prog", "g");
	struct frame *root = stored_function(&s, "/bin/prog", "main");
	stored_add(&s, &(struct stored_sample){
			       .task = t, .weight_ns = 10, .frame = {f, again, g, f, root}});
	stored_add(&s, &(struct stored_sample){.task = t, .weight_ns = 30, .frame = {g, f, root}});
	stored_add(&s, &(struct stored_sample){.task = t, .weight_ns = 60, .frame = {g, root}});
	stored_seal(&s);
	ask("function", NULL);
	share_is("f", "self", 0.1);
	share_is("f", "total", 0.4);
	share_is("g", "total", 1);
	share_is("g", "self", 0.9);
	share_is("main", "total", 1);
	share_is("main", "self", 0);
}

static struct frame *kernel_function(uint64_t offset, const char *name)
{
	struct frame *frame = stored_frame(&s, FILE_KERNEL, "[kernel]", offset);
	stored_name(frame, name, NULL);
	return frame;
}

/* A PMU's register is written at a switch, and another register for the program itself; and a program
 * has functions with names like the kernel's. */
TEST(what_the_kernel_does_for_profilers_stands_apart, .times = 2)
{
	stored_begin_clock(&s);
	struct task *t = stored_task(&s, 100, 100, "prog");
	struct frame *root = stored_function(&s, "/bin/prog", "main");
	struct frame *user = stored_function(&s, "/bin/prog", "perf_event_loop");
	struct frame *write_msr = kernel_function(64, "native_write_msr");
	struct frame *enable = kernel_function(128, "x86_pmu_enable_all");
	struct frame *sched_in = kernel_function(192, "__perf_event_task_sched_in");
	struct frame *schedule = kernel_function(256, "schedule");
	stored_add(&s, &(struct stored_sample){.task = t,
			       .count = 4,
			       .weight_ns = 40,
			       .frame = {write_msr, enable, sched_in, schedule, root}});
	stored_add(&s, &(struct stored_sample){.task = t,
			       .count = 1,
			       .weight_ns = 10,
			       .frame = {enable, sched_in, schedule, root}});
	stored_add(&s, &(struct stored_sample){.task = t,
			       .count = 2,
			       .weight_ns = 20,
			       .frame = {write_msr, schedule, user, root}});
	stored_add(&s, &(struct stored_sample){
			       .task = t, .count = 3, .weight_ns = 30, .frame = {user, root}});
	stored_seal(&s);
	ask(_i ? "line" : "function", NULL);
	share_is("(profiling itself)", "self", 0.5);
	share_is("(profiling itself)", "total", 0.5);
	share_is("(profiling itself)", "samples", 5);
	ck_assert_str_eq(
		stored_text(&a, stored_row(&a, "(profiling itself)"), "module"), "[kernel]");
	share_is("native_write_msr", "self", 0.2);
	share_is("perf_event_loop", "self", 0.3);
	/* whom it interrupts is still its caller */
	share_is("x86_pmu_enable_all", "self", 0);
	share_is("x86_pmu_enable_all", "total", 0.5);
	share_is("schedule", "total", 0.7);
	share_is("main", "total", 1);
	ask("module", NULL);
	share_is("[kernel]", "self", 0.7);
}

TEST(code_of_a_file_without_a_name_is_its_page)
{
	stored_begin_clock(&s);
	struct task *t = stored_task(&s, 100, 100, "prog");
	struct frame *x = stored_frame(&s, FILE_ELF, "/bin/x", 16);
	struct frame *y = stored_frame(&s, FILE_ELF, "/bin/x", 4095);
	x->state = FRAME_UNNAMED;
	y->state = FRAME_OUT_OF_SYMBOL;
	stored_add(&s, &(struct stored_sample){.task = t, .weight_ns = 10, .frame = {x}});
	stored_add(&s, &(struct stored_sample){.task = t, .weight_ns = 20, .frame = {y}});
	stored_add(&s, &(struct stored_sample){.task = t, .weight_ns = 70});
	stored_seal(&s);
	ask("function", NULL);
	ck_assert_uint_eq(a.n_rows, 2);
	ck_assert_str_eq(a.cell[0][0].text, "[unknown]");
	ck_assert_str_eq(a.cell[0][1].text, "[unknown]"); /* no stack, so no module */
	ck_assert_str_eq(a.cell[1][0].text, "x+0x0xxx");
	ck_assert_str_eq(a.cell[1][1].text, "/bin/x");
	ck_assert_double_eq_tol(stored_real(&a, 1, "self"), 0.3, 1e-9);
	ck_assert_double_eq_tol(stored_real(&a, 0, "total"), 0.7, 1e-9);
	ck_assert_double_eq(a.named_share, 0);
	ck_assert_double_eq(a.placed_share, 0);
}

TEST(code_in_no_file_says_its_mapping)
{
	static const struct {
		enum file_kind kind;
		const char *path, *name;
	} code[] = {{FILE_ANON, "[heap]", "[unknown] [heap]"},
		{FILE_ANON, "", "[unknown] [anonymous]"},
		{FILE_PERF_MAP, "/tmp/perf-1.map", "[unknown] [anonymous]"},
		{FILE_UNKNOWN, "[unknown]", "[unknown]"}, {FILE_KERNEL, "[kernel]", "[unknown]"}};
	const size_t n = sizeof(code) / sizeof(*code);

	stored_begin_clock(&s);
	struct task *t = stored_task(&s, 100, 100, "prog");
	for (size_t i = 0; i < n; i++) {
		struct frame *f = stored_frame(&s, code[i].kind, code[i].path, 0x5000);
		f->state = FRAME_UNNAMED;
		f->file->has_symbols = true;
		stored_add(&s, &(struct stored_sample){
				       .task = t, .weight_ns = 10 * (n - i), .frame = {f}});
	}
	stored_seal(&s);
	ask("function", NULL);
	ck_assert_uint_eq(a.n_rows, n);
	for (size_t i = 0; i < n; i++)
		ck_assert_str_eq(a.cell[i][0].text, code[i].name);
}

/* A function that is known by its start, in a file with this build id. */
static void add_placed(struct task *t, uint8_t build_id, uint64_t offset, uint64_t ns)
{
	struct file_key key = {
		.kind = FILE_ELF, .path = "/lib/z.so", .build_id = &build_id, .n_build_id = 1};
	struct file *file;
	struct frame *frame;

	ck_assert_int_eq(file_get(&s.files, &key, &file), 0);
	ck_assert_int_eq(frame_get(&s.files, file, offset, &frame), 0);
	stored_name(frame, "z.so+0x1000", NULL);
	frame->state = FRAME_PLACED;
	stored_add(&s, &(struct stored_sample){.task = t, .weight_ns = ns, .frame = {frame}});
}

TEST(code_without_a_symbol_is_told_apart_by_its_build)
{
	stored_begin_clock(&s);
	struct task *t = stored_task(&s, 100, 100, "prog");
	struct frame *named = stored_function(&s, "/lib/z.so", "f");
	add_placed(t, 1, 0x1010, 30);
	add_placed(t, 1, 0x1020, 20);
	add_placed(t, 2, 0x1010, 40);
	stored_add(&s, &(struct stored_sample){.task = t, .weight_ns = 10, .frame = {named}});
	stored_seal(&s);
	ask("function", NULL);
	ck_assert_uint_eq(a.n_rows, 3);
	ck_assert_str_eq(a.cell[0][0].text, "z.so+0x1000");
	ck_assert_str_eq(a.cell[1][0].text, "z.so+0x1000");
	ck_assert_double_eq_tol(stored_real(&a, 0, "self"), 0.5, 1e-9);
	ck_assert_double_eq_tol(stored_real(&a, 1, "self"), 0.4, 1e-9);
	ck_assert_double_eq_tol(a.named_share, 0.25, 1e-9);
	ck_assert_double_eq_tol(a.placed_share, 1, 1e-9);
	ask("module", NULL);
	ck_assert_double_eq_tol(stored_real(&a, 0, "named"), 0.25, 1e-9);
	ck_assert_double_eq_tol(stored_real(&a, 0, "placed"), 1, 1e-9);
}

TEST(code_of_the_kernel_outside_its_text_is_a_module_of_its_own)
{
	stored_begin_clock(&s);
	struct task *t = stored_task(&s, 100, 100, "prog");
	const uint64_t offset[] = {
		32, FILE_KERNEL_TEXT_BYTES, -4096ull, FILE_KERNEL_TEXT_BYTES + 32};
	struct frame *frame[4];
	for (size_t i = 0; i < 4; i++) {
		frame[i] = stored_frame(&s, FILE_KERNEL, "[kernel]", offset[i]);
		frame[i]->state = FRAME_OUT_OF_SYMBOL;
		stored_add(&s, &(struct stored_sample){.task = t, .frame = {frame[i]}});
	}
	stored_name(frame[3], "entry", NULL);
	stored_seal(&s);
	ask("module", NULL);
	share_is("[kernel]", "self", 0.5);
	share_is("[kernel_unlisted]", "self", 0.5);
	ask("module", &(struct query_filter){.hide_kernel = true});
	ck_assert_uint_eq(a.n_rows, 1);
	share_is("[kernel]", "self", 1);
}

TEST(modules_say_how_much_of_them_is_named)
{
	stored_begin_clock(&s);
	struct task *t = stored_program(&s);
	struct frame *out = stored_frame(&s, FILE_ELF, "/bin/prog", 32);
	struct frame *unnamed = stored_frame(&s, FILE_ELF, "/bin/prog", 48);
	out->state = FRAME_OUT_OF_SYMBOL;
	unnamed->state = FRAME_ASKED; /* never came */
	stored_add(&s,
		&(struct stored_sample){.task = t, .count = 2, .weight_ns = 20, .frame = {out}});
	stored_add(&s, &(struct stored_sample){
			       .task = t, .count = 7, .weight_ns = 70, .frame = {unnamed}});
	stored_seal(&s);
	ask("module", NULL);
	ck_assert_uint_eq(a.n_rows, 2);
	share_is("/bin/prog", "self", 180 / 190.0);
	share_is("/bin/prog", "total", 1);
	share_is("/bin/prog", "named", 9 / 18.0);
	share_is("/bin/prog", "out_of_symbol", 2 / 18.0);
	share_is("/bin/prog", "unnamed", 7 / 18.0);
	share_is("[kernel]", "named", 1);
	ck_assert_double_eq_tol(a.named_share, 10 / 19.0, 1e-9);
}

TEST(inlined_functions_are_charged_when_asked)
{
	stored_begin_clock(&s);
	struct task *t = stored_task(&s, 100, 100, "prog");
	struct frame *f = stored_frame(&s, FILE_ELF, "/bin/prog", 16);
	stored_name(f, "innermost@a.h:5", "middle@b.h:6", "symbol@c.c:7", NULL);
	stored_add(&s, &(struct stored_sample){.task = t, .frame = {f}});
	stored_seal(&s);

	ask("function", NULL);
	ck_assert_uint_eq(a.n_rows, 1);
	share_is("symbol", "self", 1);

	memset(&a, 0, sizeof(a));
	struct answer answer = stored_answer(&a);
	ck_assert_int_eq(query_hotspots(&(struct query_source){.db = s.db}, 1,
				 &(struct query_question){.by = QUERY_BY_FUNCTION,
					 .inlined = true,
					 .filter = &(struct query_filter){0}},
				 &answer, &a.error),
		0);
	ck_assert_uint_eq(a.n_rows, 3);
	share_is("innermost", "self", 1);
	share_is("middle", "self", 0);
	share_is("middle", "total", 1);
	share_is("symbol", "total", 1);
}

static const char *split_note(void)
{
	for (uint32_t i = 0; i < a.n_notes; i++)
		if (strstr(a.note[i], ".dwp"))
			return a.note[i];
	return "";
}

static void ask_inlined(const char *comm)
{
	struct answer answer = stored_answer(&a);
	memset(&a, 0, sizeof(a));
	ck_assert_int_eq(
		query_hotspots(&(struct query_source){.db = s.db}, 1,
			&(struct query_question){.by = QUERY_BY_FUNCTION,
				.inlined = true,
				.filter = &(struct query_filter){.comm = &comm, .n_comms = 1}},
			&answer, &a.error),
		0);
}

TEST(an_answer_with_inlined_functions_says_whose_split_units_are_missing)
{
	stored_begin_clock(&s);
	struct frame *whole = stored_function(&s, "/bin/whole", "whole"),
		     *split = stored_function(&s, "/bin/split", "split"),
		     *other = stored_function(&s, "/bin/other", "other");
	split->file->split_missing = other->file->split_missing = true;
	struct task *none = stored_task(&s, 100, 100, "none"),
		    *one = stored_task(&s, 101, 101, "one"),
		    *two = stored_task(&s, 102, 102, "two");
	stored_add(&s, &(struct stored_sample){.task = none, .frame = {whole}});
	stored_add(&s, &(struct stored_sample){.task = one, .frame = {whole, split}});
	stored_add(&s, &(struct stored_sample){.task = two, .frame = {split}});
	stored_add(&s, &(struct stored_sample){.task = two, .frame = {other}});
	stored_seal(&s);

	ask_inlined("none");
	ck_assert_str_eq(split_note(), "");
	ask_inlined("one");
	ck_assert_msg(strstr(split_note(), "of /bin/split are missing"), "%s", split_note());
	ask_inlined("two");
	ck_assert_msg(
		strstr(split_note(), "of /bin/split and others are missing"), "%s", split_note());
	ask("function", NULL); /* all is charged to the callers, which are known */
	ck_assert_str_eq(split_note(), "");
	ask("line", NULL);
	ck_assert_str_ne(split_note(), "");
}

TEST(lines_are_those_of_the_innermost_place)
{
	stored_begin_clock(&s);
	struct task *t = stored_task(&s, 100, 100, "prog");
	struct frame *f = stored_frame(&s, FILE_ELF, "/bin/prog", 16);
	struct frame *g = stored_frame(&s, FILE_ELF, "/bin/prog", 32);
	struct frame *bare = stored_function(&s, "/bin/prog", "bare");
	stored_name(f, "inner@a.h:5", "outer@c.c:7", NULL);
	stored_name(g, "outer@c.c:8", NULL);
	stored_add(&s, &(struct stored_sample){.task = t, .weight_ns = 30, .frame = {f}});
	stored_add(&s, &(struct stored_sample){.task = t, .weight_ns = 20, .frame = {g}});
	stored_add(&s, &(struct stored_sample){.task = t, .weight_ns = 50, .frame = {bare}});
	stored_seal(&s);
	ask("line", NULL);
	ck_assert_uint_eq(a.n_rows, 4);
	size_t row = stored_row(&a, "inner");
	ck_assert_str_eq(stored_text(&a, row, "source"), "a.h");
	ck_assert_double_eq(stored_real(&a, row, "line"), 5);
	ck_assert_double_eq_tol(stored_real(&a, row, "self"), 0.3, 1e-9);
	ck_assert(stored_absent(&a, stored_row(&a, "bare"), "line"));
	ck_assert(stored_absent(&a, stored_row(&a, "bare"), "source"));
	/* the call site in outer has no self, but a total */
	ck_assert_double_eq(stored_real(&a, 3, "line"), 7);
	ck_assert_double_eq(stored_real(&a, 3, "self"), 0);
	ck_assert_double_eq_tol(stored_real(&a, 3, "total"), 0.3, 1e-9);
}

TEST(processes_take_in_their_threads)
{
	stored_tasks(&s);
	ask("process", NULL);
	ck_assert_uint_eq(a.n_rows, 2);
	ck_assert_str_eq(stored_text(&a, 0, "comm"), "prog");
	ck_assert_str_eq(stored_text(&a, 0, "argv"), "prog -x");
	ck_assert_double_eq(stored_real(&a, 0, "pid"), 100);
	share_is("prog", "self", 0.6);
	share_is("prog", "total", 0.6);
	ck_assert(stored_absent(&a, 1, "argv"));
}

TEST(threads_stand_alone)
{
	stored_tasks(&s);
	ask("thread", NULL);
	ck_assert_uint_eq(a.n_rows, 3);
	share_is("worker", "self", 0.5);
	ck_assert_double_eq(stored_real(&a, stored_row(&a, "worker"), "pid"), 100);
	ck_assert_double_eq(stored_real(&a, stored_row(&a, "worker"), "tid"), 101);
	share_is("prog", "self", 0.1);
}

TEST(cgroups_and_harts_share_too)
{
	stored_tasks(&s);
	ask("cgroup", NULL);
	ck_assert_uint_eq(a.n_rows, 2);
	share_is("/ci/job-1", "self", 0.6);
	share_is("/cinema", "self", 0.4);
	ask("hart", NULL);
	ck_assert_uint_eq(a.n_rows, 3);
	share_is("1", "self", 0.5);
	share_is("2", "self", 0.4);
	ck_assert_str_eq(stored_text(&a, 0, "rung"), rung_says(RUNG_CLOCK));
}

TEST(pid_used_again_is_another_process)
{
	stored_begin_clock(&s);
	struct task *first = stored_task(&s, 100, 100, "one");
	stored_add(&s, &(struct stored_sample){.task = first, .weight_ns = 10});
	struct task *second;
	ck_assert_int_eq(task_add(&s.tasks, 100, 100, 987654321, &second), 0);
	second->process = second;
	task_set_comm(second, "two");
	stored_add(&s, &(struct stored_sample){.task = second, .weight_ns = 30});
	stored_seal(&s);
	ask("process", NULL);
	ck_assert_uint_eq(a.n_rows, 2);
	share_is("one", "self", 0.25);
	share_is("two", "self", 0.75);
}

TEST(rows_come_by_falling_share_and_names_settle_ties)
{
	stored_begin_clock(&s);
	struct task *t = stored_task(&s, 100, 100, "prog");
	const char *const names[] = {"d", "b", "c", "a"};
	for (size_t i = 0; i < 4; i++)
		stored_add(&s, &(struct stored_sample){.task = t,
				       .weight_ns = i == 2 ? 20 : 10,
				       .frame = {stored_function(&s, "/bin/prog", names[i])}});
	stored_seal(&s);
	ask("function", NULL);
	const char *const order[] = {"c", "a", "b", "d"};
	for (size_t i = 0; i < 4; i++)
		ck_assert_str_eq(a.cell[i][0].text, order[i]);
}

TEST(limit_cuts_after_sorting_and_shares_stay)
{
	stored_begin_clock(&s);
	stored_program(&s);
	stored_seal(&s);
	struct answer answer = stored_answer(&a);
	ck_assert_int_eq(query_hotspots(&(struct query_source){.db = s.db}, 1,
				 &(struct query_question){.by = QUERY_BY_FUNCTION,
					 .limit = 1,
					 .filter = &(struct query_filter){0}},
				 &answer, &a.error),
		0);
	ck_assert_uint_eq(a.n_rows, 1);
	share_is("hot", "self", 0.6);
	ck_assert_uint_eq(a.samples, 10);
}

TEST(question_names_parse_and_others_do_not)
{
	for (int i = 0; i < N_QUERY_BY; i++)
		ck_assert_int_eq(query_by_parse(query_by_name((enum query_by)i)), i);
	ck_assert_int_eq(query_by_parse("functions"), -1);
	ck_assert_int_eq(query_by_parse(""), -1);
	ck_assert_ptr_null(query_by_name(N_QUERY_BY));
}

/* f without callers 6 times, f called by main once, both not known to be whole when sampled. */
static void sample_cut(void)
{
	stored_begin_clock(&s);
	struct task *t = stored_task(&s, 100, 100, "prog");
	struct frame *f = stored_function(&s, "/bin/prog", "f");
	struct frame *start = stored_function(&s, "/bin/prog", "main");
	stored_add(&s,
		&(struct stored_sample){
			.task = t, .frame = {f}, .count = 6, .weight_ns = 60, .truncated = true});
	stored_add(&s, &(struct stored_sample){.task = t,
			       .frame = {f, start},
			       .count = 2,
			       .weight_ns = 20,
			       .truncated = true});
	s.lost[0][LOSS_STACK_TRUNCATED] = 7;
}

static bool notes_cut(const char *share)
{
	char says[256];
	snprintf(says, sizeof(says),
		"the stacks of %s %% of the samples are cut: callers are missing; code without "
		"frame pointers hides them: use -g tables, or callers = tables in mperf.conf",
		share);
	for (uint32_t i = 0; i < a.n_notes; i++)
		if (strcmp(a.note[i], says) == 0)
			return true;
	return false;
}

static uint64_t lost(const char *cause)
{
	uint64_t n = 0;
	for (uint32_t i = 0; i < a.n_losses; i++)
		if (strcmp(a.loss[i].cause, cause) == 0)
			n += a.loss[i].count;
	return n;
}

static void cut_is(uint64_t n)
{
	ck_assert_uint_eq(lost("truncated stack"), n);
}

TEST(stacks_are_cut_that_end_in_no_start)
{
	static const char *const by[] = {"function", "module", "line", "address"};
	sample_cut();
	stored_seal(&s);
	for (size_t i = 0; i < sizeof(by) / sizeof(*by); i++) {
		ask(by[i], NULL);
		cut_is(6);
		ck_assert(notes_cut("75.0"));
	}
	struct query_filter other = {.comm = (const char *const[]){"none"}, .n_comms = 1};
	ask("function", &other);
	cut_is(0);
}

/* clone is where a thread begins, and what a program calls to start one. */
static void sample_clone(void)
{
	stored_begin_clock(&s);
	struct task *t = stored_task(&s, 100, 100, "prog");
	struct frame *clone = stored_function(&s, "/lib/libc.so.6", "__clone3");
	struct frame *f = stored_function(&s, "/bin/prog", "f");
	struct frame *kernel = stored_frame(&s, FILE_KERNEL, "[kernel]", 64);
	struct frame *named_alike = stored_frame(&s, FILE_KERNEL, "[kernel]", 128);
	stored_name(kernel, "__do_sys_clone3", NULL);
	stored_name(named_alike, "start_thread", NULL);
	stored_add(&s, &(struct stored_sample){
			       .task = t, .frame = {clone}, .count = 1, .truncated = true});
	stored_add(&s, &(struct stored_sample){
			       .task = t, .frame = {kernel, clone}, .count = 2, .truncated = true});
	stored_add(
		&s, &(struct stored_sample){
			    .task = t, .frame = {named_alike, f}, .count = 4, .truncated = true});
	stored_add(&s, &(struct stored_sample){
			       .task = t, .frame = {f, clone}, .count = 8, .truncated = true});
	stored_add(&s,
		&(struct stored_sample){
			.task = t, .frame = {kernel, f, clone}, .count = 16, .truncated = true});
}

TEST(a_stack_that_ends_in_the_call_of_clone_is_cut)
{
	sample_clone();
	stored_seal(&s);
	ask("function", NULL);
	cut_is(1 + 2 + 4);
}

TEST(where_callers_do_not_matter_cut_stacks_are_those_of_all_tasks)
{
	sample_cut();
	stored_seal(&s);
	ask("process", NULL);
	cut_is(7);
	struct query_filter some = {.comm = (const char *const[]){"prog"}, .n_comms = 1};
	ask("process", &some);
	cut_is(0);
}

TEST(no_more_stacks_are_cut_than_there_are_samples)
{
	sample_cut();
	s.lost[0][LOSS_STACK_TRUNCATED] = 700;
	stored_seal(&s);
	ask("process", NULL);
	cut_is(8);
	ck_assert(notes_cut("100.0"));
}

TEST(no_more_samples_of_a_clock_are_lost_than_were_possible)
{
	stored_begin_clock(&s);
	struct task *t = stored_task(&s, 100, 100, "prog");
	stored_add(&s, &(struct stored_sample){.task = t,
			       .frame = {stored_function(&s, "/bin/prog", "f")},
			       .count = 100,
			       .weight_ns = 100});
	s.lost[0][LOSS_RING] = 5000;
	ck_assert_int_eq(stored_flush(&s, SECOND, 2 * SECOND), 0);
	stored_seal(&s);
	ask("function", NULL);
	uint64_t possible = (uint64_t)(a.hz * a.seconds * STORED_HARTS);
	ck_assert_uint_gt(possible, 100);
	ck_assert_uint_lt(possible, 5000);
	ck_assert_uint_le(lost("ring overrun"), possible - 99);
	ck_assert_uint_ge(lost("ring overrun"), possible - 101);
	ck_assert_uint_eq(lost("ring overrun") + lost("side band overrun"), 5000);
}
