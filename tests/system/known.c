/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A program of which everything is known: what it does it does so often as its arguments say, and
 * what it cost it reads from the kernel itself and prints.
 *
 *      known spin MS [HART]   uses MS milliseconds of processor time in spin(), on one hart
 *      known deep MS          the same below a hundred callers
 *      known pages N [MS]     touches N new pages in touch_pages(); uses MS in spin() afterwards
 *      known switches N       sleeps N times
 *      known processes N      starts N processes, one after the other, that end at once
 *      known exit N           exits with N
 *      known signal N         ends by signal N
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BATCH 16384 /* pages mapped at once, so that any number of faults fits a small machine */

static volatile unsigned long sink;

static long used_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

__attribute__((noinline)) void spin(long ms)
{
	for (long until = used_ms() + ms; used_ms() < until;)
		for (unsigned i = 0; i < 200000; i++)
			sink += i;
}

__attribute__((noinline)) void descend(int depth, long ms)
{
	if (depth > 0)
		descend(depth - 1, ms);
	else
		spin(ms);
	sink++; /* so that the call is no jump */
}

__attribute__((noinline)) void touch_pages(volatile char *pages, long n)
{
	for (long i = 0; i < n; i++)
		pages[i * sysconf(_SC_PAGESIZE)] = 1;
}

static void touch_new_pages(long n)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	while (n > 0) {
		long now = n < BATCH ? n : BATCH;
		char *pages = mmap(NULL, BATCH * page, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (pages == MAP_FAILED)
			abort();
		madvise(pages, BATCH * page, MADV_NOHUGEPAGE);
		touch_pages(pages, now);
		munmap(pages, BATCH * page);
		n -= now;
	}
}

static void sleep_often(long n)
{
	const struct timespec nap = {.tv_nsec = 1000};
	while (n-- > 0)
		nanosleep(&nap, NULL);
}

/* Each of them does work enough to be sampled once in a while. */
static void start_processes(long n)
{
	while (n-- > 0) {
		pid_t pid = fork();
		if (pid == 0) {
			for (unsigned i = 0; i < 300000; i++)
				sink += i;
			_exit(0);
		}
		if (pid > 0)
			waitpid(pid, NULL, 0);
	}
}

static void stay_on(int hart)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(hart, &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		exit(3);
}

static void print_usage(void)
{
	struct rusage u;
	getrusage(RUSAGE_SELF, &u);
	printf("cpu_us %ld\nfaults %ld\nswitches %ld\n",
		(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000l + u.ru_utime.tv_usec +
			u.ru_stime.tv_usec,
		u.ru_minflt + u.ru_majflt, u.ru_nvcsw + u.ru_nivcsw);
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	const char *what = argv[1];
	long n = atol(argv[2]), more = argc > 3 ? atol(argv[3]) : -1;

	if (strcmp(what, "spin") == 0) {
		if (more >= 0)
			stay_on((int)more);
		spin(n);
	} else if (strcmp(what, "deep") == 0) {
		descend(100, n);
	} else if (strcmp(what, "pages") == 0) {
		touch_new_pages(n);
		if (more > 0)
			spin(more);
	} else if (strcmp(what, "switches") == 0) {
		sleep_often(n);
	} else if (strcmp(what, "processes") == 0) {
		start_processes(n);
	} else if (strcmp(what, "exit") == 0) {
		return (int)n;
	} else if (strcmp(what, "signal") == 0) {
		signal((int)n, SIG_DFL);
		raise((int)n);
	}
	print_usage();
	return 0;
}
