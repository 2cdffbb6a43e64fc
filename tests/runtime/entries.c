/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A program whose regions are entered often, in the ways in which entries begin and end: what of
 * them is measured, with 1 in N, stands in test_regions.py. Each way is entered N times; in "pages"
 * an entry touches one new page, but each tenth touches eleven.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/mperf.h"

#define PAGE_BYTES 4096
#define PERIOD 10
#define THREADS 4

static void say_and_wait(void)
{
	char c;
	if (puts("ready") < 0 || fflush(stdout) != 0 || read(0, &c, 1) != 1)
		exit(1);
}

static void plain(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		MPERF_REGION("plain");
	}
}

static void pages(unsigned n)
{
	const size_t bytes = (size_t)n / PERIOD * 2 * PERIOD * PAGE_BYTES;
	volatile char *at =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	madvise((void *)at, bytes, MADV_NOHUGEPAGE);
	MPERF_REGION_BEGIN("start");
	MPERF_REGION_END("start");
	say_and_wait();
	for (unsigned i = 0; i < n; i++) {
		MPERF_REGION("pages");
		for (unsigned k = i % PERIOD == 0 ? PERIOD + 1 : 1; k > 0; k--, at += PAGE_BYTES)
			*at = 1;
	}
	say_and_wait();
}

/* By pointer, so that each has a frame of its own. */
static void recurse(unsigned depth)
{
	void (*volatile by_pointer)(unsigned) = recurse;
	MPERF_REGION("again");
	if (depth > 1)
		by_pointer(depth - 1);
}

static void recursion(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		recurse(3);
}

static void odd(unsigned depth);

/* Each inside the other, so that both are inside themselves. */
static void even(unsigned depth)
{
	void (*volatile by_pointer)(unsigned) = odd;
	MPERF_REGION("even");
	if (depth > 1)
		by_pointer(depth - 1);
}

static void odd(unsigned depth)
{
	void (*volatile by_pointer)(unsigned) = even;
	MPERF_REGION("odd");
	if (depth > 1)
		by_pointer(depth - 1);
}

static void turns(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		even(6);
}

/* In one function, the inner one by a marker whose text is not constant. */
static void nested(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		const struct mperf_region outer = {"outer", __FILE__, __LINE__, 0};
		__mperf_region_begin(&outer);
		MPERF_REGION_BEGIN("inner");
		MPERF_REGION_BEGIN("innermost");
		MPERF_REGION_END("innermost");
		MPERF_REGION_END("inner");
		__mperf_region_end(outer.name);
	}
}

static jmp_buf back;

__attribute__((noinline)) static void leaves(void)
{
	MPERF_REGION_BEGIN("left");
	longjmp(back, 1);
}

static void jumps(unsigned n)
{
	for (volatile unsigned i = 0; i < n; i++) {
		MPERF_REGION("around");
		if (setjmp(back) == 0)
			leaves();
	}
}

static void forks(unsigned n)
{
	plain(n);
	MPERF_REGION_BEGIN("open");
	pid_t child = fork();
	if (child == 0) {
		MPERF_REGION_END("open");
		plain(n);
		exit(0);
	}
	MPERF_REGION_END("open");
	int status;
	if (waitpid(child, &status, 0) != child || status != 0)
		exit(1);
}

static void *thread(void *data)
{
	plain(*(unsigned *)data);
	return NULL;
}

static void threads(unsigned n)
{
	pthread_t t[THREADS];
	for (unsigned i = 0; i < THREADS; i++)
		if (pthread_create(&t[i], NULL, thread, &n) != 0)
			exit(1);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
}

static volatile sig_atomic_t n_handled;

static void handler(int signal)
{
	(void)signal;
	MPERF_REGION_BEGIN("handler");
	n_handled++;
	MPERF_REGION_BEGIN("plain");
	MPERF_REGION_END("plain");
	MPERF_REGION_END("handler");
}

/* Signals interrupt markers at any place; the handler enters the same region by another marker. */
static void signals(unsigned n)
{
	const struct itimerval often = {{0, 50}, {0, 50}};
	const struct itimerval never = {{0, 0}, {0, 0}};
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	plain(n);
	setitimer(ITIMER_REAL, &never, NULL);
	printf("%d\n", (int)n_handled);
}

static const struct {
	const char *name;
	void (*run)(unsigned n);
} ways[] = {
	{"plain", plain},
	{"pages", pages},
	{"recursion", recursion},
	{"turns", turns},
	{"nested", nested},
	{"jumps", jumps},
	{"forks", forks},
	{"threads", threads},
	{"signals", signals},
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc == 3 && i < sizeof(ways) / sizeof(ways[0]); i++)
		if (strcmp(argv[1], ways[i].name) == 0) {
			ways[i].run((unsigned)atoi(argv[2]));
			return 0;
		}
	return 2;
}
