/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Windows and tasks that a filter lets through: by the same rules as in an answer, to the nanosecond. */

#include "daemon/query/chosen.h"
#include "daemon/store/segment/open.h"
#include "tests/unit/stored.h"
#include "tests/unit/test.h"

#define SECOND_NS 1000000000ll

static struct stored s;
static struct query_chosen c;
static struct query_error error;

static void end(void)
{
	query_chosen_clear(&c);
	stored_end(&s);
}

EACH_TEST(.end = end, .seconds = 60);

/* Three windows of a second each, with a task of two users in each. */
static void made_windows(void)
{
	stored_begin_clock(&s);
	struct task *mine = stored_task(&s, 100, 100, "mine"),
		    *theirs = stored_task(&s, 200, 200, "theirs");
	mine->uid = 1000;
	theirs->uid = 1001;
	for (uint64_t i = 0; i < 3; i++) {
		stored_add(&s, &(struct stored_sample){.task = mine});
		stored_add(&s, &(struct stored_sample){.task = theirs});
		ck_assert_int_eq(
			stored_flush(&s, i * (uint64_t)SECOND_NS, (i + 1) * (uint64_t)SECOND_NS),
			0);
	}
	stored_seal(&s);
}

/* The windows that are chosen, as digits. */
static const char *chosen(int64_t part_since, int64_t part_until, const struct query_filter *filter)
{
	static char text[16];
	char *to = text;
	query_chosen_clear(&c);
	const struct query_source part = {.since_ns = part_since, .until_ns = part_until};
	int r = query_choose(s.db, &part, filter, &c, &error);
	ck_assert_msg(r == 0, "%d: %s", r, error.text);
	for (uint32_t i = 0; i <= c.n_windows; i++)
		if (c.window[i])
			to += snprintf(to, 4, "%u", i);
	*to = '\0';
	return text;
}

static uint32_t task_id(const char *comm)
{
	char sql[64];
	snprintf(sql, sizeof(sql), "SELECT id FROM task WHERE comm = '%s'", comm);
	return (uint32_t)stored_number(s.db, sql);
}

TEST(windows_of_a_part_begin_in_it)
{
	made_windows();
	const int64_t t = stored_number(s.db, "SELECT min(realtime_ns) FROM window");
	const struct query_filter all = {0};
	ck_assert_str_eq(chosen(0, 0, &all), "123");
	ck_assert_str_eq(chosen(t, 0, &all), "123");
	ck_assert_str_eq(chosen(t + 1, 0, &all), "23");
	ck_assert_str_eq(chosen(t + SECOND_NS, t + 2 * SECOND_NS, &all), "2");
	ck_assert_str_eq(chosen(t + SECOND_NS, t + 2 * SECOND_NS + 1, &all), "23");
	ck_assert_str_eq(chosen(t + 2 * SECOND_NS + 1, 0, &all), "");
	ck_assert_str_eq(chosen(1, t, &all), "");
	ck_assert_ptr_null(c.task);
}

TEST(a_filter_s_time_is_that_of_queries)
{
	made_windows();
	const int64_t t = stored_number(s.db, "SELECT min(realtime_ns) FROM window");
	ck_assert_str_eq(
		chosen(0, 0, &(struct query_filter){.since_ns = t + SECOND_NS - 1}), "123");
	ck_assert_str_eq(chosen(0, 0, &(struct query_filter){.since_ns = t + SECOND_NS}), "23");
	ck_assert_str_eq(chosen(0, 0, &(struct query_filter){.until_ns = t + SECOND_NS}), "1");
	ck_assert_str_eq(chosen(0, 0,
				 &(struct query_filter){
					 .since_ns = t + SECOND_NS, .until_ns = t + SECOND_NS + 1}),
		"2");
	ck_assert_str_eq(chosen(0, 0, &(struct query_filter){.since_ns = t + 3 * SECOND_NS}), "");
}

TEST(tasks_are_those_of_the_user_or_of_the_filter)
{
	static const char *const comm[] = {"theirs"};
	made_windows();
	ck_assert_str_eq(
		chosen(0, 0, &(struct query_filter){.only_uid = true, .uid = 1000}), "123");
	ck_assert(c.task[task_id("mine")] && !c.task[task_id("theirs")] && !c.task[0]);
	(void)chosen(0, 0, &(struct query_filter){.comm = comm, .n_comms = 1});
	ck_assert(!c.task[task_id("mine")] && c.task[task_id("theirs")] && !c.task[0]);
	(void)chosen(0, 0,
		&(struct query_filter){.only_uid = true, .uid = 1000, .comm = comm, .n_comms = 1});
	ck_assert(!c.task[task_id("mine")] && !c.task[task_id("theirs")]);
}

TEST(harts_and_events_choose_nothing)
{
	made_windows();
	ck_assert_str_eq(chosen(0, 0,
				 &(struct query_filter){
					 .cpu = (uint32_t[]){9}, .n_cpus = 1, .event = "no such"}),
		"123");
	ck_assert_ptr_null(c.task);
}

TEST(a_damaged_source_fails)
{
	const struct query_source all = {0};
	made_windows();
	sqlite3_close(s.db);
	s.db = NULL;
	ck_assert_int_eq(sqlite3_open(":memory:", &s.db), SQLITE_OK);
	ck_assert_int_eq(
		query_choose(s.db, &all, &(struct query_filter){0}, &c, &error), QUERY_FAILED);
	ck_assert_int_eq(error.kind, MPERF__FAILURE_KIND__FAILURE_BROKEN);
	ck_assert(!c.window && !c.task);
}
