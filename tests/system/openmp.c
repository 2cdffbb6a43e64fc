/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Parallel regions with known waits: their threads sleep instead of working, so on a busy machine they take as
 * long or longer. The argument names one.
 */
#include <omp.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THREADS 4

static void sleep_ms(int ms)
{
	nanosleep(&(struct timespec){.tv_nsec = ms * 1000000l}, NULL);
}

/* Thread i takes i + 1 times as long as the first. */
static void uneven(void)
{
	for (volatile int round = 0; round < 5; round++)
#pragma omp parallel for schedule(static) num_threads(THREADS)
		for (int i = 0; i < THREADS; i++)
			sleep_ms((i + 1) * 20);
}

static void locks(void)
{
	omp_lock_t lock;
	omp_init_lock(&lock);
#pragma omp parallel num_threads(THREADS)
	{
		omp_set_lock(&lock);
		sleep_ms(30);
		omp_unset_lock(&lock);
		(void)(omp_test_lock(&lock) && (omp_unset_lock(&lock), 0));
#pragma omp critical(narrow)
		sleep_ms(10);
#pragma omp barrier
	}
	omp_destroy_lock(&lock);
}

/* One thread has the lock, and the other works after it did not get it. */
static void attempts(void)
{
	omp_lock_t lock;
	omp_init_lock(&lock);
	omp_set_lock(&lock);
#pragma omp parallel num_threads(2)
	{
		if (omp_get_thread_num() == 1 && omp_test_lock(&lock))
			omp_unset_lock(&lock);
		sleep_ms(300);
	}
	omp_unset_lock(&lock);
	(void)(omp_test_lock(&lock) && (omp_unset_lock(&lock), 0));
	omp_destroy_lock(&lock);
}

/* Each thread has a lock of its own, takes it again, and then works. */
static void owned(void)
{
#pragma omp parallel num_threads(2)
	{
		omp_nest_lock_t lock;
		omp_init_nest_lock(&lock);
		omp_set_nest_lock(&lock);
		omp_set_nest_lock(&lock);
		sleep_ms(300);
		omp_unset_nest_lock(&lock);
		omp_unset_nest_lock(&lock);
		omp_destroy_nest_lock(&lock);
	}
}

/* Three threads run tasks while they wait for the one that makes them. */
static void tasks(void)
{
#pragma omp parallel num_threads(THREADS)
#pragma omp single
	{
		for (int i = 0; i < 4 * THREADS; i++)
#pragma omp task
			sleep_ms(20);
#pragma omp taskwait
	}
}

static void nested(void)
{
	omp_set_max_active_levels(2);
#pragma omp parallel num_threads(2)
	{
#pragma omp parallel num_threads(2)
		sleep_ms(20);
		sleep_ms(1); /* else the call of the inner region would be a jump */
	}
	sleep_ms(1);
}

/* Each of THREADS threads begins and ends 1000 regions, while the others do. */
static void crowd(void)
{
	omp_set_max_active_levels(2);
#pragma omp parallel num_threads(THREADS)
	for (volatile int round = 0; round < 1000; round++) {
#pragma omp parallel num_threads(2)
		__asm__ volatile("");
	}
}

/* The first threads of the league's teams wait for another league. */
static void league(void)
{
#pragma omp teams num_teams(2) thread_limit(2)
	{
#pragma omp parallel num_threads(2)
		sleep_ms(20);
		sleep_ms(1);
	}
	sleep_ms(300);
}

/* Each region in each other one is a place of its own: 4 + 16 + … + 4^levels. */
static void many(int levels)
{
	if (levels == 0)
		return;
#pragma omp parallel num_threads(1)
	many(levels - 1);
#pragma omp parallel num_threads(1)
	many(levels - 1);
#pragma omp parallel num_threads(1)
	many(levels - 1);
#pragma omp parallel num_threads(1)
	many(levels - 1);
}

/* A child inside a region, with one of its own. */
static void forks(void)
{
	pid_t pid = 0;
#pragma omp parallel num_threads(2)
	{
#pragma omp master
		pid = fork();
		if (pid == 0 && omp_get_thread_num() == 0) {
#pragma omp parallel num_threads(2)
			sleep_ms(20);
			_Exit(0);
		}
		sleep_ms(10);
	}
	waitpid(pid, NULL, 0);
}

/* For a program that opens this one as a library. */
void regions(const char *which);

void regions(const char *which)
{
	if (strcmp(which, "uneven") == 0)
		uneven();
	else if (strcmp(which, "locks") == 0)
		locks();
	else if (strcmp(which, "attempts") == 0)
		attempts();
	else if (strcmp(which, "owned") == 0)
		owned();
	else if (strcmp(which, "crowd") == 0)
		crowd();
	else if (strcmp(which, "league") == 0)
		league();
	else if (strcmp(which, "tasks") == 0)
		tasks();
	else if (strcmp(which, "nested") == 0)
		nested();
	else if (strcmp(which, "many") == 0)
		many(6);
	else if (strcmp(which, "forks") == 0)
		forks();
}

#ifdef OWN_TOOL
void *ompt_start_tool(unsigned version, const char *runtime);

/* The runtime asks the program first, and then no other tool. */
void *ompt_start_tool(unsigned version, const char *runtime)
{
	(void)version;
	printf("own tool of %s\n", runtime);
	static struct {
		int (*initialize)(void *(*lookup)(const char *), int device, void *data);
		void (*finalize)(void *data);
		void *data;
	} start;
	extern int own_initialize(void *(*lookup)(const char *), int device, void *data);
	extern void own_finalize(void *data);
	start.initialize = own_initialize;
	start.finalize = own_finalize;
	return &start;
}

int own_initialize(void *(*lookup)(const char *), int device, void *data)
{
	(void)lookup, (void)device, (void)data;
	return 1;
}

void own_finalize(void *data)
{
	(void)data;
	printf("own tool ends\n");
}
#endif

#ifndef LIBRARY
int main(int argc, char **argv)
{
	regions(argc > 1 ? argv[1] : "");
	if (argc > 2)
		printf("done\n");
	return 0;
}
#endif
