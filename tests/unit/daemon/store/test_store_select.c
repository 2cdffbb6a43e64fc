/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Selection, on stores that are made up. Times are minutes after a Monday midnight; an answer is
 * written "hour:60-120 window:120-130", by tier and stretch.
 */

#include "daemon/store/store_private.h"
#include "proto/base/memory.h"
#include "tests/unit/test.h"

#define MINUTE (60 * 1000000000ll)
#define MONDAY 1794787200000000000ll
#define AT(minutes) (MONDAY + (minutes) * MINUTE)
#define IN_ALL (1u << TIER_MINUTE | 1u << TIER_HOUR)

static struct store s;

static void end(void)
{
	free(s.file);
	s = (struct store){0};
}

EACH_TEST(.end = end);

static struct store_file *add(enum tier tier, int from, int to)
{
	struct store_file f = {.tier = tier, .start_ns = AT(from), .end_ns = AT(to)};
	size_t at;
	f.sealed = true;
	f.rolled = tier == TIER_WINDOW ? IN_ALL : 0;
	store_name(f.name, tier, f.start_ns, "abcdef01", (unsigned)s.n_files + 1);
	ck_assert_int_eq(store_enter(&s, &f, &at), 0);
	return &s.file[at];
}

/* Hours of windows from one minute to another. */
static void add_windows(int from, int to)
{
	for (; from < to; from += 60)
		add(TIER_WINDOW, from, from + 60);
}

static int by_time(const void *a, const void *b)
{
	const struct store_part *x = a, *y = b;
	return x->since_ns != y->since_ns ? (x->since_ns < y->since_ns ? -1 : 1)
					  : strcmp(x->file->name, y->file->name);
}

static const char *minutes(int64_t ns)
{
	static char text[4][32];
	static int n;
	char *t = text[n++ % 4];
	if (ns == INT64_MAX)
		return "...";
	snprintf(t, sizeof(text[0]), (ns - MONDAY) % MINUTE ? "%.1f" : "%.0f",
		(double)(ns - MONDAY) / (double)MINUTE);
	return t;
}

static const char *selected_ns(int64_t since_ns, int64_t until_ns, enum tier coarsest)
{
	static char text[1024];
	size_t n = 0, n_parts = 0;
	struct store_part *part = NULL;
	ck_assert_int_eq(store_select(&s, since_ns, until_ns, coarsest, &part, &n_parts), 0);
	if (n_parts > 0)
		qsort(part, n_parts, sizeof(*part), by_time);
	*text = '\0';
	for (size_t i = 0; i < n_parts; i++) {
		const struct store_part *p = &part[i];
		ck_assert_int_lt(p->since_ns, p->until_ns);
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s:%s-%s", n ? " " : "",
			tier_name(p->file->tier), minutes(p->since_ns), minutes(p->until_ns));
	}
	free(part);
	return text;
}

static const char *selected(double since, double until, enum tier coarsest)
{
	return selected_ns(
		MONDAY + (int64_t)(since * MINUTE), MONDAY + (int64_t)(until * MINUTE), coarsest);
}

TEST(store_without_files_answers_nothing)
{
	ck_assert_str_eq(selected_ns(0, 0, TIER_HOUR), "");
}

TEST(windows_answer_where_nothing_coarser_is_wanted)
{
	add_windows(0, 180);
	add(TIER_MINUTE, 0, 180);
	ck_assert_str_eq(selected(30, 90, TIER_WINDOW), "window:30-60 window:60-90");
	ck_assert_str_eq(selected(30, 60, TIER_WINDOW), "window:30-60");
}

/* mperfd ran from 0:28 to 0:29: the row of the first hour is as long as that. */
TEST(the_last_row_of_an_hour_that_was_sampled_in_part_counts_once)
{
	add(TIER_WINDOW, 28, 29);
	add(TIER_MINUTE, 28, 29);
	add(TIER_HOUR, 0, 1);
	ck_assert_str_eq(selected(0, 120, TIER_HOUR), "hour:0-60");
	ck_assert_str_eq(selected_ns(0, 0, TIER_HOUR), "hour:0-60");
}

/* It was started again at 0:40: files of two boots have rows of the same hour. */
TEST(rows_of_two_boots_in_one_hour_all_count)
{
	add(TIER_WINDOW, 28, 29);
	add(TIER_HOUR, 0, 1);
	add(TIER_WINDOW, 40, 50);
	add(TIER_HOUR, 0, 10);
	ck_assert_str_eq(selected(0, 120, TIER_HOUR), "hour:0-60 hour:0-60");
}

/* … and is not summed up yet since then. */
TEST(a_boot_that_is_not_summed_up_takes_no_row_of_the_one_before)
{
	add(TIER_WINDOW, 28, 29);
	add(TIER_MINUTE, 28, 29);
	add(TIER_HOUR, 0, 1);
	add(TIER_WINDOW, 40, 50)->rolled = 0;
	ck_assert_str_eq(selected(0, 120, TIER_HOUR), "minute:28-29 window:40-50");
}

TEST(finest_first_takes_each_moment_from_the_finest_file_that_has_it)
{
	add_windows(120, 180);
	add(TIER_MINUTE, 60, 180);
	add(TIER_HOUR, 0, 180);
	ck_assert_str_eq(
		selected_ns(0, 0, STORE_FINEST_FIRST), "hour:0-60 minute:60-120 window:120-180");
	ck_assert_str_eq(selected(90, 150, STORE_FINEST_FIRST), "minute:90-120 window:120-150");
}

TEST(edges_come_from_the_next_finer_tier)
{
	add_windows(0, 300);
	add(TIER_MINUTE, 0, 300);
	add(TIER_HOUR, 0, 300);
	ck_assert_str_eq(selected(30.5, 190.25, TIER_HOUR),
		"window:30.5-31 minute:31-60 hour:60-180 minute:180-190 window:190-190.2");
	ck_assert_str_eq(selected(60, 180, TIER_HOUR), "hour:60-180");
	ck_assert_str_eq(selected(30, 190, TIER_MINUTE), "minute:30-190");
	ck_assert_str_eq(selected(30.2, 30.4, TIER_HOUR), "window:30.2-30.4");
}

TEST(all_of_time_is_what_there_is)
{
	add_windows(0, 120);
	add(TIER_MINUTE, 0, 120);
	ck_assert_str_eq(selected_ns(0, 0, TIER_HOUR), "minute:0-120");
	ck_assert_str_eq(selected_ns(AT(30), 0, TIER_MINUTE), "minute:30-120");
	ck_assert_str_eq(selected_ns(-5, -5, TIER_MINUTE), "minute:0-120");
}

TEST(window_file_that_is_not_rolled_up_answers_itself)
{
	add_windows(0, 120);
	add(TIER_MINUTE, 0, 120);
	struct store_file *live = add(TIER_WINDOW, 120, 0);
	live->rolled = 0;
	live->end_ns = 0;
	live->sealed = false;
	ck_assert_str_eq(selected_ns(AT(60), 0, TIER_HOUR), "minute:60-120 window:120-...");
}

TEST(a_segment_that_ends_early_in_a_minute_is_not_counted_twice)
{
	/* from 61.2 to 61.3; its row of the minute says 61 to 61.1. The next one lives since 61.3. */
	struct store_file *f = add(TIER_WINDOW, 61, 61);
	f->start_ns = AT(61) + MINUTE / 5;
	f->end_ns = AT(61) + MINUTE * 3 / 10;
	f = add(TIER_MINUTE, 61, 61);
	f->end_ns = AT(61) + MINUTE / 10;
	f->sealed = false;
	f = add(TIER_WINDOW, 61, 0);
	f->start_ns = AT(61) + MINUTE * 3 / 10;
	f->end_ns = 0;
	f->sealed = false;
	f->rolled = 0;
	ck_assert_str_eq(selected_ns(AT(10), 0, TIER_MINUTE), "window:61.2-61.3 window:61.3-...");
	ck_assert_str_eq(selected_ns(0, 0, TIER_MINUTE), "window:61.2-61.3 window:61.3-...");
}

TEST(border_within_a_minute_counts_nothing_twice)
{
	/* the daemon was restarted at 61.5: of minute 61 the first half is rolled up */
	add(TIER_WINDOW, 0, 60);
	struct store_file *f = add(TIER_WINDOW, 60, 61);
	f->end_ns = AT(61) + MINUTE / 2;
	add(TIER_MINUTE, 0, 61)->end_ns = AT(61) + MINUTE / 2;
	f = add(TIER_WINDOW, 61, 120);
	f->start_ns = AT(61) + MINUTE / 2;
	f->rolled = 0;
	ck_assert_str_eq(
		selected(0, 120, TIER_MINUTE), "minute:0-61 window:61-61.5 window:61.5-120");
	/* its name has the second before, which the other one still had */
	f->start_ns -= MINUTE / 120;
	ck_assert_str_eq(
		selected(0, 120, TIER_MINUTE), "minute:0-61 window:61-61.5 window:61.5-120");
}

TEST(window_file_that_was_left_out_makes_a_hole)
{
	add_windows(0, 60);
	add(TIER_WINDOW, 60, 120)->rolled = 0;
	add_windows(120, 180);
	add(TIER_MINUTE, 0, 180);
	add(TIER_HOUR, 0, 180);
	ck_assert_str_eq(selected(0, 180, TIER_HOUR), "hour:0-60 window:60-120 hour:120-180");
	ck_assert_str_eq(selected(0, 180, TIER_MINUTE), "minute:0-60 window:60-120 minute:120-180");
}

TEST(tier_that_lags_is_made_up_for_by_the_finer_one)
{
	add_windows(0, 60);
	add(TIER_WINDOW, 60, 120)->rolled = 1u << TIER_MINUTE;
	add(TIER_MINUTE, 0, 120);
	add(TIER_HOUR, 0, 60);
	ck_assert_str_eq(selected(0, 120, TIER_HOUR), "hour:0-60 minute:60-120");
}

TEST(windows_that_are_gone_leave_whole_rows_at_the_edges)
{
	add(TIER_MINUTE, 0, 300);
	add(TIER_HOUR, 0, 300);
	ck_assert_str_eq(selected(30.5, 190.25, TIER_HOUR),
		"minute:30-31 minute:31-60 hour:60-180 minute:180-190 minute:190-190.2");
	s.file[0].corrupt = true; /* the minutes */
	ck_assert_str_eq(selected(30.5, 190.25, TIER_HOUR), "hour:0-60 hour:60-180 hour:180-190.2");
}

TEST(row_of_which_part_was_given_away_is_not_given_again)
{
	/* of minute 30 the windows have the second half alone */
	add(TIER_WINDOW, 31, 60)->start_ns = AT(30) + MINUTE / 2;
	add(TIER_MINUTE, 0, 60);
	s.file[0].rolled = 0;
	/* that half is in no row */
	ck_assert_str_eq(selected(0, 60, TIER_MINUTE), "minute:0-30 minute:30-30.5 window:30.5-60");
	/* it is in the row, which would have to be halved */
	s.file[0].rolled = IN_ALL;
	ck_assert_str_eq(selected(10, 30.8, TIER_MINUTE), "minute:10-30 window:30.5-30.8");
}

TEST(files_that_overlap_are_all_read)
{
	/* the clock was set back by half an hour */
	add(TIER_WINDOW, 0, 60);
	add(TIER_WINDOW, 30, 90);
	ck_assert_str_eq(selected(0, 0, TIER_WINDOW), "");
	ck_assert_str_eq(selected(10, 80, TIER_WINDOW), "window:10-60 window:30-80");
}

TEST(time_without_any_file_is_left_open)
{
	add(TIER_WINDOW, 0, 60);
	add(TIER_WINDOW, 600, 660);
	add(TIER_MINUTE, 0, 60);
	add(TIER_MINUTE, 600, 660);
	ck_assert_str_eq(selected(0, 1000, TIER_MINUTE), "minute:0-60 minute:600-660");
	ck_assert_str_eq(selected(100, 500, TIER_HOUR), "");
}

TEST(files_that_cannot_be_read_are_not_selected)
{
	add(TIER_WINDOW, 0, 60)->corrupt = true;
	add(TIER_WINDOW, 60, 120)->other_version = true;
	ck_assert_str_eq(selected(0, 200, TIER_HOUR), "");
}

TEST(question_that_ends_before_it_begins_has_no_answer)
{
	add(TIER_WINDOW, 0, 60);
	ck_assert_str_eq(selected(50, 40, TIER_HOUR), "");
	ck_assert_str_eq(selected(50, 50, TIER_HOUR), "");
}

TEST(coarse_file_without_rows_answers_nothing)
{
	add_windows(0, 60);
	add(TIER_MINUTE, 0, 0);
	s.file[0].rolled = 0;
	ck_assert_str_eq(selected(0, 60, TIER_MINUTE), "window:0-60");
}

TEST(leftover_does_not_take_the_future_from_the_others)
{
	struct store_file *f = add(TIER_WINDOW, 0, 0);
	f->end_ns = 0;
	f->sealed = false;
	f->left = true;
	f->rolled = 0;
	add_windows(600, 660);
	add(TIER_MINUTE, 600, 660);
	ck_assert_str_eq(selected(600, 660, TIER_MINUTE), "minute:600-660");
}

/* Every moment of a question is dealt to one tier, whatever the question. */
TEST(no_moment_is_dealt_twice)
{
	add_windows(0, 600);
	add(TIER_MINUTE, 0, 480);
	add(TIER_HOUR, 0, 300);
	for (size_t i = 0; i < s.n_files; i++)
		if (s.file[i].tier == TIER_WINDOW)
			s.file[i].rolled = s.file[i].end_ns <= AT(300)   ? IN_ALL
					   : s.file[i].end_ns <= AT(480) ? 1u << TIER_MINUTE
									 : 0;
	srand(7);
	for (int n = 0; n < 2000; n++) {
		int64_t since = AT(0) + rand() % 600 * MINUTE + rand() % 60000 * 1000000ll;
		int64_t until = since + rand() % 300 * MINUTE + 1 + rand() % 60000 * 1000000ll;
		if (until > AT(600))
			until = AT(600);
		struct store_part *part = NULL;
		size_t n_parts = 0;
		ck_assert_int_eq(store_select(&s, since, until, TIER_HOUR, &part, &n_parts), 0);
		qsort(part, n_parts, sizeof(*part), by_time);
		int64_t reached = since;
		for (size_t i = 0; i < n_parts; i++) {
			ck_assert_int_eq(part[i].since_ns, reached);
			reached = part[i].until_ns;
		}
		ck_assert_int_eq(reached, until);
		free(part);
	}
}
