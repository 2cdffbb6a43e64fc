/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Descriptors from a child: they arrive, or nothing does. */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/kernel/load_child.h"
#include "tests/unit/test.h"

#define N 3

static const char text[LOAD_FDS_MAX];

/* So many files, of which the first has one byte, the second two. */
static int make(const void *userdata, int ret_fd[])
{
	const int n = *(const int *)userdata;

	for (int i = 0; i < n; i++) {
		ret_fd[i] = memfd_create("made", 0);
		if (write(ret_fd[i], text, (size_t)i + 1) != i + 1)
			return -EIO;
	}
	return 0;
}

/* The child has room for all of them. */
static int make_beyond_limit(const void *userdata, int ret_fd[])
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) < 0)
		return -errno;
	l.rlim_cur = l.rlim_max;
	return setrlimit(RLIMIT_NOFILE, &l) < 0 ? -errno : make(userdata, ret_fd);
}

static int refuse(const void *userdata, int ret_fd[])
{
	(void)make(&(int){1}, ret_fd);
	return -*(const int *)userdata;
}

static int die(const void *userdata, int ret_fd[])
{
	(void)make(&(int){1}, ret_fd);
	raise(*(const int *)userdata);
	return 0;
}

static int leave(const void *userdata, int ret_fd[])
{
	(void)ret_fd;
	_exit(*(const int *)userdata);
}

/* The lowest free descriptor: the same if none was left open. */
static int lowest(void)
{
	int fd = dup(STDERR_FILENO);

	ck_assert_int_ge(fd, 0);
	close(fd);
	return fd;
}

static void expect_nothing(load_function *load, int argument, int result)
{
	int fd[N] = {-7, -7, -7};
	const int before = lowest();

	ck_assert_int_eq(load_in_child(load, &argument, N, fd), result);
	for (int i = 0; i < N; i++)
		ck_assert_int_eq(fd[i], -7);
	ck_assert_int_eq(lowest(), before);
	ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1); /* no child is left */
	ck_assert_int_eq(errno, ECHILD);
}

TEST(what_a_child_made_arrives_in_order_and_is_closed_on_exec)
{
	for (int n = 1; n <= LOAD_FDS_MAX; n++) {
		int fd[LOAD_FDS_MAX];
		const int before = lowest();
		ck_assert_int_eq(load_in_child(make, &n, n, fd), 0);
		for (int i = 0; i < n; i++) {
			ck_assert_int_eq(lseek(fd[i], 0, SEEK_END), i + 1);
			ck_assert_int_eq(fcntl(fd[i], F_GETFD), FD_CLOEXEC);
			close(fd[i]);
		}
		ck_assert_int_eq(lowest(), before);
		ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
	}
}

TEST(a_refusal_gives_its_error_and_no_descriptor)
{
	expect_nothing(refuse, EPERM, -EPERM);
	expect_nothing(refuse, ENOENT, -ENOENT);
}

TEST(a_child_that_dies_is_short_of_memory)
{
	expect_nothing(die, SIGKILL, -ENOMEM);
	expect_nothing(leave, 0, -ENOMEM);
	expect_nothing(leave, 1, -ENOMEM);
}

TEST(if_the_table_is_full_what_arrived_is_closed)
{
	struct rlimit was, full;

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &was), 0);
	for (int room = 1; room <= N; room++) { /* one is for the socket */
		full = (struct rlimit){(rlim_t)(lowest() + room), was.rlim_max};
		ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &full), 0);
		expect_nothing(make_beyond_limit, N, -EMFILE);
		ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &was), 0);
	}
}
