/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Hours that have more rows than they may: what is heavy stays, and nothing is lost. */

#include <unistd.h>

#include "daemon/store/rollup/rollup.h"
#include "tests/unit/stored.h"
#include "tests/unit/test.h"

static struct stored s;
static struct store_error error;
static char target[192];
static sqlite3 *rolled;

static void end(void)
{
	sqlite3_close(rolled);
	rolled = NULL;
	stored_end(&s);
}

EACH_TEST(.end = end, .seconds = 120);

static void begin(void)
{
	stored_begin_group(&s);
	s.realtime_ns = 277777ull * 3600 * SECOND;
}

static void roll(void)
{
	stored_seal(&s);
	snprintf(target, sizeof(target), "%s/hour", s.folder);
	int r = rollup_add(s.path, target, TIER_HOUR, &error);
	ck_assert_msg(r == 0, "%d: %s", r, error.text);
	ck_assert_int_eq(sqlite3_open(target, &rolled), SQLITE_OK);
	static const char *const sums[] = {"SELECT sum(count) FROM sample",
		"SELECT sum(weight_ns) FROM sample",
		"SELECT group_concat(v) FROM (SELECT sum(value) v FROM reading GROUP BY event)",
		"SELECT sum(enabled_ns) FROM reading"};
	for (size_t i = 0; i < 4; i++) {
		char before[512];
		snprintf(before, sizeof(before), "%s", stored_string(s.db, sums[i]));
		ck_assert_str_eq(stored_string(rolled, sums[i]), before);
	}
	ck_assert_int_le(stored_number(rolled, "SELECT count(*) FROM sample"), ROLLUP_HOUR_ROWS);
}

/* A frame whose function has a number; its name must outlive the session. */
static struct frame *numbered(char kind, int i)
{
	static char name[16384][16];
	static int n;
	char path[32];
	ck_assert_int_lt(n, 16384);
	snprintf(name[n], sizeof(name[n]), "%c%d", kind, i);
	snprintf(path, sizeof(path), "/bin/%c", kind);
	struct frame *frame = stored_frame(&s, FILE_ELF, path, 0x1000 + 16ull * (uint64_t)i);
	frame->place = calloc(1, sizeof(*frame->place));
	frame->place[0].function = name[n++];
	frame->n_places = 1;
	frame->state = FRAME_NAMED;
	return frame;
}

static void add(struct task *t, uint64_t weight_ns, struct frame *leaf, struct frame *caller)
{
	stored_add(&s, &(struct stored_sample){.task = t,
			       .weight_ns = weight_ns,
			       .frame = {leaf, caller},
			       .n_reads = 1,
			       .read = {{1, weight_ns * 3, 1000, 1000}}});
}

static double self_of(sqlite3 *db, const char *function)
{
	static struct stored_answer a;
	struct query_filter all = {0};
	struct answer answer = stored_answer(&a);
	memset(&a, 0, sizeof(a));
	ck_assert_int_eq(query_hotspots(&(struct query_source){.db = db}, 1,
				 &(struct query_question){.by = QUERY_BY_FUNCTION,
					 .limit = STORED_ROWS_MAX - 1,
					 .filter = &all},
				 &answer, &a.error),
		0);
	return stored_real(&a, stored_row(&a, function), "self");
}

TEST(light_stacks_lose_their_callers_and_self_stays)
{
	begin();
	struct task *t = stored_task(&s, 100, 100, "one");
	struct frame *leaf[50], *caller[200];
	for (int i = 0; i < 50; i++)
		leaf[i] = numbered('l', i);
	for (int i = 0; i < 200; i++)
		caller[i] = numbered('c', i);
	for (int i = 0; i < 10000; i++)
		add(t, 1000 + (i < 100 ? 1000000 : 0) + (uint64_t)i, leaf[i % 50],
			caller[i / 50 % 200]);
	roll();
	ck_assert_int_eq(stored_number(rolled, "SELECT count(*) FROM sample"), ROLLUP_HOUR_ROWS);
	ck_assert_int_eq(
		stored_number(rolled, "SELECT count(*) FROM function WHERE name LIKE '[%'"), 0);
	/* what was cut is counted as cut, and the heavy hundred was not */
	int64_t n_cut = stored_number(rolled, "SELECT sum(truncated) FROM sample");
	ck_assert_int_gt(n_cut, 5000);
	ck_assert_int_eq(
		stored_number(rolled,
			"SELECT sum(count) FROM sample JOIN stack ON stack.id = sample.stack "
			"WHERE stack.parent = 0"),
		n_cut);
	ck_assert_int_eq(
		stored_number(rolled, "SELECT count(*) FROM sample JOIN stack ON stack.id = "
				      "sample.stack WHERE parent <> 0 AND weight_ns > 1000000"),
		100);
	for (int i = 0; i < 50; i += 7) {
		char name[16];
		snprintf(name, sizeof(name), "l%d", i);
		ck_assert_double_eq_tol(self_of(rolled, name), self_of(s.db, name), 1e-12);
	}
}

TEST(light_programs_become_their_users_others)
{
	begin();
	struct frame *leaf[16];
	for (int i = 0; i < 16; i++)
		leaf[i] = numbered('l', i);
	for (int i = 0; i < 500; i++) {
		char comm[32];
		snprintf(comm, sizeof(comm), "program%d", i);
		struct task *t = stored_task(&s, 100 + i, 100 + i, comm);
		t->uid = 1000 + (uid_t)i % 2;
		for (int k = 0; k < 16; k++)
			add(t, 1000 + (i < 10 ? 1000000 : 0) + (uint64_t)k, leaf[k], NULL);
	}
	roll();
	ck_assert_int_eq(
		stored_number(rolled, "SELECT count(*) FROM task WHERE comm = '[other]'"), 2);
	ck_assert_int_eq(
		stored_number(rolled,
			"SELECT count(DISTINCT t.comm) FROM sample s JOIN task t ON t.id = "
			"s.task WHERE weight_ns > 1000000 AND comm <> '[other]'"),
		10);
	ck_assert_int_eq(stored_number(rolled, "SELECT sum(truncated) FROM sample"), 0);
	for (uid_t uid = 1000; uid < 1002; uid++) {
		char sql[128];
		snprintf(sql, sizeof(sql),
			"SELECT sum(weight_ns) FROM sample s JOIN task t ON t.id = s.task "
			"WHERE uid = %u",
			uid);
		ck_assert_int_eq(stored_number(rolled, sql), stored_number(s.db, sql));
	}
}

TEST(more_functions_than_rows_keep_the_heavy_ones)
{
	begin();
	struct task *t = stored_task(&s, 100, 100, "one");
	for (int i = 0; i < 9000; i++)
		add(t, 1000 + (i < 1000 ? 1000000 : 0), numbered('f', i), NULL);
	struct frame *nameless = stored_frame(&s, FILE_ELF, "/bin/stripped", 16);
	nameless->state = FRAME_UNNAMED;
	add(t, 1, nameless, NULL);
	roll();
	ck_assert_int_eq(
		stored_number(rolled, "SELECT count(*) FROM sample WHERE weight_ns = 1001000"),
		1000);
	ck_assert_int_eq(
		stored_number(rolled, "SELECT count(*) FROM function WHERE name = '[other]'"), 1);
	/* who was not named is still counted so */
	ck_assert_int_eq(
		stored_number(rolled, "SELECT sum(count) FROM sample JOIN stack ON stack.id = "
				      "sample.stack JOIN frame ON frame.id = stack.frame "
				      "WHERE frame.state = 4"),
		1);
	/* nobody's, so that no user sees what is another's */
	ck_assert_int_eq(
		stored_number(rolled,
			"SELECT count(*) FROM sample s JOIN stack k ON k.id = s.stack JOIN "
			"place p ON p.frame = k.frame JOIN function f ON f.id = p.function "
			"JOIN task t ON t.id = s.task WHERE f.name = '[other]' AND uid NOTNULL"),
		0);
}

TEST(several_sources_of_one_hour_share_its_rows)
{
	begin();
	struct task *t = stored_task(&s, 100, 100, "one");
	for (int i = 0; i < 5000; i++)
		add(t, 1000, numbered('f', i), NULL);
	roll();
	for (int i = 0; i < 3; i++) {
		char path[192];
		snprintf(path, sizeof(path), "%s/again%d", s.folder, i);
		ck_assert_int_eq(link(s.path, path), 0);
		ck_assert_int_eq(rollup_add(path, target, TIER_HOUR, &error), 0);
	}
	ck_assert_int_eq(stored_number(rolled, "SELECT sum(count) FROM sample"), 4 * 5000);
	ck_assert_int_le(stored_number(rolled, "SELECT count(*) FROM sample"),
		ROLLUP_HOUR_ROWS + 3 * ROLLUP_HOUR_ROWS / 8);
}

/* Minutes: two users, of whom one has used up the share. */
TEST(minutes_of_a_user_over_the_share_are_sums_of_processes)
{
	struct shares shares = {0};
	begin();
	struct task *noisy = stored_task(&s, 100, 100, "noisy");
	struct task *quiet = stored_task(&s, 200, 200, "quiet");
	noisy->uid = 1000;
	quiet->uid = 2000;
	struct frame *top = numbered('m', 0);
	for (int i = 0; i < 200; i++)
		add(noisy, 1000, numbered('n', i), top);
	for (int i = 0; i < 20; i++)
		add(quiet, 10, numbered('q', i), top);
	stored_seal(&s);
	snprintf(target, sizeof(target), "%s/minute", s.folder);
	shares_allow(&shares, &(struct share_room){16 << 20, 0, 86400 * SECOND, 86400 * SECOND});
	share_charge(&shares, 1000, 64 << 20);
	int r = rollup_add_within(s.path, target, TIER_MINUTE, &shares, &error);
	ck_assert_msg(r == 0, "%d: %s", r, error.text);
	ck_assert_int_eq(sqlite3_open(target, &rolled), SQLITE_OK);
	/* all is counted */
	ck_assert_int_eq(stored_number(rolled, "SELECT sum(count) FROM sample"), 220);
	ck_assert_int_eq(stored_number(rolled, "SELECT sum(weight_ns) FROM sample"), 200200);
	ck_assert_int_eq(stored_number(rolled, "SELECT sum(value) FROM reading"), 3 * 200200);
	/* the quiet one's whole, the noisy one's as one row of its process */
	static const char of[] = "SELECT count(*) FROM sample s JOIN task t ON t.id = s.task "
				 "WHERE comm = ";
	char sql[200];
	snprintf(sql, sizeof(sql), "%s'quiet'", of);
	ck_assert_int_eq(stored_number(rolled, sql), 20);
	snprintf(sql, sizeof(sql), "%s'noisy'", of);
	ck_assert_int_eq(stored_number(rolled, sql), 1);
	ck_assert_int_eq(
		stored_number(rolled, "SELECT sum(count) FROM loss WHERE cause LIKE 'over a%'"),
		200);
	ck_assert_int_eq(stored_number(rolled, "SELECT count(*) FROM function WHERE name GLOB "
					       "'n[0-9]*'"),
		0);
	/* the writer is charged */
	ck_assert_uint_gt(share_user(&shares, 2000)->bytes, 20 * SHARE_SAMPLE_BYTES);
	ck_assert_uint_lt(share_user(&shares, 2000)->bytes, 20000);
}

/* Both have uid 0, since nobody but root may see either. */
TEST(minutes_of_what_belongs_to_nobody_are_on_its_users_share)
{
	struct shares shares = {0};
	begin();
	struct task *hidden = stored_task(&s, 100, 100, "hidden");
	struct task *roots = stored_task(&s, 200, 200, "roots");
	hidden->uid = roots->uid = roots->account = 0;
	hidden->account = 1000;
	for (int i = 0; i < 40; i++) {
		add(hidden, 1000, numbered('n', i), numbered('m', 0));
		add(roots, 10, numbered('q', i), numbered('m', 0));
	}
	stored_seal(&s);
	snprintf(target, sizeof(target), "%s/minute", s.folder);
	shares_allow(&shares, &(struct share_room){16 << 20, 0, 86400 * SECOND, 86400 * SECOND});
	share_charge(&shares, 1000, 64 << 20);
	int r = rollup_add_within(s.path, target, TIER_MINUTE, &shares, &error);
	ck_assert_msg(r == 0, "%d: %s", r, error.text);
	ck_assert_int_eq(sqlite3_open(target, &rolled), SQLITE_OK);
	static const char of[] = "SELECT count(*) FROM sample s JOIN task t ON t.id = s.task "
				 "WHERE uid = 0 AND account = ";
	char sql[200];
	snprintf(sql, sizeof(sql), "%s0", of);
	ck_assert_int_eq(stored_number(rolled, sql), 40);
	snprintf(sql, sizeof(sql), "%s1000", of);
	ck_assert_int_eq(stored_number(rolled, sql), 1);
	ck_assert_uint_gt(share_user(&shares, 0)->bytes, 40 * SHARE_SAMPLE_BYTES);
}

TEST(minutes_within_the_shares_are_whole)
{
	struct shares shares = {0};
	begin();
	struct task *task = stored_task(&s, 100, 100, "prog");
	struct frame *top = numbered('m', 0);
	for (int i = 0; i < 200; i++)
		add(task, 1000, numbered('n', i), top);
	stored_seal(&s);
	shares_allow(&shares, &(struct share_room){16 << 20, 0, 86400 * SECOND, 86400 * SECOND});
	int64_t rows[2];
	for (int i = 0; i < 2; i++) {
		snprintf(target, sizeof(target), "%s/minute", s.folder);
		int r = rollup_add_within(s.path, target, TIER_MINUTE, i ? &shares : NULL, &error);
		ck_assert_msg(r == 0, "%d: %s", r, error.text);
		ck_assert_int_eq(sqlite3_open(target, &rolled), SQLITE_OK);
		rows[i] = stored_number(rolled, "SELECT count(*) + (SELECT count(*) FROM stack) "
						"FROM sample");
		ck_assert_int_eq(stored_number(rolled, "SELECT count(*) FROM loss"), 0);
		sqlite3_close(rolled);
		rolled = NULL;
		unlink(target);
	}
	ck_assert_int_eq(rows[0], rows[1]);
}
