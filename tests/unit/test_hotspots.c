/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Hotspots: shares that can be worked out by hand, of sessions made by hand, and counters. */

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/stored.h"

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

/* prog: 6 samples in hot (called by main), 3 in main, 1 in the kernel below hot. */
static struct task *made_program(struct stored *to)
{
	struct task *t = stored_task(to, 100, 100, "prog");
	struct frame *hot = stored_function(to, "/bin/prog", "hot");
	struct frame *root = stored_function(to, "/bin/prog", "main");
	struct frame *kernel = stored_frame(to, FILE_KERNEL, "[kernel]", 64);
	stored_name(kernel, "do_fault", NULL);
	stored_add(to, &(struct stored_sample){
			       .task = t, .count = 6, .weight_ns = 60, .frame = {hot, root}});
	stored_add(to,
		&(struct stored_sample){.task = t, .count = 3, .weight_ns = 30, .frame = {root}});
	stored_add(
		to, &(struct stored_sample){
			    .task = t, .count = 1, .weight_ns = 10, .frame = {kernel, hot, root}});
	return t;
}

START_TEST(functions_have_self_and_total_shares)
{
	stored_begin_clock(&s);
	made_program(&s);
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
END_TEST

START_TEST(recursion_counts_a_stack_once)
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
END_TEST

START_TEST(frame_without_a_name_is_unknown_of_its_module)
{
	stored_begin_clock(&s);
	struct task *t = stored_task(&s, 100, 100, "prog");
	struct frame *x = stored_frame(&s, FILE_ELF, "/bin/x", 16);
	struct frame *y = stored_frame(&s, FILE_ELF, "/bin/x", 32);
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
	ck_assert_str_eq(a.cell[1][0].text, "[unknown]");
	ck_assert_str_eq(a.cell[1][1].text, "/bin/x");
	ck_assert_double_eq_tol(stored_real(&a, 1, "self"), 0.3, 1e-9);
	ck_assert_double_eq_tol(stored_real(&a, 0, "total"), 0.7, 1e-9);
	ck_assert_double_eq(a.named_share, 0);
}
END_TEST

START_TEST(modules_say_how_much_of_them_is_named)
{
	stored_begin_clock(&s);
	struct task *t = made_program(&s);
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
END_TEST

START_TEST(inlined_functions_are_charged_when_asked)
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
	ck_assert_int_eq(query_hotspots(&s.db, 1, QUERY_BY_FUNCTION, 0, true,
				 &(struct query_filter){0}, &answer, &a.error),
		0);
	ck_assert_uint_eq(a.n_rows, 3);
	share_is("innermost", "self", 1);
	share_is("middle", "self", 0);
	share_is("middle", "total", 1);
	share_is("symbol", "total", 1);
}
END_TEST

START_TEST(lines_are_those_of_the_innermost_place)
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
END_TEST

static void made_tasks(void)
{
	stored_begin_clock(&s);
	struct task *p = stored_task(&s, 100, 100, "prog");
	struct task *worker = stored_task(&s, 100, 101, "worker");
	struct task *q = stored_task(&s, 200, 200, "quux");
	p->argv = malloc(8);
	memcpy(p->argv, "prog\0-x", 8);
	p->n_argv = 8;
	p->cgroup = worker->cgroup = 7;
	q->cgroup = 8;
	ck_assert_int_eq(cgroup_set(&s.tasks, 7, "/ci/job-1"), 0);
	ck_assert_int_eq(cgroup_set(&s.tasks, 8, "/cinema"), 0);
	struct frame *f = stored_function(&s, "/bin/prog", "f");
	stored_add(&s, &(struct stored_sample){.task = p, .weight_ns = 10, .frame = {f}});
	stored_add(&s,
		&(struct stored_sample){.task = worker, .hart = 1, .weight_ns = 50, .frame = {f}});
	stored_add(
		&s, &(struct stored_sample){.task = q, .hart = 2, .weight_ns = 40, .frame = {f}});
	stored_seal(&s);
}

START_TEST(processes_take_in_their_threads)
{
	made_tasks();
	ask("process", NULL);
	ck_assert_uint_eq(a.n_rows, 2);
	ck_assert_str_eq(stored_text(&a, 0, "comm"), "prog");
	ck_assert_str_eq(stored_text(&a, 0, "argv"), "prog -x");
	ck_assert_double_eq(stored_real(&a, 0, "pid"), 100);
	share_is("prog", "self", 0.6);
	share_is("prog", "total", 0.6);
	ck_assert(stored_absent(&a, 1, "argv"));
}
END_TEST

START_TEST(threads_stand_alone)
{
	made_tasks();
	ask("thread", NULL);
	ck_assert_uint_eq(a.n_rows, 3);
	share_is("worker", "self", 0.5);
	ck_assert_double_eq(stored_real(&a, stored_row(&a, "worker"), "pid"), 100);
	ck_assert_double_eq(stored_real(&a, stored_row(&a, "worker"), "tid"), 101);
	share_is("prog", "self", 0.1);
}
END_TEST

START_TEST(cgroups_and_harts_share_too)
{
	made_tasks();
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
END_TEST

START_TEST(pid_used_again_is_another_process)
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
END_TEST

START_TEST(rows_come_by_falling_share_and_names_settle_ties)
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
END_TEST

START_TEST(limit_cuts_after_sorting_and_shares_stay)
{
	stored_begin_clock(&s);
	made_program(&s);
	stored_seal(&s);
	struct answer answer = stored_answer(&a);
	ck_assert_int_eq(query_hotspots(&s.db, 1, QUERY_BY_FUNCTION, 1, false,
				 &(struct query_filter){0}, &answer, &a.error),
		0);
	ck_assert_uint_eq(a.n_rows, 1);
	share_is("hot", "self", 0.6);
	ck_assert_uint_eq(a.samples, 10);
}
END_TEST

START_TEST(question_names_parse_and_others_do_not)
{
	for (int i = 0; i < N_QUERY_BY; i++)
		ck_assert_int_eq(query_by_parse(query_by_name((enum query_by)i)), i);
	ck_assert_int_eq(query_by_parse("functions"), -1);
	ck_assert_int_eq(query_by_parse(""), -1);
	ck_assert_ptr_null(query_by_name(N_QUERY_BY));
}
END_TEST

/* --- counters --------------------------------------------------------------------------------- */

START_TEST(ipc_is_of_scaled_counts)
{
	stored_begin_group(&s);
	struct task *t = stored_task(&s, 100, 100, "prog");
	struct frame *f = stored_function(&s, "/bin/prog", "f");
	struct frame *g = stored_function(&s, "/bin/prog", "g");
	stored_add(&s, &(struct stored_sample){.task = t,
			       .frame = {f},
			       .n_reads = 2,
			       .read = {{1, 500, 1000, 500}, {2, 3000, 1000, 1000}}});
	stored_add(&s, &(struct stored_sample){.task = t,
			       .frame = {g},
			       .n_reads = 2,
			       .read = {{1, 100, 1000, 1000}, {2, 50, 1000, 1000}}});
	/* counts that a switch delivered: they are f's, without a sample */
	stored_add(&s, &(struct stored_sample){.task = t,
			       .hart = 1,
			       .switched = true,
			       .frame = {f},
			       .n_reads = 2,
			       .read = {{1, 1000, 10, 10}, {2, 1000, 10, 10}}});
	stored_seal(&s);
	ask("function", NULL);
	share_is("f", "cycles", 2000);
	share_is("f", "instructions", 4000);
	share_is("f", "ipc", 2);
	share_is("g", "ipc", 0.5);
	share_is("f", "samples", 1);
	share_is("f", "self", 0.5);
	ck_assert_uint_eq(a.n_notes, 1);
	ck_assert_ptr_nonnull(strstr(a.note[0], "scaled"));
}
END_TEST

START_TEST(counter_that_never_ran_is_absent)
{
	stored_begin_group(&s);
	struct task *t = stored_task(&s, 100, 100, "prog");
	struct frame *f = stored_function(&s, "/bin/prog", "f");
	struct frame *g = stored_function(&s, "/bin/prog", "g");
	struct frame *h = stored_function(&s, "/bin/prog", "h");
	stored_add(&s, &(struct stored_sample){.task = t,
			       .frame = {f},
			       .n_reads = 2,
			       .read = {{1, 0, 1000, 0}, {2, 50, 1000, 1000}}});
	stored_add(&s, &(struct stored_sample){.task = t, .frame = {g}});
	stored_add(&s, &(struct stored_sample){.task = t,
			       .frame = {h},
			       .n_reads = 2,
			       .read = {{1, 0, 1000, 1000}, {2, 0, 1000, 1000}}});
	stored_add(&s,
		&(struct stored_sample){
			.task = t, .frame = {h, f}, .n_reads = 1, .read = {{1, 0, 1000, 1000}}});
	stored_seal(&s);
	ask("function", NULL);
	ck_assert(stored_absent(&a, stored_row(&a, "f"), "cycles"));
	ck_assert(stored_absent(&a, stored_row(&a, "f"), "ipc"));
	share_is("f", "instructions", 50);
	ck_assert(stored_absent(&a, stored_row(&a, "g"), "instructions"));
	ck_assert(stored_absent(&a, stored_row(&a, "h"), "ipc")); /* no cycles to divide by */
	share_is("h", "cycles", 0);
}
END_TEST

START_TEST(event_shares_are_of_its_values)
{
	stored_begin_group(&s);
	struct task *t = stored_task(&s, 100, 100, "prog");
	struct frame *f = stored_function(&s, "/bin/prog", "f");
	struct frame *g = stored_function(&s, "/bin/prog", "g");
	stored_add(&s, &(struct stored_sample){.task = t,
			       .weight_ns = 90,
			       .frame = {f},
			       .n_reads = 2,
			       .read = {{1, 100, 10, 10}, {2, 10, 10, 10}}});
	stored_add(&s, &(struct stored_sample){.task = t,
			       .weight_ns = 10,
			       .frame = {g},
			       .n_reads = 1,
			       .read = {{2, 30, 10, 10}}});
	stored_seal(&s);
	ask("function", &(struct query_filter){.event = "instructions"});
	share_is("f", "self", 0.25);
	share_is("g", "self", 0.75);
	ck_assert_str_eq(a.event, "instructions");
	ask("function", &(struct query_filter){.event = "cpu-cycles"}); /* an alias */
	ck_assert_uint_eq(a.n_rows, 1);
	share_is("f", "self", 1);
	ck_assert_uint_eq(a.samples, 1);
	ask("function", &(struct query_filter){.event = "cpu-clock"});
	share_is("f", "self", 0.9);
}
END_TEST

START_TEST(event_that_was_not_counted_is_named)
{
	stored_begin_group(&s);
	stored_seal(&s);
	struct query_filter filter = {.event = "cache-misses"};
	ck_assert_int_eq(stored_hotspots(s.db, "function", &filter, &a), QUERY_FAILED);
	ck_assert_int_eq(a.error.kind, MPERF__FAILURE_KIND__FAILURE_MISSING);
	ck_assert_ptr_nonnull(strstr(a.error.text, "cache-misses"));
	ck_assert_ptr_nonnull(strstr(a.error.remedy, "cpu-clock, cycles, instructions"));
	ck_assert_uint_eq(a.n_told, 0);
}
END_TEST

START_TEST(second_sampling_event_is_not_added_to_the_first)
{
	stored_folder(&s);
	stored_event(&s, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, "cpu-clock");
	stored_event(&s, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, "page-faults");
	stored_begin(&s);
	struct task *t = stored_task(&s, 100, 100, "prog");
	struct frame *f = stored_function(&s, "/bin/prog", "f");
	struct frame *g = stored_function(&s, "/bin/prog", "g");
	stored_add(&s, &(struct stored_sample){.task = t, .weight_ns = 40, .frame = {f}});
	stored_add(&s, &(struct stored_sample){
			       .task = t, .event = 1, .weight_ns = 60, .period = 5, .frame = {g}});
	stored_seal(&s);
	ask("function", NULL);
	ck_assert_uint_eq(a.n_rows, 1);
	share_is("f", "self", 1);
	ck_assert_str_eq(a.event, "cpu-clock");
	ck_assert_ptr_nonnull(strstr(a.note[0], "page-faults"));
	ask("function", &(struct query_filter){.event = "page-faults"});
	share_is("g", "self", 1);
	ck_assert_uint_eq(a.n_rows, 1);
}
END_TEST

START_TEST(ipc_that_mixes_modes_says_so)
{
	stored_folder(&s);
	stored_event(&s, PERF_TYPE_RAW, 0x22, "r22");
	stored_event(&s, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, "cycles");
	stored_event(&s, PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, "instructions");
	s.sampler.plan[0] = (struct plan){
		.rung = RUNG_LEADER,
		.leader = s.sampler.events.event[0],
		.user_only = true,
	};
	stored_begin(&s);
	struct task *t = stored_task(&s, 100, 100, "prog");
	stored_add(
		&s, &(struct stored_sample){
			    .task = t, .n_reads = 2, .read = {{1, 100, 10, 10}, {2, 50, 10, 10}}});
	stored_seal(&s);
	ask("function", NULL);
	ck_assert_str_eq(a.note[0], "IPC mixes user and kernel modes");
	ck_assert_str_eq(a.event, "r22");
}
END_TEST

static Suite *hotspots_suite(void)
{
	Suite *suite = suite_create("hotspots");
	TCase *c = tcase_create("hotspots");
	tcase_add_checked_fixture(c, NULL, end);
	tcase_set_timeout(c, 60);
	tcase_add_test(c, functions_have_self_and_total_shares);
	tcase_add_test(c, recursion_counts_a_stack_once);
	tcase_add_test(c, frame_without_a_name_is_unknown_of_its_module);
	tcase_add_test(c, modules_say_how_much_of_them_is_named);
	tcase_add_test(c, inlined_functions_are_charged_when_asked);
	tcase_add_test(c, lines_are_those_of_the_innermost_place);
	tcase_add_test(c, processes_take_in_their_threads);
	tcase_add_test(c, threads_stand_alone);
	tcase_add_test(c, cgroups_and_harts_share_too);
	tcase_add_test(c, pid_used_again_is_another_process);
	tcase_add_test(c, rows_come_by_falling_share_and_names_settle_ties);
	tcase_add_test(c, limit_cuts_after_sorting_and_shares_stay);
	tcase_add_test(c, question_names_parse_and_others_do_not);
	tcase_add_test(c, ipc_is_of_scaled_counts);
	tcase_add_test(c, counter_that_never_ran_is_absent);
	tcase_add_test(c, event_shares_are_of_its_values);
	tcase_add_test(c, event_that_was_not_counted_is_named);
	tcase_add_test(c, second_sampling_event_is_not_added_to_the_first);
	tcase_add_test(c, ipc_that_mixes_modes_says_so);
	suite_add_tcase(suite, c);
	return suite;
}

int main(void)
{
	SRunner *runner = srunner_create(hotspots_suite());
	srunner_run_all(runner, CK_ENV);
	int n_failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return n_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
