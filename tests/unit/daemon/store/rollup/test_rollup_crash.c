/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Roll-ups that are killed, and files that are not what they should be. */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/store/rollup/rollup.h"
#include "tests/unit/faulty_disc.h"
#include "tests/unit/stored.h"
#include "tests/unit/test.h"

static struct stored s;
static struct store_error error;
static char target[192], second[192];

static void end(void)
{
	stored_end(&s);
}

EACH_TEST(.end = end, .seconds = 240);

/* A segment of four minutes with some variety, and a second name for it. */
static void begin(void)
{
	stored_begin_group(&s);
	struct frame *main_ = stored_function(&s, "/bin/one", "main");
	for (uint64_t i = 0; i < 48; i++) {
		static char name[48][32];
		snprintf(name[i], sizeof(name[i]), "function%d", (int)i);
		struct frame *f = stored_function(&s, "/bin/one", name[i]);
		struct task *t = stored_task(&s, 100 + (int)i, 100 + (int)i, "one");
		stored_add(&s, &(struct stored_sample){.task = t,
				       .frame = {f, main_},
				       .n_reads = 1,
				       .read = {{1, 100 + i, 1000, 1000}}});
		s.lost[1][LOSS_RING]++;
		ck_assert_int_eq(stored_flush(&s, i * 5 * SECOND, (i + 1) * 5 * SECOND), 0);
	}
	stored_seal(&s);
	snprintf(target, sizeof(target), "%s/target", s.folder);
	snprintf(second, sizeof(second), "%s/second", s.folder);
	ck_assert_int_eq(link(s.path, second), 0);
}

static int64_t number(const char *path, const char *sql)
{
	sqlite3 *db;
	/* for writing: what a killed writer left behind is taken back */
	ck_assert_int_eq(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
	ck_assert_str_eq(stored_string(db, "PRAGMA integrity_check"), "ok");
	int64_t n = stored_number(db, sql);
	sqlite3_close(db);
	return n;
}

/* How often the segment is in the target: by samples, counts, losses and notes alike. */
static int64_t times_in_target(void)
{
	if (access(target, F_OK) < 0)
		return 0;
	int64_t n = number(target, "SELECT count(*) FROM meta WHERE key LIKE 'source:%'");
	static const char *const sums[] = {"SELECT coalesce(sum(count), 0) FROM sample",
		"SELECT coalesce(sum(weight_ns), 0) FROM sample",
		"SELECT coalesce(sum(value), 0) FROM reading",
		"SELECT coalesce(sum(count), 0) FROM loss"};
	for (size_t i = 0; i < 4; i++)
		ck_assert_int_eq(number(target, sums[i]), n * stored_number(s.db, sums[i]));
	return n;
}

/* --- killed ----------------------------------------------------------------------------------- */

/* A file system that kills its user in the middle of the nth write, sync or removal. */
static const sqlite3_io_methods *real_methods;
static sqlite3_io_methods deadly_methods;
static sqlite3_vfs deadly, *real_vfs;
static int n_left;

static void step(void)
{
	if (n_left-- == 0)
		kill(getpid(), SIGKILL);
}

static int deadly_write(sqlite3_file *f, const void *bytes, int n, sqlite3_int64 offset)
{
	step();
	if (n_left < 0 && n > 1)
		n /= 2;
	return real_methods->xWrite(f, bytes, n, offset);
}

static int deadly_sync(sqlite3_file *f, int flags)
{
	step();
	return real_methods->xSync(f, flags);
}

static int deadly_truncate(sqlite3_file *f, sqlite3_int64 size)
{
	step();
	return real_methods->xTruncate(f, size);
}

static int deadly_open(sqlite3_vfs *v, const char *name, sqlite3_file *f, int flags, int *out)
{
	(void)v;
	int rc = real_vfs->xOpen(real_vfs, name, f, flags, out);
	if (rc != SQLITE_OK || !(flags & (SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_MAIN_JOURNAL)) ||
		(flags & SQLITE_OPEN_READONLY))
		return rc;
	real_methods = f->pMethods;
	deadly_methods = *real_methods;
	deadly_methods.xWrite = deadly_write;
	deadly_methods.xSync = deadly_sync;
	deadly_methods.xTruncate = deadly_truncate;
	f->pMethods = &deadly_methods;
	return rc;
}

static int deadly_delete(sqlite3_vfs *v, const char *name, int sync)
{
	(void)v;
	step();
	return real_vfs->xDelete(real_vfs, name, sync);
}

/* Add in a child that dies at its nth step. False once n is more than it takes. */
static bool add_killed(const char *source, int n, enum tier tier)
{
	pid_t pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		real_vfs = sqlite3_vfs_find(NULL);
		deadly = *real_vfs;
		deadly.zName = "deadly";
		deadly.pNext = NULL;
		deadly.xOpen = deadly_open;
		deadly.xDelete = deadly_delete;
		sqlite3_vfs_register(&deadly, 1);
		n_left = n;
		_exit(rollup_add(source, target, tier, &error) == 0 ? 0 : 1);
	}
	int status;
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	if (WIFSIGNALED(status))
		ck_assert_int_eq(WTERMSIG(status), SIGKILL);
	else
		ck_assert_int_eq(WEXITSTATUS(status), 0);
	return WIFSIGNALED(status);
}

/* Kill at each step in turn; between, the target has the segment or has it not. */
static void kill_everywhere(const char *source, int64_t before, enum tier tier)
{
	int n = 0;
	while (add_killed(source, n, tier)) {
		int64_t now = times_in_target();
		ck_assert_msg(
			now == before || now == before + 1, "killed at step %d: %d", n, (int)now);
		if (now != before)
			break; /* the commit was through */
		n += 1 + n / 8;
	}
	ck_assert_int_gt(n, 8);
	int r = rollup_add(source, target, tier, &error);
	ck_assert_msg(r == 0 || r == ROLLUP_DONE_BEFORE, "%d: %s", r, error.text);
	ck_assert_int_eq(times_in_target(), before + 1);
}

TEST(killed_while_new_it_is_absent_or_whole)
{
	begin();
	kill_everywhere(s.path, 0, TIER_MINUTE);
}

TEST(killed_while_growing_it_is_as_before_or_whole)
{
	begin();
	ck_assert_int_eq(rollup_add(s.path, target, TIER_MINUTE, &error), 0);
	kill_everywhere(second, 1, TIER_MINUTE);
}

TEST(killed_while_replacing_a_sealed_one_it_is_as_before_or_whole)
{
	begin();
	ck_assert_int_eq(rollup_add(s.path, target, TIER_HOUR, &error), 0);
	ck_assert_int_eq(rollup_seal(target, &error), 0);
	kill_everywhere(second, 1, TIER_HOUR);
	ck_assert_int_eq(number(target, "SELECT value FROM meta WHERE key = 'sealed'"), 1);
}

/* --- no room ---------------------------------------------------------------------------------- */

TEST(full_disc_is_an_outcome_and_changes_nothing)
{
	begin();
	ck_assert_int_eq(rollup_add(s.path, target, TIER_MINUTE, &error), 0);
	struct stat st;
	ck_assert_int_eq(stat(target, &st), 0);
	pid_t pid = fork();
	if (pid == 0) {
		/* EFBIG is counted as a full disc, as everywhere in the store */
		struct rlimit limit = {(rlim_t)st.st_size / 2, (rlim_t)st.st_size / 2};
		signal(SIGXFSZ, SIG_IGN);
		setrlimit(RLIMIT_FSIZE, &limit);
		_exit(rollup_add(second, target, TIER_MINUTE, &error));
	}
	int status;
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), STORE_NO_SPACE);
	ck_assert_int_eq(times_in_target(), 1);
	ck_assert_int_eq(rollup_add(second, target, TIER_MINUTE, &error), 0);
	ck_assert_int_eq(times_in_target(), 2);
}

TEST(a_disc_that_fails_for_a_moment_damages_neither_source_nor_target)
{
	begin();
	ck_assert_int_eq(rollup_add(s.path, target, TIER_MINUTE, &error), 0);
	int r = -1;
	for (int n = 0; r != 0; n++) {
		faulty_disc_fail(n, 1, SQLITE_IOERR_READ);
		r = rollup_add(second, target, TIER_MINUTE, &error);
		faulty_disc_work();
		ck_assert_msg(r <= 0, "%d in read %d: %s", r, n, error.text);
		ck_assert_int_eq(times_in_target(), r == 0 ? 2 : 1);
	}
}

/* --- not what they should be ------------------------------------------------------------------ */

/* Change the sealed segment with SQL. */
static void damage(const char *sql)
{
	sqlite3 *db;
	char *why = NULL;
	sqlite3_close(s.db);
	s.db = NULL;
	ck_assert_int_eq(sqlite3_open(s.path, &db), SQLITE_OK);
	ck_assert_msg(sqlite3_exec(db, sql, NULL, NULL, &why) == SQLITE_OK, "%s", why);
	sqlite3_close(db);
	ck_assert_int_eq(trailer_write_path(s.path), 0); /* the seal is right */
}

static void source_is_broken(void)
{
	for (enum tier tier = TIER_MINUTE; tier <= TIER_HOUR; tier++) {
		ck_assert_int_eq(rollup_add(s.path, target, tier, &error), ROLLUP_SOURCE_BROKEN);
		ck_assert_ptr_nonnull(strstr(error.text, s.path));
		ck_assert_int_ne(*error.remedy, 0);
		ck_assert_int_lt(access(target, F_OK), 0);
	}
}

static const char *const damages[] = {
	"UPDATE stack SET parent = id WHERE id = 3",
	"DELETE FROM stack WHERE id = (SELECT max(stack) FROM sample)",
	"UPDATE sample SET count = -1 WHERE id = 7",
	"UPDATE sample SET task = 1, stack = 1, weight_ns = 9223372036854775807",
	"UPDATE sample SET event = 77 WHERE id = 7",
	"UPDATE sample SET window = 0 WHERE id = 1",
	"UPDATE sample SET window = 1000 WHERE id = 48",
	"UPDATE sample SET stack = 16777217 WHERE id = 3",
	"UPDATE loss SET window = 1000 WHERE window = 48",
	"UPDATE loss SET count = -5",
	"UPDATE reading SET event = 200",
	"INSERT INTO reading VALUES (1000, 2, 5, NULL, NULL)",
	"UPDATE window SET end_ns = 1, start_ns = 2 WHERE id = 3",
	"UPDATE window SET realtime_ns = -1 WHERE id = 3",
	"DELETE FROM meta WHERE key = 'boot_id'",
	"UPDATE meta SET value = 0 WHERE key = 'sealed'",
	"DROP TABLE reading",
};

TEST(source_that_lies_is_refused_and_named, .times = sizeof(damages) / sizeof(*damages))
{
	begin();
	damage(damages[_i]);
	source_is_broken();
}

TEST(source_with_torn_pages_is_refused_or_added)
{
	begin();
	struct stat st;
	ck_assert_int_eq(stat(s.path, &st), 0);
	for (off_t page = 1; page < st.st_size / 4096; page++) {
		char bytes[4096], junk[4096];
		memset(junk, 0x5a, sizeof(junk));
		int fd = open(s.path, O_RDWR);
		ck_assert_int_eq(pread(fd, bytes, 4096, page * 4096), 4096);
		ck_assert_int_eq(pwrite(fd, junk, 4096, page * 4096), 4096);
		int r = rollup_add(s.path, target, TIER_MINUTE, &error);
		/* a page of a dictionary that nothing needs is no harm */
		ck_assert_msg(r == 0 || r == ROLLUP_SOURCE_BROKEN, "page %d: %d", (int)page, r);
		unlink(target);
		ck_assert_int_eq(pwrite(fd, bytes, 4096, page * 4096), 4096);
		close(fd);
	}
	ck_assert_int_eq(rollup_add(s.path, target, TIER_MINUTE, &error), 0);
}

TEST(source_that_is_gone_is_said_to_be)
{
	begin();
	ck_assert_int_eq(rollup_add("/nowhere/segment", target, TIER_MINUTE, &error), -ENOENT);
	ck_assert_ptr_nonnull(strstr(error.text, "/nowhere/segment"));
}

static void target_is_broken(void)
{
	struct stat before, after;
	ck_assert_int_eq(stat(target, &before), 0);
	ck_assert_int_eq(rollup_add(second, target, TIER_MINUTE, &error), ROLLUP_TARGET_BROKEN);
	ck_assert_ptr_nonnull(strstr(error.text, target));
	ck_assert_int_eq(stat(target, &after), 0);
	ck_assert_int_eq(before.st_size, after.st_size);
}

TEST(target_that_is_no_database_is_refused)
{
	begin();
	int fd = open(target, O_RDWR | O_CREAT, 0600);
	target_is_broken(); /* empty */
	ck_assert_int_eq(write(fd, "no such thing", 13), 13);
	target_is_broken();
	close(fd);
}

TEST(target_of_another_tier_is_refused)
{
	begin();
	ck_assert_int_eq(rollup_add(s.path, target, TIER_HOUR, &error), 0);
	target_is_broken();
}

TEST(target_with_torn_pages_is_refused_or_taken)
{
	begin();
	ck_assert_int_eq(rollup_add(s.path, target, TIER_MINUTE, &error), 0);
	struct stat st;
	ck_assert_int_eq(stat(target, &st), 0);
	size_t n = (size_t)st.st_size;
	char *whole = malloc(n);
	int fd = open(target, O_RDWR), n_broken = 0;
	ck_assert_int_eq(pread(fd, whole, n, 0), (ssize_t)n);
	for (size_t page = 0; page < n / 4096; page++) {
		char junk[4096];
		memset(junk, 0x5a, sizeof(junk));
		ck_assert_int_eq(pwrite(fd, junk, 4096, (off_t)(page * 4096)), 4096);
		int r = rollup_add(second, target, TIER_MINUTE, &error);
		ck_assert_msg(r == 0 || r == ROLLUP_TARGET_BROKEN, "page %zu: %d %s", page, r,
			error.text);
		n_broken += r == ROLLUP_TARGET_BROKEN;
		ck_assert_int_eq(pwrite(fd, whole, n, 0), (ssize_t)n);
		ck_assert_int_eq(ftruncate(fd, (off_t)n), 0);
	}
	ck_assert_int_gt(n_broken, 0);
	close(fd);
	free(whole);
}

TEST(other_boot_needs_another_target)
{
	begin();
	ck_assert_int_eq(rollup_add(second, target, TIER_MINUTE, &error), 0);
	damage("UPDATE meta SET value = 'another' WHERE key = 'boot_id'");
	ck_assert_int_eq(rollup_add(s.path, target, TIER_MINUTE, &error), ROLLUP_OTHER_BOOT);
	ck_assert_ptr_nonnull(strstr(error.text, "another boot"));
	ck_assert_int_eq(rollup_add(s.path, target, TIER_WINDOW, &error), -EINVAL);
	unlink(target);
	ck_assert_int_eq(rollup_seal(target, &error), -ENOENT);
	ck_assert_ptr_nonnull(strstr(error.text, target));
}
