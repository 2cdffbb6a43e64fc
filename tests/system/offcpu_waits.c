/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Threads that wait in known ways, and say for how long
 *
 *      offcpu_waits SECONDS
 *
 * Each thread has the name of what it does. Standard output has a line for each, "NAME LIVED RAN READY LONG", in ns, of
 * its own clock and of /proc/self/task/TID/schedstat; LONG is the part of its waits that took 10 ms or more, which is
 * all that a tool with a threshold would see.
 */

#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LONG_NS 10000000u

typedef unsigned long long ns_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int pipes[2], sockets[2];
static ns_t end_ns;
static volatile unsigned long sink;

static ns_t now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (ns_t)t.tv_sec * 1000000000u + (ns_t)t.tv_nsec;
}

static void spin(unsigned us)
{
	const ns_t end = now_ns(CLOCK_THREAD_CPUTIME_ID) + us * 1000ull;

	while (now_ns(CLOCK_THREAD_CPUTIME_ID) < end)
		for (int i = 0; i < 100; i++)
			sink++;
}

static void sleep_us(unsigned us)
{
	nanosleep(
		&(struct timespec){.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000L}, NULL);
}

/* One turn each; every third wait is long. */
static void sleeps(unsigned i)
{
	sleep_us(i % 100 == 99 ? 300000 : 1000);
	spin(100);
}

static void short_sleeps(unsigned i)
{
	(void)i;
	sleep_us(1000);
	spin(100);
}

static void half_sleeps(unsigned i)
{
	(void)i;
	sleep_us(2000);
	spin(2000);
}

static void holds(unsigned i)
{
	pthread_mutex_lock(&lock);
	sleep_us(i % 20 == 0 ? 200000 : 1000);
	pthread_mutex_unlock(&lock);
	sleep_us(1000);
}

static void locks(unsigned i)
{
	(void)i;
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
}

static void writes(unsigned i)
{
	sleep_us(i % 100 == 99 ? 300000 : 2000);
	if (write(pipes[1], "x", 1) != 1 || write(sockets[1], "x", 1) != 1)
		exit(3);
}

static void reads_pipe(unsigned i)
{
	char c;

	(void)i;
	if (read(pipes[0], &c, 1) != 1)
		exit(3);
}

static void reads_socket(unsigned i)
{
	char c;

	(void)i;
	if (recv(sockets[0], &c, 1, 0) != 1)
		exit(3);
}

static void polls(unsigned i)
{
	poll(NULL, 0, i % 50 == 49 ? 300 : 3);
}

static void waits_for_child(unsigned i)
{
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_NAME, "grandchild");
		sleep_us(i % 5 == 4 ? 300000 : 20000);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

static void spins(unsigned i)
{
	(void)i;
	spin(5000);
}

static const struct doing {
	const char *name;
	void (*turn)(unsigned i);
	int n_threads;
} all[] = {
	{"sleeps", sleeps, 2},
	{"short_sleeps", short_sleeps, 2},
	{"half_sleeps", half_sleeps, 1},
	{"holds", holds, 1},
	{"locks", locks, 1},
	{"writes", writes, 1},
	{"reads_pipe", reads_pipe, 1},
	{"reads_socket", reads_socket, 1},
	{"polls", polls, 2},
	{"child", waits_for_child, 1},
	{"spins", spins, 3},
};
#define N_DOINGS (sizeof(all) / sizeof(*all))

static void tell(const char *name, ns_t began, ns_t long_ns)
{
	ns_t ran, ready;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/task/%d/schedstat", (int)gettid());
	FILE *f = fopen(path, "r");
	if (!f || fscanf(f, "%llu %llu", &ran, &ready) != 2)
		exit(3);
	fclose(f);
	printf("%s %llu %llu %llu %llu\n", name, now_ns(CLOCK_MONOTONIC) - began, ran, ready,
		long_ns);
}

static void *work(void *what)
{
	const struct doing *doing = what;
	const ns_t began = now_ns(CLOCK_MONOTONIC);
	ns_t long_ns = 0;

	prctl(PR_SET_NAME, doing->name);
	for (unsigned i = 0; now_ns(CLOCK_MONOTONIC) < end_ns; i++) {
		const ns_t wall = now_ns(CLOCK_MONOTONIC), cpu = now_ns(CLOCK_THREAD_CPUTIME_ID);
		doing->turn(i);
		const ns_t waited =
			now_ns(CLOCK_MONOTONIC) - wall - (now_ns(CLOCK_THREAD_CPUTIME_ID) - cpu);
		long_ns += waited >= LONG_NS ? waited : 0;
	}
	tell(doing->name, began, long_ns);
	return NULL;
}

int main(int argc, char *argv[])
{
	pthread_t thread[32];
	int n = 0;

	if (argc != 2 || pipe(pipes) < 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) < 0)
		return 2;
	end_ns = now_ns(CLOCK_MONOTONIC) + (ns_t)(atof(argv[1]) * 1e9);
	for (size_t i = 0; i < N_DOINGS; i++)
		for (int j = 0; j < all[i].n_threads; j++)
			if (pthread_create(&thread[n++], NULL, work, (void *)&all[i]))
				return 3;
	/* readers wait for the last byte */
	sleep_us((unsigned)(atof(argv[1]) * 1e6) + 400000);
	for (int i = 0; i < 100; i++)
		if (write(pipes[1], "x", 1) != 1 || write(sockets[1], "x", 1) != 1)
			return 3;
	for (int i = 0; i < n; i++)
		pthread_join(thread[i], NULL);
	return 0;
}
