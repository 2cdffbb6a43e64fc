/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Bandwidth of threads as lines of text: whose bytes stand where, and how high.
 */

#include "client/show/series.h"
#include "proto/base/memory.h"
#include "tests/unit/client/answers.h"
#include "tests/unit/test.h"

static const struct answers_column columns[] = {
	{"time", "Time", 0},
	{"comm", "Thread", 0},
	{"pid", "PID", 0},
	{"tid", "TID", 0},
	{"bytes_loaded", "Loaded", MPERF__UNIT__UNIT_BYTES},
	{"bytes_stored", "Stored", MPERF__UNIT__UNIT_BYTES},
	{"span_ns", "Of", MPERF__UNIT__UNIT_NS},
	{"dram_bytes", "From memory", MPERF__UNIT__UNIT_BYTES},
	{"dram_ns", "Counted for", MPERF__UNIT__UNIT_NS},
	{"loaded", "Loaded GB/s", MPERF__UNIT__UNIT_RATIO},
};
#define N_COLUMNS (sizeof(columns) / sizeof(*columns))

static struct reply reply;
static bool has_no_rate;
static double dram_gbytes; /* of a stretch, in half of its time; 0: not counted */

static void begin(void)
{
	reply = (struct reply){0};
	dram_gbytes = 0;
	has_no_rate = false;
	ck_assert_int_eq(answers_columns(reply_take, &reply, columns, N_COLUMNS), 0);
}

static void end(void)
{
	reply_clear(&reply);
}

EACH_TEST(.begin = begin, .end = end);

/* A stretch of a second from `second` on, in which a quarter of the bytes is stored. */
static void add(double second, const char *comm, int tid, double gbytes)
{
	Mperf__Value v[N_COLUMNS] = {answers_real(1.6e9 + second), answers_text(comm),
		answers_integer(100), answers_integer(tid),
		answers_integer((int64_t)(gbytes * 7.5e8)),
		answers_integer((int64_t)(gbytes * 2.5e8)), answers_integer(1000000000),
		MPERF__VALUE__INIT, MPERF__VALUE__INIT,
		has_no_rate ? answers_absent() : answers_real(gbytes * 0.75)};
	if (dram_gbytes > 0) {
		v[N_COLUMNS - 3] = answers_integer((int64_t)(dram_gbytes * 1e9));
		v[N_COLUMNS - 2] = answers_integer(500000000);
	}
	if (second < 0)
		v[0] = (Mperf__Value)MPERF__VALUE__INIT;
	Mperf__Value *value[N_COLUMNS];
	for (size_t i = 0; i < N_COLUMNS; i++)
		value[i] = &v[i];
	Mperf__Row row = MPERF__ROW__INIT, *list[1] = {&row};
	row.n_value = N_COLUMNS;
	row.value = value;
	Mperf__Rows rows = MPERF__ROWS__INIT;
	rows.n_row = 1;
	rows.row = list;
	Mperf__Answer a = MPERF__ANSWER__INIT;
	a.body_case = MPERF__ANSWER__BODY_ROWS;
	a.rows = &rows;
	ck_assert_int_eq(reply_take(&reply, &a), 0);
}

static char *drawn(size_t width, bool utf8)
{
	const struct series_look look = {.width = width, .utf8 = utf8, .stretch_s = 1};
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);
	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(series_print(&reply, &look, f), 0);
	ck_assert_int_eq(fclose(f), 0);
	return text;
}

static void has(const char *text, const char *wanted)
{
	ck_assert_msg(strstr(text, wanted), "'%s' is not in:\n%s", wanted, text);
}

TEST(threads_have_lines_of_one_height)
{
	for (int second = 0; second < 4; second++) {
		add(second, "fast", 101, 8);
		add(second, "slow", 102, second + 1);
	}
	_cleanup_(freep) char *text = drawn(80, false);
	has(text, "fast                  100      101  read        6.00     6.00  @@@@\n"
		  "                                    written     2.00     2.00  ----\n");
	has(text, "slow                  100      102  read        1.88     3.00  :-=+\n"
		  "                                    written     0.62     1.00  ..::\n");
	has(text, "One column is 1 s; the tallest bar is 6.00 GB/s");
	has(text, "busiest thread of a process moved 1.52 times the mean");
}

TEST(stretches_without_a_rate_have_a_question_mark)
{
	add(0, "t", 101, 8);
	has_no_rate = true;
	add(1, "t", 101, 3000); /* all that a loop moves until the end */
	add(1, "u", 102, 3008);
	has_no_rate = false;
	add(2, "t", 101, 4);
	_cleanup_(freep) char *text = drawn(80, false);
	has(text, "t                     100      101  read        4.50     6.00  @?+\n"
		  "                                    written     1.50     2.00  -?:\n");
	has(text, "u                     100      102  read           -        -   ?\n");
	has(text, "the tallest bar is 6.00 GB/s");
	has(text, "?: no rate, since a loop");
	has(text, "moved 1.00 times the mean");
}

TEST(traffic_of_memory_stands_beside_over_the_time_it_was_counted_for)
{
	dram_gbytes = 2;
	for (int second = 0; second < 4; second++)
		add(second, "t", 101, 8);
	_cleanup_(freep) char *text = drawn(80, false);
	has(text, "                                    DRAM        4.00     4.00  ****\n");
	has(text, "cache lines from memory, as counted in regions");
}

TEST(why_there_is_no_traffic_of_memory_is_said)
{
	add(0, "t", 101, 8);
	_cleanup_(freep) char *text = drawn(80, false);
	ck_assert_ptr_null(strstr(text, "  DRAM  "));
	has(text, "DRAM: - (no region counted lines from memory; see region-events");
}

TEST(blocks_of_eighths_are_drawn_where_they_can_be)
{
	for (int second = 0; second < 8; second++)
		add(second, "t", 101, second + 0.5);
	_cleanup_(freep) char *text = drawn(80, true);
	has(text, "▁▂▃▄▅▆▇█\n");
	has(text, "▁▁▁▂▂▂▃▃\n"); /* a third of it */
}

TEST(what_was_not_told_is_a_gap)
{
	add(0, "t", 101, 4);
	add(3, "t", 101, 4);
	_cleanup_(freep) char *text = drawn(80, false);
	has(text, "  @  @\n");
	ck_assert_ptr_null(strstr(text, "busiest")); /* there is but one thread */
}

TEST(more_stretches_than_columns_are_averaged)
{
	for (int second = 0; second < 1000; second++)
		add(second, "t", 101, second % 2 ? 8 : 0);
	_cleanup_(freep) char *text = drawn(83, false);
	has(text, "  @@@@@@@@@@@@@@@@@@@@\n"); /* all alike: none is of one second alone */
	has(text, "One column is 50 s; the tallest bar is 3.00 GB/s");
}

TEST(names_cannot_move_the_cursor)
{
	add(0, "\033[2J", 101, 1);
	_cleanup_(freep) char *text = drawn(80, false);
	ck_assert_ptr_null(strchr(text, '\033'));
}

TEST(rows_without_a_time_are_left_out)
{
	add(-1, "t", 101, 1);
	_cleanup_(freep) char *text = drawn(80, false);
	ck_assert_str_eq(text, "");
}

TEST(a_screen_that_is_too_narrow_still_has_bars)
{
	for (int second = 0; second < 100; second++)
		add(second, "t", 101, 1);
	_cleanup_(freep) char *text = drawn(10, false);
	has(text, "  @@@@@@@@@@\n");
}

TEST(nothing_moved_is_flat)
{
	add(0, "t", 101, 0);
	add(1, "u", 102, 0);
	_cleanup_(freep) char *text = drawn(80, false);
	has(text, "  .\n");
	ck_assert_ptr_null(strstr(text, "busiest"));
}
