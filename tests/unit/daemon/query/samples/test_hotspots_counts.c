/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Hotspots: counts beside the shares, of sessions made by hand. */

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

TEST(ipc_is_of_scaled_counts)
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

/* f has more samples, g more page faults; both had the hart as long. */
static void begin_by_occurrences(uint64_t period)
{
	stored_folder(&s);
	stored_event(&s, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, "page-faults");
	stored_event(&s, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, "cpu-clock");
	s.sampler.options.period = period;
	stored_begin(&s);
	struct task *t = stored_task(&s, 100, 100, "prog");
	struct frame *f = stored_function(&s, "/bin/prog", "f");
	struct frame *g = stored_function(&s, "/bin/prog", "g");
	stored_add(
		&s, &(struct stored_sample){
			    .task = t, .frame = {f}, .count = 4, .weight_ns = 10, .period = 400});
	stored_add(
		&s, &(struct stored_sample){
			    .task = t, .frame = {g}, .count = 1, .weight_ns = 10, .period = 1200});
	stored_add(
		&s, &(struct stored_sample){
			    .task = t, .event = 1, .frame = {f}, .weight_ns = 777, .period = 777});
	stored_seal(&s);
}

TEST(samples_by_occurrences_are_shown_as_these)
{
	begin_by_occurrences(100);
	ck_assert_int_eq(stored_number(s.db, "SELECT value FROM meta WHERE key = 'period:1'"), 100);
	ck_assert_int_eq(
		stored_number(s.db, "SELECT count(*) FROM meta WHERE key LIKE 'period:%'"), 1);
	ask("function", NULL);
	share_is("f", "self", 0.25);
	share_is("g", "self", 0.75);
	share_is("f", "count", 400);
	share_is("g", "count", 1200);
	ck_assert_str_eq(a.event, "page-faults");
	ck_assert_uint_eq(a.period, 100);
	/* the clock has time, by which it fires */
	ask("function", &(struct query_filter){.event = (char *)"cpu-clock"});
	share_is("f", "self_ns", 777);
	ck_assert_int_eq(stored_column(&a, "count"), -1);
	ck_assert_uint_eq(a.period, 0);
}

TEST(samples_by_time_are_shown_as_time)
{
	begin_by_occurrences(0);
	ask("function", NULL);
	share_is("f", "self", 0.5);
	ck_assert_int_eq(stored_column(&a, "count"), -1);
	ck_assert_uint_eq(a.period, 0);
}

static bool noted(const char *text)
{
	for (uint32_t i = 0; i < a.n_notes; i++)
		if (strstr(a.note[i], text))
			return true;
	return false;
}

/* A second that cycles counted for a half, n throttles, and seconds with few samples. */
static void short_of(uint64_t n_throttles, uint64_t n_sparse)
{
	stored_begin_group(&s);
	struct task *t = stored_task(&s, 100, 100, "prog");
	stored_add(&s, &(struct stored_sample){.task = t,
			       .frame = {stored_function(&s, "/bin/prog", "f")},
			       .n_reads = 1,
			       .read = {{1, 500, SECOND, SECOND / 2}}});
	s.lost[0][LOSS_THROTTLE] = n_throttles;
	s.lost[0][LOSS_SPARSE] = n_sparse;
	stored_seal(&s);
	ask("function", NULL);
}

TEST(counters_that_others_use_are_told_from_throttled_ones)
{
	short_of(0, 0);
	ck_assert(noted("scaled: counters are shared and counted 50 % of the time"));
	ck_assert(!noted("throttle"));
	ck_assert(!noted("busy second"));
	end();
	short_of(24, 0); /* of at most 10 ms each, in two counts: 480 ms of the 500 */
	ck_assert(noted("scaled: counters are shared and throttled, and counted 50 %"));
	end();
	short_of(25, 0);
	ck_assert(noted("scaled: counters are throttled, or shared, and counted 50 %"));
}

TEST(why_samples_are_few_is_said)
{
	short_of(0, 1);
	ck_assert(noted("1 busy second gave less than a tenth of the expected samples: the kernel "
			"did not throttle sampling, but other programs use the counters"));
	end();
	short_of(7, 3);
	ck_assert(noted("3 busy seconds gave less than a tenth of the expected samples: the "
			"kernel throttled sampling 7 times"));
}

/* f is counted in three of four samples, g in none, h in its only one; switches are counted on hart
 * 0. */
static void made_uncut(void)
{
	stored_folder(&s);
	stored_event(&s, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, "cpu-clock");
	stored_event(&s, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, "cycles");
	stored_event(&s, PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, "instructions");
	stored_uncut(&s, 0);
	stored_begin(&s);
	struct task *t = stored_task(&s, 100, 100, "prog");
	struct frame *f = stored_function(&s, "/bin/prog", "f");
	struct frame *g = stored_function(&s, "/bin/prog", "g");
	struct frame *h = stored_function(&s, "/bin/prog", "h");
	stored_add(&s, &(struct stored_sample){.task = t,
			       .count = 4,
			       .weight_ns = 40,
			       .uncounted = 1,
			       .frame = {f},
			       .n_reads = 2,
			       .read = {{1, 300, 30, 30}, {2, 600, 30, 30}}});
	stored_add(
		&s, &(struct stored_sample){
			    .task = t, .count = 2, .weight_ns = 20, .uncounted = 2, .frame = {g}});
	stored_add(&s, &(struct stored_sample){.task = t,
			       .hart = 1,
			       .weight_ns = 10,
			       .frame = {h},
			       .n_reads = 2,
			       .read = {{1, 100, 10, 10}, {2, 10, 10, 10}}});
	stored_seal(&s);
}

TEST(rows_say_which_part_of_their_samples_has_counts)
{
	made_uncut();
	ask("function", NULL);
	share_is("f", "counted", 0.75);
	share_is("f", "cycles", 300); /* as counted, not scaled up */
	share_is("f", "ipc", 2);
	share_is("f", "self", 4.0 / 7);
	share_is("g", "counted", 0);
	share_is("h", "counted", 1);
	ck_assert_int_eq(a.cell[stored_row(&a, "g")][stored_column(&a, "ipc")].kind, ANSWER_ABSENT);
	ck_assert_str_eq(a.switches, "counted");
	ck_assert_uint_eq(a.n_notes, 1);
	ck_assert_ptr_nonnull(strstr(a.note[0], "counts cover 57 % of the samples"));
	ask("process", NULL);
	share_is("prog", "counted", 4.0 / 7);
	share_is("prog", "cycles", 400);
}

TEST(shares_of_an_event_count_the_samples_that_have_none_of_it)
{
	static const struct query_filter filter = {.event = "instructions"};
	made_uncut();
	ask("function", &filter);
	share_is("f", "self", 600.0 / 610);
	share_is("f", "counted", 0.75);
	share_is("g", "self", 0);
	share_is("g", "samples", 2);
	share_is("g", "counted", 0);
	ask("process", &filter);
	share_is("prog", "counted", 4.0 / 7);
}

TEST(a_leader_without_counts_of_its_group_has_none_of_its_own)
{
	stored_folder(&s);
	stored_event(&s, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, "cycles");
	stored_event(&s, PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, "instructions");
	stored_uncut(&s, 0);
	stored_begin(&s);
	struct task *t = stored_task(&s, 100, 100, "prog");
	struct frame *f = stored_function(&s, "/bin/prog", "f");
	struct frame *g = stored_function(&s, "/bin/prog", "g");
	stored_add(&s, &(struct stored_sample){.task = t,
			       .period = 1000,
			       .frame = {f},
			       .n_reads = 2,
			       .read = {{0, 1000, 10, 10}, {1, 2000, 10, 10}}});
	stored_add(&s,
		&(struct stored_sample){.task = t, .period = 1000, .uncounted = 1, .frame = {g}});
	stored_seal(&s);
	ask("process", NULL);
	share_is("prog", "ipc", 2);
	share_is("prog", "counted", 0.5);
}

TEST(counts_of_no_sample_are_absent_and_the_answer_says_so)
{
	stored_folder(&s);
	stored_event(&s, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, "cpu-clock");
	stored_event(&s, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, "cycles");
	stored_uncut(&s, 0);
	stored_begin(&s);
	struct task *t = stored_task(&s, 100, 100, "prog");
	struct frame *f = stored_function(&s, "/bin/prog", "f");
	stored_add(&s, &(struct stored_sample){.task = t, .uncounted = 1, .frame = {f}});
	stored_seal(&s);
	ask("function", NULL);
	share_is("f", "self", 1);
	ck_assert_int_lt(stored_column(&a, "cycles"), 0);
	ck_assert_uint_eq(a.n_notes, 1);
	ck_assert_ptr_nonnull(strstr(a.note[0], "counts cover none of the samples"));
}

TEST(rows_that_all_have_counts_say_nothing_of_it)
{
	static const uint32_t hart_1 = 1;
	static const struct query_filter filter = {.cpu = &hart_1, .n_cpus = 1};
	made_uncut();
	ask("function", &filter);
	ck_assert_int_lt(stored_column(&a, "counted"), 0);
	ck_assert_uint_eq(a.n_notes, 0);
}

TEST(counts_of_as_good_as_all_the_time_are_not_called_scaled)
{
	static const struct {
		uint64_t ran;
		const char *says;
	} cases[] = {{10000, NULL}, {9960, NULL}, {9940, " 99 % "}, {30, "less than 1 % "}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		stored_begin_group(&s);
		struct task *t = stored_task(&s, 100, 100, "prog");
		stored_add(&s, &(struct stored_sample){.task = t,
				       .frame = {stored_function(&s, "/bin/prog", "f")},
				       .n_reads = 1,
				       .read = {{1, 500, 10000, cases[i].ran}}});
		stored_seal(&s);
		ask("function", NULL);
		ck_assert_uint_eq(a.n_notes, cases[i].says ? 1 : 0);
		if (cases[i].says)
			ck_assert_ptr_nonnull(strstr(a.note[0], cases[i].says));
		stored_end(&s);
		memset(&s, 0, sizeof(s));
	}
}

TEST(counter_that_never_ran_is_absent)
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

TEST(event_shares_are_of_its_values)
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

TEST(event_that_was_not_counted_is_named)
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

/* The rate of the segment is 99 Hz. */
TEST(far_more_samples_than_the_rate_are_its_label, .times = 4)
{
	static const struct {
		uint64_t n_samples, ms;
		uint32_t hz;
	} held[] = {{963, 1000, 963}, {140, 1000, 99}, {99, 100, 99}, {3000, 20000, 150}};
	stored_begin_clock(&s);
	struct task *t = stored_task(&s, 100, 100, "prog");
	struct frame *f = stored_function(&s, "/bin/prog", "f");
	for (int hart = 0; hart < 2; hart++)
		stored_add(&s, &(struct stored_sample){.task = t,
				       .hart = hart,
				       .count = hart ? held[_i].n_samples : 50,
				       .weight_ns = 10,
				       .frame = {f}});
	ck_assert_int_eq(stored_flush(&s, 0, held[_i].ms * 1000000), 0);
	stored_seal(&s);
	ask("function", NULL);
	ck_assert_uint_eq(a.hz, held[_i].hz);
}

TEST(second_sampling_event_is_not_added_to_the_first)
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

TEST(ipc_that_mixes_modes_says_so)
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
