/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Threads that wait, and say for how long they lived, had a hart, and waited for one
 *
 *      threads_wait lock N      N threads work 5 ms at a time under one lock, and hold it for 45 ms more, ten times each
 *      threads_wait spin N      N threads need 500 ms of a hart each
 *      threads_wait exec        the same as one thread, which execs and changes its name in the middle
 *
 * The last line of standard output is "LIVED RAN READY", in ns, of all threads but the first.
 */

#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define THREADS_MAX 64

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile unsigned long sink;
static struct times {
	unsigned long long lived, ran, ready;
} all;

static unsigned long long now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (unsigned long long)t.tv_sec * 1000000000u + (unsigned long long)t.tv_nsec;
}

static void spin(unsigned ms)
{
	const unsigned long long end = now_ns(CLOCK_THREAD_CPUTIME_ID) + ms * 1000000ull;

	while (now_ns(CLOCK_THREAD_CPUTIME_ID) < end)
		for (int i = 0; i < 1000; i++)
			sink++;
}

static void add_times(unsigned long long began)
{
	struct times mine = {0};
	char path[64];

	mine.lived = now_ns(CLOCK_MONOTONIC) - began;
	snprintf(path, sizeof(path), "/proc/self/task/%d/schedstat", (int)gettid());
	FILE *f = fopen(path, "r");
	if (!f || fscanf(f, "%llu %llu", &mine.ran, &mine.ready) != 2)
		exit(3);
	fclose(f);
	__atomic_add_fetch(&all.lived, mine.lived, __ATOMIC_RELAXED);
	__atomic_add_fetch(&all.ran, mine.ran, __ATOMIC_RELAXED);
	__atomic_add_fetch(&all.ready, mine.ready, __ATOMIC_RELAXED);
}

static void *work(void *what)
{
	const unsigned long long began = now_ns(CLOCK_MONOTONIC);

	if (!strcmp(what, "spin"))
		spin(500);
	for (int i = 0; i < 10 && !strcmp(what, "lock"); i++) {
		pthread_mutex_lock(&lock);
		spin(5);
		usleep(45000);
		pthread_mutex_unlock(&lock);
		usleep(1000); /* or the others never get it */
	}
	add_times(began);
	return NULL;
}

int main(int argc, char *argv[])
{
	pthread_t thread[THREADS_MAX];
	const int n = argc > 2 ? atoi(argv[2]) : 1;

	if (argc < 2 || n < 1 || n > THREADS_MAX)
		return 2;
	if (!strcmp(argv[1], "exec")) {
		spin(100);
		usleep(300000);
		prctl(PR_SET_NAME, "renamed");
		usleep(300000);
		execl("/proc/self/exe", argv[0], "again", NULL);
		return 3;
	}
	if (!strcmp(argv[1], "again")) {
		usleep(300000);
		spin(100);
		return 0;
	}
	for (int i = 0; i < n; i++)
		if (pthread_create(&thread[i], NULL, work, argv[1]))
			return 3;
	for (int i = 0; i < n; i++)
		pthread_join(thread[i], NULL);
	printf("%llu %llu %llu\n", all.lived, all.ran, all.ready);
	return 0;
}
