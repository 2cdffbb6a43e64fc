/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Wall time: each moment is shared among the harts that work in it. */

#include "daemon/query/wall.h"

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

#define PERIOD 1000.0 /* ns */

static struct wall_sample sample[4096];
static size_t n_samples;

/* A hart works from one moment to the other, in whole periods; `row` says what it works on. */
static void work(uint32_t hart, uint32_t row, double from, double to)
{
	for (double t = from + PERIOD; t <= to; t += PERIOD)
		sample[n_samples++] = (struct wall_sample){
			.time_ns = t, .weight_ns = PERIOD, .hart = hart, .row = row};
}

static double wall_of(uint32_t row)
{
	double sum = 0;
	for (size_t i = 0; i < n_samples; i++)
		sum += sample[i].row == row ? sample[i].wall_ns : 0;
	return sum;
}

TEST(alone_a_sample_accounts_for_its_time)
{
	work(0, 1, 0, 10 * PERIOD);
	ck_assert_int_eq(wall_share(sample, n_samples), 0);
	ck_assert_double_eq_tol(wall_of(1), 10 * PERIOD, 1e-6);
	for (size_t i = 0; i < n_samples; i++)
		ck_assert_uint_eq(sample[i].harts, 1);
}

TEST(harts_that_work_at_once_share_the_time)
{
	work(0, 1, 0, 100 * PERIOD);
	work(1, 2, 0.3 * PERIOD, 100.3 * PERIOD);
	work(7, 3, 50.5 * PERIOD, 100.5 * PERIOD);
	ck_assert_int_eq(wall_share(sample, n_samples), 0);
	/* the time in which at least one of them worked */
	ck_assert_double_eq_tol(wall_of(1) + wall_of(2) + wall_of(3), 100.5 * PERIOD, 1e-6);
	ck_assert_double_eq_tol(wall_of(1), (0.3 + 50.2 / 2 + 49.5 / 3) * PERIOD, 1e-6);
	ck_assert_double_eq_tol(wall_of(3), (49.5 / 3 + 0.3 / 2 + 0.2) * PERIOD, 1e-6);
}

TEST(code_that_runs_alone_weighs_more)
{
	work(0, 1, 0, 60 * PERIOD); /* link, alone */
	for (uint32_t hart = 0; hart < 4; hart++)
		work(hart, 2, 60 * PERIOD, 100 * PERIOD);
	ck_assert_int_eq(wall_share(sample, n_samples), 0);
	ck_assert_double_eq_tol(wall_of(1), 60 * PERIOD, 1e-6);
	ck_assert_double_eq_tol(wall_of(2), 40 * PERIOD, 1e-6);
	for (size_t i = 0; i < n_samples; i++)
		ck_assert_uint_eq(sample[i].harts, sample[i].row == 1 ? 1 : 4);
}

TEST(threads_that_share_a_hart_are_one_hart)
{
	/* two threads take turns: each is sampled by its own clock, at every second period */
	for (int i = 0; i < 100; i++) {
		sample[n_samples++] = (struct wall_sample){
			.time_ns = (2 * i + 1) * PERIOD, .weight_ns = PERIOD, .row = 1};
		sample[n_samples++] = (struct wall_sample){
			.time_ns = (2 * i + 1.5) * PERIOD, .weight_ns = PERIOD, .row = 2};
	}
	ck_assert_int_eq(wall_share(sample, n_samples), 0);
	ck_assert_double_eq_tol(wall_of(1) + wall_of(2), 199.5 * PERIOD, 0.6 * PERIOD);
	for (size_t i = 0; i < n_samples; i++)
		ck_assert_uint_eq(sample[i].harts, 1);
}

TEST(gaps_are_nobodys)
{
	work(0, 1, 0, 10 * PERIOD);
	work(1, 1, 500 * PERIOD, 510 * PERIOD);
	ck_assert_int_eq(wall_share(sample, n_samples), 0);
	ck_assert_double_eq_tol(wall_of(1), 20 * PERIOD, 1e-6);
}

TEST(nothing_and_samples_without_weight_are_taken)
{
	ck_assert_int_eq(wall_share(sample, 0), 0);
	for (uint32_t i = 0; i < 10; i++)
		sample[i] = (struct wall_sample){.time_ns = 5, .hart = i % 2, .wall_ns = 77};
	ck_assert_int_eq(wall_share(sample, 10), 0);
	for (uint32_t i = 0; i < 10; i++) {
		ck_assert_double_eq(sample[i].wall_ns, 0);
		ck_assert_uint_eq(sample[i].harts, 1);
	}
}

TEST(without_times_there_are_bounds)
{
	struct wall_bounds b = wall_guess((double[]){60, 0, 50}, 3, 100);
	ck_assert_double_eq_tol(b.least_ns, 60, 1e-9);
	ck_assert_double_eq_tol(b.most_ns, 100, 1e-9);
	ck_assert_double_eq_tol(b.likely_ns, 80, 1e-9);
	b = wall_guess((double[]){30}, 1, 100); /* one hart leaves no doubt */
	ck_assert_double_eq_tol(b.least_ns, 30, 1e-9);
	ck_assert_double_eq_tol(b.likely_ns, 30, 1e-9);
	b = wall_guess((double[]){130, -5, 100}, 3, 100); /* nor do busy ones */
	ck_assert_double_eq_tol(b.least_ns, 100, 1e-9);
	ck_assert_double_eq_tol(b.likely_ns, 100, 1e-9);
	b = wall_guess((double[]){130}, 1, 0);
	ck_assert_double_eq(b.likely_ns, 0);
}

/* --- of a segment ----------------------------------------------------------------------------- */

static struct task *task_in(int hart, const char *comm)
{
	return stored_task(&s, 100 + hart, 100 + hart, comm);
}

/* A sample each ms from one moment to the other. */
static void run(struct task *t, int hart, struct frame *f, uint64_t from_ms, uint64_t to_ms)
{
	for (uint64_t ms = from_ms + 1; ms <= to_ms; ms++)
		stored_add(&s, &(struct stored_sample){.task = t,
				       .hart = hart,
				       .time_ns = ms * MS,
				       .weight_ns = MS,
				       .frame = {f}});
}

/* Half a second of one hart and a second of two; in windows of 500 ms. */
static void two_tasks(bool keeps_moments)
{
	stored_begin_clock(&s);
	s.window.keeps_moments = keeps_moments;
	struct task *one = task_in(0, "one"), *two = task_in(1, "two");
	struct frame *f = stored_function(&s, "/bin/one", "f");
	struct frame *g = stored_function(&s, "/bin/two", "g");
	run(one, 0, f, 0, 500);
	ck_assert_int_eq(stored_flush(&s, 0, 500 * MS), 0);
	s.window.keeps_moments = keeps_moments;
	run(one, 0, f, 500, 1000);
	run(two, 1, g, 500, 1000);
	ck_assert_int_eq(stored_flush(&s, 500 * MS, 1000 * MS), 0);
	s.window.keeps_moments = keeps_moments;
	run(one, 0, f, 1000, 1500);
	run(two, 1, g, 1000, 1500);
	ck_assert_int_eq(stored_flush(&s, 1000 * MS, 1500 * MS), 0);
	stored_seal(&s);
}

static void ask(const char *by, struct query_filter filter)
{
	memset(&a, 0, sizeof(a));
	filter.wall = true;
	int r = stored_hotspots(s.db, by, &filter, &a);
	ck_assert_msg(r == 0, "%d: %s", r, a.error.text);
}

static double ms_of(const char *row, const char *column)
{
	return stored_real(&a, stored_row(&a, row), column) / MS;
}

TEST(rows_of_a_segment_have_wall_time)
{
	two_tasks(true);
	ask("function", (struct query_filter){0});
	ck_assert_double_eq_tol(ms_of("f", "wall_ns"), 1000, 3);
	ck_assert_double_eq_tol(ms_of("g", "wall_ns"), 500, 3);
	ck_assert_double_eq_tol(ms_of("f", "self_ns"), 1500, 0.1);
	ck_assert_double_eq_tol(stored_real(&a, stored_row(&a, "g"), "parallelism"), 2, 0.02);
	ck_assert_double_eq_tol(stored_real(&a, stored_row(&a, "f"), "self"), 2 / 3.0, 0.002);
	ck_assert_double_eq_tol(a.wall.busy, 1.5, 0.003);
	ck_assert_double_eq(a.wall.least, a.wall.busy);
	ck_assert_double_eq(a.wall.most, a.wall.busy);
	ck_assert_double_eq_tol(a.wall.cpu, 2.5, 1e-6);
	ck_assert_uint_eq(a.samples, 2500);
}

TEST(rows_by_parallelism_are_of_the_moments)
{
	two_tasks(true);
	ask("parallelism", (struct query_filter){0});
	ck_assert_uint_eq(a.n_rows, 2);
	ck_assert_double_eq(stored_real(&a, 0, "harts"), 2); /* the larger one */
	ck_assert_double_eq_tol(stored_real(&a, 0, "wall_ns") / MS, 1000, 3);
	ck_assert_double_eq_tol(stored_real(&a, 0, "self_ns") / MS, 2000, 3);
	ck_assert_double_eq(stored_real(&a, 1, "harts"), 1);
	ck_assert_double_eq_tol(stored_real(&a, 1, "wall_ns") / MS, 500, 3);
}

TEST(names_show_a_part_and_leave_the_rest_at_work)
{
	two_tasks(true);
	ask("function", (struct query_filter){.comm = (const char *[]){"two"}, .n_comms = 1});
	ck_assert_uint_eq(a.n_rows, 1);
	ck_assert_double_eq_tol(ms_of("g", "wall_ns"), 500, 3);
	ck_assert_double_eq_tol(a.wall.busy, 1.5, 0.003);
	ask("function", (struct query_filter){.cpu = (uint32_t[]){0}, .n_cpus = 1});
	ck_assert_double_eq_tol(ms_of("f", "wall_ns"), 1000, 3);
}

TEST(windows_without_times_are_guessed_between_bounds)
{
	two_tasks(false);
	ask("function", (struct query_filter){0});
	/* each hart worked all the time of its windows: there is no doubt */
	ck_assert_double_eq_tol(ms_of("f", "wall_ns"), 1000, 0.1);
	ck_assert_double_eq_tol(ms_of("g", "wall_ns"), 500, 0.1);
	ck_assert_double_eq_tol(a.wall.least, 1.5, 1e-6);
	ck_assert_double_eq_tol(a.wall.most, 1.5, 1e-6);
}

TEST(half_windows_without_times_say_how_much_is_unknown)
{
	stored_begin_clock(&s);
	run(task_in(0, "one"), 0, stored_function(&s, "/bin/one", "f"), 0, 500);
	run(task_in(1, "two"), 1, stored_function(&s, "/bin/two", "g"), 500, 1000);
	ck_assert_int_eq(stored_flush(&s, 0, 1000 * MS), 0);
	stored_seal(&s);
	ask("function", (struct query_filter){0});
	ck_assert_double_eq_tol(a.wall.least, 0.5, 1e-6);
	ck_assert_double_eq_tol(a.wall.busy, 0.75, 1e-6);
	ck_assert_double_eq_tol(a.wall.most, 1, 1e-6);
	ck_assert_double_eq_tol(ms_of("f", "wall_ns"), 375, 0.1);
}

TEST(samples_that_came_late_have_their_windows_part)
{
	stored_begin_clock(&s);
	s.window.keeps_moments = true;
	struct task *one = task_in(0, "one"), *two = task_in(1, "two");
	struct frame *f = stored_function(&s, "/bin/one", "f");
	run(one, 0, f, 1000, 1500);
	run(two, 1, stored_function(&s, "/bin/two", "g"), 1000, 1500);
	run(one, 0, stored_function(&s, "/bin/one", "late"), 990, 1000);
	ck_assert_int_eq(stored_flush(&s, 1000 * MS, 1500 * MS), 0);
	stored_seal(&s);
	ask("function", (struct query_filter){0});
	ck_assert_double_eq_tol(ms_of("late", "wall_ns"), 5, 0.6);
	ck_assert_uint_eq(a.samples, 1010);
}

TEST(events_that_stand_for_occurrences_have_no_wall_time)
{
	stored_folder(&s);
	stored_event(&s, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, "page-faults");
	s.sampler.options.period = 100;
	stored_begin(&s);
	stored_add(&s, &(struct stored_sample){.task = task_in(0, "one"),
			       .frame = {stored_function(&s, "/bin/one", "f")}});
	stored_seal(&s);
	struct query_filter filter = {.wall = true};
	ck_assert_int_eq(stored_hotspots(s.db, "function", &filter, &a), QUERY_FAILED);
	ck_assert_ptr_nonnull(strstr(a.error.text, "stand for occurrences"));
}

TEST(flame_graphs_have_wall_time)
{
	two_tasks(true);
	ck_assert_int_eq(stored_flamegraph(s.db, &(struct query_filter){.wall = true}, &a), 0);
	double sum = 0;
	for (size_t i = 0; i < a.n_rows; i++)
		sum += stored_real(&a, i, "value") / MS;
	ck_assert_double_eq_tol(sum, 1500, 3);
}

/* Half of a row's samples have company. */
TEST(parts_of_a_row_have_its_counts_once)
{
	stored_begin_group(&s);
	s.window.keeps_moments = true;
	struct task *one = task_in(0, "one"), *two = task_in(1, "two");
	struct frame *f = stored_function(&s, "/bin/one", "f");
	struct frame *g = stored_function(&s, "/bin/two", "g");
	for (uint64_t ms = 1; ms <= 100; ms++)
		stored_add(&s, &(struct stored_sample){.task = one,
				       .time_ns = ms * MS,
				       .weight_ns = MS,
				       .truncated = true,
				       .frame = {f},
				       .n_reads = 1,
				       .read = {{1, 1000, 1000, 1000}}});
	run(two, 1, g, 50, 100);
	ck_assert_int_eq(stored_flush(&s, 0, 100 * MS), 0);
	stored_seal(&s);
	ask("function", (struct query_filter){0});
	ck_assert_double_eq_tol(stored_real(&a, stored_row(&a, "f"), "cycles"), 100000, 1);
	ask("parallelism", (struct query_filter){.comm = (const char *[]){"one"}, .n_comms = 1});
	ck_assert_uint_eq(a.n_rows, 2);
	for (size_t i = 0; i < 2; i++)
		ck_assert_double_eq_tol(stored_real(&a, i, "cycles"), 50000, 1500);
}

TEST(absurd_weights_have_a_number_of_harts)
{
	ck_assert_uint_eq(wall_harts(1e-19), HARTS_MAX);
	ck_assert_uint_eq(wall_harts(0), 1);
	ck_assert_uint_eq(wall_harts(3), 1);
	ck_assert_uint_eq(wall_harts(0.26), 4);
	/* at an uptime at which a double has no nanoseconds */
	const double weight[] = {318, 0, 126};
	double sum = 0;
	for (int i = 0; i < 3; i++)
		sample[i] = (struct wall_sample){
			.time_ns = 3e16 + 318.0 + 63.0 * i, .weight_ns = weight[i]};
	ck_assert_int_eq(wall_share(sample, 3), 0);
	for (int i = 0; i < 3; i++) {
		ck_assert_double_ge(sample[i].wall_ns, 0);
		sum += sample[i].wall_ns;
	}
	ck_assert_double_le(sum, 444 + 16);
}
