/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Threads that wait, each for one other thing
 *
 *      wakers SECONDS [FIFO]
 *      wakers SECONDS often
 *
 * The first wait for tens of milliseconds: left and right for a semaphore each, in wait_left and wait_right, which other
 * threads post in wake_left and wake_right; reads for a pipe, in wait_pipe, that another thread writes in wake_pipe; sleeps for
 * the clock, in wait_clock; and with FIFO, fifo for that, in wait_fifo, until the other end closes it.
 *
 * With `often`, one thread waits in wait_left and wait_right by turns, and another one wakes it some 10,000 times a second:
 * from wake_left and wake_right. Standard output says how many wakes there were, and the CPU time that all took.
 */

#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define APART __attribute__((noinline, noclone))

static sem_t left, right, back;
static int pipes[2], fifo;
static volatile int has_ended;

static double now_s(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void sleep_ms(double ms)
{
	const long ns = (long)(ms * 1e6);

	nanosleep(&(struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000}, NULL);
}

static void spin_us(double us)
{
	const double end = now_s(CLOCK_MONOTONIC) + us / 1e6;

	while (now_s(CLOCK_MONOTONIC) < end)
		continue;
}

APART static void wait_left(void)
{
	sem_wait(&left);
}

APART static void wait_right(void)
{
	sem_wait(&right);
}

APART static void wait_pipe(void)
{
	char c;

	if (read(pipes[0], &c, 1) != 1)
		exit(3);
}

APART static void wait_clock(void)
{
	sleep_ms(20);
}

APART static void wait_fifo(void)
{
	char c;

	if (read(fifo, &c, 1) != 1)
		has_ended = 1;
}

APART static void wake_left(void)
{
	sem_post(&left);
}

APART static void wake_right(void)
{
	sem_post(&right);
}

APART static void wake_pipe(void)
{
	if (write(pipes[1], "x", 1) != 1)
		exit(3);
}

static void sleep_and_wake_left(void)
{
	sleep_ms(30);
	wake_left();
}

static void sleep_and_wake_right(void)
{
	sleep_ms(70);
	wake_right();
}

static void sleep_and_wake_pipe(void)
{
	sleep_ms(45);
	wake_pipe();
}

static void wait_often(void)
{
	wait_left();
	sem_post(&back);
	wait_right();
	sem_post(&back);
}

static void wake_often(void)
{
	spin_us(200);
	wake_left();
	sem_wait(&back);
	spin_us(100);
	wake_right();
	sem_wait(&back);
}

static const struct doing {
	const char *name;
	void (*turn)(void);
} seldom[] =
	{
		{"left", wait_left},
		{"right", wait_right},
		{"reads", wait_pipe},
		{"sleeps", wait_clock},
		{"posts-left", sleep_and_wake_left},
		{"posts-right", sleep_and_wake_right},
		{"writes", sleep_and_wake_pipe},
		{"fifo", wait_fifo},
},
  often[] = {
	  {"waits", wait_often},
	  {"wakes", wake_often},
};
#define N_SELDOM 8
#define N_OFTEN 2

static unsigned long n_turns;

static void *work(void *what)
{
	const struct doing *doing = what;
	unsigned long n = 0;

	prctl(PR_SET_NAME, doing->name);
	for (; !has_ended; n++)
		doing->turn();
	if (doing->turn == wake_often)
		n_turns = n;
	/* who waits for this one sees the end */
	sem_post(&left);
	sem_post(&right);
	sem_post(&back);
	return NULL;
}

int main(int argc, char *argv[])
{
	const int is_often = argc == 3 && strcmp(argv[2], "often") == 0;
	const struct doing *doing = is_often ? often : seldom;
	const int n = is_often ? N_OFTEN : argc == 3 ? N_SELDOM : N_SELDOM - 1;
	pthread_t thread[N_SELDOM];

	if (argc < 2 || argc > 3 || pipe(pipes) < 0)
		return 2;
	if (!is_often && argc == 3 && (fifo = open(argv[2], O_RDONLY)) < 0)
		return 2;
	sem_init(&left, 0, 0);
	sem_init(&right, 0, 0);
	sem_init(&back, 0, 0);
	for (int i = 0; i < n; i++)
		if (pthread_create(&thread[i], NULL, work, (void *)&doing[i]))
			return 3;
	sleep_ms(atof(argv[1]) * 1e3);
	has_ended = 1;
	wake_pipe();
	sem_post(&back);
	sem_post(&left);
	sem_post(&right);
	for (int i = 0; i < n; i++)
		if (doing[i].turn != wait_fifo)
			pthread_join(thread[i], NULL);
	if (is_often)
		printf("%lu %f\n", 2 * n_turns, now_s(CLOCK_PROCESS_CPUTIME_ID));
	return 0;
}
