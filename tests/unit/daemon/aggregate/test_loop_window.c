/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Sums of loops in a window, and who may have how many of them.
 */

#include "daemon/aggregate/loop_window.h"
#include "daemon/loops/cause.h"
#include "daemon/loops/table.h"

#include "tests/unit/test.h"

static struct loop_window window;
static struct loop_sites sites;
static struct task_table tasks;

static void begin(void)
{
	memset(&window, 0, sizeof(window));
	memset(&sites, 0, sizeof(sites));
	memset(&tasks, 0, sizeof(tasks));
}

static void end(void)
{
	loop_window_clear(&window);
	ck_assert_uint_eq(sites.n_sites, 0);
	loop_sites_clear(&sites);
	task_table_clear(&tasks);
}

EACH_TEST(.begin = begin, .end = end);

static struct task *task_of(pid_t pid, uid_t uid)
{
	struct task *task;
	ck_assert_int_eq(task_add(&tasks, pid, pid, 1, &task), 0);
	task->uid = task->account = uid;
	return task;
}

/* Count n iterations of the loop in that line. Returns loop_window_add's value. */
static int count(struct task *who, uint32_t line, uint64_t n)
{
	const struct loop_site_key key = {.kind = LOOP_SITE_LOOP,
		.line = line,
		.subprogram = "walk",
		.source = "",
		.nest = "",
		.inlined_at = ""};
	const struct loop_site_more more = {0};
	uint64_t value[N_LOOP_VALUES] = {0};
	struct loop_site *site;
	ck_assert_int_eq(loop_site_get(&sites, &key, NULL, &more, &site), 0);
	value[LOOP_VALUE(LOOP_ITERATIONS, false)] = n;
	const struct loop_counts c = {.site = site, .value = value};
	int r = loop_window_add(&window, &sites, who, &c);
	loop_site_unref(&sites, site);
	return r;
}

TEST(counts_of_one_loop_and_thread_add_up)
{
	struct task *task = task_of(100, 1000);
	ck_assert_int_eq(count(task, 1, 5), 0);
	ck_assert_int_eq(count(task, 1, 6), 0);
	ck_assert_int_eq(count(task, 2, 7), 0);
	ck_assert_uint_eq(window.n_rows, 2);
	ck_assert_uint_eq(window.rows->value[LOOP_VALUE(LOOP_ITERATIONS, false)], 11);
}

TEST(sums_stop_at_the_largest_number_of_the_store)
{
	struct task *task = task_of(100, 1000);
	ck_assert_int_eq(count(task, 1, INT64_MAX), 0);
	ck_assert_int_eq(count(task, 1, UINT64_MAX), 0);
	ck_assert_uint_eq(window.rows->value[LOOP_VALUE(LOOP_ITERATIONS, false)], INT64_MAX);
}

TEST(rows_of_tasks_that_are_not_known_are_nobodys)
{
	for (uint32_t i = 0; i < LOOP_WINDOW_ROWS_PER_USER_MAX; i++)
		ck_assert_int_eq(count(NULL, i, 1), 0);
	ck_assert_int_eq(count(NULL, 1u << 30, 1), LOOP_WINDOW_USER_FULL);
	ck_assert_int_eq(count(task_of(100, 0), 1, 1), 0); /* not root's */
}

TEST(one_user_does_not_take_the_rows_of_others)
{
	struct task *liar = task_of(100, 1000), *second = task_of(101, 1000);
	struct task *other = task_of(200, 1001);
	for (uint32_t i = 0; i < LOOP_WINDOW_ROWS_PER_USER_MAX; i++)
		ck_assert_int_eq(count(i % 2 ? liar : second, i, 1), 0);
	ck_assert_int_eq(count(liar, 1u << 30, 1), LOOP_WINDOW_USER_FULL);
	ck_assert_int_eq(count(second, 1u << 30, 1), LOOP_WINDOW_USER_FULL);
	ck_assert_int_eq(count(liar, 1, 1), 0); /* rows that he has go on */
	ck_assert_int_eq(count(other, 1, 1), 0);
	ck_assert_int_eq(count(NULL, 1, 1), 0);
	/* the next window begins anew */
	loop_window_clear(&window);
	ck_assert_int_eq(count(liar, 1u << 30, 1), 0);
}

TEST(a_window_that_is_full_says_so)
{
	uint32_t n = 0;
	for (uid_t uid = 0; n < LOOP_WINDOW_ROWS_MAX; uid++) {
		struct task *task = task_of(100 + (pid_t)uid, 1000 + uid);
		for (uint32_t i = 0; i < LOOP_WINDOW_ROWS_PER_USER_MAX; i++, n++)
			ck_assert_int_eq(count(task, i, 1), 0);
	}
	struct task *last = task_of(4000, 5000);
	ck_assert_int_eq(count(last, 1, 1), LOOP_WINDOW_FULL);
	loop_window_clear(&window);
	ck_assert_int_eq(count(last, 1, 1), 0);
}

/* A segment with such a chain would not be written, for nobody. */
TEST(tables_that_continue_each_other_s_nests_are_no_deeper_than_one)
{
	const struct loop_site_more more = {0};
	struct loop_site_key key = {.kind = LOOP_SITE_LOOP,
		.subprogram = "walk",
		.source = "",
		.nest = "",
		.inlined_at = ""};
	struct loop_site *site[LOOP_DEPTH_MAX + 1] = {NULL};
	for (uint32_t i = 0; i < LOOP_DEPTH_MAX; i++) {
		key.line = 1 + i;
		struct loop_site *around = i ? site[i - 1] : NULL;
		ck_assert_int_eq(loop_site_get(&sites, &key, around, &more, &site[i]), 0);
		ck_assert_uint_eq(site[i]->depth, i);
	}
	const uint32_t n = sites.n_sites;
	key.line++;
	ck_assert_int_eq(
		loop_site_get(&sites, &key, site[LOOP_DEPTH_MAX - 1], &more, &site[LOOP_DEPTH_MAX]),
		FEED_TABLE_MALFORMED);
	ck_assert_uint_eq(sites.n_sites, n);
	for (uint32_t i = LOOP_DEPTH_MAX; i-- > 0;)
		loop_site_unref(&sites, site[i]);
	ck_assert_uint_eq(sites.n_sites, 0);
}
