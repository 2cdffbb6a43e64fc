/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* A program that spins for half a second of CPU time under each of two names, first alone, then in a
 * thread, then in its first thread beside another one, then behind an exec: first, second; worker-1, worker-2; third,
 * fourth; fifth.
 */

#include <pthread.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long sink;

static void spin_as(const char *name)
{
	struct timespec begin, now;

	prctl(PR_SET_NAME, name);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
	do {
		for (int i = 0; i < 100000; i++)
			sink += (unsigned long)i;
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	} while ((double)(now.tv_sec - begin.tv_sec) + (double)(now.tv_nsec - begin.tv_nsec) / 1e9 <
		 0.5);
}

static void *work(void *nothing)
{
	spin_as("worker-1");
	spin_as("worker-2");
	return nothing;
}

static void *idle(void *nothing)
{
	pause();
	return nothing;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	if (argc > 1) {
		spin_as("fifth");
		return 0;
	}
	spin_as("first");
	spin_as("second");
	if (pthread_create(&thread, NULL, work, NULL) != 0 || pthread_join(thread, NULL) != 0 ||
		pthread_create(&thread, NULL, idle, NULL) != 0)
		return 1;
	spin_as("third");
	spin_as("fourth");
	execl(argv[0], argv[0], "again", NULL);
	return 1;
}
