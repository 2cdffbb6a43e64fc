/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Busy on two threads, asleep, busy on one, each for so many seconds as the argument says. A line for each phase on
 * standard output: when it began and ended, CLOCK_REALTIME in ns, and the CPU time that the process took in it. */

#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static volatile unsigned long sink;

static long long ns_of(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static void *spin(void *until)
{
	while (ns_of(CLOCK_REALTIME) < *(long long *)until)
		for (int i = 0; i < 2000; i++)
			sink++;
	return NULL;
}

static void phase(int threads, double seconds)
{
	const long long begin = ns_of(CLOCK_REALTIME), cpu = ns_of(CLOCK_PROCESS_CPUTIME_ID);
	long long until = begin + (long long)(seconds * 1e9);
	struct timespec rest = {(time_t)seconds, (long)(seconds * 1e9) % 1000000000};
	pthread_t other;

	if (threads == 0)
		nanosleep(&rest, NULL);
	if (threads == 2 && pthread_create(&other, NULL, spin, &until) != 0)
		exit(1);
	if (threads > 0)
		spin(&until);
	if (threads == 2)
		pthread_join(other, NULL);
	printf("%lld %lld %lld\n", begin, ns_of(CLOCK_REALTIME),
		ns_of(CLOCK_PROCESS_CPUTIME_ID) - cpu);
}

int main(int argc, char **argv)
{
	const double seconds = argc > 1 ? atof(argv[1]) : 2;

	phase(2, seconds);
	phase(0, seconds);
	phase(1, seconds);
	return 0;
}
