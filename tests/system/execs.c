/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Short processes whose arguments are known: execs KIND COUNT CPU_US SLEEP_MS PER_SECOND [SCRIPT]
 *
 * Starts COUNT processes, PER_SECOND of them (0: two at a time, as fast as they end). Each spends CPU_US of CPU and
 * sleeps SLEEP_MS. Prints a line for each: its pid, a tab, and the arguments that it ends with, one space between.
 * Kinds: spawn (by vfork), fork, chain (three execs in one process), thread (a thread that is not the first one
 * execs), script (a file that names this program in its first line), long (arguments of 3 KB).
 */

#define _GNU_SOURCE
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LONG 3000

extern char **environ;

static long long now_us(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return t.tv_sec * 1000000LL + t.tv_nsec / 1000;
}

static void sleep_us(long long us)
{
	struct timespec t = {us / 1000000, us % 1000000 * 1000};
	if (us > 0)
		nanosleep(&t, NULL);
}

/* --- the short processes: PROGRAM STEP CPU_US SLEEP_MS KIND NUMBER … --------------------------------- */

static int spend(char **argv)
{
	long long us = atoll(argv[0]), sleep_ms = atoll(argv[1]);
	while (us && now_us(CLOCK_PROCESS_CPUTIME_ID) < us)
		;
	sleep_us(sleep_ms * 1000);
	return 0;
}

static void *exec_end(void *args)
{
	char **argv = args;
	argv[1] = "end";
	execv(argv[0], argv);
	_exit(3);
}

static int step(char **argv)
{
	static char next[] = "chain0";
	pthread_t thread;
	if (strncmp(argv[1], "chain", 5) == 0 && argv[1][5] > '0') {
		next[5] = (char)(argv[1][5] - 1);
		argv[1] = next;
		execv(argv[0], argv);
	} else if (strcmp(argv[1], "chain0") == 0) {
		exec_end(argv);
	} else if (strcmp(argv[1], "thread") == 0) {
		if (pthread_create(&thread, NULL, exec_end, argv) == 0)
			pthread_join(thread, NULL);
	} else {
		/* the kernel puts a script's path behind the word of its first line */
		return spend(argv + (strcmp(argv[1], "script") == 0 ? 3 : 2));
	}
	return 3;
}

/* --- who starts them ----------------------------------------------------------------------------- */

static pid_t start(const char *kind, char **args)
{
	pid_t pid;
	if (strcmp(kind, "fork") != 0)
		return posix_spawn(&pid, args[0], NULL, NULL, args, environ) == 0 ? pid : -1;
	pid = fork();
	if (pid == 0) {
		execv(args[0], args);
		_exit(3);
	}
	return pid;
}

/* args: what it is started with. */
static void tell(pid_t pid, const char *self, const char *script, char **args)
{
	printf("%d\t%s", pid, self);
	if (script)
		printf(" script %s", script);
	for (int i = 1; args[i]; i++)
		printf(" %s", i == 1 && !script ? "end" : args[i]);
	putchar('\n');
}

int main(int argc, char **argv)
{
	static char self[4096], pad[LONG + 1], number[32];
	if (argc < 5)
		return 2;
	if (strcmp(argv[0], "execs") != 0)
		return step(argv);

	char *kind = argv[1], *script = strcmp(kind, "script") == 0 ? argv[6] : NULL;
	const int count = atoi(argv[2]), per_second = atoi(argv[5]);
	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		return 1;
	memset(pad, 'x', LONG);
	char *first = strcmp(kind, "chain") == 0    ? "chain2"
		      : strcmp(kind, "thread") == 0 ? "thread"
						    : "end";
	char *last = strcmp(kind, "long") == 0 ? pad : NULL;
	const long long began_us = now_us(CLOCK_MONOTONIC);
	int running = 0;
	for (int i = 0; i < count; i++) {
		char *args[] = {self, first, argv[3], argv[4], kind, number, last, NULL};
		char *of_script[] = {script, argv[3], argv[4], kind, number, NULL};
		snprintf(number, sizeof(number), "%d", i);
		pid_t pid = start(kind, script ? of_script : args);
		if (pid < 0)
			return 1;
		tell(pid, self, script, script ? of_script : args);
		running++;
		while (running && waitpid(-1, NULL, per_second || running < 2 ? WNOHANG : 0) > 0)
			running--;
		if (per_second)
			sleep_us(began_us + (i + 1) * 1000000LL / per_second -
				 now_us(CLOCK_MONOTONIC));
	}
	while (waitpid(-1, NULL, 0) > 0)
		;
	return 0;
}
