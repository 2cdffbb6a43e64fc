/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Two programs that take turns of a known length on one hart, and know what they cost: "many" has
 * many page faults, "few" has few. Each runs for its turn, wakes the other and waits, so that a
 * turn ends in a switch; where it may it runs before all others, so that it has no other switches
 * but what the kernel keeps free for them (a twentieth of the time). At the end each prints its page faults, its time on the hart and its
 * switches, as the kernel counted them.
 *
 *      relay HART TURN_US TURNS even|first     first: many has all its page faults in the first
 *                                              quarter of its turn
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define STEPS 30000 /* some tens of µs */
#define PAGES_MANY 16
#define PAGES_FEW 1

static volatile unsigned long sink;

__attribute__((noinline)) void run_loop(long steps)
{
	for (long i = 0; i < steps; i++)
		sink += (unsigned long)i;
}

__attribute__((noinline)) void touch_pages(size_t n)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	volatile char *p =
		mmap(NULL, n * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		exit(3);
	madvise((void *)p, n * page, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < n; i++)
		p[i * page] = 1;
	munmap((void *)p, n * page);
}

static long long ran_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static void take_turn(long long turn_ns, size_t pages, bool first)
{
	const long long began = ran_ns();
	for (long long ran = 0; ran < turn_ns; ran = ran_ns() - began) {
		if (!first || ran < turn_ns / 4)
			touch_pages(pages);
		if (!first || ran >= turn_ns / 4)
			run_loop(STEPS);
	}
}

/* Take turns: wait to be woken through one pipe, wake through the other. */
static int run(const char *name, char **argv, int from, int to, size_t pages, bool first)
{
	char token = 0;
	struct rusage u;
	prctl(PR_SET_NAME, name);
	for (long turn = 0; turn < atol(argv[3]); turn++) {
		if (read(from, &token, 1) != 1)
			return 3;
		take_turn(atol(argv[2]) * 1000ll, pages, first);
		if (write(to, &token, 1) != 1)
			return 3;
	}
	getrusage(RUSAGE_SELF, &u);
	printf("%s %ld %lld %ld\n", name, u.ru_minflt + u.ru_majflt, ran_ns(),
		u.ru_nvcsw + u.ru_nivcsw);
	return fflush(stdout) == 0 ? 0 : 3;
}

int main(int argc, char **argv)
{
	cpu_set_t set;
	int there[2], back[2], status;
	if (argc < 5 || pipe(there) < 0 || pipe(back) < 0)
		return 2;
	CPU_ZERO(&set);
	CPU_SET(atoi(argv[1]), &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		return 3;
	(void)sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){.sched_priority = 1});

	pid_t child = fork();
	if (child == 0)
		return run(
			"many", argv, there[0], back[1], PAGES_MANY, strcmp(argv[4], "first") == 0);
	if (child < 0 || write(back[1], "", 1) != 1)
		return 3;
	int r = run("few", argv, back[0], there[1], PAGES_FEW, false);
	return waitpid(child, &status, 0) == child && status == 0 ? r : 3;
}
