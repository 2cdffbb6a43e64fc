/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* What a roll-up makes of a segment: nothing is lost, and what should be merged is. */

#include <sys/stat.h>
#include <unistd.h>

#include "daemon/store/rollup/rollup.h"
#include "tests/unit/stored.h"
#include "tests/unit/test.h"

#define MINUTE (60 * SECOND)
#define HOUR (3600 * SECOND)

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

EACH_TEST(.end = end, .seconds = 60);

/* Monotonic 0 is a full hour of the clock, so that windows are easily placed. */
static void on_the_hour(void)
{
	s.realtime_ns = 277777 * HOUR;
}

static void begin_group(void)
{
	stored_folder(&s);
	on_the_hour();
	stored_event(&s, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, "cpu-clock");
	stored_event(&s, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, "cycles");
	stored_event(&s, PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, "instructions");
	stored_begin(&s);
}

static sqlite3 *open_plain(const char *path)
{
	sqlite3 *db;
	ck_assert_int_eq(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	return db;
}

/* Add the sealed segment to a target of that tier. */
static void roll(enum tier tier)
{
	snprintf(target, sizeof(target), "%s/%s", s.folder, tier_name(tier));
	sqlite3_close(rolled);
	int r = rollup_add(s.path, target, tier, &error);
	ck_assert_msg(r == 0, "%d: %s", r, error.text);
	rolled = open_plain(target);
	ck_assert_str_eq(stored_string(rolled, "PRAGMA integrity_check"), "ok");
}

/* A statement gives the same in the source and the target. */
static void same(const char *sql)
{
	char before[512];
	snprintf(before, sizeof(before), "%s", stored_string(s.db, sql));
	ck_assert_msg(strcmp(before, stored_string(rolled, sql)) == 0, "%s: %s became %s", sql,
		before, stored_string(rolled, sql));
}

static void nothing_is_lost(void)
{
	same("SELECT sum(count) || ' ' || sum(weight_ns) || ' ' || sum(uncounted) FROM sample");
	same("SELECT group_concat(name || ' ' || n || ' ' || w) FROM (SELECT name, sum(count) n, "
	     "sum(weight_ns) w FROM sample s JOIN event e ON e.id = s.event GROUP BY name ORDER BY "
	     "name)");
	same("SELECT group_concat(name || ' ' || v) FROM (SELECT name, sum(value) v FROM reading r "
	     "JOIN event e ON e.id = r.event GROUP BY name ORDER BY name)");
	same("SELECT sum(enabled_ns) || ' ' || sum(coalesce(running_ns, enabled_ns)) FROM reading");
	same("SELECT group_concat(x) FROM (SELECT hart || cause || sum(count) x FROM loss "
	     "GROUP BY hart, cause ORDER BY hart, cause)");
	same("SELECT sum(end_ns - start_ns) FROM window");
}

/* Two processes, one with two threads, in windows of 5 s over two and a half minutes. */
static void made_minutes(void)
{
	struct task *one = stored_task(&s, 100, 100, "one");
	struct task *thread = stored_task(&s, 100, 101, "worker");
	struct task *two = stored_task(&s, 200, 200, "two");
	two->parent = one;
	one->uid = 1000;
	two->uid = 1001;
	two->argv = memcpy(malloc(7), "two\0-x", 7);
	two->n_argv = 7;
	struct frame *main_ = stored_function(&s, "/bin/one", "main");
	struct frame *hot = stored_function(&s, "/bin/one", "hot");
	struct frame *also_hot = stored_function(&s, "/bin/one", "hot");
	struct frame *kernel = stored_frame(&s, FILE_KERNEL, "[kernel]", 4096);
	for (uint64_t i = 0; i < 30; i++) {
		stored_add(&s, &(struct stored_sample){.task = one,
				       .frame = {hot, main_},
				       .n_reads = 2,
				       .read = {{1, 100 + i, 1000, 500}, {2, 200, 1000, 1000}}});
		stored_add(&s, &(struct stored_sample){.task = thread,
				       .count = 2,
				       .uncounted = i % 3,
				       .weight_ns = 7 + i,
				       .frame = {hot, main_},
				       .n_reads = 1,
				       .read = {{1, 10, 1000, 1000}}});
		stored_add(&s, &(struct stored_sample){
				       .task = two, .hart = 1, .frame = {also_hot, main_}});
		stored_add(
			&s, &(struct stored_sample){
				    .task = two, .hart = 2, .truncated = i % 2, .frame = {kernel}});
		s.lost[1][LOSS_RING] += i;
		s.lost[2][LOSS_THROTTLE] += 1;
		ck_assert_int_eq(stored_flush(&s, i * 5 * SECOND, (i + 1) * 5 * SECOND), 0);
	}
	stored_seal(&s);
}

TEST(minutes_keep_every_sum)
{
	begin_group();
	made_minutes();
	roll(TIER_MINUTE);
	nothing_is_lost();
	ck_assert_int_eq(stored_number(rolled, "SELECT count(*) FROM window"), 3);
	ck_assert_int_eq(stored_number(rolled,
				 "SELECT count(*) FROM window WHERE realtime_ns % 60000000000"),
		0);
	same("SELECT group_concat(x) FROM (SELECT w.realtime_ns / 60000000000 || ' ' || hart || ' "
	     "' "
	     "|| sum(count) || ' ' || sum(weight_ns) x FROM sample s JOIN window w ON w.id = "
	     "s.window GROUP BY w.realtime_ns / 60000000000, hart ORDER BY 1)");
	same("SELECT sum(truncated) FROM sample");
	/* hot of the process and its thread; hot of two; the kernel: in each minute */
	ck_assert_int_eq(stored_number(rolled, "SELECT count(*) FROM sample"), 9);
	ck_assert_str_eq(
		stored_string(rolled, "SELECT value FROM meta WHERE key = 'tier'"), "minute");
	ck_assert_int_eq(stored_number(rolled, "SELECT value FROM meta WHERE key = 'sealed'"), 0);
}

TEST(minutes_keep_processes_and_stacks)
{
	begin_group();
	made_minutes();
	roll(TIER_MINUTE);
	ck_assert_str_eq(stored_string(rolled,
				 "SELECT group_concat(pid || comm || uid) FROM (SELECT * FROM task "
				 "ORDER BY pid)"),
		"100one1000,200two1001");
	ck_assert_int_eq(stored_number(rolled, "SELECT count(*) FROM task WHERE process <> id"), 0);
	ck_assert_str_eq(
		stored_string(rolled, "SELECT comm FROM task WHERE id = (SELECT parent FROM task "
				      "WHERE comm = 'two')"),
		"one");
	ck_assert_str_eq(stored_string(rolled, "SELECT hex(argv) FROM task WHERE comm = 'two'"),
		"74776F002D7800");
	same("SELECT count(*) FROM frame");
	same("SELECT count(*) FROM stack");
	same("SELECT group_concat(name) FROM (SELECT name FROM function ORDER BY name)");
	same("SELECT group_concat(path) FROM (SELECT path FROM file ORDER BY path)");
}

TEST(hours_merge_programs_functions_and_harts)
{
	begin_group();
	made_minutes();
	roll(TIER_HOUR);
	nothing_is_lost();
	ck_assert_int_eq(stored_number(rolled, "SELECT count(*) FROM window"), 1);
	/* the two addresses of hot are one, and so are harts 0, 1 and 2 */
	ck_assert_int_eq(stored_number(rolled, "SELECT count(*) FROM sample"), 3);
	ck_assert_int_eq(stored_number(rolled, "SELECT count(DISTINCT hart) FROM sample"), 1);
	ck_assert_int_eq(stored_number(rolled, "SELECT count(*) FROM frame"), 3);
	ck_assert_int_eq(stored_number(rolled, "SELECT count(*) FROM task WHERE pid <> 0"), 0);
	ck_assert_int_eq(stored_number(rolled, "SELECT count(*) FROM task WHERE argv NOTNULL"), 0);
	ck_assert_int_eq(stored_number(rolled, "SELECT count(*) FROM place WHERE line NOTNULL"), 0);
	same("SELECT sum(truncated) FROM sample");
}

TEST(adding_twice_does_nothing)
{
	begin_group();
	made_minutes();
	roll(TIER_MINUTE);
	ck_assert_int_eq(rollup_add(s.path, target, TIER_MINUTE, &error), ROLLUP_DONE_BEFORE);
	ck_assert_int_eq(rollup_seal(target, &error), 0);
	ck_assert_int_eq(rollup_add(s.path, target, TIER_MINUTE, &error), ROLLUP_DONE_BEFORE);
	nothing_is_lost();
	ck_assert_int_eq(
		stored_number(rolled, "SELECT value FROM meta WHERE key = 'source:segment'"), 1);
}

/* The same segment under another name is another source. */
static void roll_again(enum tier tier, const char *name)
{
	char path[192];
	snprintf(path, sizeof(path), "%s/%s", s.folder, name);
	ck_assert_int_eq(link(s.path, path), 0);
	int r = rollup_add(path, target, tier, &error);
	ck_assert_msg(r == 0, "%d: %s", r, error.text);
	sqlite3_close(rolled);
	rolled = open_plain(target);
}

/* A process in two jobs, and another user's in one of the same labels. */
static void made_jobs(void)
{
	struct task *task[3];
	static const char *const labels[] = {
		"{\"job\":\"a\"}", "{\"job\":\"b\"}", "{\"job\":\"a\"}"};
	for (int i = 0; i < 3; i++) {
		task[i] = stored_task(&s, i == 2 ? 200 : 100, i == 2 ? 200 : 100, "prog");
		task[i]->uid = i == 2 ? 1001 : 1000;
		stored_label(&s, task[i], labels[i]);
	}
	for (int i = 0; i < 3; i++)
		stored_add(&s, &(struct stored_sample){.task = task[i], .count = 1 + (uint64_t)i});
	s.db = stored_seal(&s);
}

TEST(jobs_live_on_in_minutes_and_hours, .times = 2)
{
	const enum tier tier = _i ? TIER_HOUR : TIER_MINUTE;
	begin_group();
	made_jobs();
	roll(tier);
	for (int again = 1; again <= 2; again++) {
		ck_assert_int_eq(stored_number(rolled, "SELECT count(*) FROM label_set"), 3);
		for (int i = 0; i < 3; i++) {
			char sql[400];
			snprintf(sql, sizeof(sql),
				"SELECT sum(count) FROM sample s JOIN task_label_set t "
				"ON t.task = s.task JOIN label_set l ON l.id = t.label_set "
				"WHERE json_extract(labels, '$.job') = '%c' AND uid = %d",
				i == 1 ? 'b' : 'a', i == 2 ? 1001 : 1000);
			ck_assert_int_eq(stored_number(rolled, sql), again * (1 + i));
		}
		if (again == 1)
			roll_again(tier, "again");
	}
}

/* A process that had two names, and under the second two control groups; its thread, which had those of that time. */
static void made_names(void)
{
	static const char *const name[] = {"one", "two", "two"};
	ck_assert_int_eq(cgroup_set(&s.tasks, 7, "/a", 0), 0);
	ck_assert_int_eq(cgroup_set(&s.tasks, 8, "/b", 0), 0);
	for (int i = 0; i < 3; i++) {
		struct task *process = stored_task(&s, 100, 100, name[i]);
		struct task *thread = stored_task(&s, 100, 101, "worker");
		process->cgroup = thread->cgroup = i < 2 ? 7 : 8;
		stored_add(&s, &(struct stored_sample){.task = process, .count = 1u << i});
		stored_add(&s, &(struct stored_sample){.task = thread, .count = 8u << i});
	}
	stored_seal(&s);
}

TEST(minutes_and_hours_keep_the_names_and_control_groups_that_a_process_had, .times = 2)
{
	const enum tier tier = _i ? TIER_HOUR : TIER_MINUTE;
	static const char sql[] = "SELECT group_concat(x) FROM (SELECT comm || path || ' ' || "
				  "sum(count) x FROM sample s "
				  "JOIN task t ON t.id = s.task JOIN cgroup c ON c.id = t.cgroup "
				  "GROUP BY t.id ORDER BY x)";
	begin_group();
	made_names();
	roll(tier);
	ck_assert_str_eq(stored_string(rolled, sql), "one/a 9,two/a 18,two/b 36");
	roll_again(tier, "again");
	ck_assert_str_eq(stored_string(rolled, sql), "one/a 18,two/a 36,two/b 72");
}

TEST(names_are_kept_once_however_many_sources)
{
	begin_group();
	made_minutes();
	for (enum tier tier = TIER_MINUTE; tier <= TIER_HOUR; tier++) {
		static const char *const dictionary[] = {"event", "hart", "task", "file", "frame",
			"function", "source", "place", "stack"};
		char name[16];
		roll(tier);
		int64_t before[9];
		char sql[64];
		for (size_t i = 0; i < 9; i++) {
			snprintf(sql, sizeof(sql), "SELECT count(*) FROM %s", dictionary[i]);
			before[i] = stored_number(rolled, sql);
		}
		snprintf(name, sizeof(name), "again%d", tier);
		roll_again(tier, name);
		for (size_t i = 0; i < 9; i++) {
			snprintf(sql, sizeof(sql), "SELECT count(*) FROM %s", dictionary[i]);
			ck_assert_int_eq(stored_number(rolled, sql), before[i]);
		}
		ck_assert_int_eq(stored_number(rolled, "SELECT sum(count) FROM sample"),
			2 * stored_number(s.db, "SELECT sum(count) FROM sample"));
		ck_assert_int_eq(stored_number(rolled, "SELECT sum(value) FROM reading"),
			2 * stored_number(s.db, "SELECT sum(value) FROM reading"));
	}
}

static void in_target(const char *sql)
{
	sqlite3 *db;
	ck_assert_int_eq(sqlite3_open(target, &db), SQLITE_OK);
	ck_assert_int_eq(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
}

TEST(events_beyond_those_of_a_file_are_left_out_and_the_source_is_sound, .times = 2)
{
	begin_group();
	made_minutes();
	roll(TIER_MINUTE);
	/* the file has 255 events, and not this one of the next source */
	in_target("WITH RECURSIVE n(i) AS (SELECT 4 UNION ALL SELECT i + 1 FROM n WHERE i < 255) "
		  "INSERT INTO "
		  "event SELECT i, pmu, type, 100 + i, config1, config2, modifiers, name, unit "
		  "FROM n, event "
		  "WHERE event.id = 2");
	in_target(_i ? "UPDATE event SET config = 99 WHERE name = 'cpu-clock'"
		     : "UPDATE event SET config = 99 WHERE id = 2");
	const int64_t samples = stored_number(rolled, "SELECT sum(count) FROM sample");
	const int64_t cycles =
		stored_number(rolled, "SELECT sum(value) FROM reading WHERE event = 2");
	roll_again(TIER_MINUTE, "more");
	if (_i) {
		ck_assert_int_eq(stored_number(rolled, "SELECT sum(count) FROM sample"), samples);
		ck_assert_int_eq(stored_number(rolled,
					 "SELECT sum(count) FROM loss WHERE cause = 'not stored'"),
			samples);
	} else {
		ck_assert_int_eq(
			stored_number(rolled, "SELECT sum(count) FROM sample"), 2 * samples);
		ck_assert_int_eq(
			stored_number(rolled, "SELECT sum(value) FROM reading WHERE event = 2"),
			cycles);
		ck_assert_int_eq(
			stored_number(rolled, "SELECT count(*) FROM reading WHERE event > 3"), 0);
	}
}

TEST(sealed_target_takes_what_comes_late)
{
	begin_group();
	made_minutes();
	roll(TIER_MINUTE);
	ck_assert_int_eq(rollup_seal(target, &error), 0);
	struct stat before, after;
	ck_assert_int_eq(stat(target, &before), 0);
	/* a reader that has it open goes on reading what it opened */
	struct segment_error refusal;
	sqlite3 *reader;
	ck_assert_int_eq(segment_open(target, &reader, &refusal), 0);
	roll_again(TIER_MINUTE, "late");
	ck_assert_int_eq(stat(target, &after), 0);
	ck_assert_int_ne((int64_t)before.st_ino, (int64_t)after.st_ino);
	ck_assert_int_eq(stored_number(reader, "SELECT sum(count) FROM sample"),
		stored_number(s.db, "SELECT sum(count) FROM sample"));
	sqlite3_close(reader);
	ck_assert_int_eq(segment_open(target, &reader, &refusal), 0);
	ck_assert_int_eq(stored_number(reader, "SELECT sum(count) FROM sample"),
		2 * stored_number(s.db, "SELECT sum(count) FROM sample"));
	sqlite3_close(reader);
}

/* Change a name in the target, where no check of pages would see it. */
static void flip_name(const char *name)
{
	FILE *f = fopen(target, "r+");
	static char bytes[1u << 20];
	ck_assert_ptr_nonnull(f);
	size_t n = fread(bytes, 1, sizeof(bytes), f);
	char *at = memmem(bytes, n, name, strlen(name));
	ck_assert_ptr_nonnull(at);
	ck_assert_int_eq(fseek(f, at - bytes, SEEK_SET), 0);
	ck_assert_int_eq(fputc(*at ^ 1, f), *at ^ 1);
	ck_assert_int_eq(fclose(f), 0);
}

TEST(sealed_target_that_changed_since_gets_no_seal_that_fits)
{
	begin_group();
	made_minutes();
	roll(TIER_MINUTE);
	ck_assert_int_eq(rollup_seal(target, &error), 0);
	flip_name("/bin/one");
	char again[192];
	snprintf(again, sizeof(again), "%s/late", s.folder);
	ck_assert_int_eq(rename(s.path, again), 0);
	ck_assert_int_eq(rollup_add(again, target, TIER_MINUTE, &error), ROLLUP_TARGET_BROKEN);
	ck_assert_ptr_nonnull(strstr(error.text, "changed since it was sealed"));
	struct segment_error refusal;
	sqlite3 *reader;
	ck_assert_int_eq(segment_open(target, &reader, &refusal), SEGMENT_CORRUPT);
	ck_assert_int_eq(rename(again, s.path), 0);
}

TEST(growing_target_can_be_read_and_then_sealed)
{
	begin_group();
	made_minutes();
	roll(TIER_HOUR);
	struct segment_error refusal;
	sqlite3 *reader;
	ck_assert_int_eq(segment_open(target, &reader, &refusal), SEGMENT_UNSEALED);
	ck_assert_int_eq(segment_open_live(target, &reader, &refusal), 0);
	ck_assert_int_eq(stored_number(reader, "SELECT count(*) FROM window"), 1);
	sqlite3_close(reader);
	ck_assert_int_eq(rollup_seal(target, &error), 0);
	ck_assert_int_eq(segment_open(target, &reader, &refusal), 0);
	ck_assert_int_eq(stored_number(reader, "SELECT value FROM meta WHERE key = 'end_ns'"),
		(int64_t)(150 * SECOND));
	sqlite3_close(reader);
}

TEST(clock_that_is_set_back_loses_nothing)
{
	begin_group();
	struct task *t = stored_task(&s, 100, 100, "one");
	for (uint64_t i = 0; i < 40; i++) {
		if (i == 20)
			s.realtime_ns -= HOUR;
		stored_add(&s, &(struct stored_sample){.task = t});
		ck_assert_int_eq(stored_flush(&s, i * 5 * SECOND, (i + 1) * 5 * SECOND), 0);
	}
	stored_seal(&s);
	roll(TIER_HOUR);
	nothing_is_lost();
	ck_assert_int_eq(stored_number(rolled, "SELECT count(*) FROM window"), 2);
	roll(TIER_MINUTE);
	nothing_is_lost();
}

TEST(hart_that_changes_its_leader_says_so)
{
	begin_group();
	made_minutes();
	roll(TIER_MINUTE);
	char first[192];
	snprintf(first, sizeof(first), "%s", target);
	struct stored before = s;
	stored_folder(&s);
	on_the_hour();
	stored_event(&s, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, "cycles");
	for (int i = 0; i < STORED_HARTS; i++)
		s.sampler.plan[i] =
			(struct plan){.rung = RUNG_CYCLES, .leader = s.sampler.events.event[0]};
	stored_begin(&s);
	stored_add(&s, &(struct stored_sample){.task = stored_task(&s, 100, 100, "one")});
	stored_seal(&s);
	char path[192];
	snprintf(path, sizeof(path), "%s/other", s.folder);
	ck_assert_int_eq(link(s.path, path), 0);
	ck_assert_int_eq(rollup_add(path, first, TIER_MINUTE, &error), 0);
	sqlite3_close(rolled);
	rolled = open_plain(first);
	ck_assert_str_eq(
		stored_string(rolled,
			"SELECT group_concat(key || '=' || name) FROM (SELECT key, name "
			"FROM meta JOIN event ON event.id = value WHERE key LIKE 'leader:0:%' "
			"ORDER BY name)"),
		"leader:0:3=cpu-clock,leader:0:1=cycles");
	stored_end(&before);
}
