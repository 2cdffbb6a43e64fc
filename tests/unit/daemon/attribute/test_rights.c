/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/attribute/rights.c: whose a process wholly is */

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/attribute/proc_reader.h"
#include "daemon/attribute/rights.h"
#include "tests/unit/test.h"

#define UIDS(ids) "Name:\tx\nUid:\t" ids "\n"
#define USERS "1000\t1000\t1000\t1000"
#define GIDS "Gid:\t50\t50\t50\t50\n"
#define MEMORY "VmSize:\t  100 kB\n"
#define NO_CAPS "CapPrm:\t0000000000000000\n"
#define OWN UIDS(USERS) GIDS MEMORY NO_CAPS

static struct rights parsed(const char *status, uid_t environ_uid, bool own_caps)
{
	struct rights rights = {42, 42, 42};

	ck_assert_int_eq(rights_parse(status, environ_uid, own_caps, &rights), 0);
	return rights;
}

TEST(a_process_is_the_users_where_all_agree)
{
	ck_assert_uint_eq(parsed(OWN, 1000, false).uid, 1000);
	ck_assert_uint_eq(parsed(OWN, 1000, false).gid, 50);
}

TEST(one_that_differs_in_anything_is_nobodys)
{
	static const char *const texts[] = {
		UIDS("1000\t0\t0\t0") GIDS MEMORY NO_CAPS,
		UIDS("0\t1000\t0\t1000") GIDS MEMORY NO_CAPS,
		UIDS("1000\t1000\t0\t1000") GIDS MEMORY NO_CAPS,
		UIDS("1000\t1000\t1000\t7") GIDS MEMORY NO_CAPS,
		UIDS(USERS) "Gid:\t50\t8\t50\t50\n" MEMORY NO_CAPS,
		UIDS(USERS) "Gid:\t8\t50\t50\t50\n" MEMORY NO_CAPS,
		UIDS(USERS) "Gid:\t50\t50\t8\t50\n" MEMORY NO_CAPS,
		UIDS(USERS) GIDS MEMORY "CapPrm:\t0000000000002000\n",
		UIDS(USERS) GIDS MEMORY "CapPrm:\tx\n",
		UIDS(USERS) GIDS MEMORY,
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		ck_assert_uint_eq(parsed(texts[i], 1000, false).uid, 0);
		ck_assert_uint_eq(parsed(texts[i], 1000, false).gid, 0);
		ck_assert_uint_eq(parsed(texts[i], 1000, false).account, i == 1 ? 0 : 1000);
	}
}

TEST(one_whose_memory_is_hidden_is_nobodys)
{
	ck_assert_uint_eq(parsed(OWN, 0, false).uid, 0);
	ck_assert_uint_eq(parsed(OWN, 1001, false).uid, 0);
	ck_assert_uint_eq(parsed(OWN, 0, false).account, 1000);
}

TEST(capabilities_in_a_namespace_of_ones_own_do_no_harm)
{
	static const char text[] = UIDS(USERS) GIDS MEMORY "CapPrm:\t000001ffffffffff\n";

	ck_assert_uint_eq(parsed(text, 1000, true).uid, 1000);
	ck_assert_uint_eq(parsed(text, 1000, false).uid, 0);
}

TEST(of_one_that_ends_nothing_is_said)
{
	static const char *const texts[] = {
		"", "Name:\tx\n", UIDS(USERS), UIDS(USERS) GIDS NO_CAPS};
	struct rights rights = {42, 42, 42};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		ck_assert_int_eq(rights_parse(texts[i], 0, false, &rights), RIGHTS_GONE);
	ck_assert_uint_eq(rights.uid, 42);
	/* a thread of the kernel has no memory either */
	ck_assert_uint_eq(parsed(UIDS("0\t0\t0\t0") "Gid:\t0\t0\t0\t0\n", 0, false).uid, 0);
}

/* A child that is user 1234 where the test may make it so, dumpable or not, and waits. */
static pid_t child_that_waits(bool dumpable)
{
	int ready[2];
	char byte;

	ck_assert_int_eq(pipe2(ready, O_CLOEXEC), 0);
	pid_t pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		if (geteuid() == 0 && (setresgid(1234, 1234, 1234) || setresuid(1234, 1234, 1234)))
			_exit(1);
		prctl(PR_SET_DUMPABLE, dumpable);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (write(ready[1], "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	ck_assert_int_eq(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}

TEST(a_living_process_is_read)
{
	uid_t user = geteuid() == 0 ? 1234 : geteuid();
	struct rights rights = {42, 42, 42};
	pid_t open = child_that_waits(true), hidden = child_that_waits(false);

	ck_assert_int_eq(proc_reader_rights(NULL, open, 0, &rights), 0);
	ck_assert_uint_eq(rights.uid, user);
	ck_assert_int_eq(proc_reader_rights(NULL, open, open, &rights), 0);
	ck_assert_uint_eq(rights.uid, user);
	ck_assert_int_eq(proc_reader_rights(NULL, open, hidden, &rights), RIGHTS_GONE);
	ck_assert_int_eq(proc_reader_rights(NULL, hidden, 0, &rights), 0);
	ck_assert_uint_eq(rights.uid, 0);
	ck_assert_uint_eq(rights.account, user);
	end(hidden);
	end(open);
	ck_assert_int_eq(proc_reader_rights(NULL, open, 0, &rights), RIGHTS_GONE);
}

TEST(one_that_nobody_waited_for_is_gone)
{
	struct rights rights = {42, 42, 42};
	siginfo_t info;
	pid_t pid = child_that_waits(true);

	kill(pid, SIGKILL);
	ck_assert_int_eq(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	ck_assert_int_eq(proc_reader_rights(NULL, pid, 0, &rights), RIGHTS_GONE);
	end(pid);
}

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

/* A process of user 1234 in a user namespace: its own, or one that root made and it only
 * runs in. */
static pid_t child_in_namespace(bool own, bool twice)
{
	int ready[2], mapped[2];
	char path[64], byte;

	ck_assert_int_eq(pipe2(ready, O_CLOEXEC), 0);
	ck_assert_int_eq(pipe2(mapped, O_CLOEXEC), 0);
	pid_t pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (own && (setresgid(1234, 1234, 1234) || setresuid(1234, 1234, 1234)))
			_exit(1);
		if (unshare(CLONE_NEWUSER))
			_exit(2);
		if (twice) { /* who has no number there makes no other */
			prctl(PR_SET_DUMPABLE, 1);
			put("/proc/self/uid_map", "1234 1234 1\n");
			put("/proc/self/setgroups", "deny");
			put("/proc/self/gid_map", "1234 1234 1\n");
			if (unshare(CLONE_NEWUSER))
				_exit(2);
		}
		if (!own && (write(ready[1], "", 1) != 1 || read(mapped[0], &byte, 1) != 1 ||
				    setresgid(1234, 1234, 1234) || setresuid(1234, 1234, 1234)))
			_exit(1);
		prctl(PR_SET_DUMPABLE, 1);
		if (write(ready[1], "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(ready[1]);
	for (int maps = own ? 2 : 0; maps < 2 && read(ready[0], &byte, 1) == 1; maps = 2) {
		for (int i = 0; i < 2; i++) {
			snprintf(path, sizeof(path), "/proc/%d/%cid_map", (int)pid, "ug"[i]);
			put(path, "0 0 65534\n");
		}
		ck_assert_int_eq(write(mapped[1], "", 1), 1);
	}
	bool there = read(ready[0], &byte, 1) == 1;
	close(ready[0]);
	close(mapped[0]);
	close(mapped[1]);
	if (!there)
		ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	return there ? pid : 0;
}

TEST(one_in_anothers_user_namespace_is_nobodys)
{
	struct rights rights = {42, 42, 42};

	if (geteuid() != 0) {
		puts("skipped: needs root");
		return;
	}
	for (int kind = 0; kind < 3; kind++) {
		bool own = kind > 0;
		pid_t pid = child_in_namespace(own, kind == 2);

		if (!pid) {
			puts("skipped: this machine makes no user namespaces");
			return;
		}
		ck_assert_int_eq(proc_reader_rights(NULL, pid, 0, &rights), 0);
		ck_assert_uint_eq(rights.uid, own ? 1234 : 0);
		end(pid);
	}
}

static const char *written(const char *text)
{
	static char path[] = "/tmp/mperf-passwd-XXXXXX";
	static long n_written;
	int fd = n_written ? open(path, O_WRONLY | O_TRUNC) : mkstemp(path);
	FILE *f = fd >= 0 ? fdopen(fd, "w") : NULL;

	ck_assert_ptr_nonnull(f);
	fputs(text, f);
	fclose(f);
	/* another time, also where the clock has not gone on */
	n_written++;
	struct timespec times[2] = {{.tv_sec = n_written}, {.tv_sec = n_written}};
	ck_assert_int_eq(utimensat(AT_FDCWD, path, times, 0), 0);
	return path;
}

static bool allowed(const struct login_groups *g, uid_t uid, gid_t gid)
{
	return login_groups_have(g, &(struct rights){uid, gid, uid});
}

TEST(a_user_logs_in_with_one_group)
{
	struct login_groups g = {.n_logins = 0};

	ck_assert(allowed(&g, 1000, 7)); /* nothing is known */
	ck_assert_int_eq(login_groups_read(&g, "/nowhere/passwd"), 0);
	ck_assert_int_eq(
		login_groups_read(&g, written("root:x:0:0::/:/bin/sh\nbroken line\n"
					      "b:x:1001:60::/:/bin/sh\na:x:1000:50::/:/bin/sh\n")),
		0);
	ck_assert_uint_eq(g.n_logins, 3);
	ck_assert(allowed(&g, 1000, 50) && allowed(&g, 1001, 60));
	ck_assert(!allowed(&g, 1000, 60) && !allowed(&g, 1001, 50));
	ck_assert(allowed(&g, 4711, 50)); /* whom the file does not have */
	const char *path = written("a:x:1000:51::/:/bin/sh\n");
	ck_assert_int_eq(login_groups_read(&g, path), 0);
	ck_assert(allowed(&g, 1000, 51) && !allowed(&g, 1000, 50) && allowed(&g, 1001, 1));
	unlink(path);
	ck_assert_int_eq(login_groups_read(&g, path), 0);
	ck_assert(!allowed(&g, 1000, 50));
	login_groups_clear(&g);
}
