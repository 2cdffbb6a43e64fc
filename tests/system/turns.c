/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A program that gives way often, and knows what it cost: in each round it touches new pages, runs
 * a loop and yields. At the end it prints its page faults, its time on a hart, and where the
 * machine counts them its instructions, as the kernel counted them for this process alone.
 *
 *      turns HART PAGES STEPS ROUNDS     PAGES touched and STEPS of the loop in each round, on
 *                                        one hart
 */
#define _GNU_SOURCE
#include <linux/perf_event.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long sink;

__attribute__((noinline)) static void run_loop(long steps)
{
	for (long i = 0; i < steps; i++)
		sink += (unsigned long)i;
}

static void touch_pages(long n)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	if (n == 0)
		return;
	volatile char *p = mmap(
		NULL, (size_t)n * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		exit(3);
	madvise((void *)p, (size_t)n * page, MADV_NOHUGEPAGE);
	for (long i = 0; i < n; i++)
		p[(size_t)i * page] = 1;
	munmap((void *)p, (size_t)n * page);
}

static int count_instructions(void)
{
	struct perf_event_attr a = {.size = sizeof(a),
		.type = PERF_TYPE_HARDWARE,
		.config = PERF_COUNT_HW_INSTRUCTIONS};
	return (int)syscall(SYS_perf_event_open, &a, 0, -1, -1, 0);
}

int main(int argc, char **argv)
{
	cpu_set_t set;
	if (argc < 5)
		return 2;
	CPU_ZERO(&set);
	CPU_SET(atoi(argv[1]), &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		return 3;

	int fd = count_instructions();
	for (long round = 0; round < atol(argv[4]); round++) {
		touch_pages(atol(argv[2]));
		run_loop(atol(argv[3]));
		sched_yield();
	}

	long long instructions;
	struct timespec ran;
	struct rusage u;
	getrusage(RUSAGE_SELF, &u);
	if (fd >= 0 && read(fd, &instructions, sizeof(instructions)) == sizeof(instructions))
		printf("instructions %lld\n", instructions);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ran);
	printf("page-faults %ld\nswitches %ld\nran_ns %lld\n", u.ru_minflt + u.ru_majflt,
		u.ru_nvcsw + u.ru_nivcsw, ran.tv_sec * 1000000000ll + ran.tv_nsec);
	return 0;
}
