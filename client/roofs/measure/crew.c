/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The starter sleeps while threads run, so that it takes no hart from them; they meet at a spinning
 * barrier, so that they begin within a microsecond. Rates are each thread's own work over its own
 * time, added up: nobody waits for the slowest, which matters where kinds of harts run together.
 *
 * Large working sets are walked in slices, the next repeat going on where this one ended: else a
 * repeat would find its own data in the cache.
 */
#include "client/roofs/measure/crew.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "proto/base/clock.h"
#include "proto/base/memory.h"

#define CHUNK_NS 100000        /* between looks at the clock, which take some 30 ns */
#define SLICE_BYTES (1u << 18) /* walked at a time of a stream that is larger */
/* Between larger streams: at a distance of 2^n, lines of two streams compete for banks of DRAM. Zen 4,
 * streams of 256 MiB, AVX2: copy 22.1 GB/s, 19.6 without it; triad 21.5 and 16.9. */
#define GAP_BYTES (3u << 12)
#define CLOCK_NS 150000 /* for the chain of additions */
#define HUGE_BYTES (2u << 20)
#define CPU_SHARE_MIN 0.98 /* a thread must have had its hart for this share of the time */
#define SPINS_BEFORE_YIELD 2000000
#define STACK_BYTES (256u << 10)

struct member {
	struct crew *crew;
	pthread_t thread;
	uint32_t number;
	unsigned char *mapping, *memory;
	void *operands, *results;
	uint64_t at; /* of a stream: where the next slice begins */
	int error;   /* of setting up */

	/* of the last job */
	double rate, hz;
	bool disturbed;
};

struct crew {
	size_t n;
	uint64_t bytes;
	bool wants_huge;
	double huge;
	pthread_mutex_t mutex;
	pthread_cond_t wake, done;
	uint64_t turn; /* of jobs */
	size_t n_done; /* members that are done with it */
	bool ends;
	struct job job;
	_Atomic uint64_t arrived;
	struct member member[];
};

/* --- one job on one hart ---------------------------------------------------------------------- */

static uint64_t cpu_ns(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

static void barrier(struct crew *c, uint64_t turn)
{
	atomic_fetch_add(&c->arrived, 1);
	for (uint64_t spins = 0; atomic_load(&c->arrived) < turn * c->n; spins++)
		if (spins > SPINS_BEFORE_YIELD) /* there may be more threads than harts: let others
						 * run */
			sched_yield();
}

struct walk {
	uint64_t stream, gap, slice, passes;
};

/* Call the kernel once; returns the work that it reports. */
static uint64_t step(struct member *m, const struct job *j, const struct walk *w)
{
	const struct kernel *k = j->kernel;
	if (k->limit == ROOF_COMPUTE)
		return k->compute(w->passes, m->operands, m->results);
	uint64_t left = w->stream - m->at, bytes = left < w->slice ? left : w->slice;
	unsigned char *a = m->memory + m->at, *b = a + w->stream + w->gap,
		      *c = b + w->stream + w->gap;
	m->at = m->at + bytes == w->stream ? 0 : m->at + bytes;
	return k->memory(w->passes, bytes, a, b, c);
}

static struct walk plan_walk(struct member *m, const struct job *j)
{
	struct walk w = {.passes = 1};
	if (j->kernel->limit == ROOF_MEMORY) {
		const uint32_t n = j->kernel->per;
		w.gap = j->bytes / n < 2 * SLICE_BYTES ? 0 : GAP_BYTES;
		w.stream =
			(j->bytes - (n - 1) * w.gap) / n / KERNEL_BLOCK_BYTES * KERNEL_BLOCK_BYTES;
		if (w.stream == 0)
			w.stream = KERNEL_BLOCK_BYTES;
		w.slice = w.stream < 2 * SLICE_BYTES ? w.stream : SLICE_BYTES;
		m->at = m->at / w.slice * w.slice;
		if (m->at >= w.stream)
			m->at = 0;
	}
	return w;
}

/* Run for `ns`; warming up, calls grow until each takes CHUNK_NS. Returns the work. */
static uint64_t run_for(struct member *m, const struct job *j, struct walk *w, uint64_t ns,
	bool grow, uint64_t *ret_took_ns)
{
	uint64_t start_ns = clock_ns(CLOCK_MONOTONIC), last_ns = start_ns, now_ns, work = 0;
	bool whole = j->kernel->limit == ROOF_COMPUTE || w->slice == w->stream;
	do {
		work += step(m, j, w);
		now_ns = clock_ns(CLOCK_MONOTONIC);
		if (grow && whole && now_ns - last_ns < CHUNK_NS)
			w->passes *= 2;
		last_ns = now_ns;
	} while (now_ns - start_ns < ns);
	*ret_took_ns = now_ns - start_ns;
	return work;
}

static double measure_clock(void)
{
	uint64_t n = 0, took_ns, passes = 16, start_ns;
	do {
		passes *= 2;
		start_ns = cpu_ns();
		n = roof_clock(passes);
		took_ns = cpu_ns() - start_ns;
	} while (took_ns < CLOCK_NS);
	return (double)n * 1e9 / (double)took_ns;
}

static void do_job(struct member *m, uint64_t turn)
{
	const struct job *j = &m->crew->job;
	struct walk w = plan_walk(m, j);
	uint64_t took_ns, cpu_start_ns;
	struct rusage before, after;

	if (j->kernel->limit == ROOF_COMPUTE)
		kernel_operands(j->kernel, m->operands);
	run_for(m, j, &w, j->warm_ns, true, &took_ns);
	barrier(m->crew, 2 * turn - 1);

	getrusage(RUSAGE_THREAD, &before);
	cpu_start_ns = cpu_ns();
	uint64_t work = run_for(m, j, &w, j->run_ns, false, &took_ns);
	uint64_t had_ns = cpu_ns() - cpu_start_ns;
	m->hz = measure_clock();
	getrusage(RUSAGE_THREAD, &after);

	/* count only the time that a single hart had; of several, which share memory, one that waits leaves
	 * more bandwidth to the others */
	const bool alone = m->crew->n == 1 && had_ns > 0 && had_ns < took_ns;
	m->rate = (double)work * j->kernel->per * 1e9 / (double)(alone ? had_ns : took_ns);
	m->disturbed = after.ru_nivcsw != before.ru_nivcsw ||
		       (double)had_ns < CPU_SHARE_MIN * (double)took_ns;
	barrier(m->crew, 2 * turn); /* clocks are measured while all are busy */
}

/* --- threads ---------------------------------------------------------------------------------- */

/* One huge page more than is used, so that the memory can begin on one. */
static size_t mapping_bytes(const struct crew *c)
{
	return c->bytes + HUGE_BYTES;
}

static int set_up(struct member *m)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(m->number, &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		return -errno;

	m->operands = aligned_alloc(KERNEL_OPERAND_BYTES, 3 * KERNEL_OPERAND_BYTES);
	m->results = aligned_alloc(KERNEL_OPERAND_BYTES, KERNEL_RESULT_BYTES);
	if (!m->operands || !m->results)
		return -ENOMEM;
	m->mapping = mmap(NULL, mapping_bytes(m->crew), PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (m->mapping == MAP_FAILED) {
		m->mapping = NULL;
		return -errno;
	}
	/* begin on a huge page */
	m->memory = m->mapping + (-(uintptr_t)m->mapping & (HUGE_BYTES - 1));
	madvise(m->memory, m->crew->bytes, m->crew->wants_huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	double *value = (void *)m->memory;
	for (size_t i = 0; i < m->crew->bytes / sizeof(*value); i++)
		value[i] = 1.37; /* a normal number with many digits */
	return 0;
}

static void *member_main(void *arg)
{
	struct member *m = arg;
	struct crew *c = m->crew;
	m->error = set_up(m);

	pthread_mutex_lock(&c->mutex);
	for (uint64_t turn = 0;; turn++) {
		if (turn > 0) {
			pthread_mutex_unlock(&c->mutex);
			do_job(m, turn);
			pthread_mutex_lock(&c->mutex);
		}
		if (++c->n_done == c->n)
			pthread_cond_signal(&c->done);
		while (c->turn == turn && !c->ends)
			pthread_cond_wait(&c->wake, &c->mutex);
		if (c->ends)
			break;
	}
	pthread_mutex_unlock(&c->mutex);
	return NULL;
}

/* The share of our anonymous memory that is in huge pages, once it has been touched.
 * Source: proc_pid_smaps_rollup, Documentation/filesystems/proc.rst of Linux 6.12. */
static double huge_share(void)
{
	_cleanup_(fclosep) FILE *f = fopen("/proc/self/smaps_rollup", "re");
	char line[256];
	double anonymous = 0, huge = 0;
	while (f && fgets(line, sizeof(line), f)) {
		sscanf(line, "Anonymous: %lf", &anonymous);
		sscanf(line, "AnonHugePages: %lf", &huge);
	}
	return anonymous > 0 ? huge / anonymous : 0;
}

static void wait_until_done(struct crew *c)
{
	while (c->n_done < c->n)
		pthread_cond_wait(&c->done, &c->mutex);
	c->n_done = 0;
}

int crew_new(const uint32_t *number, size_t n, uint64_t bytes, bool huge, struct crew **ret_crew)
{
	struct crew *c = calloc(1, sizeof(*c) + n * sizeof(*c->member));
	pthread_attr_t attributes;
	int error = 0;
	if (!c)
		return -ENOMEM;
	pthread_mutex_init(&c->mutex, NULL);
	pthread_cond_init(&c->wake, NULL);
	pthread_cond_init(&c->done, NULL);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	c->wants_huge = huge;
	c->bytes = (bytes + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES;
	for (size_t i = 0; i < n && error == 0; i++) {
		struct member *m = &c->member[i];
		m->crew = c;
		m->number = number[i];
		/* members that are done compare n_done with n */
		pthread_mutex_lock(&c->mutex);
		error = pthread_create(&m->thread, &attributes, member_main, m);
		c->n += error == 0;
		pthread_mutex_unlock(&c->mutex);
	}
	pthread_attr_destroy(&attributes);

	pthread_mutex_lock(&c->mutex);
	wait_until_done(c);
	pthread_mutex_unlock(&c->mutex);
	for (size_t i = 0; i < c->n && error == 0; i++)
		error = -c->member[i].error;
	if (error != 0) {
		crew_free(c);
		return -error;
	}
	c->huge = huge_share();
	*ret_crew = c;
	return 0;
}

double crew_huge(const struct crew *c)
{
	return c->huge;
}

/* --- jobs ------------------------------------------------------------------------------------- */

/* Ticks that a hypervisor took from our harts. Source: Documentation/filesystems/proc.rst, 1.7. */
static uint64_t stolen_ticks(const struct crew *c)
{
	_cleanup_(fclosep) FILE *f = fopen("/proc/stat", "re");
	char line[512];
	uint64_t sum = 0;
	size_t i = 0; /* both ascend */
	while (f && i < c->n && fgets(line, sizeof(line), f)) {
		unsigned number;
		unsigned long long stolen;
		if (sscanf(line, "cpu%u %*u %*u %*u %*u %*u %*u %*u %llu", &number, &stolen) == 2 &&
			number == c->member[i].number) {
			sum += stolen;
			i++;
		} else if (strncmp(line, "intr", 4) == 0)
			break;
	}
	return sum;
}

void crew_run(struct crew *c, const struct job *job, struct job_result *ret_result)
{
	struct job_result result = {0};
	uint64_t stolen = stolen_ticks(c);

	pthread_mutex_lock(&c->mutex);
	c->job = *job;
	c->turn++;
	pthread_cond_broadcast(&c->wake);
	wait_until_done(c);
	pthread_mutex_unlock(&c->mutex);

	result.disturbed = stolen_ticks(c) != stolen;
	for (size_t i = 0; i < c->n; i++) {
		const struct member *m = &c->member[i];
		result.rate += m->rate;
		result.hz = i == 0 || m->hz < result.hz ? m->hz : result.hz;
		result.disturbed |= m->disturbed;
	}
	*ret_result = result;
}

struct crew *crew_free(struct crew *c)
{
	if (!c)
		return NULL;
	pthread_mutex_lock(&c->mutex);
	c->ends = true;
	pthread_cond_broadcast(&c->wake);
	pthread_mutex_unlock(&c->mutex);
	for (size_t i = 0; i < c->n; i++) {
		struct member *m = &c->member[i];
		pthread_join(m->thread, NULL);
		free(m->operands);
		free(m->results);
		if (m->mapping)
			munmap(m->mapping, mapping_bytes(c));
	}
	pthread_cond_destroy(&c->done);
	pthread_cond_destroy(&c->wake);
	pthread_mutex_destroy(&c->mutex);
	free(c);
	return NULL;
}
