/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Children that answer: what they may, what becomes of what they say, and what of them.
 */
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "tests/unit/daemon/service/asked.h"
#include "tests/unit/test.h"

static void assert_fails(struct asked *a, const char *what)
{
	Mperf__Message *m = answered(a);
	ck_assert_int_eq(m->answer->body_case, MPERF__ANSWER__BODY_FAILURE);
	ck_assert_int_eq(m->answer->failure->kind, MPERF__FAILURE_KIND__FAILURE_INTERNAL);
	if (!strstr(m->answer->failure->what, what))
		ck_abort_msg("'%s' has no '%s'", m->answer->failure->what, what);
	mperf__message__free_unpacked(m, NULL);
	ck_assert_ptr_null(a->peer->request[0]);
}

/* Lasts as long as the test that it is written in. */
#define ANSWER(f) (&(struct offload_answer){.run = (f)})

/* --- what a child is -------------------------------------------------------------------------- */

static int tell_descriptors(struct request *q, void *userdata)
{
	int n = 0;
	(void)userdata;
	DIR *d = opendir("/proc/self/fd");
	while (readdir(d))
		n++;
	closedir(d);
	return request_done(q, n - 3); /* not ., .., nor that of the folder itself */
}

EACH_TEST(.seconds = 120);

TEST(a_child_has_no_descriptor_but_the_standard_ones_and_its_pipe)
{
	struct asked a;
	ask(&a);
	start(&a, ANSWER(tell_descriptors), NULL);
	ck_assert_int_eq(done_status(&a), 4);
	forget(&a);
}

static int tell_capable(struct request *q, void *userdata)
{
	char line[256];
	unsigned long long set = 0, all = 0;
	FILE *f = fopen("/proc/self/status", "re");
	(void)userdata;
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "CapEff: %llx", &set) == 1 ||
			sscanf(line, "CapPrm: %llx", &set) == 1 ||
			sscanf(line, "CapAmb: %llx", &set) == 1)
			all |= set;
	}
	if (f)
		fclose(f);
	return request_done(q, all != 0);
}

TEST(a_child_has_no_capability)
{
	struct asked a;
	ask(&a);
	start(&a, ANSWER(tell_capable), NULL);
	ck_assert_int_eq(done_status(&a), 0);
	forget(&a);
}

TEST(a_child_that_tries_events_keeps_what_we_have)
{
	static const struct offload_answer capable = {
		.run = tell_capable, .keeps_capabilities = true};
	struct asked a;
	ask(&a);
	start(&a, &capable, NULL);
	ck_assert_int_eq(done_status(&a), geteuid() == 0);
	forget(&a);
}

static int tell_signals(struct request *q, void *userdata)
{
	sigset_t set;
	(void)userdata;
	sigprocmask(SIG_SETMASK, NULL, &set);
	return request_done(
		q, signal(SIGINT, SIG_DFL) == SIG_DFL && !sigismember(&set, SIGTERM) ? 0 : 1);
}

TEST(a_child_has_signals_as_a_fresh_process_has_them)
{
	struct asked a;
	sigset_t term;
	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	sigprocmask(SIG_BLOCK, &term, NULL);
	signal(SIGINT, SIG_IGN);
	ask(&a);
	start(&a, ANSWER(tell_signals), NULL);
	ck_assert_int_eq(done_status(&a), 0);
	forget(&a);
}

static int spend_time(struct request *q, void *userdata)
{
	struct rlimit r;
	(void)userdata;
	getrlimit(RLIMIT_CPU, &r);
	if (r.rlim_max > OFFLOAD_SECONDS_MAX)
		return request_done(q, 99);
	raise(SIGXCPU); /* what the kernel does at the limit, without the wait */
	return 0;
}

TEST(a_child_over_its_time_is_told_as_such)
{
	struct asked a;
	ask(&a);
	start(&a, ANSWER(spend_time), NULL);
	assert_fails(&a, "longer than the limit of 120 s");
	forget(&a);
}

/* Opens a file that its parent writes, begins to read, and stays there. */
static int read_and_stay(struct request *q, void *path)
{
	sqlite3 *db;
	if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK ||
		sqlite3_exec(db, "BEGIN; SELECT count(*) FROM t", NULL, NULL, NULL) != SQLITE_OK)
		return -EIO;
	int r = request_progress(q, "reading", 0, 0);
	while (r == 0)
		pause();
	return r;
}

static int checkpoint(sqlite3 *db)
{
	return sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
}

TEST(a_child_locks_a_file_for_itself_that_its_parent_has_open)
{
	struct asked a;
	sqlite3 *db;
	char folder[] = "/tmp/mperf-offload-XXXXXX", path[64], extra[80];
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/file", folder);
	ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
	ck_assert_int_eq(sqlite3_exec(db,
				 "PRAGMA journal_mode=WAL; CREATE TABLE t(a);"
				 "INSERT INTO t VALUES(1)",
				 NULL, NULL, NULL),
		SQLITE_OK);
	ask(&a);
	start(&a, ANSWER(read_and_stay), path);
	Mperf__Message *m = answered(&a);
	ck_assert_int_eq(m->answer->body_case, MPERF__ANSWER__BODY_PROGRESS);
	mperf__message__free_unpacked(m, NULL);

	/* the writer goes on, and the log stays for who reads it */
	ck_assert_int_eq(sqlite3_exec(db, "INSERT INTO t VALUES(2)", NULL, NULL, NULL), SQLITE_OK);
	ck_assert_int_eq(checkpoint(db), SQLITE_BUSY);
	forget(&a);
	ck_assert_int_eq(checkpoint(db), SQLITE_OK);
	ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
	static const char *const suffix[] = {"", "-wal", "-shm"};
	for (int i = 0; i < 3; i++) {
		snprintf(extra, sizeof(extra), "%s%s", path, suffix[i]);
		unlink(extra);
	}
	rmdir(folder);
}

/* --- what it says ----------------------------------------------------------------------------- */

#define CHUNK 100000
#define CHUNKS 60 /* 6 MB: far more than a pipe and a peer's buffer hold */

static int say_much(struct request *q, void *userdata)
{
	static uint8_t chunk[CHUNK];
	int r = 0;
	(void)userdata;
	for (uint64_t i = 0; i < CHUNKS && r == 0; i++) {
		memset(chunk, (int)i, sizeof(chunk));
		r = request_bytes(q, chunk, sizeof(chunk), i * CHUNK, CHUNKS * CHUNK);
	}
	return r ? r : request_done(q, 5);
}

TEST(an_answer_larger_than_any_buffer_comes_through_whole)
{
	struct asked a;
	ask(&a);
	start(&a, ANSWER(say_much), NULL);
	for (unsigned i = 0; i < CHUNKS; i++) {
		Mperf__Message *m = answered(&a);
		ck_assert_int_eq(m->answer->body_case, MPERF__ANSWER__BODY_BYTES);
		ck_assert_uint_eq(m->answer->bytes->offset, (uint64_t)i * CHUNK);
		ck_assert_uint_eq(m->answer->bytes->data.len, CHUNK);
		ck_assert_uint_eq(m->answer->bytes->data.data[CHUNK - 1], i);
		mperf__message__free_unpacked(m, NULL);
	}
	ck_assert_int_eq(done_status(&a), 5);
	forget(&a);
}

TEST(an_answer_that_nobody_reads_takes_a_bounded_amount_of_memory)
{
	struct asked a;
	ask(&a);
	start(&a, ANSWER(say_much), NULL);
	for (int i = 0; i < 100; i++)
		turn(&a, 2);
	ck_assert_uint_le(frame_buffer_filled(&a.peer->out), 8 * FRAME_CHUNK_BYTES);
	ck_assert_ptr_nonnull(a.peer->request[0]);
	forget(&a);
}

static void take_note(struct request *q, void *userdata, const char *text)
{
	struct asked *a = userdata;
	(void)q;
	snprintf(a->noted, sizeof(a->noted), "%s", text);
}

static int note_something(struct request *q, void *userdata)
{
	(void)userdata;
	int r = offload_note(q, "a file is broken");
	return r ? r : request_done(q, 0);
}

TEST(a_note_reaches_the_daemon_and_not_the_peer)
{
	static const struct offload_answer noting = {.run = note_something, .note = take_note};
	struct asked a;
	ask(&a);
	start(&a, &noting, &a);
	ck_assert_int_eq(done_status(&a), 0);
	ck_assert_str_eq(a.noted, "a file is broken");
	forget(&a);
}

static int die(struct request *q, void *userdata)
{
	(void)q;
	(void)userdata;
	raise(SIGKILL);
	return 0;
}

TEST(a_child_that_is_killed_is_a_failure_that_names_the_signal)
{
	struct asked a;
	ask(&a);
	start(&a, ANSWER(die), NULL);
	assert_fails(&a, "killed by signal 9");
	forget(&a);
}

static int say_nothing(struct request *q, void *userdata)
{
	(void)q;
	(void)userdata;
	return 0;
}

TEST(a_child_that_ends_without_an_answer_is_a_failure)
{
	struct asked a;
	ask(&a);
	start(&a, ANSWER(say_nothing), NULL);
	assert_fails(&a, "before it had answered");
	forget(&a);
}

static int run_out(struct request *q, void *userdata)
{
	(void)q;
	(void)userdata;
	return -ENOMEM;
}

TEST(an_error_of_a_child_is_a_failure)
{
	struct asked a;
	ask(&a);
	start(&a, ANSWER(run_out), NULL);
	assert_fails(&a, "memory");
	forget(&a);
}

/* Bytes that are no answer of ours. */
static int say_raw(struct request *q, void *userdata)
{
	const char *bytes = userdata;
	size_t n = (size_t)bytes[0];
	for (int i = 0; i < 2000; i++)
		if (write(q->peer->fd, bytes + 1, n) < 0)
			break;
	pause();
	return 0;
}

TEST(a_child_that_says_what_is_no_answer_is_a_failure)
{
	static const char *const strange[] = {
		"\x04\xff\xff\xff\xff",                 /* a frame of 4 GB */
		"\x06\x02\0\0\0\x0a\0",                 /* a hello */
		"\x0a\x06\0\0\0\x1a\x04\x08\x09\x42\0", /* another request's end */
		"\x08\x04\0\0\0\x1a\x02\x42\0",         /* nobody's end */
		"\x04\0\0\0\0",                         /* an empty frame */
	};
	for (size_t i = 0; i < sizeof(strange) / sizeof(strange[0]); i++) {
		struct asked a;
		ask(&a);
		start(&a, ANSWER(say_raw), (void *)strange[i]);
		assert_fails(&a, "malformed answer");
		forget(&a);
	}
}

/* --- without a peer --------------------------------------------------------------------------- */

static int exit_with(void *userdata)
{
	return *(int *)userdata;
}

static int wait_for_ever(void *userdata)
{
	(void)userdata;
	while (pause() < 0)
		;
	return 0;
}

static int be_killed(void *userdata)
{
	(void)userdata;
	return raise(SIGKILL);
}

static struct offload_end end_of(offload_plain_function *run, void *userdata)
{
	struct offload *o;
	struct offload_end end;
	ck_assert_int_eq(offload_run(run, userdata, &o), 0);
	struct pollfd p = {.fd = offload_fd(o), .events = POLLIN};
	ck_assert_int_eq(poll(&p, 1, PATIENCE_MS), 1);
	ck_assert_int_eq(offload_poll(o, &end), 0);
	offload_free(o);
	return end;
}

TEST(a_process_ends_with_its_status)
{
	int status = 37;
	struct offload_end end = end_of(exit_with, &status);
	ck_assert_int_eq(end.status, 37);
	ck_assert_int_eq(end.signal, 0);
}

TEST(a_process_that_is_killed_ends_with_the_signal)
{
	struct offload_end end = end_of(be_killed, NULL);
	ck_assert_int_eq(end.status, -1);
	ck_assert_int_eq(end.signal, SIGKILL);
}

TEST(a_process_that_is_freed_is_gone)
{
	struct offload *o;
	struct offload_end end;
	ck_assert_int_eq(offload_run(wait_for_ever, NULL, &o), 0);
	ck_assert_int_eq(offload_poll(o, &end), OFFLOAD_RUNNING);
	pid_t pid = offload_pid(o);
	offload_free(o);
	ck_assert_int_eq(kill(pid, 0), -1);
	ck_assert_int_eq(errno, ESRCH);
}
