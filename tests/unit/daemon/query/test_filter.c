/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* What a query takes in and says of itself: filters, provenance, segments merged,
 * queries stopped. */

#include <unistd.h>

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

TEST(filters_choose_and_shares_are_of_what_is_chosen)
{
	stored_tasks(&s);
	ask("thread", &(struct query_filter){.pid = (int32_t[]){100}, .n_pids = 1});
	ck_assert_uint_eq(a.n_rows, 2);
	share_is("worker", "self", 50 / 60.0);
	ask("thread", &(struct query_filter){.comm = (const char *[]){"worker"}, .n_comms = 1});
	ck_assert_uint_eq(a.n_rows, 1);
	ask("thread", &(struct query_filter){.comm = (const char *[]){"prog"}, .n_comms = 1});
	ck_assert_uint_eq(a.n_rows, 2); /* a process' name means its threads */
	ask("thread", &(struct query_filter){.cpu = (uint32_t[]){1, 2}, .n_cpus = 2});
	ck_assert_uint_eq(a.n_rows, 2);
	ck_assert_uint_eq(a.samples, 2);
	ask("thread", &(struct query_filter){.cgroup = (const char *[]){"/ci/"}, .n_cgroups = 1});
	ck_assert_uint_eq(a.n_rows, 2);
	ask("thread", &(struct query_filter){.cgroup = (const char *[]){"/ci"}, .n_cgroups = 1});
	ck_assert_uint_eq(a.n_rows, 0); /* a path is that path */
	ask("thread",
		&(struct query_filter){.cgroup = (const char *[]){"/cinema", ""}, .n_cgroups = 2});
	ck_assert_uint_eq(a.n_rows, 1);
}

TEST(filter_that_finds_nothing_answers_nothing)
{
	stored_tasks(&s);
	ask("function", &(struct query_filter){.pid = (int32_t[]){4711}, .n_pids = 1});
	ck_assert_uint_eq(a.n_rows, 0);
	ck_assert_uint_eq(a.samples, 0);
	ck_assert_uint_gt(a.n_columns, 0);
	ask("function", &(struct query_filter){.cpu = (uint32_t[]){UINT32_MAX}, .n_cpus = 1});
	ck_assert_uint_eq(a.n_rows, 0);
}

TEST(times_choose_windows_and_their_losses)
{
	stored_begin_clock(&s);
	struct task *t = stored_task(&s, 100, 100, "prog");
	const char *const names[] = {"first", "second", "third"};
	const uint64_t second = 1000000000;
	for (uint64_t i = 0; i < 3; i++) {
		stored_add(&s, &(struct stored_sample){.task = t,
				       .frame = {stored_function(&s, "/bin/prog", names[i])}});
		s.lost[1][LOSS_RING] += i + 1;
		ck_assert_int_eq(stored_flush(&s, i * second, (i + 1) * second), 0);
	}
	stored_seal(&s);
	int64_t base = (int64_t)s.realtime_ns;
	ask("function", &(struct query_filter){
				.since_ns = base + 1000000000, .until_ns = base + 2000000000});
	ck_assert_uint_eq(a.n_rows, 1);
	share_is("second", "self", 1);
	ck_assert_double_eq_tol(a.seconds, 1, 1e-9);
	ck_assert_uint_eq(a.n_losses, 1);
	ck_assert_uint_eq(a.loss[0].count, 2);
	ask("function", &(struct query_filter){.since_ns = base + 1500000000});
	ck_assert_uint_eq(a.n_rows, 2);
	ask("function", &(struct query_filter){.until_ns = 1});
	ck_assert_uint_eq(a.n_rows, 0);
	ask("function", NULL);
	ck_assert_uint_eq(a.loss[0].count, 6);
	ck_assert_double_eq_tol(a.seconds, 3, 1e-9);
	ask("function", &(struct query_filter){.cpu = (uint32_t[]){0}, .n_cpus = 1});
	ck_assert_uint_eq(a.n_losses, 0); /* they were hart 1's */
}

/* Three seconds were recorded; after two of them the clock went back by 30 s. */
TEST(time_asked_for_is_kept_though_the_clock_went_back)
{
	const int64_t second = 1000000000;
	stored_begin_clock(&s);
	struct task *t = stored_task(&s, 100, 100, "prog");
	const char *const names[] = {"first", "second", "third"};
	for (int64_t i = 0; i < 3; i++) {
		s.realtime_ns -= i == 2 ? 30 * (uint64_t)second : 0;
		stored_add(&s, &(struct stored_sample){.task = t,
				       .frame = {stored_function(&s, "/bin/prog", names[i])}});
		ck_assert_int_eq(
			stored_flush(&s, (uint64_t)(i * second), (uint64_t)((i + 1) * second)), 0);
	}
	stored_seal(&s);
	struct query_filter f = {.since_ns = (int64_t)s.realtime_ns + second};
	ask("function", &f);
	ck_assert_uint_eq(a.n_rows, 3); /* by the stamps alone */
	f.since_boot_ns = second;
	strcpy(f.boot_id, STORED_BOOT);
	ask("function", &f);
	ck_assert_uint_eq(a.n_rows, 2);
	ck_assert_double_eq_tol(a.seconds, 2, 1e-9);
	f.boot_id[0] = 'f'; /* another boot's clock says nothing */
	ask("function", &f);
	ck_assert_uint_eq(a.n_rows, 3);
}

/* --- provenance, merging, stopping ------------------------------------------------------------ */

TEST(provenance_says_where_figures_come_from)
{
	stored_folder(&s);
	stored_event(&s, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, "cpu-clock");
	snprintf(s.sampler.plan[3].reason, sizeof(s.sampler.plan[3].reason), "nothing opens");
	stored_begin(&s);
	stored_program(&s);
	s.lost[0][LOSS_RING] = 3;
	stored_seal(&s);
	ask("function", NULL);
	char rung[200];
	snprintf(rung, sizeof(rung), "%s: %s", rung_letter(RUNG_CLOCK), rung_says(RUNG_CLOCK));
	ck_assert_str_eq(a.rung, rung);
	ck_assert_str_eq(a.event, "cpu-clock");
	ck_assert_uint_eq(a.hz, 99);
	ck_assert_uint_eq(a.samples, 10);
	ck_assert_double_eq(a.named_share, 1);
	ck_assert_str_eq(a.loss[0].cause, loss_kinds[LOSS_RING].name);
	ck_assert_uint_eq(a.loss[0].count, 3);
	ck_assert_uint_eq(a.n_notes, 1);
	ck_assert_str_eq(a.note[0], "1 hart without sampling: 3");
}

TEST(unlike_harts_are_told_apart)
{
	stored_folder(&s);
	stored_event(&s, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, "cycles");
	stored_event(&s, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, "cpu-clock");
	for (int i = 0; i < 2; i++)
		s.sampler.plan[i] =
			(struct plan){.rung = RUNG_CYCLES, .leader = s.sampler.events.event[0]};
	s.sampler.plan[2] = s.sampler.plan[3] =
		(struct plan){.rung = RUNG_CLOCK, .leader = s.sampler.events.event[1]};
	stored_begin(&s);
	struct task *t = stored_task(&s, 100, 100, "prog");
	struct frame *f = stored_function(&s, "/bin/prog", "f");
	for (int i = 0; i < 4; i++)
		stored_add(&s, &(struct stored_sample){.task = t,
				       .hart = i,
				       .event = i / 2,
				       .period = 1000,
				       .frame = {f}});
	stored_seal(&s);
	ask("function", NULL);
	ck_assert_uint_eq(a.samples, 4); /* each hart by the event that leads it */
	ck_assert_ptr_nonnull(strstr(a.rung, "(harts 0-1); "));
	ck_assert_ptr_nonnull(strstr(a.rung, "(harts 2-3)"));
	ck_assert_str_eq(a.event, "cycles, cpu-clock");
	share_is("f", "cycles", 2000);
}

TEST(segments_merge_by_content)
{
	stored_begin_clock(&s);
	stored_program(&s);
	stored_seal(&s);
	/* the same names with other ids, and one more */
	stored_begin_clock(&other);
	struct task *t = stored_task(&other, 55, 55, "else");
	struct frame *extra = stored_function(&other, "/bin/else", "extra");
	stored_add(&other, &(struct stored_sample){.task = t, .weight_ns = 100, .frame = {extra}});
	stored_program(&other);
	stored_seal(&other);

	struct answer answer = stored_answer(&a);
	struct query_source two[] = {{.db = s.db}, {.db = other.db}};
	ck_assert_int_eq(query_hotspots(two, 2,
				 &(struct query_question){.by = QUERY_BY_FUNCTION,
					 .filter = &(struct query_filter){0}},
				 &answer, &a.error),
		0);
	ck_assert_uint_eq(a.n_rows, 4);
	share_is("hot", "self", 0.4);
	share_is("hot", "total", 140 / 300.0);
	share_is("main", "total", 200 / 300.0);
	share_is("extra", "self", 100 / 300.0);
	ck_assert_uint_eq(a.samples, 21);
	ck_assert_uint_eq(a.n_notes, 0);

	memset(&a, 0, sizeof(a));
	ck_assert_int_eq(query_hotspots(two, 2,
				 &(struct query_question){.by = QUERY_BY_PROCESS,
					 .filter = &(struct query_filter){0}},
				 &answer, &a.error),
		0);
	ck_assert_uint_eq(a.n_rows, 2); /* (boot, pid, start) is the same process */
	share_is("prog", "samples", 20);
}

TEST(callback_that_has_enough_stops_the_query)
{
	stored_begin_clock(&s);
	stored_program(&s);
	stored_seal(&s);
	a.stop_after = 2;
	ck_assert_int_eq(stored_hotspots(s.db, "function", NULL, &a), 77);
	ck_assert_uint_eq(a.n_rows, 2);
	ck_assert_uint_eq(a.n_told, 0);
}

TEST(empty_segment_answers_no_rows)
{
	stored_begin_clock(&s);
	stored_seal(&s);
	for (int by = 0; by < N_QUERY_BY; by++) {
		ask(query_by_name((enum query_by)by), NULL);
		ck_assert_uint_eq(a.n_rows, 0);
		ck_assert_uint_eq(a.samples, 0);
	}
}
