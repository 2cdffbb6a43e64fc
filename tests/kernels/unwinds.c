/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Each call that the pass adds can be unwound: the stub runtime calls mperf_stub_called() from each
 * of its functions, which walks the stack and must arrive in main, or in where a thread began. With
 * an argument, a program of signals: so many of a timer, each of which walks the stack too.
 *
 * expect: leaf fp64_ops 3200
 * expect: crowded fp64_ops 57600
 * expect: rarely entries 50
 * expect: chosen fp64_ops 1600
 */

#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>
#include <unwind.h>

#include "kernels.h"

#define N 64
#define TIMER_US 40
#define FRAMES_MAX 64
#define LONG 2000 /* a loop of a few microseconds, which is timed each time */
#define UNCOUNTED __attribute__((no_profile_instrument_function))

int main(int argc, char **argv);
static void *begin_of_thread(void *numbers);

struct walk {
	int n;
	int arrived;
};

static UNCOUNTED _Unwind_Reason_Code look_at_frame(struct _Unwind_Context *frame, void *userdata)
{
	struct walk *walk = userdata;
	void *const function = _Unwind_FindEnclosingFunction((void *)(_Unwind_GetIP(frame) - 1));
	walk->arrived = function == (void *)main || function == (void *)begin_of_thread;
	return walk->arrived || ++walk->n == FRAMES_MAX ? _URC_END_OF_STACK : _URC_NO_REASON;
}

UNCOUNTED void mperf_stub_called(void)
{
	struct walk walk = {0, 0};
	_Unwind_Backtrace(look_at_frame, &walk);
	if (!walk.arrived) {
		fprintf(stderr, "a walk from a call of the runtime ended after %d frames\n",
			walk.n);
		_Exit(3);
	}
}

/* Without calls, so without a frame */
KERNEL double leaf(const double *a, long n)
{
	double sum = 0;
	for (long i = 0; i < n; i++)
		sum += a[i];
	return sum;
}

/* Has more values than registers, and keeps the rest below its stack pointer, if it may. */
KERNEL double crowded(const double *a, long n)
{
	double s[18];
	for (int k = 0; k < 18; k++)
		s[k] = a[k];
	for (long i = 0; i < n; i++) {
#pragma unroll
		for (int k = 0; k < 18; k++)
			s[k] *= a[i];
	}
	/* Alternating, so that nothing is computed but the 18 products of each iteration */
	return s[0] > s[1]     ? s[2]
	       : s[3] > s[4]   ? s[5]
	       : s[6] > s[7]   ? s[8]
	       : s[9] > s[10]  ? s[11]
	       : s[12] > s[13] ? s[14]
	       : s[15] > s[16] ? s[17]
			       : s[0];
}

static KERNEL void complain(const char *what)
{
	fprintf(stderr, "%s\n", what);
}

/* Has a path that needs no frame. */
KERNEL long rarely(long n)
{
	if (n < 0)
		complain("less than nothing");
	return n * 3;
}

KERNEL double chosen(const double *a, long n)
{
	if (n == 0)
		return 0;
	double most = a[0];
	for (long i = 0; i < n; i++)
		most = a[i] * 1.5 > most ? a[i] : most;
	return most;
}

KERNEL double all(const double *a)
{
	double sum = 0;
	for (int i = 0; i < 50; i++) {
		sum += leaf(a, N) + crowded(a, N) + (double)rarely(i);
		sum += i % 2 ? chosen(a, N) : 0;
	}
	return sum;
}

static void *begin_of_thread(void *numbers)
{
	double *a = numbers;
	a[0] = all(a);
	return NULL;
}

static volatile sig_atomic_t n_signals;

static UNCOUNTED void take_signal(int number)
{
	void *frames[FRAMES_MAX];
	(void)number;
	(void)backtrace(frames, FRAMES_MAX);
	mperf_stub_called();
	n_signals = n_signals + 1;
}

static double run_under_signals(long wanted)
{
	static double a[LONG];
	double sum = 0;
	void *frames[1];
	(void)backtrace(frames, 1); /* loads its library, which a handler may not */
	signal(SIGALRM, take_signal);
	setitimer(ITIMER_REAL, &(struct itimerval){{0, TIMER_US}, {0, TIMER_US}}, NULL);
	while (n_signals < wanted) {
		a[0] = (double)n_signals; /* or it would be called once */
		sum += leaf(a, LONG);
	}
	setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 0}}, NULL);
	signal(SIGALRM, SIG_IGN);
	return sum;
}

int main(int argc, char **argv)
{
	static double a[N];
	for (int i = 0; i < N; i++)
		a[i] = 1 + i % 3;
	if (argc > 1)
		return run_under_signals(atol(argv[1])) < 0;
	pthread_t thread;
	if (pthread_create(&thread, NULL, begin_of_thread, a) == 0)
		pthread_join(thread, NULL);
	printf("%g\n", a[0]);
	return 0;
}
