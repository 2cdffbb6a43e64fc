/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Threads that work alone and at once, and say what wall time each accounts for, by the gaps that they see in their own
 * clock: wall_work MS. A line for each: name, wall ns, CPU ns; then "harts N" with wall ns and CPU ns. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define GAP_NS 50000 /* without a hart */
#define STRETCHES_MAX 100000
#define N_WORKERS 3

struct edge {
	int64_t ns;
	int worker, step;
};

static struct edge edge[2 * STRETCHES_MAX];
static int n_edges;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t together;

static int64_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static void note(int worker, int64_t from, int64_t to)
{
	pthread_mutex_lock(&lock);
	if (n_edges + 2 > 2 * STRETCHES_MAX)
		abort();
	edge[n_edges++] = (struct edge){from, worker, 1};
	edge[n_edges++] = (struct edge){to, worker, -1};
	pthread_mutex_unlock(&lock);
}

static void work(int worker, int64_t cpu_ns)
{
	int64_t begin = now(), last = begin, left = cpu_ns;
	while (left > 0) {
		int64_t t = now();
		if (t - last > GAP_NS) {
			note(worker, begin, last);
			left -= last - begin;
			begin = t;
		} else if (t - begin >= left) {
			note(worker, begin, t);
			return;
		}
		last = t;
	}
}

static int64_t of_ns;

/* alone works first, then all at once, with half of the work for the last. */
static void *run(void *argument)
{
	static const char *const name[N_WORKERS] = {"alone", "second", "third"};
	const int worker = (int)(intptr_t)argument;
	prctl(PR_SET_NAME, name[worker]);
	if (worker == 0)
		work(worker, of_ns);
	pthread_barrier_wait(&together);
	work(worker, worker == 2 ? of_ns / 2 : of_ns);
	return NULL;
}

static int by_time(const void *a, const void *b)
{
	const struct edge *x = a, *y = b;
	return x->ns != y->ns ? (x->ns > y->ns) - (x->ns < y->ns) : y->step - x->step;
}

int main(int argc, char **argv)
{
	static const char *const name[N_WORKERS] = {"alone", "second", "third"};
	pthread_t thread[N_WORKERS];
	double wall[N_WORKERS] = {0}, cpu[N_WORKERS] = {0};
	double harts_wall[N_WORKERS + 1] = {0};
	int working[N_WORKERS] = {0}, n = 0;
	of_ns = (argc > 1 ? atoll(argv[1]) : 500) * INT64_C(1000000);
	pthread_barrier_init(&together, NULL, N_WORKERS);
	for (intptr_t i = 0; i < N_WORKERS; i++)
		pthread_create(&thread[i], NULL, run, (void *)i);
	for (int i = 0; i < N_WORKERS; i++)
		pthread_join(thread[i], NULL);
	qsort(edge, n_edges, sizeof(*edge), by_time);
	for (int i = 0; i < n_edges; i++) {
		const double ns = i > 0 ? (double)(edge[i].ns - edge[i - 1].ns) : 0;
		for (int k = 0; k < N_WORKERS && n > 0; k++) {
			wall[k] += working[k] * ns / n;
			cpu[k] += working[k] * ns;
		}
		harts_wall[n] += ns;
		working[edge[i].worker] += edge[i].step;
		n += edge[i].step;
	}
	for (int k = 0; k < N_WORKERS; k++)
		printf("%s %.0f %.0f\n", name[k], wall[k], cpu[k]);
	for (int k = 1; k <= N_WORKERS; k++)
		printf("%d %.0f %.0f\n", k, harts_wall[k], k * harts_wall[k]);
	return 0;
}
