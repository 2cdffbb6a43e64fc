/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Segments of the store: read by other processes while they are written, and whole after their
 * writer was killed. Readers and writers that die are forked.
 */

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/base/memory.h"
#include "tests/unit/stored.h"
#include "tests/unit/test.h"

static struct stored s;

static void end(void)
{
	if (*s.folder)
		stored_end(&s);
	memset(&s, 0, sizeof(s));
}

EACH_TEST(.end = end, .seconds = 60);

/* A live segment at s.path. */
static void begin_live(void)
{
	stored_begin_clock(&s);
	s.segment = segment_abandon(s.segment, true);
	struct segment_meta meta = {
		.boot_id = "11111111-2222-3333-4444-555555555555",
		.monotonic_ns = 7,
		.host = "bench",
		.release = "6.12.0",
		.arch = "riscv64",
		.hz = 99,
		.live = true,
	};
	ck_assert_int_eq(segment_create(s.path, &meta, &s.sampler, &s.segment), 0);
}

static struct task *add_one(void)
{
	struct task *t = stored_task(&s, 100, 100, "prog");
	struct frame *f = stored_function(&s, "/bin/prog", "main");
	stored_add(&s, &(struct stored_sample){.task = t, .frame = {f}});
	return t;
}

/* What `sql` gives to another process that opens the live segment; -100 - outcome if it cannot. */
static int64_t seen_by_reader(const char *sql)
{
	int to[2];
	ck_assert_int_eq(pipe(to), 0);
	pid_t pid = fork();
	if (pid == 0) {
		struct segment_error error;
		sqlite3 *db = NULL;
		s.segment = segment_forget(s.segment);
		int r = segment_open_live(s.path, &db, &error);
		int64_t n = r == 0 ? stored_number(db, sql) : -100 - r;
		sqlite3_close(db);
		_exit(write(to[1], &n, sizeof(n)) != sizeof(n));
	}
	int64_t n = 0;
	int status;
	close(to[1]);
	ck_assert_int_eq(read(to[0], &n, sizeof(n)), sizeof(n));
	close(to[0]);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	return n;
}

/* A process that has opened the segment and keeps what it saw, until the pipe is closed. */
static pid_t hold(int *ret_fd)
{
	int ready[2], go[2];
	char c = 0;
	ck_assert_int_eq(pipe(ready), 0);
	ck_assert_int_eq(pipe(go), 0);
	pid_t pid = fork();
	if (pid == 0) {
		struct segment_error error;
		sqlite3 *db = NULL;
		close(go[1]);
		s.segment = segment_forget(s.segment);
		int r = segment_open_live(s.path, &db, &error);
		int64_t before = r == 0 ? stored_number(db, "SELECT count(*) FROM window") : -1;
		if (write(ready[1], "r", 1) != 1 || read(go[0], &c, 1) != 0)
			_exit(2);
		int64_t after = r == 0 ? stored_number(db, "SELECT count(*) FROM window") : -2;
		sqlite3_close(db);
		_exit(before != after);
	}
	close(ready[1]);
	close(go[0]);
	ck_assert_int_eq(read(ready[0], &c, 1), 1);
	close(ready[0]);
	*ret_fd = go[1];
	return pid;
}

static void let_go(pid_t pid, int fd)
{
	int status;
	close(fd);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}

TEST(live_segment_is_read_while_it_is_written)
{
	begin_live();
	ck_assert_int_eq(seen_by_reader("SELECT count(*) FROM window"), 0);
	struct task *t = add_one();
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(
			stored_flush(&s, (uint64_t)i * 1000, (uint64_t)i * 1000 + 1000), 0);
		ck_assert_int_eq(seen_by_reader("SELECT count(*) FROM window"), i + 1);
		stored_add(&s, &(struct stored_sample){.task = t});
	}
	ck_assert_int_eq(seen_by_reader("SELECT count(*) FROM sample"), 3);
	/* readers that came and went took nothing with them */
	sqlite3 *db = stored_seal(&s);
	ck_assert_int_eq(stored_number(db, "SELECT count(*) FROM sample"), 4);
	ck_assert_int_eq(stored_number(db, "SELECT value FROM meta WHERE key = 'sealed'"), 1);
	ck_assert_int_eq(stored_number(db, "SELECT count(*) FROM meta WHERE key = 'recovered'"), 0);
}

TEST(sealed_segment_opens_like_a_live_one)
{
	struct segment_error error;
	begin_live();
	add_one();
	sqlite3_close(stored_seal(&s));
	s.db = NULL;
	ck_assert_int_eq(segment_open_live(s.path, &s.db, &error), 0);
	ck_assert_int_eq(stored_number(s.db, "SELECT count(*) FROM sample"), 1);
	ck_assert_int_eq(
		sqlite3_exec(s.db, "DELETE FROM sample", NULL, NULL, NULL), SQLITE_READONLY);
}

TEST(reader_sees_one_moment_and_the_writer_goes_on)
{
	int fd;
	begin_live();
	add_one();
	ck_assert_int_eq(stored_flush(&s, 0, 1000), 0);
	pid_t pid = hold(&fd);
	for (uint64_t i = 1; i < 20; i++)
		ck_assert_int_eq(stored_flush(&s, i * 1000, i * 1000 + 1000), 0);
	let_go(pid, fd);
	ck_assert_int_eq(seen_by_reader("SELECT count(*) FROM window"), 20);
}

TEST(log_at_its_limit_is_held_until_the_reader_goes)
{
	int fd;
	begin_live();
	add_one();
	ck_assert_int_eq(stored_flush(&s, 0, 1000), 0);
	pid_t pid = hold(&fd);
	ck_assert_int_eq(stored_flush(&s, 1000, 2000), 0);
	s.segment->wal_pages = SEGMENT_WAL_BYTES_MAX / SEGMENT_PAGE_BYTES;
	ck_assert_int_eq(stored_flush(&s, 2000, 3000), SEGMENT_HELD);
	let_go(pid, fd);
	ck_assert_int_eq(stored_flush(&s, 2000, 3000), 0);
	ck_assert_int_lt(s.segment->wal_pages, 100);
	ck_assert_int_eq(seen_by_reader("SELECT count(*) FROM window"), 3);
}

TEST(group_may_read_a_live_segment_with_its_log)
{
	static const char *const suffix[] = {"", "-wal", "-shm"};
	umask(0077);
	begin_live();
	for (size_t i = 0; i < 3; i++) {
		struct stat st;
		char path[200];
		snprintf(path, sizeof(path), "%s%s", s.path, suffix[i]);
		ck_assert_msg(stat(path, &st) == 0, "%s", path);
		ck_assert_int_eq(st.st_mode & 07777, 0640);
	}
}

TEST(losses_before_it_began_are_not_its_own)
{
	stored_begin_clock(&s);
	s.segment = segment_abandon(s.segment, true);
	s.lost[1][LOSS_RING] = 40;
	struct segment_meta meta = {.lost = s.lost, .n_harts = STORED_HARTS};
	ck_assert_int_eq(segment_create(s.path, &meta, &s.sampler, &s.segment), 0);
	ck_assert_int_eq(stored_flush(&s, 0, 1000), 0);
	s.lost[1][LOSS_RING] = 42;
	s.lost[0][LOSS_NAMER] = 1;
	sqlite3 *db = stored_seal(&s);
	ck_assert_str_eq(stored_string(db, "SELECT group_concat(hart || ':' || count) FROM loss"),
		"0:1,1:2");
}

TEST(size_counts_the_log)
{
	struct stat file, log;
	char path[200];
	begin_live();
	add_one();
	ck_assert_int_eq(stored_flush(&s, 0, 1000), 0);
	snprintf(path, sizeof(path), "%s-wal", s.path);
	ck_assert_int_eq(stat(s.path, &file), 0);
	ck_assert_int_eq(stat(path, &log), 0);
	ck_assert_int_gt(log.st_size, 0);
	ck_assert_int_eq(segment_bytes(s.segment), file.st_size + log.st_size);
}

TEST(frames_without_a_name_are_counted_until_they_have_one)
{
	begin_live();
	struct task *t = stored_task(&s, 100, 100, "prog");
	struct frame *f = stored_frame(&s, FILE_ELF, "/bin/prog", 16);
	f->state = FRAME_ASKED;
	stored_add(&s, &(struct stored_sample){.task = t, .frame = {f}});
	ck_assert_uint_eq(segment_unnamed(s.segment), 0);
	ck_assert_int_eq(stored_flush(&s, 0, 1000), 0);
	ck_assert_uint_eq(segment_unnamed(s.segment), 1);
	stored_name(f, "main", NULL);
	ck_assert_int_eq(stored_flush(&s, 1000, 2000), 0);
	ck_assert_uint_eq(segment_unnamed(s.segment), 0);
}

TEST(frame_whose_name_may_come_late_is_not_waited_for)
{
	begin_live();
	struct task *t = stored_task(&s, 100, 100, "prog");
	struct frame *f = stored_frame(&s, FILE_PERF_MAP, "/tmp/perf-100.map", 16);
	f->state = FRAME_ASKED;
	stored_add(&s, &(struct stored_sample){.task = t, .frame = {f}});
	ck_assert_int_eq(stored_flush(&s, 0, 1000), 0);
	ck_assert_uint_eq(segment_unnamed(s.segment), 1);
	f->asker = FRAME_LATE;
	ck_assert_int_eq(stored_flush(&s, 1000, 2000), 0);
	ck_assert_uint_eq(segment_unnamed(s.segment), 0);
	stored_name(f, "jitted", NULL);
	sqlite3 *db = stored_seal(&s);
	ck_assert_str_eq(stored_string(db, "SELECT name FROM function"), "jitted");
}

/* Give it another name. */
static void rename_frame(struct frame *f, const char *name)
{
	free(f->place);
	f->n_places = 0;
	stored_name(f, name, NULL);
}

TEST(name_that_comes_after_it_was_given_up_takes_the_place_of_none)
{
	begin_live();
	struct task *t = stored_task(&s, 100, 100, "prog");
	struct frame *f = stored_frame(&s, FILE_ELF, "/bin/prog", 16);
	struct frame *still = stored_frame(&s, FILE_ELF, "/bin/prog", 32);
	stored_name(f, "prog+0x10", NULL); /* a place, and no name */
	f->state = FRAME_OUT_OF_SYMBOL;
	still->state = FRAME_UNNAMED;
	stored_add(&s, &(struct stored_sample){.task = t, .frame = {f, still}});
	ck_assert_int_eq(stored_flush(&s, 0, 1000), 0);
	ck_assert_uint_eq(segment_unnamed(s.segment), 0);
	f->state = still->state = FRAME_ASKED;
	s.files.n_asked_anew += 2;
	ck_assert_int_eq(stored_flush(&s, 1000, 2000), 0);
	ck_assert_uint_eq(segment_unnamed(s.segment), 2);
	rename_frame(f, "main");
	still->state = FRAME_UNNAMED;
	ck_assert_int_eq(stored_flush(&s, 2000, 3000), 0);
	ck_assert_uint_eq(segment_unnamed(s.segment), 0);
	/* between two flushes */
	stored_name(still, "exit", NULL);
	s.files.n_asked_anew++;
	ck_assert_int_eq(stored_flush(&s, 3000, 4000), 0);
	sqlite3 *db = stored_seal(&s);
	ck_assert_str_eq(stored_string(db, "SELECT group_concat(state) FROM frame"), "2,2");
	ck_assert_str_eq(
		stored_string(db, "SELECT group_concat(name) FROM (SELECT name FROM place "
				  "JOIN function ON function.id = place.function ORDER BY frame)"),
		"main,exit");
}

/* --- tasks that change ------------------------------------------------------------------------ */

TEST(each_flush_tells_of_tasks_that_ended)
{
	begin_live();
	struct task *t = add_one();
	ck_assert_int_eq(stored_flush(&s, 0, 1000), 0);
	t->end_ns = 777;
	ck_assert_int_eq(stored_flush(&s, 1000, 2000), 0);
	ck_assert_int_eq(seen_by_reader("SELECT end_ns FROM task"), 777);
	/* arguments that were read late still come */
	t->argv = strdup("prog");
	t->n_argv = 4;
	ck_assert_int_eq(stored_flush(&s, 2000, 3000), 0);
	ck_assert_int_eq(seen_by_reader("SELECT length(argv) FROM task"), 4);
	ck_assert_int_eq(stored_flush(&s, 3000, 4000), 0);
	ck_assert_uint_eq(s.segment->n_living, 0);
}

TEST(two_segments_of_a_session_are_both_told)
{
	struct segment *other = NULL;
	char path[160];
	begin_live();
	snprintf(path, sizeof(path), "%s/other", s.folder);
	ck_assert_int_eq(segment_create(path, &(struct segment_meta){0}, &s.sampler, &other), 0);
	struct task *t = add_one();
	struct segment_flush view = stored_view(&s);
	ck_assert_int_eq(segment_flush(other, &view), 0);
	ck_assert_int_eq(stored_flush(&s, 0, 1000), 0);
	task_set_comm(t, "after");
	t->changed = true;
	view = stored_view(&s);
	ck_assert_int_eq(segment_update(other, &view), 0);
	ck_assert_int_eq(segment_seal(other, 1), 0);
	ck_assert_str_eq(stored_string(stored_seal(&s), "SELECT comm FROM task"), "after");
	sqlite3_close(s.db);
	struct segment_error error;
	ck_assert_int_eq(segment_open(path, &s.db, &error), 0);
	ck_assert_str_eq(stored_string(s.db, "SELECT comm FROM task"), "after");
}

TEST(task_that_was_swept_keeps_its_row)
{
	begin_live();
	struct task *t = add_one();
	ck_assert_int_eq(stored_flush(&s, 0, 1000), 0);
	s.tasks.task[t->id - 1] = NULL;
	ck_assert_int_eq(stored_flush(&s, 1000, 2000), 0);
	s.tasks.task[t->id - 1] = t;
	ck_assert_str_eq(stored_string(stored_seal(&s), "SELECT comm FROM task"), "prog");
}

TEST(parent_that_was_swept_stays_known)
{
	begin_live();
	struct task *shell = stored_task(&s, 10, 10, "sh");
	struct task *t = add_one();
	t->parent = shell;
	ck_assert_int_eq(stored_flush(&s, 0, 1000), 0);
	t->parent = NULL;
	t->end_ns = 5;
	sqlite3 *db = stored_seal(&s);
	ck_assert_str_eq(
		stored_string(db, "SELECT p.comm FROM task t JOIN task p ON p.id = t.parent"),
		"sh");
	ck_assert_int_eq(stored_number(db, "SELECT end_ns FROM task WHERE pid = 100"), 5);
}

TEST(ids_may_be_far_apart)
{
	begin_live();
	struct task *t = stored_task(&s, 100, 100, "old");
	struct task *late = stored_task(&s, 200, 200, "late");
	stored_add(&s, &(struct stored_sample){.task = t});
	late->id = 400000000;
	stored_add(&s, &(struct stored_sample){.task = late});
	ck_assert_int_eq(stored_flush(&s, 0, 1000), 0);
	ck_assert_int_eq(seen_by_reader("SELECT max(id) FROM task"), 400000000);
}

/* --- writers that die ------------------------------------------------------------------------- */

/* A writer that is killed after n windows of 100 samples each. */
static void write_and_die(int n, bool checkpoint)
{
	stored_folder(&s);
	stored_event(&s, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, "cpu-clock");
	pid_t pid = fork();
	if (pid == 0) {
		struct segment_meta meta = {.boot_id = "1", .monotonic_ns = 7, .live = true};
		if (segment_create(s.path, &meta, &s.sampler, &s.segment) != 0)
			_exit(1);
		struct task *t = stored_task(&s, 100, 100, "prog");
		struct frame *f[100];
		for (int i = 0; i < 100; i++)
			f[i] = stored_function(&s, "/bin/prog", "some function");
		for (int i = 0; i < n; i++) {
			for (int k = 0; k < 100; k++)
				stored_add(&s,
					&(struct stored_sample){.task = t, .frame = {f[k], f[i]}});
			stored_flush(&s, (uint64_t)i * 1000, (uint64_t)i * 1000 + 1000);
		}
		if (checkpoint)
			sqlite3_wal_checkpoint_v2(
				s.segment->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
		kill(getpid(), SIGKILL);
	}
	int status;
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFSIGNALED(status));
}

static int recover(void)
{
	struct segment_error error = {"", ""};
	int r = segment_recover(s.path, &error);
	if (r != 0) {
		ck_assert_msg(strstr(error.text, s.path) != NULL, "\"%s\"", error.text);
		ck_assert_str_ne(error.remedy, "");
	}
	return r;
}

TEST(killed_writer_leaves_all_it_flushed)
{
	struct segment_error error;
	write_and_die(5, false);
	ck_assert_int_eq(segment_open(s.path, &s.db, &error), SEGMENT_UNSEALED);
	ck_assert_int_eq(recover(), 0);
	ck_assert_msg(segment_open(s.path, &s.db, &error) == 0, "%s", error.text);
	ck_assert_int_eq(stored_number(s.db, "SELECT count(*) FROM sample"), 500);
	ck_assert_int_eq(stored_number(s.db, "SELECT value FROM meta WHERE key = 'end_ns'"), 5000);
	ck_assert_int_eq(stored_number(s.db, "SELECT value FROM meta WHERE key = 'recovered'"), 1);
	ck_assert_str_eq(stored_string(s.db, "PRAGMA integrity_check"), "ok");
	/* again: nothing to be done */
	ck_assert_int_eq(recover(), 0);
}

TEST(writer_that_stored_nothing_leaves_nothing_of_worth)
{
	write_and_die(0, false);
	ck_assert_int_eq(recover(), SEGMENT_UNBORN);
}

TEST(file_that_was_only_begun_is_of_no_worth)
{
	sqlite3 *db;
	char sql[200];
	stored_folder(&s);
	close(open(s.path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	ck_assert_int_eq(recover(), SEGMENT_UNBORN);
	/* its header is written first: the rest never came */
	ck_assert_int_eq(sqlite3_open(s.path, &db), SQLITE_OK);
	snprintf(sql, sizeof(sql),
		"BEGIN; PRAGMA application_id=%d; PRAGMA user_version=%d; "
		"CREATE TABLE a(x); CREATE TABLE b(x); COMMIT",
		SEGMENT_APPLICATION_ID, SEGMENT_VERSION);
	ck_assert_int_eq(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	ck_assert_int_eq(truncate(s.path, 4096), 0);
	ck_assert_int_eq(recover(), SEGMENT_UNBORN);
}

static void scribble(off_t at, size_t n)
{
	int fd = open(s.path, O_WRONLY | O_CLOEXEC);
	char *rubbish = malloc(n);
	memset(rubbish, 0xa5, n);
	ck_assert_int_eq(pwrite(fd, rubbish, n, at), (ssize_t)n);
	free(rubbish);
	close(fd);
}

TEST(damaged_leftover_is_corrupt_and_stays_as_it_is)
{
	struct segment_error error;
	write_and_die(20, true);
	scribble(20 * SEGMENT_PAGE_BYTES, 40 * SEGMENT_PAGE_BYTES);
	ck_assert_int_eq(recover(), SEGMENT_CORRUPT);
	ck_assert_int_ne(segment_open(s.path, &s.db, &error), 0);
}

TEST(damaged_schema_is_corrupt)
{
	write_and_die(2, true);
	scribble(100, SEGMENT_PAGE_BYTES - 100);
	ck_assert_int_eq(recover(), SEGMENT_CORRUPT);
}

TEST(log_that_was_cut_off_loses_its_tail_alone)
{
	struct segment_error error;
	struct stat st;
	char log[160];
	write_and_die(5, false);
	snprintf(log, sizeof(log), "%s-wal", s.path);
	ck_assert_int_eq(stat(log, &st), 0);
	ck_assert_int_eq(truncate(log, st.st_size - 1), 0);
	ck_assert_int_eq(recover(), 0);
	ck_assert_int_eq(segment_open(s.path, &s.db, &error), 0);
	ck_assert_int_eq(stored_number(s.db, "SELECT count(*) FROM window"), 4);
	ck_assert_int_eq(stored_number(s.db, "SELECT count(*) FROM sample"), 400);
}

TEST(other_files_are_not_recovered)
{
	struct segment_error error;
	stored_folder(&s);
	int fd = open(s.path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	ck_assert_int_eq(write(fd, "not a database", 14), 14);
	close(fd);
	ck_assert_int_eq(recover(), SEGMENT_NOT_OURS);
	ck_assert_int_eq(segment_open_live(s.path, &s.db, &error), SEGMENT_NOT_OURS);
	unlink(s.path);
	ck_assert_int_eq(recover(), SEGMENT_ABSENT);
	ck_assert_int_eq(segment_open_live(s.path, &s.db, &error), SEGMENT_ABSENT);
	ck_assert_int_eq(mkfifo(s.path, 0600), 0);
	ck_assert_int_eq(recover(), SEGMENT_NOT_OURS);
	ck_assert_ptr_null(s.db);
}

TEST(newer_leftover_is_left_alone)
{
	struct segment_error error;
	char newer[64];
	begin_live();
	snprintf(newer, sizeof(newer), "PRAGMA user_version=%d", SEGMENT_VERSION + 1);
	sqlite3_exec(s.segment->db, newer, NULL, NULL, NULL);
	add_one();
	ck_assert_int_eq(stored_flush(&s, 0, 1000), 0);
	ck_assert_int_eq(segment_seal(s.segment, 5), 0);
	s.segment = NULL;
	ck_assert_int_eq(recover(), SEGMENT_OTHER_VERSION);
	ck_assert_int_eq(segment_open_live(s.path, &s.db, &error), SEGMENT_OTHER_VERSION);
}

TEST(seal_with_a_reader_is_finished_later)
{
	struct segment_error error;
	int fd;
	begin_live();
	add_one();
	ck_assert_int_eq(stored_flush(&s, 0, 1000), 0);
	pid_t pid = hold(&fd);
	ck_assert_int_eq(segment_seal(s.segment, 4321), SEGMENT_HELD);
	s.segment = NULL;
	ck_assert_int_eq(segment_open(s.path, &s.db, &error), SEGMENT_UNSEALED);
	ck_assert_int_eq(recover(), SEGMENT_HELD);
	let_go(pid, fd);
	ck_assert_int_eq(recover(), 0);
	ck_assert_int_eq(segment_open(s.path, &s.db, &error), 0);
	ck_assert_int_eq(stored_number(s.db, "SELECT value FROM meta WHERE key = 'end_ns'"), 4321);
	ck_assert_int_eq(
		stored_number(s.db, "SELECT count(*) FROM meta WHERE key = 'recovered'"), 0);
}

TEST(read_only_file_system_is_told_apart)
{
	struct segment *g = NULL;
	char path[160];
	stored_folder(&s);
	if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		mount("none", s.folder, "tmpfs", MS_RDONLY, "size=64k") < 0) {
		printf("SKIP read_only_file_system_is_told_apart: may not mount a tmpfs\n");
		return;
	}
	snprintf(path, sizeof(path), "%s/segment", s.folder);
	ck_assert_int_eq(
		segment_create(path, &(struct segment_meta){0}, &s.sampler, &g), SEGMENT_READ_ONLY);
	ck_assert_ptr_null(g);
	umount2(s.folder, MNT_DETACH);
}
