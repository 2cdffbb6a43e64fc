// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/*
 * Threads that end as soon as they begin: storm SECONDS
 *
 * Two processes start one after the other, without waiting for any: each is a FORK and an EXIT record.
 * Threads share their stacks, since they use none.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char stack[1 << 16];

static int end(void *nothing)
{
	(void)nothing;
	syscall(SYS_exit, 0); /* of the thread alone */
	return 0;
}

static void make_threads(time_t until)
{
	while (time(NULL) < until)
		for (int i = 0; i < 1000; i++)
			clone(end, stack + sizeof(stack) - 64,
				CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
					CLONE_SYSVSEM,
				NULL);
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	time_t until = time(NULL) + atoi(argv[1]);
	puts("ready");
	fflush(stdout);
	pid_t other = fork();
	make_threads(until);
	if (other == 0)
		_exit(0);
	waitpid(other, NULL, 0);
	return 0;
}
