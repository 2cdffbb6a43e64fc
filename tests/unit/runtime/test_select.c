/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * What counts in functions of two bodies: names, the environment, a daemon's word, and whose turn
 * it is.
 */
#include <errno.h>

#include "runtime/abi.h"
#include "runtime/process.h"
#include "runtime/state.h"
#include "tests/unit/test.h"

static bool has(const char *loops, const char *names)
{
	struct selection s = {0};
	ck_assert_int_eq(setenv("MPERF_LOOPS", loops, 1), 0);
	mperf_select_init(&s);
	return mperf_select_has(&s, names);
}

static uint32_t one_in(const char *sample)
{
	struct selection s = {0};
	ck_assert_int_eq(setenv("MPERF_SAMPLE", sample, 1), 0);
	mperf_select_init(&s);
	return s.one_in;
}

TEST(a_star_stands_for_anything_and_a_question_mark_for_one_letter)
{
	ck_assert(mperf_glob_fits("", ""));
	ck_assert(mperf_glob_fits("*", ""));
	ck_assert(mperf_glob_fits("bfs", "bfs"));
	ck_assert(mperf_glob_fits("sp*", "spmv"));
	ck_assert(mperf_glob_fits("*mv", "spmv"));
	ck_assert(mperf_glob_fits("*re*lax*", "do_relax_rerelax"));
	ck_assert(mperf_glob_fits("?pm?", "spmv"));
	ck_assert(mperf_glob_fits("**a", "aaaa"));
	ck_assert(mperf_glob_fits("_ZN*5relaxE*", "_ZN5graph5relaxEi"));
}

TEST(what_does_not_fit_is_not_taken)
{
	ck_assert(!mperf_glob_fits("", "bfs"));
	ck_assert(!mperf_glob_fits("bfs", ""));
	ck_assert(!mperf_glob_fits("?", ""));
	ck_assert(!mperf_glob_fits("bf", "bfs"));
	ck_assert(!mperf_glob_fits("bfss", "bfs"));
	ck_assert(!mperf_glob_fits("sp*w", "spmv"));
	ck_assert(!mperf_glob_fits("*a*b", "bbba"));
	ck_assert(!mperf_glob_fits("Bfs", "bfs"));
}

TEST(many_stars_end_in_time)
{
	char name[MPERF_NAME_BYTES_MAX], glob[256];
	memset(name, 'a', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	for (size_t i = 0; i + 2 < sizeof(glob); i += 2)
		memcpy(glob + i, "*a", 2);
	memcpy(glob + sizeof(glob) - 2, "b", 2);
	ck_assert(!mperf_glob_fits(glob, name));
}

TEST(names_are_chosen_by_any_glob_and_any_of_their_own)
{
	ck_assert(has("bfs,spmv*", "spmv_csr\0"));
	ck_assert(has("kernel", "main\0kernel\0"));
	ck_assert(has(",,bfs,", "bfs\0"));
	ck_assert(!has("bfs,spmv*", "main\0triad\0"));
	ck_assert(!has("kernel", "kernels\0"));
}

TEST(without_globs_all_functions_are_chosen)
{
	ck_assert(has("", "anything\0"));
	ck_assert(has(",", "anything\0"));
	struct selection s;
	unsetenv("MPERF_LOOPS");
	mperf_select_init(&s);
	ck_assert(mperf_select_has(&s, "anything\0"));
}

TEST(globs_that_do_not_fit_are_left_out)
{
	char loops[MPERF_GLOBS_BYTES_MAX + 8];
	memset(loops, 'x', sizeof(loops));
	memcpy(loops + sizeof(loops) - 5, ",bfs", 5);
	ck_assert(has(loops, "bfs\0"));
	ck_assert(!has(loops, "triad\0"));
}

TEST(one_in_n_comes_from_the_environment)
{
	ck_assert_uint_eq(one_in("0"), 0);
	ck_assert_uint_eq(one_in("1"), 1);
	ck_assert_uint_eq(one_in("100"), 100);
	ck_assert_uint_eq(one_in("99999999"), MPERF_ONE_IN_MAX);
}

TEST(what_is_no_number_counts_each_entry)
{
	ck_assert_uint_eq(one_in(""), 1);
	ck_assert_uint_eq(one_in("-3"), 1);
	ck_assert_uint_eq(one_in("10x"), 1);
	ck_assert_uint_eq(one_in("many"), 1);
	ck_assert_uint_eq(one_in(" 5"), 1);
}

TEST(a_daemons_selection_replaces_the_one_before)
{
	struct selection s = {.one_in = 1};
	ck_assert_int_eq(mperf_select_set(&s, 50, "bfs\0sp*", 8), 0);
	ck_assert_uint_eq(s.one_in, 50);
	ck_assert(mperf_select_has(&s, "spmv\0"));
	ck_assert(!mperf_select_has(&s, "triad\0"));
	ck_assert_int_eq(mperf_select_set(&s, 1, NULL, 0), 0);
	ck_assert(mperf_select_has(&s, "triad\0"));
}

TEST(a_selection_without_an_end_or_out_of_range_is_refused)
{
	struct selection s = {.one_in = 7};
	char many[MPERF_GLOBS_BYTES_MAX + 1] = "";
	ck_assert_int_eq(mperf_select_set(&s, 1, "bfs", 3), -EBADMSG);
	ck_assert_int_eq(mperf_select_set(&s, MPERF_ONE_IN_MAX + 1, NULL, 0), -EBADMSG);
	ck_assert_int_eq(mperf_select_set(&s, 1, many, sizeof(many)), -EBADMSG);
	ck_assert_uint_eq(s.one_in, 7);
	ck_assert_uint_eq(s.globs_bytes, 0);
}

TEST(a_selection_is_told_to_all_choices)
{
	struct mperf_choice choices[] = {{-1, 0, "bfs\0"}, {-1, 0, "triad\0"}};
	struct choices list = {.first = choices, .end = choices + 2};
	struct choices closed = {.next = &list};
	static struct state state;
	state.choices = &closed;
	ck_assert_int_eq(mperf_select_set(&state.selection, 10, "b*", 3), 0);
	mperf_select_apply(&state);
	ck_assert_int_eq(choices[0].one_in, 10);
	ck_assert_int_eq(choices[1].one_in, 0);
	ck_assert_int_eq(mperf_select_set(&state.selection, 1, NULL, 0), 0);
	mperf_select_apply(&state);
	ck_assert_int_eq(choices[1].one_in, -1);
	ck_assert_int_eq(mperf_select_set(&state.selection, 0, NULL, 0), 0);
	mperf_select_apply(&state);
	ck_assert_int_eq(choices[0].one_in, 0);
}

/* An entry as compiled code makes it. */
static bool enter(uint64_t *words, int32_t n)
{
	int64_t left = (int64_t)--words[MPERF_TURN_COUNTDOWN];
	return left < 1 && __mperf_turn_draw(words, n);
}

TEST(of_each_window_one_entry_counts)
{
	uint64_t words[MPERF_TURN_WORDS] = {0};
	enum { N = 50, WINDOWS = 400 };
	unsigned places[N] = {0};
	for (unsigned w = 0; w < WINDOWS; w++) {
		unsigned counted = 0;
		for (unsigned i = 0; i < N; i++)
			if (enter(words, N)) {
				counted++;
				places[i]++;
			}
		ck_assert_uint_eq(counted, 1);
	}
	/* Places are by chance: no place has a tenth of all, with 8 expected and 400 drawn. */
	for (unsigned i = 0; i < N; i++)
		ck_assert_uint_lt(places[i], WINDOWS / 10);
}

TEST(a_window_of_another_size_is_lived_through_first)
{
	uint64_t words[MPERF_TURN_WORDS] = {0};
	enter(words, 100);
	unsigned counted = 0;
	for (unsigned i = 0; i < 200; i++)
		counted += enter(words, 10);
	ck_assert_uint_le(counted, 20 + 1);
	counted = 0;
	for (unsigned i = 0; i < 1000; i++)
		counted += enter(words, 10);
	ck_assert_uint_ge(counted, 99);
	ck_assert_uint_le(counted, 101);
}

TEST(words_that_make_no_sense_end_in_a_window)
{
	uint64_t words[MPERF_TURN_WORDS] = {UINT64_MAX, UINT64_MAX};
	unsigned counted = 0;
	for (unsigned i = 0; i < 1000; i++)
		counted += enter(words, 10);
	ck_assert_uint_ge(counted, 99);
	ck_assert_uint_le(counted, 101);
}

TEST(a_choice_that_ended_meanwhile_draws_nothing)
{
	uint64_t words[MPERF_TURN_WORDS] = {0};
	ck_assert_uint_eq(__mperf_turn_draw(words, 0), 0);
	ck_assert_uint_eq(__mperf_turn_draw(words, 1), 1);
	ck_assert_uint_eq(words[MPERF_TURN_WINDOW], 0);
}

/* Chance is of threads that the runtime knows. */
static void know_thread(void)
{
	__mperf_start();
	ck_assert_ptr_nonnull(mperf_thread_make());
}

EACH_TEST(.begin = know_thread);
