/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Waits in known places, and how long they took
 *
 *      switch_waits sites MS    sleeps for 1 ms in one_ms() and for 4 ms in four_ms(), in turns
 *      switch_waits step MS     sleeps for 5 ms in left() and in right(), in turns
 *      switch_waits moves MS    sleeps for 1 ms, on another hart each time
 *      switch_waits pingpong MS two threads wake each other as fast as they can
 *      switch_waits paced MS    the same, with fixed work of some 200 us in between: 10,000 switches a second
 *
 * Standard output has the ns of each place, in that order; then the process's time off its harts by
 * /proc/self/schedstat, and the turns.
 */

#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef unsigned long long ns_t;

static ns_t end_ns, begin_ns;
static int pipes[2][2];
static unsigned long turns;

static ns_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (ns_t)t.tv_sec * 1000000000u + (ns_t)t.tv_nsec;
}

static ns_t sleep_ns(long ns)
{
	const ns_t began_ns = now_ns();

	nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
	return now_ns() - began_ns;
}

#define PLACE(name, ns)                                                                            \
	__attribute__((noinline)) ns_t name(void)                                                  \
	{                                                                                          \
		const ns_t took_ns = sleep_ns(ns);                                                 \
		__asm__ volatile("");                                                              \
		return took_ns;                                                                    \
	}
PLACE(one_ms, 1000000)
PLACE(four_ms, 4000000)
PLACE(left, 5000000)
PLACE(right, 5000000)

static void alternate(ns_t (*first)(void), ns_t (*second)(void))
{
	ns_t took[2] = {0, 0};

	for (; now_ns() < end_ns; turns++) {
		took[0] += first();
		took[1] += second();
	}
	printf("%llu %llu ", took[0], took[1]);
}

static void move(void)
{
	const long n_harts = sysconf(_SC_NPROCESSORS_ONLN);
	ns_t took = 0;

	for (; now_ns() < end_ns; turns++) {
		cpu_set_t set;
		CPU_ZERO(&set);
		CPU_SET(turns % (unsigned long)n_harts, &set);
		sched_setaffinity(0, sizeof(set), &set);
		took += one_ms();
	}
	printf("%llu ", took);
}

static void *answer(void *unused)
{
	char byte;

	while (read(pipes[0][0], &byte, 1) == 1)
		if (write(pipes[1][1], &byte, 1) != 1)
			break;
	return unused;
}

static void work(unsigned long n)
{
	for (volatile unsigned long i = 0; i < n; i++)
		;
}

static void pingpong(unsigned long n)
{
	pthread_t thread;
	char byte = 0;

	if (pipe(pipes[0]) || pipe(pipes[1]) || pthread_create(&thread, NULL, answer, NULL))
		exit(1);
	for (; now_ns() < end_ns; turns++, work(n))
		if (write(pipes[0][1], &byte, 1) != 1 || read(pipes[1][0], &byte, 1) != 1)
			exit(1);
	close(pipes[0][1]);
	pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	begin_ns = now_ns();
	end_ns = begin_ns + strtoull(argv[2], NULL, 10) * 1000000u;
	if (strcmp(argv[1], "sites") == 0)
		alternate(one_ms, four_ms);
	else if (strcmp(argv[1], "step") == 0)
		alternate(left, right);
	else if (strcmp(argv[1], "moves") == 0)
		move();
	else if (strcmp(argv[1], "pingpong") == 0)
		pingpong(0);
	else if (strcmp(argv[1], "paced") == 0)
		pingpong(700000);
	else
		return 2;
	ns_t ran = 0;
	FILE *f = fopen("/proc/self/schedstat", "r");
	if (!f || fscanf(f, "%llu", &ran) != 1)
		return 1;
	printf("%llu %lu\n", now_ns() - begin_ns - ran, turns);
	return 0;
}
