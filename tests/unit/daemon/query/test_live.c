/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Live queries: what they say of a window is what the segment says that the window is stored in. */

#include <time.h>

#include "daemon/query/samples/live.h"
#include "proto/loss.h"
#include "tests/unit/stored.h"
#include "tests/unit/test.h"

static struct stored s;
static struct stored_answer live, stored;

static void end(void)
{
	if (*s.folder)
		stored_end(&s);
	memset(&s, 0, sizeof(s));
}

EACH_TEST(.end = end, .seconds = 60);

static struct live view(void)
{
	s.window.start_ns = 1000000000;
	s.window.end_ns = 3000000000;
	return (struct live){
		.window = &s.window,
		.stacks = &s.stacks,
		.tasks = &s.tasks,
		.sampler = &s.sampler,
		.lost = s.lost,
		.realtime_ns = s.realtime_ns + 1000000000,
		.hz = s.sampler.hz,
	};
}

static int ask_live(enum query_by by, const struct query_filter *filter)
{
	static const struct query_filter none;
	struct live l = view();
	struct answer answer = stored_answer(&live);
	return query_live_hotspots(&l, by, 0, filter ? filter : &none, &answer, &live.error);
}

static void ask(enum query_by by, const struct query_filter *filter)
{
	memset(&live, 0, sizeof(live));
	int r = ask_live(by, filter);
	ck_assert_msg(r == 0, "%d: %s", r, live.error.text);
	ck_assert_uint_eq(live.n_told, 1);
}

static void ask_callers(const char *function, const char *module)
{
	static const struct query_filter none;
	struct live l = view();
	memset(&live, 0, sizeof(live));
	struct answer answer = stored_answer(&live);
	int r = query_live_callers(&l, function, module, 0, &none, &answer, &live.error);
	ck_assert_msg(r == 0, "%d: %s", r, live.error.text);
	ck_assert_uint_eq(live.n_told, 1);
}

static void share_is(const char *row, const char *column, double share)
{
	ck_assert_double_eq_tol(stored_real(&live, stored_row(&live, row), column), share, 1e-9);
}

/* Every row and column of the stored answer is in the live one, in the same order. */
static void answers_agree(void)
{
	ck_assert_uint_eq(live.n_rows, stored.n_rows);
	for (size_t row = 0; row < stored.n_rows; row++)
		for (size_t c = 0; c < stored.n_columns; c++) {
			int at = stored_column(&live, stored.column[c]);
			ck_assert_int_eq(live.cell[row][at].kind, stored.cell[row][c].kind);
			ck_assert_str_eq(live.cell[row][at].text, stored.cell[row][c].text);
			ck_assert_double_eq_tol(
				live.cell[row][at].real, stored.cell[row][c].real, 1e-9);
		}
	ck_assert_str_eq(live.event, stored.event);
	ck_assert_str_eq(live.rung, stored.rung);
	ck_assert_uint_eq(live.hz, stored.hz);
	ck_assert_uint_eq(live.samples, stored.samples);
	ck_assert_uint_eq(live.n_losses, stored.n_losses);
	ck_assert_double_eq_tol(live.named_share, stored.named_share, 1e-9);
	ck_assert_double_eq_tol(live.seconds, stored.seconds, 1e-9);
	ck_assert_uint_eq(live.n_notes, stored.n_notes);
	for (uint32_t i = 0; i < stored.n_notes; i++)
		ck_assert_str_eq(live.note[i], stored.note[i]);
}

/* Two processes, a thread, kernel frames, an unnamed one, recursion, counters, two harts. */
static void made_session(void)
{
	stored_begin_group(&s);
	s.sampler.plan[0].cut = CUT_COUNT;
	struct task *prog = stored_task(&s, 100, 100, "prog");
	struct task *thread = stored_task(&s, 100, 101, "worker");
	struct task *other = stored_task(&s, 200, 200, "other");
	ck_assert_int_eq(cgroup_set(&s.tasks, 7, "/user.slice/a", 0), 0);
	prog->cgroup = thread->cgroup = 7;
	prog->argv = malloc(8);
	ck_assert_ptr_nonnull(prog->argv);
	memcpy(prog->argv, "prog\0-x", 8);
	prog->n_argv = 8;
	prog->uid = thread->uid = 1000;
	other->uid = 0;
	struct frame *main_ = stored_function(&s, "/bin/prog", "main");
	struct frame *hot = stored_function(&s, "/bin/prog", "hot");
	struct frame *again = stored_function(&s, "/bin/prog", "hot");
	struct frame *fault = stored_frame(&s, FILE_KERNEL, "[kernel]", 64);
	struct frame *module = stored_frame(&s, FILE_MODULE, "[nf_tables]", 8);
	struct frame *dark = stored_frame(&s, FILE_ELF, "/lib/dark.so", 8);
	stored_name(fault, "do_fault", NULL);
	stored_name(module, "nft_do", NULL);
	dark->state = FRAME_UNNAMED;
	stored_add(&s, &(struct stored_sample){.task = prog,
			       .count = 6,
			       .weight_ns = 60,
			       .uncounted = 2,
			       .read = {{1, 4000, 100, 50}, {2, 2000, 100, 50}},
			       .n_reads = 2,
			       .frame = {hot, main_}});
	stored_add(&s, &(struct stored_sample){.task = thread,
			       .hart = 1,
			       .count = 3,
			       .weight_ns = 30,
			       .frame = {again, hot, main_}});
	stored_add(&s, &(struct stored_sample){.task = prog,
			       .count = 1,
			       .weight_ns = 10,
			       .frame = {fault, module, hot, main_}});
	stored_add(&s, &(struct stored_sample){.task = other,
			       .hart = 1,
			       .count = 2,
			       .weight_ns = 20,
			       .frame = {dark, main_}});
	stored_add(&s,
		&(struct stored_sample){
			.task = other, .hart = 1, .count = 1, .weight_ns = 10, .frame = {fault}});
	stored_add(
		&s, &(struct stored_sample){.task = NULL, .hart = 2, .count = 1, .weight_ns = 10});
	s.lost[1][LOSS_RING_SAMPLES] = 5;
	s.lost[0][LOSS_MEMORY] = 2;
}

TEST(a_live_answer_is_the_stored_one)
{
	static const char *const by[] = {
		"function", "module", "process", "thread", "cgroup", "line", "hart"};
	static struct stored_answer answers[7];

	made_session();
	for (int i = 0; i < 7; i++) {
		ask((enum query_by)query_by_parse(by[i]), NULL);
		answers[i] = live;
	}
	ck_assert_int_eq(stored_flush(&s, 1000000000, 3000000000), 0);
	stored_seal(&s);
	for (int i = 0; i < 7; i++) {
		static const struct query_filter none;
		memset(&stored, 0, sizeof(stored));
		ck_assert_int_eq(stored_hotspots(s.db, by[i], &none, &stored), 0);
		live = answers[i];
		if (i > 0)
			ck_assert_uint_eq(live.n_columns, stored.n_columns);
		answers_agree();
	}
}

TEST(a_live_answer_of_an_event_is_the_stored_one)
{
	static const struct query_filter filter = {.event = "instructions"};
	made_session();
	ask(QUERY_BY_MODULE, &filter);
	share_is("/bin/prog", "counted", 4.0 / 6);
	ck_assert_str_eq(live.switches, "counted");
	ck_assert_int_eq(stored_flush(&s, 1000000000, 3000000000), 0);
	stored_seal(&s);
	memset(&stored, 0, sizeof(stored));
	ck_assert_int_eq(stored_hotspots(s.db, "module", &filter, &stored), 0);
	ck_assert_uint_eq(live.n_columns, stored.n_columns);
	answers_agree();
}

TEST(filters_choose_what_they_choose_of_a_segment)
{
	int32_t pid = 100;
	uint32_t cpu = 1;
	const char *comm = "other", *cgroup = "/user.slice/";
	struct query_filter filters[] = {
		{.pid = &pid, .n_pids = 1},
		{.cpu = &cpu, .n_cpus = 1},
		{.comm = &comm, .n_comms = 1},
		{.cgroup = &cgroup, .n_cgroups = 1},
		{.event = "cycles"},
	};
	static struct stored_answer answers[5];

	made_session();
	for (int i = 0; i < 5; i++) {
		ask(QUERY_BY_FUNCTION, &filters[i]);
		answers[i] = live;
	}
	ck_assert_int_eq(stored_flush(&s, 1000000000, 3000000000), 0);
	stored_seal(&s);
	for (int i = 0; i < 5; i++) {
		memset(&stored, 0, sizeof(stored));
		ck_assert_int_eq(stored_hotspots(s.db, "function", &filters[i], &stored), 0);
		live = answers[i];
		answers_agree();
	}
}

TEST(a_function_bears_the_process_that_spends_most_in_it)
{
	stored_begin_clock(&s);
	struct task *a = stored_task(&s, 1, 1, "small"), *b = stored_task(&s, 2, 2, "large");
	struct frame *f = stored_function(&s, "/lib/c.so", "memcpy");
	stored_add(
		&s, &(struct stored_sample){.task = a, .count = 2, .weight_ns = 20, .frame = {f}});
	stored_add(
		&s, &(struct stored_sample){.task = b, .count = 3, .weight_ns = 30, .frame = {f}});
	ask(QUERY_BY_FUNCTION, NULL);
	ck_assert_uint_eq(live.n_rows, 1);
	ck_assert_str_eq(stored_text(&live, 0, "process"), "large");
}

TEST(a_window_without_rows_answers_without_rows)
{
	stored_begin_clock(&s);
	ask(QUERY_BY_FUNCTION, NULL);
	ck_assert_uint_eq(live.n_rows, 0);
	ck_assert_uint_eq(live.samples, 0);
	ck_assert_str_eq(live.event, "cpu-clock");
	ask_callers("main", NULL);
	ck_assert_uint_eq(live.n_rows, 0);
}

TEST(names_that_are_on_their_way_are_said_to_come_and_late_ones_are_not)
{
	stored_begin_clock(&s);
	struct task *t = stored_task(&s, 100, 100, "prog");
	struct frame *asked = stored_frame(&s, FILE_ELF, "/bin/prog", 16);
	struct frame *late = stored_frame(&s, FILE_ELF, "/bin/prog", 32);
	asked->state = late->state = FRAME_ASKED;
	asked->asker = 0;
	late->asker = FRAME_LATE;
	stored_add(&s, &(struct stored_sample){.task = t, .count = 3, .frame = {asked}});
	stored_add(&s, &(struct stored_sample){.task = t, .count = 1, .frame = {late}});
	ask(QUERY_BY_FUNCTION, NULL);
	ck_assert_double_eq(live.named_share, 0);
	ck_assert_double_eq_tol(live.coming_share, 0.75, 1e-9);
	ck_assert_uint_eq(live.n_notes, 1);
	ck_assert_ptr_nonnull(strstr(live.note[0], "75 % of the samples are still coming"));
}

TEST(what_mperf_cost_is_a_share_of_the_harts_time_and_no_loss)
{
	made_session();
	ask(QUERY_BY_FUNCTION, NULL);
	ck_assert_double_eq(live.cost_share, 0);
	uint32_t n_losses = live.n_losses;
	s.lost[1][LOSS_COST] = 30000; /* µs, of two seconds of four harts */
	s.lost[3][LOSS_COST] = 10000;
	ask(QUERY_BY_FUNCTION, NULL);
	ck_assert_double_eq_tol(live.seconds, 2, 1e-9);
	ck_assert_double_eq(live.cost_share, 0); /* too short to say */
	ck_assert_uint_eq(live.n_losses, n_losses);
	for (uint32_t i = 0; i < live.n_losses; i++)
		ck_assert_str_ne(live.loss[i].cause, LOSS_CAUSE_COST);
	ck_assert_int_eq(stored_flush(&s, 1000000000, 3000000000), 0);
	stored_seal(&s);
	static const struct query_filter none;
	memset(&stored, 0, sizeof(stored));
	ck_assert_int_eq(stored_hotspots(s.db, "function", &none, &stored), 0);
	ck_assert_double_eq_tol(stored.cost_share, 0.005, 1e-9);
	answers_agree();
}

TEST(another_users_tasks_are_not_seen)
{
	made_session();
	struct query_filter mine = {.only_uid = true, .uid = 1000};
	ask(QUERY_BY_PROCESS, &mine);
	ck_assert_uint_eq(live.n_rows, 1);
	ck_assert_str_eq(stored_text(&live, 0, "comm"), "prog");
	ck_assert_uint_eq(live.samples, 10);
	share_is("prog", "self", 1.0);
	ask(QUERY_BY_FUNCTION, &mine);
	for (size_t i = 0; i < live.n_rows; i++)
		ck_assert_str_ne(stored_text(&live, i, "module"), "/lib/dark.so");
}

TEST(a_user_without_tasks_sees_nothing)
{
	made_session();
	ask(QUERY_BY_THREAD, &(struct query_filter){.only_uid = true, .uid = 4711});
	ck_assert_uint_eq(live.n_rows, 0);
	ck_assert_uint_eq(live.samples, 0);
}

TEST(a_task_of_unknown_owner_is_nobodys)
{
	stored_begin_clock(&s);
	struct task *t = stored_task(&s, 1, 1, "who");
	struct frame *f = stored_function(&s, "/bin/who", "main");
	stored_add(&s, &(struct stored_sample){.task = t, .frame = {f}});
	ask(QUERY_BY_PROCESS, &(struct query_filter){.only_uid = true, .uid = 1000});
	ck_assert_uint_eq(live.n_rows, 0);
}

TEST(a_hidden_kernel_is_one_function)
{
	made_session();
	ask(QUERY_BY_FUNCTION, &(struct query_filter){.hide_kernel = true});
	size_t row = stored_row(&live, "[kernel]");
	ck_assert_str_eq(stored_text(&live, row, "module"), "[kernel]");
	share_is("[kernel]", "self", 20.0 / 140);
	share_is("[kernel]", "total", 20.0 / 140);
	for (size_t i = 0; i < live.n_rows; i++) {
		ck_assert_str_ne(stored_text(&live, i, "function"), "do_fault");
		ck_assert_str_ne(stored_text(&live, i, "function"), "nft_do");
	}
	ask(QUERY_BY_MODULE, &(struct query_filter){.hide_kernel = true});
	for (size_t i = 0; i < live.n_rows; i++)
		ck_assert_str_ne(stored_text(&live, i, "module"), "[nf_tables]");
}

TEST(callers_share_the_functions_total)
{
	made_session();
	ask_callers("hot", NULL);
	ck_assert_uint_eq(live.n_rows, 1);
	share_is("main", "total", 1.0);
	share_is("main", "self", 0.9); /* the rest is below it, in the kernel */
	ask_callers("do_fault", NULL);
	ck_assert_uint_eq(live.n_rows, 2);
	share_is("nft_do", "total", 0.5);
	share_is("[no caller]", "total", 0.5);
	ck_assert(stored_absent(&live, stored_row(&live, "[no caller]"), "module"));
}

TEST(recursion_counts_for_the_outermost_caller)
{
	stored_begin_clock(&s);
	struct task *t = stored_task(&s, 1, 1, "p");
	struct frame *m = stored_function(&s, "/bin/p", "main");
	struct frame *f = stored_function(&s, "/bin/p", "fib");
	stored_add(&s, &(struct stored_sample){
			       .task = t, .weight_ns = 10, .count = 1, .frame = {f, f, f, m}});
	ask_callers("fib", NULL);
	ck_assert_uint_eq(live.n_rows, 1);
	ck_assert_str_eq(stored_text(&live, 0, "function"), "main");
	share_is("main", "total", 1.0);
}

TEST(callers_are_asked_for_in_one_module)
{
	stored_begin_clock(&s);
	struct task *t = stored_task(&s, 1, 1, "p");
	struct frame *m = stored_function(&s, "/bin/p", "main");
	struct frame *a = stored_function(&s, "/lib/a.so", "init");
	struct frame *b = stored_function(&s, "/lib/b.so", "init");
	stored_add(&s, &(struct stored_sample){.task = t, .count = 1, .frame = {a, m}});
	stored_add(&s, &(struct stored_sample){.task = t, .count = 1, .frame = {b}});
	ask_callers("init", "/lib/a.so");
	ck_assert_uint_eq(live.n_rows, 1);
	ck_assert_str_eq(stored_text(&live, 0, "function"), "main");
	ask_callers("init", NULL);
	ck_assert_uint_eq(live.n_rows, 2);
	ask_callers("init", "/lib/c.so");
	ck_assert_uint_eq(live.n_rows, 0);
	ask_callers("", NULL);
	ck_assert_uint_eq(live.n_rows, 0);
}

TEST(an_event_that_is_not_there_is_a_failure)
{
	made_session();
	memset(&live, 0, sizeof(live));
	ck_assert_int_eq(ask_live(QUERY_BY_FUNCTION, &(struct query_filter){.event = "branches"}),
		QUERY_FAILED);
	ck_assert_ptr_nonnull(strstr(live.error.text, "branches"));
}

TEST(a_callback_that_stops_is_obeyed)
{
	made_session();
	memset(&live, 0, sizeof(live));
	live.stop_after = 2;
	ck_assert_int_eq(ask_live(QUERY_BY_FUNCTION, NULL), 77);
	ck_assert_uint_eq(live.n_told, 0);
}

TEST(rows_that_refer_to_nothing_harm_nothing)
{
	made_session();
	for (struct window_row *row = s.window.rows; row; row = row->hh.next) {
		row->key.stack += 1000000;
		row->key.hart = -3;
		row->key.event = -1;
		row->key.rung = 77;
	}
	ask(QUERY_BY_FUNCTION, NULL);
	ask(QUERY_BY_HART, NULL);
	ask_callers("hot", NULL);
	ck_assert_uint_eq(live.n_rows, 0);
}

static int ignore_columns(void *u, const struct answer_column *c, size_t n)
{
	(void)u;
	(void)c;
	(void)n;
	return 0;
}

static int count_row(void *u, const struct answer_value *v, size_t n)
{
	(void)v;
	(void)n;
	++*(size_t *)u;
	return 0;
}

static int ignore_provenance(void *u, const struct answer_provenance *p)
{
	(void)u;
	(void)p;
	return 0;
}

/* A thousand rows of twenty frames each. The bound on time is wide, for loaded machines and
 * sanitizers; what it takes is printed. */
TEST(a_thousand_rows_are_answered_at_once)
{
	stored_begin_clock(&s);
	static const struct query_filter none;
	static struct frame *f[400];
	static char name[400][32];
	for (int i = 0; i < 400; i++) {
		snprintf(name[i], sizeof(name[i]), "function_of_a_name_%d", i);
		f[i] = stored_function(&s, "/bin/prog", name[i]);
	}
	struct task *t = stored_task(&s, 1, 1, "p");
	for (unsigned i = 0; i < 1000; i++) {
		struct frame *stack[20];
		for (unsigned k = 0; k < 20; k++)
			stack[k] = f[k > 10 ? 399 - k : (i * (20 - k) + k * 17) % 380];
		struct attribution a = {.task = t,
			.count = 1,
			.weight_ns = 1000000,
			.hart = (int)(i / 380),
			.frame = stack,
			.n_frames = 20};
		ck_assert_int_eq(window_add(&s.window, &s.stacks, &a), 0);
	}
	struct live l = view();
	size_t n_rows = 0;
	struct answer answer = {ignore_columns, count_row, ignore_provenance, &n_rows};
	struct timespec from, to;
	double least = 1e9;
	for (int i = 0; i < 5; i++) {
		n_rows = 0;
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
		ck_assert_int_eq(
			query_live_hotspots(&l, QUERY_BY_FUNCTION, 0, &none, &answer, &live.error),
			0);
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
		double ms = (double)(to.tv_sec - from.tv_sec) * 1e3 +
			    (double)(to.tv_nsec - from.tv_nsec) / 1e6;
		least = ms < least ? ms : least;
	}
	printf("%u rows, %u stack nodes: %.2f ms\n", s.window.n_rows, s.stacks.n_nodes, least);
	ck_assert_uint_gt(n_rows, 300);
	ck_assert_double_lt(least, 100);
}

TEST(live_answers_count_cut_stacks_as_stored_ones_do)
{
	stored_begin_clock(&s);
	struct task *t = stored_task(&s, 100, 100, "prog");
	struct frame *f = stored_function(&s, "/bin/prog", "f");
	struct frame *start = stored_function(&s, "/lib/libc.so.6", "clone3");
	struct frame *kernel = stored_frame(&s, FILE_KERNEL, "[kernel]", 64);
	stored_name(kernel, "start_thread", NULL);
	stored_add(&s,
		&(struct stored_sample){.task = t, .frame = {f}, .count = 2, .truncated = true});
	stored_add(&s,
		&(struct stored_sample){.task = t, .frame = {kernel, start}, .truncated = true});
	stored_add(&s,
		&(struct stored_sample){.task = t, .frame = {kernel, f, start}, .truncated = true});
	ask(QUERY_BY_FUNCTION, NULL);
	ck_assert_uint_eq(live.n_losses, 1);
	ck_assert_str_eq(live.loss[0].cause, "truncated stack");
	ck_assert_uint_eq(live.loss[0].count, 3);
	ck_assert_uint_eq(live.n_notes, 1);
	ck_assert_str_eq(live.note[0],
		"the stacks of 75.0 % of the samples are cut: callers are missing; code without "
		"frame pointers hides them: use -g tables, or callers = tables in mperf.conf");
}
