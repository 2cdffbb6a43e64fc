/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* The store in a real folder: what is found in it, what is made of it, and who may have it. */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/store/store_private.h"
#include "proto/base/memory.h"
#include "tests/unit/stored.h"
#include "tests/unit/test.h"

/* 2026-11-21T14:00:00Z, a Saturday; the Monday before it */
#define TWO_O_CLOCK (1795269600 * SECOND)
#define MONDAY (1794787200 * SECOND)
#define BOOT "1f3a9c2b-0000-0000-0000-000000000000"

static struct stored r; /* what segments are made with */
static struct store *s;
static char folder[64];
static struct store_error error;

static void begin(void)
{
	memcpy(folder, "/tmp/store.XXXXXX", 18);
	ck_assert_ptr_nonnull(mkdtemp(folder));
	stored_begin_clock(&r);
	r.segment = segment_abandon(r.segment, true);
}

static void end(void)
{
	char command[128];
	s = store_free(s);
	stored_end(&r);
	memset(&r, 0, sizeof(r));
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	ck_assert_int_eq(system(command), 0);
}

EACH_TEST(.begin = begin, .end = end, .seconds = 60);

static void open_store(void)
{
	s = store_free(s);
	int outcome = store_open(folder, &s, &error);
	ck_assert_msg(outcome == 0, "%d: %s", outcome, error.text);
}

static const char *inside(const char *name)
{
	static char path[256];
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static bool there(const char *name)
{
	return access(inside(name), F_OK) == 0;
}

static void put(const char *name, const char *text)
{
	int fd = open(inside(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

static void make_folders(void)
{
	static const char *const names[] = {"window", "minute", "hour", "corrupt"};
	for (size_t i = 0; i < 4; i++)
		mkdir(inside(names[i]), 0750);
}

/* A segment of one window of 10 s. */
static void make_segment(const char *path, int64_t realtime_ns, const char *tier, bool seal)
{
	struct segment_meta meta = {
		.boot_id = BOOT, .realtime_ns = (uint64_t)realtime_ns, .live = true, .tier = tier};
	struct task *t = task_find(&r.tasks, 100);
	ck_assert_int_eq(segment_create(path, &meta, &r.sampler, &r.segment), 0);
	if (!t)
		t = stored_task(&r, 100, 100, "prog");
	stored_add(&r, &(struct stored_sample){.task = t});
	r.realtime_ns = (uint64_t)realtime_ns;
	ck_assert_int_eq(stored_flush(&r, 0, 10 * SECOND), 0);
	if (seal) {
		ck_assert_int_eq(segment_seal(r.segment, 10 * SECOND), 0);
		r.segment = NULL;
	}
}

static void make(const char *name, int64_t realtime_ns, bool seal)
{
	char tier[16];
	snprintf(tier, sizeof(tier), "%.*s", (int)strcspn(name, "/"), name);
	make_folders();
	make_segment(inside(name), realtime_ns, tier, seal);
}

/* One whose writer was killed. */
static void make_leftover(const char *name, int64_t realtime_ns)
{
	pid_t pid = fork();
	int status;
	if (pid == 0) {
		make(name, realtime_ns, false);
		kill(getpid(), SIGKILL);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFSIGNALED(status));
}

/* --- names ------------------------------------------------------------------------------------ */

TEST(name_tells_tier_and_start)
{
	char name[STORE_NAME_BYTES];
	enum tier tier;
	int64_t start;
	store_name(name, TIER_WINDOW, TWO_O_CLOCK + 1, BOOT, 1);
	ck_assert_str_eq(name, "window/20261121T140000Z-1f3a9c2b.mprf");
	ck_assert(store_name_parse(name, &tier, &start));
	ck_assert_int_eq(tier, TIER_WINDOW);
	ck_assert_int_eq(start, TWO_O_CLOCK);
	store_name(name, TIER_HOUR, MONDAY, "", 12);
	ck_assert_str_eq(name, "hour/20261116T000000Z-00000000-12.mprf");
	ck_assert(store_name_parse(name, &tier, &start));
	ck_assert_int_eq(tier, TIER_HOUR);
	store_name(name, TIER_MINUTE, 0, "../../x", 1);
	ck_assert_str_eq(name, "minute/19700101T000000Z-00000000.mprf");
}

TEST(names_of_one_boot_are_told_from_others)
{
	static const char window[] = "/var/lib/mperf/window/20261121T140000Z-1f3a9c2b.mprf";
	ck_assert(store_is_same_boot(window, "minute/20261120T000000Z-1f3a9c2b-2.mprf"));
	ck_assert(!store_is_same_boot(window, "window/20261121T140000Z-1f3a9c2a.mprf"));
	ck_assert(!store_is_same_boot(window, "window/20261121T140000Z"));
	ck_assert(!store_is_same_boot("", window));
}

TEST(other_names_are_none_of_ours)
{
	static const char *const names[] = {
		"",
		"window",
		"window/",
		"20261121T140000Z-1f3a.mprf",
		"windows/20261121T140000Z-1f3a.mprf",
		"win/20261121T140000Z-1f3a.mprf",
		"window/20261121T140000-1f3a.mprf",
		"window/20261121 140000Z-1f3a.mprf",
		"window/2026x121T140000Z-1f3a.mprf",
		"window/20261321T140000Z-1f3a.mprf",
		"window/20260631T140000Z-1f3a.mprf",
		"window/20261121T250000Z-1f3a.mprf",
		"window/99991121T140000Z-1f3a.mprf",
		"window/19691121T140000Z-1f3a.mprf",
		"window/20261121T140000Z-1f3a.mprf-wal",
		"window/20261121T140000Z-1f3a.mprf.new",
		"window/20261121T140000Z-1f3a",
		"window/20261121T140000Z1f3a.mprf",
		"window/20261121T140000Z-../x.mprf",
		"window/20261121T140000Z.mpr",
		"corrupt/20261121T140000Z-1f3a.mprf",
		("window/20261121T140000Z-00000000000000000000000000000000000000000000000000000000"
		 "00000000000000000000000000000000000000.mprf"),
	};
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		enum tier tier = N_TIERS;
		int64_t start = -1;
		ck_assert_msg(!store_name_parse(names[i], &tier, &start), "%s", names[i]);
		ck_assert_int_eq(tier, N_TIERS);
	}
}

TEST(periods_begin_at_the_hour_the_day_and_on_monday)
{
	int64_t t = TWO_O_CLOCK + 754 * SECOND;
	ck_assert_int_eq(tier_start_ns(TIER_WINDOW, t), TWO_O_CLOCK);
	ck_assert_int_eq(tier_start_ns(TIER_MINUTE, t), TWO_O_CLOCK - 14 * 3600 * SECOND);
	ck_assert_int_eq(tier_start_ns(TIER_HOUR, t), MONDAY);
	ck_assert_int_eq(tier_start_ns(TIER_HOUR, MONDAY), MONDAY);
	ck_assert_int_eq(tier_start_ns(TIER_HOUR, MONDAY - 1), MONDAY - 7 * 86400 * SECOND);
	ck_assert_int_eq(tier_start_ns(TIER_HOUR, 5), 0);
}

/* --- open ------------------------------------------------------------------------------------- */

TEST(folders_are_made_where_they_are_missing)
{
	struct stat st;
	open_store();
	ck_assert(there("window") && there("minute") && there("hour") && there("corrupt"));
	ck_assert_int_eq(stat(inside("window"), &st), 0);
	ck_assert_int_eq(st.st_mode & 0007, 0);
	ck_assert_uint_eq(s->n_files, 0);
	ck_assert_uint_gt(s->free_bytes, 0);
	open_store();
}

TEST(second_daemon_is_told_the_pid_of_the_first)
{
	int ready[2], go[2], status;
	char c, pid_text[32];
	ck_assert_int_eq(pipe(ready), 0);
	ck_assert_int_eq(pipe(go), 0);
	pid_t pid = fork();
	if (pid == 0) {
		close(go[1]);
		open_store();
		/* a child of that daemon, which outlives it, has no part in the lock */
		if (fork() == 0) {
			close(ready[1]);
			_exit(read(go[0], &c, 1) != 0);
		}
		if (write(ready[1], "r", 1) != 1)
			_exit(1);
		pause();
	}
	close(ready[1]);
	ck_assert_int_eq(read(ready[0], &c, 1), 1);
	ck_assert_int_eq(store_open(folder, &s, &error), STORE_BUSY);
	ck_assert_ptr_null(s);
	snprintf(pid_text, sizeof(pid_text), "pid %d)", (int)pid);
	ck_assert_msg(strstr(error.text, pid_text) != NULL, "%s", error.text);
	ck_assert_str_ne(error.remedy, "");
	kill(pid, SIGKILL);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	open_store();
	close(go[1]);
}

TEST(folder_that_cannot_be_made_is_refused)
{
	ck_assert_int_eq(store_open("/proc/no/such", &s, &error), STORE_REFUSED);
	ck_assert_msg(strstr(error.text, "/proc/no/such") != NULL, "%s", error.text);
	put("file", "");
	ck_assert_int_eq(store_open(inside("file"), &s, &error), STORE_REFUSED);
	ck_assert_int_eq(store_open("", &s, &error), STORE_REFUSED);
	if (geteuid() == 0) {
		ck_assert_int_eq(seteuid(65534), 0);
		int outcome = store_open(folder, &s, &error);
		ck_assert_int_eq(seteuid(0), 0);
		ck_assert_int_eq(outcome, STORE_REFUSED);
	}
	ck_assert_ptr_null(s);
}

TEST(files_are_listed_with_what_they_hold)
{
	make("window/20261121T140000Z-1f3a9c2b.mprf", TWO_O_CLOCK + SECOND / 2, true);
	make("window/20261121T130000Z-1f3a9c2b.mprf", TWO_O_CLOCK - 3600 * SECOND, true);
	make("minute/20261121T000000Z-1f3a9c2b.mprf", TWO_O_CLOCK - 3600 * SECOND, true);
	open_store();
	ck_assert_uint_eq(s->n_files, 3);
	ck_assert_str_eq(s->file[0].name, "window/20261121T130000Z-1f3a9c2b.mprf");
	ck_assert_str_eq(s->file[1].name, "window/20261121T140000Z-1f3a9c2b.mprf");
	ck_assert_int_eq(s->file[1].start_ns, TWO_O_CLOCK);
	ck_assert_int_eq(s->file[1].end_ns, TWO_O_CLOCK + SECOND / 2 + 10 * SECOND);
	ck_assert(s->file[0].sealed && s->file[1].sealed);
	/* a day's file begins with its first row */
	ck_assert_int_eq(s->file[2].start_ns, TWO_O_CLOCK - 3600 * SECOND);
	struct stat st;
	ck_assert_int_eq(stat(inside(s->file[0].name), &st), 0);
	ck_assert_uint_eq(s->file[0].bytes, (uint64_t)st.st_size);
	ck_assert_uint_eq(s->bytes, s->file[0].bytes + s->file[1].bytes + s->file[2].bytes);
	ck_assert_uint_eq(s->n_corrupt + s->n_recovered, 0);
}

TEST(leftover_of_a_killed_daemon_is_sealed)
{
	struct segment_error e;
	make_leftover("window/20261121T140000Z-1f3a9c2b.mprf", TWO_O_CLOCK);
	open_store();
	ck_assert_uint_eq(s->n_files, 1);
	ck_assert_uint_eq(s->n_recovered, 1);
	ck_assert(s->file[0].sealed && !s->file[0].left);
	ck_assert_int_eq(s->file[0].end_ns, TWO_O_CLOCK + 10 * SECOND);
	ck_assert_int_eq(segment_open(inside(s->file[0].name), &r.db, &e), 0);
	ck_assert_int_eq(stored_number(r.db, "SELECT count(*) FROM sample"), 1);
}

TEST(leftover_without_anything_in_it_is_removed)
{
	make_folders();
	put("window/20261121T140000Z-1f3a9c2b.mprf", "");
	pid_t pid = fork();
	if (pid == 0) {
		struct segment_meta meta = {.live = true};
		segment_create(inside("window/20261121T150000Z-1f3a9c2b.mprf"), &meta, &r.sampler,
			&r.segment);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	ck_assert(there("window/20261121T150000Z-1f3a9c2b.mprf"));
	open_store();
	ck_assert_uint_eq(s->n_files, 0);
	ck_assert(!there("window/20261121T140000Z-1f3a9c2b.mprf"));
	ck_assert(!there("window/20261121T150000Z-1f3a9c2b.mprf"));
	ck_assert(!there("window/20261121T150000Z-1f3a9c2b.mprf-wal"));
}

TEST(damaged_files_are_set_aside_and_counted)
{
	make("window/20261121T120000Z-1f3a9c2b.mprf", TWO_O_CLOCK - 7200 * SECOND, true);
	make("window/20261121T130000Z-1f3a9c2b.mprf", TWO_O_CLOCK - 3600 * SECOND, true);
	make("minute/20261121T000000Z-1f3a9c2b.mprf", TWO_O_CLOCK, true);
	make_leftover("window/20261121T140000Z-1f3a9c2b.mprf", TWO_O_CLOCK);
	put("window/20261121T110000Z-1f3a9c2b.mprf", "this is no database, and never was one");
	ck_assert_int_eq(truncate(inside("window/20261121T130000Z-1f3a9c2b.mprf"), 4096), 0);
	ck_assert_int_eq(truncate(inside("window/20261121T140000Z-1f3a9c2b.mprf"), 300), 0);
	ck_assert_int_eq(truncate(inside("minute/20261121T000000Z-1f3a9c2b.mprf"), 4096), 0);
	unlink(inside("window/20261121T140000Z-1f3a9c2b.mprf-wal"));
	open_store();
	ck_assert_uint_eq(s->n_corrupt, 4);
	ck_assert_uint_eq(s->n_files, 5);
	for (size_t i = 0; i < 4; i++) {
		ck_assert(s->file[i].corrupt);
		ck_assert_int_eq(strncmp(s->file[i].name, "corrupt/", 8), 0);
		ck_assert(there(s->file[i].name));
		ck_assert_uint_gt(s->file[i].bytes, 0);
	}
	ck_assert_str_eq(s->file[4].name, "window/20261121T120000Z-1f3a9c2b.mprf");
	ck_assert(!there("window/20261121T130000Z-1f3a9c2b.mprf"));
	ck_assert(there("corrupt/minute-20261121T000000Z-1f3a9c2b.mprf"));
	/* they are still counted, and not set aside again, the next time */
	uint64_t bytes = s->bytes;
	open_store();
	ck_assert_uint_eq(s->n_corrupt, 0);
	ck_assert_uint_eq(s->n_files, 5);
	ck_assert_uint_eq(s->bytes, bytes);
}

TEST(what_is_not_ours_is_left_alone)
{
	make_folders();
	put("window/notes.txt", "mine");
	put("window/20261121T140000Z-1f3a9c2b.mprf.bak", "mine");
	mkdir(inside("window/20261121T160000Z-1f3a9c2b.mprf"), 0700);
	/* what lay beside files that are no more, is */
	put("window/20261121T140000Z-1f3a9c2b.mprf-wal", "x");
	put("minute/20261121T000000Z-1f3a9c2b.mprf.new", "x");
	put("minute/20261121T000000Z-1f3a9c2b.mprf.new-journal", "x");
	open_store();
	ck_assert(there("window/notes.txt"));
	ck_assert(there("window/20261121T140000Z-1f3a9c2b.mprf.bak"));
	ck_assert(!there("window/20261121T140000Z-1f3a9c2b.mprf-wal"));
	ck_assert(!there("minute/20261121T000000Z-1f3a9c2b.mprf.new"));
	ck_assert(!there("minute/20261121T000000Z-1f3a9c2b.mprf.new-journal"));
}

TEST(unsealed_coarse_file_is_kept_as_it_is)
{
	make("minute/20261121T000000Z-1f3a9c2b.mprf", TWO_O_CLOCK, true);
	sqlite3 *db;
	ck_assert_int_eq(
		sqlite3_open(inside("minute/20261121T000000Z-1f3a9c2b.mprf"), &db), SQLITE_OK);
	ck_assert_int_eq(sqlite3_exec(db,
				 "UPDATE meta SET value = 0 WHERE key = 'sealed'; INSERT INTO meta "
				 "VALUES ('source:20261121T140000Z-1f3a9c2b.mprf', 1), "
				 "('source:', 1), ('source:../../x', 1)",
				 NULL, NULL, NULL),
		SQLITE_OK);
	sqlite3_close(db);
	make("window/20261121T140000Z-1f3a9c2b.mprf", TWO_O_CLOCK, true);
	make("window/20261121T150000Z-1f3a9c2b.mprf", TWO_O_CLOCK + 3600 * SECOND, true);
	open_store();
	ck_assert_uint_eq(s->n_files, 3);
	ck_assert(!s->file[2].sealed && !s->file[2].left);
	ck_assert_int_eq(s->file[2].end_ns, TWO_O_CLOCK + 10 * SECOND);
	/* and its sources are known */
	ck_assert_uint_eq(s->file[0].rolled, 1u << TIER_MINUTE);
	ck_assert_uint_eq(s->file[1].rolled, 0);
	ck_assert_int_eq(store_set_aside(s, s->file[2].name), 0);
	ck_assert(s->file[0].corrupt);
	ck_assert_uint_eq(s->file[1].rolled, 0);
}

/* --- changes ---------------------------------------------------------------------------------- */

TEST(new_path_is_not_there_yet)
{
	_cleanup_(freep) char *first = NULL, *second = NULL;
	open_store();
	ck_assert_int_eq(store_new_path(s, TWO_O_CLOCK, BOOT, &first), 0);
	ck_assert_str_eq(first, inside("window/20261121T140000Z-1f3a9c2b.mprf"));
	put("window/20261121T140000Z-1f3a9c2b.mprf", "");
	ck_assert_int_eq(store_new_path(s, TWO_O_CLOCK + 5, BOOT, &second), 0);
	ck_assert_str_eq(second, inside("window/20261121T140000Z-1f3a9c2b-2.mprf"));
}

TEST(tier_path_is_that_of_its_period_and_boot)
{
	_cleanup_(freep) char *day = NULL, *week = NULL;
	open_store();
	ck_assert_int_eq(store_tier_path(s, TIER_MINUTE, TWO_O_CLOCK, BOOT, &day), 0);
	ck_assert_str_eq(day, inside("minute/20261121T000000Z-1f3a9c2b.mprf"));
	ck_assert_int_eq(store_tier_path(s, TIER_HOUR, TWO_O_CLOCK, BOOT, &week), 0);
	ck_assert_str_eq(week, inside("hour/20261116T000000Z-1f3a9c2b.mprf"));
	_cleanup_(freep) char *of_source = NULL;
	struct store_file source = {
		.name = "window/20261121T140000Z-1f3a9c2b-2.mprf", .start_ns = TWO_O_CLOCK};
	ck_assert_int_eq(store_target_path(s, &source, TIER_MINUTE, &of_source), 0);
	ck_assert_str_eq(of_source, day);
}

TEST(segment_is_noted_live_and_then_sealed)
{
	_cleanup_(freep) char *path = NULL;
	open_store();
	ck_assert_int_eq(store_new_path(s, TWO_O_CLOCK, BOOT, &path), 0);
	make_segment(path, TWO_O_CLOCK, NULL, false);
	ck_assert_int_eq(store_note(s, path), 0);
	ck_assert_uint_eq(s->n_files, 1);
	ck_assert(!s->file[0].sealed && !s->file[0].left);
	ck_assert_int_eq(s->file[0].end_ns, 0);
	ck_assert_int_eq(store_measure(s), 0);
	/* its index has 32 KB beside it */
	ck_assert_uint_ge(s->bytes, (uint64_t)segment_bytes(r.segment));
	ck_assert_int_eq(segment_seal(r.segment, 10 * SECOND), 0);
	r.segment = NULL;
	ck_assert_int_eq(store_note(s, path), 0);
	ck_assert_uint_eq(s->n_files, 1);
	ck_assert(s->file[0].sealed);
	ck_assert_int_eq(s->file[0].end_ns, TWO_O_CLOCK + 10 * SECOND);
	unlink(path);
	ck_assert_int_eq(store_note(s, s->file[0].name), 0);
	ck_assert_uint_eq(s->n_files, 0);
	ck_assert_uint_eq(s->bytes, 0);
}

TEST(noting_leaves_the_writer_his_locks)
{
	int status;
	_cleanup_(freep) char *path = NULL;
	open_store();
	ck_assert_int_eq(store_new_path(s, TWO_O_CLOCK, BOOT, &path), 0);
	make_segment(path, TWO_O_CLOCK, NULL, false);
	ck_assert_int_eq(store_note(s, path), 0);
	ck_assert_int_eq(store_measure(s), 0);
	/* so another process that comes and goes does not take its log for a dead one's */
	pid_t pid = fork();
	if (pid == 0) {
		sqlite3 *db;
		struct segment_error e;
		r.segment = segment_forget(r.segment);
		if (segment_open_live(path, &db, &e) != 0)
			_exit(1);
		sqlite3_close(db);
		_exit(segment_recover(path, &e) != SEGMENT_HELD);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	stored_add(&r, &(struct stored_sample){.task = task_find(&r.tasks, 100)});
	ck_assert_int_eq(stored_flush(&r, 10 * SECOND, 20 * SECOND), 0);
}

TEST(segment_that_could_not_be_sealed_is_sealed_later)
{
	make_folders();
	open_store();
	ck_assert_int_eq(store_note(s, "window/20261121T140000Z-1f3a9c2b.mprf"), 0);
	ck_assert_uint_eq(s->n_files, 0);
	make_leftover("window/20261121T140000Z-1f3a9c2b.mprf", TWO_O_CLOCK);
	ck_assert_int_eq(store_note(s, "window/20261121T140000Z-1f3a9c2b.mprf"), 0);
	ck_assert(!s->file[0].left);
	ck_assert_int_eq(store_measure(s), 0);
	ck_assert(!s->file[0].sealed);
	/* its writer has closed it */
	ck_assert_int_eq(store_note(s, "window/20261121T140000Z-1f3a9c2b.mprf"), 0);
	ck_assert(s->file[0].left);
	ck_assert_int_eq(store_measure(s), 0);
	ck_assert(s->file[0].sealed && !s->file[0].left);
	ck_assert_uint_eq(s->n_recovered, 1);
}

/* As for a daemon that has no descriptor left. */
static void note_without_descriptors(const char *name)
{
	struct rlimit limit, none;
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = (struct rlimit){.rlim_cur = 0, .rlim_max = limit.rlim_max};
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	int outcome = store_note(s, name);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	ck_assert_int_eq(outcome, 0);
}

static void look_again(void)
{
	s->again_ns = 0;
	ck_assert_int_eq(store_measure(s), 0);
}

TEST(file_that_cannot_be_opened_for_a_moment_stays_as_it_was)
{
	static const char *const names[] = {
		"window/20261121T140000Z-1f3a9c2b.mprf", "minute/20261121T000000Z-1f3a9c2b.mprf"};
	for (size_t i = 0; i < 2; i++)
		make(names[i], TWO_O_CLOCK, true);
	open_store();
	for (size_t i = 0; i < 2; i++) {
		const struct store_file before = s->file[i];
		note_without_descriptors(names[i]);
		ck_assert_uint_eq(s->n_files, 2);
		ck_assert_str_eq(s->file[i].name, before.name);
		ck_assert(s->file[i].unread && s->file[i].sealed && !s->file[i].left);
		ck_assert_int_eq(s->file[i].start_ns, before.start_ns);
		ck_assert_int_eq(s->file[i].end_ns, TWO_O_CLOCK + 10 * SECOND);
	}
	look_again();
	for (size_t i = 0; i < 2; i++)
		ck_assert(s->file[i].sealed && !s->file[i].unread);
	ck_assert_uint_eq(s->n_recovered, 0);
}

TEST(new_file_that_cannot_be_opened_for_a_moment_is_read_later)
{
	make_folders();
	open_store();
	make("minute/20261121T000000Z-1f3a9c2b.mprf", TWO_O_CLOCK, true);
	note_without_descriptors("minute/20261121T000000Z-1f3a9c2b.mprf");
	ck_assert_uint_eq(s->n_files, 1);
	ck_assert(s->file[0].unread && !s->file[0].sealed);
	ck_assert_int_eq(s->file[0].end_ns, s->file[0].start_ns);
	look_again();
	ck_assert(s->file[0].sealed && !s->file[0].unread);
	ck_assert_int_eq(s->file[0].start_ns, TWO_O_CLOCK);
	ck_assert_int_eq(s->file[0].end_ns, TWO_O_CLOCK + 10 * SECOND);
}

/* A link to itself cannot be opened, not even by root. */
TEST(files_that_cannot_be_opened_at_the_start_are_read_later)
{
	char name[128], made[128];
	make("window/20261121T140000Z-1f3a9c2b.mprf", TWO_O_CLOCK, true);
	snprintf(name, sizeof(name), "%s/window/20261121T140000Z-1f3a9c2b.mprf", folder);
	snprintf(made, sizeof(made), "%s/made", folder);
	ck_assert_int_eq(rename(name, made), 0);
	for (int hour = 12; hour < 15; hour++) {
		snprintf(name, sizeof(name), "%s/window/20261121T%d0000Z-1f3a9c2b.mprf", folder,
			hour);
		ck_assert_int_eq(symlink(name, name), 0);
	}
	open_store();
	ck_assert_uint_eq(s->n_files, 3);
	look_again();
	for (size_t i = 0; i < 3; i++)
		ck_assert(s->file[i].unread && s->file[i].left);
	ck_assert_int_eq(unlink(name), 0);
	ck_assert_int_eq(rename(made, name), 0);
	look_again();
	ck_assert(s->file[0].unread && s->file[1].unread && !s->file[2].unread);
	ck_assert(s->file[2].sealed && !s->file[2].left);
	ck_assert_int_eq(s->file[2].end_ns, TWO_O_CLOCK + 10 * SECOND);
}

TEST(noting_other_files_is_an_error)
{
	open_store();
	ck_assert_int_eq(store_note(s, "/etc/passwd"), -EINVAL);
	ck_assert_int_eq(store_note(s, "window/../../x.mprf"), -EINVAL);
	ck_assert_int_eq(store_note(s, ""), -EINVAL);
	ck_assert_int_eq(store_set_aside(s, "window/none.mprf"), 0);
}

TEST(retention_unlinks_real_files_with_all_that_belongs_to_them)
{
	bool fits;
	struct store_limits limits = {.budget_bytes = UINT64_MAX, .keep_ns = {UINT64_MAX}};
	make("window/20261121T130000Z-1f3a9c2b.mprf", TWO_O_CLOCK - 3600 * SECOND, true);
	make("window/20261121T140000Z-1f3a9c2b.mprf", TWO_O_CLOCK, true);
	open_store();
	limits.budget_bytes = s->bytes - 1;
	ck_assert_int_eq(store_retain(s, &limits, TWO_O_CLOCK, 0, NULL, &fits), 1);
	ck_assert(fits);
	ck_assert(!there("window/20261121T130000Z-1f3a9c2b.mprf"));
	ck_assert(there("window/20261121T140000Z-1f3a9c2b.mprf"));
	ck_assert_str_eq(s->last_unlinked, "window/20261121T130000Z-1f3a9c2b.mprf");
}
