/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A program that counts by hand what its first argument says, in all the ways in which programs
 * begin threads, end them, and end. What it must have counted stands in test_runtime.py.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "counted.h"

#define N 16
#define A 4 /* counters */
#define B 5
#define C 6
COUNTED(N)

__attribute__((noinline)) static void count_a(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		COUNT(A, 1);
}

/* --- constructors and destructors ------------------------------------------------------------- */

static int wants_ends; /* destructors count too */

__attribute__((constructor)) static void early(void)
{
	COUNT(7, 7);
}

__attribute__((destructor)) static void late(void)
{
	if (wants_ends)
		COUNT(8, 8);
}

/* --- threads ---------------------------------------------------------------------------------- */

#define THREADS_MAX 256

static void *thread_counts(void *data)
{
	count_a(1000);
	COUNT(B, (uintptr_t)data);
	return NULL;
}

static void threads(unsigned n)
{
	pthread_t t[THREADS_MAX];
	for (unsigned i = 0; i < n; i++)
		pthread_create(&t[i], NULL, thread_counts, (void *)(uintptr_t)i);
	for (unsigned i = 0; i < n; i++)
		pthread_join(t[i], NULL);
}

static void churn(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		pthread_t t;
		pthread_create(&t, NULL, thread_counts, (void *)1);
		pthread_join(t, NULL);
	}
}

static pthread_barrier_t counted_all;

static void *thread_stays(void *data)
{
	thread_counts(data);
	pthread_barrier_wait(&counted_all);
	for (;;)
		pause();
	return NULL;
}

static void workers(unsigned n)
{
	pthread_barrier_init(&counted_all, NULL, n + 1);
	for (unsigned i = 0; i < n; i++) {
		pthread_t t;
		pthread_create(&t, NULL, thread_stays, (void *)(uintptr_t)i);
	}
	pthread_barrier_wait(&counted_all);
}

static void *thread_is_cancelled(void *data)
{
	thread_stays(data);
	return NULL;
}

static void cancelled(unsigned n)
{
	(void)n;
	pthread_t t;
	pthread_barrier_init(&counted_all, NULL, 2);
	pthread_create(&t, NULL, thread_is_cancelled, (void *)1);
	pthread_barrier_wait(&counted_all);
	pthread_cancel(t);
	pthread_join(t, NULL);
}

/* Say that all is counted, and wait until the other side has seen what it wants to see. */
static void say_and_wait(void)
{
	char byte;
	if (write(1, "ready\n", 6) != 6 || read(0, &byte, 1) != 1)
		_exit(3);
}

/* --- processes -------------------------------------------------------------------------------- */

static void forks(unsigned n)
{
	(void)n;
	count_a(10);
	pid_t child = fork();
	if (child == 0) {
		count_a(3);
		exit(0);
	}
	waitpid(child, NULL, 0);
	count_a(1);
}

static void forks_in_region(unsigned n)
{
	(void)n;
	MPERF_REGION_BEGIN("around");
	count_a(10);
	pid_t child = fork();
	if (child == 0) {
		count_a(3);
		MPERF_REGION_END("around");
		exit(0);
	}
	waitpid(child, NULL, 0);
	MPERF_REGION_END("around");
}

/* A child that goes on for long: it is heard of while it runs. */
static void fork_stays(unsigned n)
{
	(void)n;
	count_a(10);
	pid_t child = fork();
	if (child == 0) {
		NEST(1, count_a(3));
		say_and_wait();
		_exit(0);
	}
	waitpid(child, NULL, 0);
}

static void fork_storm(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		pid_t child = fork();
		if (child == 0) {
			count_a(1);
			_exit(0);
		}
		count_a(1);
		waitpid(child, NULL, 0);
	}
}

static void executes(const char *self)
{
	count_a(5);
	pid_t child = vfork();
	if (child == 0) {
		execl(self, self, "threads", "1", NULL);
		_exit(1);
	}
	waitpid(child, NULL, 0);
	count_a(5);
}

/* --- signals ---------------------------------------------------------------------------------- */

static void on_signal(int signal)
{
	(void)signal;
	COUNT(C, 1);
	MPERF_REGION_BEGIN("handler");
	COUNT(C, 1);
	MPERF_REGION_END("handler");
}

static int pestered; /* atomic */

static void *pester(void *data)
{
	for (unsigned i = 0; i < 2000; i++)
		pthread_kill(*(pthread_t *)data, SIGUSR1);
	__atomic_store_n(&pestered, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void signals(unsigned n)
{
	(void)n;
	pthread_t self = pthread_self(), t;
	signal(SIGUSR1, on_signal);
	pthread_create(&t, NULL, pester, &self);
	unsigned rounds = 0;
	while (!__atomic_load_n(&pestered, __ATOMIC_ACQUIRE)) {
		MPERF_REGION_BEGIN("loop");
		count_a(1);
		rounds++;
		MPERF_REGION_END("loop");
		COUNT(B, 1);
	}
	pthread_join(t, NULL);
	printf("%u\n", rounds);
	fflush(stdout);
}

/* Signals that come while nothing was counted yet, on a thread of their own. */
static void *first_in_handler(void *data)
{
	(void)data;
	raise(SIGUSR1);
	return NULL;
}

static void signal_first(unsigned n)
{
	(void)n;
	pthread_t t;
	signal(SIGUSR1, on_signal);
	pthread_create(&t, NULL, first_in_handler, NULL);
	pthread_join(t, NULL);
}

/* --- regions ---------------------------------------------------------------------------------- */

static void nested(void)
{
	void (*volatile by_pointer)(unsigned) = count_a;
	count_a(1);
	for (int i = 0; i < 10; i++) {
		MPERF_REGION("outer");
		count_a(2);
		{
			MPERF_REGION("inner");
			by_pointer(3);
		}
		COUNT(A, 1);
	}
	MPERF_REGION_BEGIN("inner");
	by_pointer(4);
	MPERF_REGION_END("inner");
	MPERF_REGION_END("never begun");
	count_a(5);
}

/* Touch n new pages in a region, and none outside of it. */
static void faults(unsigned n)
{
	size_t bytes = (size_t)n * 4096;
	volatile char *pages =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	madvise((void *)pages, bytes, MADV_NOHUGEPAGE);
	MPERF_REGION_BEGIN("faults"); /* what is new to it, is new now */
	MPERF_REGION_END("faults");
	say_and_wait();
	MPERF_REGION_BEGIN("faults");
	for (size_t i = 0; i < bytes; i += 4096)
		pages[i] = 1;
	MPERF_REGION_END("faults");
	say_and_wait();
}

static void recursion(unsigned depth)
{
	MPERF_REGION("again");
	COUNT(A, 1);
	if (depth > 1)
		recursion(depth - 1);
}

static jmp_buf back;

__attribute__((noinline)) static void jumps(void)
{
	MPERF_REGION_BEGIN("left");
	COUNT(A, 2);
	longjmp(back, 1);
}

__attribute__((noinline)) static void marks_after(void)
{
	MPERF_REGION("after");
	COUNT(A, 5);
}

static void jumped(unsigned n)
{
	(void)n;
	MPERF_REGION_BEGIN("outer");
	COUNT(A, 1);
	if (setjmp(back) == 0)
		jumps();
	MPERF_REGION_BEGIN("next");
	COUNT(A, 3);
	MPERF_REGION_END("next");
	COUNT(A, 4);
	MPERF_REGION_END("outer");
	marks_after();
	for (volatile int i = 0; i < 100; i++) {
		MPERF_REGION_BEGIN("no end");
		COUNT(A, 1);
		if (setjmp(back) == 0)
			longjmp(back, 1);
	}
	marks_after();
}

static void *region_thread(void *data)
{
	(void)data;
	for (int i = 0; i < 500; i++)
		nested();
	return NULL;
}

static void region_threads(unsigned n)
{
	(void)n;
	pthread_t t[8];
	for (int i = 0; i < 8; i++)
		pthread_create(&t[i], NULL, region_thread, NULL);
	for (int i = 0; i < 8; i++)
		pthread_join(t[i], NULL);
}

/* --- libraries -------------------------------------------------------------------------------- */

static int library(const char *path, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		void *l = dlopen(path, RTLD_NOW | RTLD_LOCAL);
		void (*count)(void) = l ? (void (*)(void))dlsym(l, "library_count") : NULL;
		if (!count) {
			fprintf(stderr, "%s\n", dlerror());
			return 1;
		}
		count();
		MPERF_REGION_BEGIN("closing");
		count();
		MPERF_REGION_END("closing");
		dlclose(l);
		MPERF_REGION_BEGIN("closed");
		count_a(1);
		MPERF_REGION_END("closed");
	}
	return 0;
}

/* Many counters that change in each of many periods, whether anybody reads or not. */
static int floods(const char *path, unsigned n)
{
	void *l = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	void (*count)(void) = l ? (void (*)(void))dlsym(l, "library_count") : NULL;
	if (!count)
		return 1;
	for (unsigned i = 0; i < n; i++) {
		count();
		usleep(20000);
	}
	say_and_wait();
	return 0;
}

static int stop; /* atomic */

static void *counts_until_stopped(void *data)
{
	uint64_t *n = data;
	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
		count_a(1);
		++*n;
		usleep(100);
	}
	return NULL;
}

/* A thread that counts and ends while what a library counts has filled the socket; how often. */
static int ends_behind(const char *path)
{
	void *l = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	void (*count)(void) = l ? (void (*)(void))dlsym(l, "library_count") : NULL;
	if (!count)
		return 1;
	uint64_t n = 0;
	pthread_t t;
	count();
	pthread_create(&t, NULL, counts_until_stopped, &n);
	for (unsigned i = 0; i < 50; i++) {
		count();
		usleep(20000);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	pthread_join(t, NULL);
	printf("%" PRIu64 "\n", n);
	fflush(stdout);
	say_and_wait();
	return 0;
}

static int closing; /* atomic */

static void *switches(void *data)
{
	(void)data;
	while (!__atomic_load_n(&closing, __ATOMIC_ACQUIRE)) {
		MPERF_REGION("switching");
		count_a(1);
	}
	return NULL;
}

/* Other threads go in and out of regions while libraries that they used are closed. */
static int libraries_and_threads(const char *path, unsigned n)
{
	pthread_t t[2];
	for (int i = 0; i < 2; i++)
		pthread_create(&t[i], NULL, switches, NULL);
	int r = library(path, n);
	__atomic_store_n(&closing, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	return r;
}

/* --- nests ------------------------------------------------------------------------------------ */

static void nests(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		NEST(1, COUNT(A, 1));
}

static void nest_open(unsigned n)
{
	(void)n;
	NEST(1, say_and_wait());
}

/* --- descriptors ------------------------------------------------------------------------------ */

/* Close all that is not known, then have descriptors of all numbers: nobody may write there. */
static int keeps_errno(void)
{
	errno = 77;
	count_a(1);
	MPERF_REGION_BEGIN("first");
	MPERF_REGION_END("first");
	return errno == 77 ? 0 : 1;
}

static int takes_descriptors(void)
{
	char template[] = "/tmp/mperf-test-XXXXXX";
	say_and_wait();
	for (int fd = 3; fd < 1024; fd++)
		close(fd);
	int own = mkstemp(template);
	unlink(template);
	for (int fd = own; fd < 1000;)
		fd = dup(own);
	count_a(10);
	say_and_wait();
	return lseek(own, 0, SEEK_END) == 0 ? 0 : 4;
}

/* --- ends ------------------------------------------------------------------------------------- */

static void regions(unsigned n)
{
	(void)n;
	nested();
}

static void ends(unsigned n)
{
	(void)n;
	wants_ends = 1;
}

static void waits(unsigned n)
{
	count_a(n);
	say_and_wait();
	count_a(5);
	say_and_wait();
}

static void exits_at_once(unsigned n)
{
	count_a(n);
	say_and_wait();
	count_a(5);
	_exit(0);
}

static void exits_quickly(unsigned n)
{
	count_a(n);
	quick_exit(0);
}

static void main_exits(unsigned n)
{
	pthread_t t;
	count_a(n);
	pthread_create(&t, NULL, thread_counts, (void *)1);
	pthread_exit(NULL);
}

static const struct {
	const char *name;
	void (*run)(unsigned n);
} ways[] = {
	{"threads", threads},
	{"churn", churn},
	{"workers", workers},
	{"cancelled", cancelled},
	{"forks", forks},
	{"forks-in-region", forks_in_region},
	{"fork-stays", fork_stays},
	{"fork-storm", fork_storm},
	{"signals", signals},
	{"signal-first", signal_first},
	{"regions", regions},
	{"region-threads", region_threads},
	{"faults", faults},
	{"recursion", recursion},
	{"jumped", jumped},
	{"nests", nests},
	{"nest-open", nest_open},
	{"ends", ends},
	{"waits", waits},
	{"_exit", exits_at_once},
	{"quick_exit", exits_quickly},
	{"main-exits", main_exits},
};

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	unsigned n = argc > 2 ? (unsigned)atoi(argv[argc - 1]) : 1;

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		if (!strcmp(what, ways[i].name)) {
			ways[i].run(n);
			return 0;
		}
	if (!strcmp(what, "executes"))
		executes(argv[0]);
	else if (!strcmp(what, "library"))
		return library(argv[2], n);
	else if (!strcmp(what, "floods"))
		return floods(argv[2], n);
	else if (!strcmp(what, "ends-behind"))
		return ends_behind(argv[2]);
	else if (!strcmp(what, "libraries-and-threads"))
		return libraries_and_threads(argv[2], n);
	else if (!strcmp(what, "takes-descriptors"))
		return takes_descriptors();
	else if (!strcmp(what, "errno"))
		return keeps_errno();
	else
		return 2;
	return 0;
}
