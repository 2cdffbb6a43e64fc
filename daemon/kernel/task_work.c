/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* We measure CPU time, not wall time, since others may run in between. A child of vfork shares our
 * memory: copying page tables would take longer than all that we want to measure.
 */

#include "daemon/kernel/task_work.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "proto/base/clock.h"
#include "proto/base/memory.h"

#define PROGRAM "/bin/true"

static int await(pid_t child)
{
	int status;
	pid_t ended;
	do
		ended = waitpid(child, &status, 0);
	while (ended < 0 && errno == EINTR);
	if (ended < 0)
		return -errno;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -ENOEXEC;
}

static int fork_once(void)
{
	pid_t child = vfork();
	if (child == 0)
		_exit(0);
	return child < 0 ? -errno : await(child);
}

static int exec_once(void)
{
	char name[] = PROGRAM;
	char *const arguments[] = {name, NULL}, *const none[] = {NULL};
	pid_t child;
	int error = posix_spawn(&child, PROGRAM, NULL, NULL, arguments, none);
	return error ? -error : await(child);
}

static int map_once(int fd)
{
	size_t n = (size_t)sysconf(_SC_PAGESIZE);
	void *map = mmap(NULL, n, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	munmap(map, n);
	return 0;
}

static uint64_t spent_ns(void)
{
	struct rusage children = {0};
	getrusage(RUSAGE_CHILDREN, &children);
	uint64_t s = (uint64_t)(children.ru_utime.tv_sec + children.ru_stime.tv_sec);
	uint64_t us = (uint64_t)(children.ru_utime.tv_usec + children.ru_stime.tv_usec);
	return clock_ns(CLOCK_THREAD_CPUTIME_ID) + s * 1000000000u + us * 1000u;
}

int task_work_do(enum task_work what, unsigned n, uint64_t *ret_ns)
{
	_cleanup_(closep) int fd = -1;
	int r = 0;
	if (what == TASK_MAPPING && (fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC)) < 0)
		return -errno;
	uint64_t begin_ns = spent_ns();
	for (unsigned i = 0; i < n && r == 0; i++)
		r = what == TASK_FORK   ? fork_once()
		    : what == TASK_EXEC ? exec_once()
					: map_once(fd);
	if (r == 0)
		*ret_ns = spent_ns() - begin_ns;
	return r;
}
