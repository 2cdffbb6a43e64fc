/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A program that does what its first argument says, at the edges of what a process may do: many
 * threads one after the other, another program in its place, no system calls.
 */
#include <dlfcn.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "counted.h"

#define N 16
#define A 4 /* counter */
COUNTED(N)

/* Say that all is counted, and wait until the other side has seen what it wants to see. */
static void say_and_wait(void)
{
	char byte;
	if (write(1, "ready\n", 6) != 6 || read(0, &byte, 1) != 1)
		_exit(3);
}

static void *thread_counts(void *data)
{
	COUNT(A, 1000);
	return data;
}

/* Print the most memory that the process had, in KiB. */
static void print_peak(void)
{
	char line[128];
	long kib = 0;
	FILE *status = fopen("/proc/self/status", "r");
	while (status && fgets(line, sizeof(line), status))
		if (sscanf(line, "VmHWM: %ld kB", &kib) == 1)
			printf("%ld\n", kib);
	fflush(stdout);
}

static int churn(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		pthread_t t;
		if (pthread_create(&t, NULL, thread_counts, NULL) != 0)
			return 1;
		pthread_join(t, NULL);
	}
	print_peak();
	return 0;
}

/* The process counts, and goes on as another program, which has its pid. */
static int becomes(const char *self)
{
	COUNT(A, 1000);
	say_and_wait();
	execl(self, self, "churn", "3", NULL);
	return 1;
}

/* Open the copies PATH.0 to PATH.n-1 of a library, and count in each. */
static int opens(const char *path, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		char name[4096];
		snprintf(name, sizeof(name), "%s.%u", path, i);
		void *l = dlopen(name, RTLD_NOW | RTLD_LOCAL);
		void (*count)(void) = l ? (void (*)(void))dlsym(l, "library_count") : NULL;
		if (!count) {
			printf("%s\n", dlerror());
			return 5;
		}
		count();
	}
	return 0;
}

static void (*volatile again)(unsigned depth);

__attribute__((noinline)) static void loops(unsigned depth)
{
	NEST(1, again(depth));
}

__attribute__((noinline)) static void calls(unsigned depth)
{
	if (depth > 0)
		loops(depth - 1);
	else
		usleep(20000);
}

/* A loop that is entered ten times inside itself, n times; prints the time of it all, in ns. */
static int recursion(unsigned n)
{
	struct timespec from, to;
	again = calls;
	clock_gettime(CLOCK_MONOTONIC, &from);
	for (unsigned i = 0; i < n; i++)
		loops(10);
	clock_gettime(CLOCK_MONOTONIC, &to);
	printf("%lld\n", (to.tv_sec - from.tv_sec) * 1000000000LL + to.tv_nsec - from.tv_nsec);
	fflush(stdout);
	return 0;
}

static void sleeps(void)
{
	usleep(20000);
}

/* A loop that calls another one, of the library at that path, which sleeps n times; then it sleeps
 * once itself. Prints the time of it all, in ns. */
static int inside(const char *path, unsigned n)
{
	struct timespec from, to;
	void *l = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	void (*nest)(void (*)(void)) =
		l ? (void (*)(void (*)(void)))dlsym(l, "library_nest") : NULL;
	if (!nest)
		return 5;
	clock_gettime(CLOCK_MONOTONIC, &from);
	NEST(1, {
		for (unsigned i = 0; i < n; i++)
			nest(sleeps);
		sleeps();
	});
	clock_gettime(CLOCK_MONOTONIC, &to);
	printf("%lld\n", (to.tv_sec - from.tv_sec) * 1000000000LL + to.tv_nsec - from.tv_nsec);
	fflush(stdout);
	return 0;
}

/* All that compiled code does. */
static void counts(void)
{
	COUNT(A, 1);
	for (int i = 0; i < 100; i++)
		NEST(1, COUNT(A, 1));
	MPERF_REGION_BEGIN("confined");
	COUNT(A, 1);
	MPERF_REGION_END("confined");
}

/* Under strict seccomp, which allows exit(2) and not exit_group(2), with which exit(3) ends. */
static int confined(void)
{
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0)
		return 4;
	counts();
	syscall(SYS_exit, 0);
	return 1;
}

/* A filter that allows nothing but ending, and no clock; then exit(3). */
static int filtered(const char *path)
{
	static struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	const struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};
	void *l = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	void (*count)(void) = l ? (void (*)(void))dlsym(l, "library_count") : NULL;
	if (!count || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return 4;
#if defined(__x86_64__)
	prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
#endif
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
		return 4;
	counts();
	count();
	exit(0);
}

static void spin_ms(long ms)
{
	struct timespec begin, now;
	clock_gettime(CLOCK_MONOTONIC, &begin);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 < ms);
}

/* Counts, puts itself (and not the runtime's thread) under a filter that kills for anything but the clock and
 * ending, counts again, and ends by exit(3). */
static int confines(const char *path)
{
	static struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clock_gettime, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	const struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};
	void *l = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	void (*count)(void) = l ? (void (*)(void))dlsym(l, "library_count") : NULL;
	if (!count || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return 4;
	for (int i = 0; i < 2; i++) { /* the region has a block for the library then */
		counts();
		count();
	}
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
		return 4;
	spin_ms(500); /* in which the sender looks for it several times, whoever listens */
	counts();
	count();
	exit(0);
}

/* Regions that do nothing. */
static int pairs(unsigned n)
{
	COUNT(A, 1);
	while (n-- > 0) {
		MPERF_REGION_BEGIN("pair");
		MPERF_REGION_END("pair");
	}
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	unsigned n = argc > 2 ? (unsigned)atoi(argv[2]) : 1;

	if (!strcmp(what, "churn"))
		return churn(n);
	if (!strcmp(what, "becomes"))
		return becomes(argv[0]);
	if (!strcmp(what, "pairs"))
		return pairs(n);
	if (!strcmp(what, "recursion"))
		return recursion(n);
	if (!strcmp(what, "inside") && argc == 4)
		return inside(argv[3], n);
	if (!strcmp(what, "opens") && argc == 4)
		return opens(argv[3], n);
	if (!strcmp(what, "confined"))
		return confined();
	if (!strcmp(what, "filtered"))
		return filtered(argv[2]);
	if (!strcmp(what, "confines"))
		return confines(argv[2]);
	return 2;
}
