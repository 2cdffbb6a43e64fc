/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* What each kind of side-band record costs the program that causes it
 *
 * sideband [ROUNDS [WAY...]], as root, on an otherwise idle machine without another profiler. On the last hart it
 * opens a dummy event with one bit of perf_event_attr and a ring, or all that mperfd opens, and does a fixed amount
 * of each kind of work there: forks, threads, programs, mappings, switches. A figure is user and system time of the
 * work and its children with the event, over that without any, in the same round; each round begins with another
 * way. The table has the median of the rounds and its 95 % interval (order statistics), and the bytes that one work
 * writes into the ring.
 */

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "daemon/sampler/sampler.h"

#define ROUNDS 41
#define ROUNDS_MAX 1001
#define RING_BYTES (1u << 20) /* as mperfd's; no work below fills it */
#define PROGRAM "/bin/true"

/* --- the ways --------------------------------------------------------------------------------- */

enum bits {
	TASK = 1 << 0,
	COMM = 1 << 1,
	COMM_EXEC = 1 << 2,
	MMAP = 1 << 3,
	MMAP2 = 1 << 4,
	MMAP_DATA = 1 << 5,
	BUILD_ID = 1 << 6,
	KSYMBOL = 1 << 7,
	BPF_EVENT = 1 << 8,
	TEXT_POKE = 1 << 9,
	NAMESPACES = 1 << 10,
	CGROUP = 1 << 11,
	SWITCHES = 1 << 12,
	NO_ID = 1 << 13,    /* records without a trailer */
	NO_CLOCK = 1 << 14, /* perf's own clock */
	WAKES = 1 << 15,    /* the ring wakes its reader at each record */
	NO_EVENT = 1 << 16,
	SAMPLER = 1 << 17, /* all events of mperfd, on all harts, at 1 Hz */
	NO_BPF = 1 << 18,  /* with execs by an event that wakes, not by the BPF program */
};

/* As attr_sideband in daemon/sampler/attr.c. */
#define MPERF (TASK | COMM | COMM_EXEC | MMAP | MMAP2 | KSYMBOL | CGROUP)

static const struct way {
	const char *name;
	unsigned bits;
} ways[] = {
	{"no event", NO_EVENT}, /* what the others are compared with */
	{"no bit", 0},
	{"task", TASK},
	{"comm", COMM},
	{"comm, comm_exec", COMM | COMM_EXEC},
	{"mmap", MMAP},
	{"mmap, mmap2", MMAP | MMAP2},
	{"mmap, mmap2, build_id", MMAP | MMAP2 | BUILD_ID},
	{"mmap_data", MMAP_DATA},
	{"ksymbol", KSYMBOL},
	{"bpf_event", BPF_EVENT},
	{"text_poke", TEXT_POKE},
	{"namespaces", NAMESPACES},
	{"cgroup", CGROUP},
	{"context_switch", SWITCHES},
	{"all of mperfd's", SAMPLER},
	{"all of mperfd's, no BPF", SAMPLER | NO_BPF},
	{"mperf", MPERF},
	{"mperf without comm", MPERF & ~(COMM | COMM_EXEC)},
	{"mperf without mappings", MPERF & ~(MMAP | MMAP2)},
	{"mperf without a trailer", MPERF | NO_ID},
	{"mperf, perf's clock", MPERF | NO_CLOCK},
	{"mperf, a wake-up each", MPERF | WAKES},
	{"mperf and build_id", MPERF | BUILD_ID},
	{"mperf and namespaces", MPERF | NAMESPACES},
};
#define N_WAYS (sizeof(ways) / sizeof(*ways))

static int fail(const char *what)
{
	fprintf(stderr, "sideband: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int event_open(unsigned bits, int hart)
{
	struct perf_event_attr a = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(a),
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			       PERF_SAMPLE_CPU,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.sample_id_all = !(bits & NO_ID),
		.use_clockid = !(bits & NO_CLOCK),
		.clockid = bits & NO_CLOCK ? 0 : CLOCK_MONOTONIC,
		.watermark = 1,
		.wakeup_watermark = bits & WAKES ? 1 : RING_BYTES / 2,
		.task = !!(bits & TASK),
		.comm = !!(bits & COMM),
		.comm_exec = !!(bits & COMM_EXEC),
		.mmap = !!(bits & MMAP),
		.mmap2 = !!(bits & MMAP2),
		.mmap_data = !!(bits & MMAP_DATA),
		.build_id = !!(bits & BUILD_ID),
		.ksymbol = !!(bits & KSYMBOL),
		.bpf_event = !!(bits & BPF_EVENT),
		.text_poke = !!(bits & TEXT_POKE),
		.namespaces = !!(bits & NAMESPACES),
		.cgroup = !!(bits & CGROUP),
		.context_switch = !!(bits & SWITCHES),
	};
	return (int)syscall(SYS_perf_event_open, &a, -1, hart, -1, PERF_FLAG_FD_CLOEXEC);
}

/* --- the work --------------------------------------------------------------------------------- */

static void await(pid_t child)
{
	int status;
	if (waitpid(child, &status, 0) < 0 || status != 0)
		fail("a child");
}

static void do_fork(void)
{
	pid_t child = fork();
	if (child == 0)
		_exit(0);
	if (child < 0)
		fail("fork");
	await(child);
}

static void *nothing(void *unused)
{
	return unused;
}

static void do_thread(void)
{
	pthread_t thread;
	if (pthread_create(&thread, NULL, nothing, NULL) != 0)
		fail("pthread_create");
	pthread_join(thread, NULL);
}

static void do_exec(void)
{
	char name[] = PROGRAM;
	char *const arguments[] = {name, NULL}, *const none[] = {NULL};
	pid_t child;
	errno = posix_spawn(&child, PROGRAM, NULL, NULL, arguments, none);
	if (errno)
		fail(PROGRAM);
	await(child);
}

static void map(int protection, int fd)
{
	const size_t n = (size_t)sysconf(_SC_PAGESIZE);
	void *at = mmap(NULL, n, protection, MAP_PRIVATE | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);
	if (at == MAP_FAILED)
		fail("mmap");
	munmap(at, n);
}

static int program_fd = -1;

static void do_map_text(void)
{
	map(PROT_READ | PROT_EXEC, program_fd);
}

static void do_map_file(void)
{
	map(PROT_READ, program_fd);
}

static void do_map_memory(void)
{
	map(PROT_READ,
		-1); /* what a neighbour in memory has not, or the two would be one mapping */
}

static void do_rename(void)
{
	pthread_setname_np(pthread_self(), "sideband");
}

/* Two switches: to the thread that answers, and back. */
static int to_other[2], to_us[2];

static void *answer(void *unused)
{
	char c;
	while (read(to_other[0], &c, 1) == 1)
		if (write(to_us[1], &c, 1) != 1)
			fail("write");
	return unused;
}

static void do_switch(void)
{
	char c = 0;
	if (write(to_other[1], &c, 1) != 1 || read(to_us[0], &c, 1) != 1)
		fail("a pipe");
}

static const struct work {
	const char *name;
	void (*once)(void);
	unsigned times; /* some 10 ms */
} works[] = {
	{"fork and exit", do_fork, 100},
	{"thread and its end", do_thread, 300},
	{"program (" PROGRAM ")", do_exec, 16},
	{"mapping of text", do_map_text, 2000},
	{"mapping of a file, read only", do_map_file, 2000},
	{"mapping without a file", do_map_memory, 2000},
	{"name of a thread", do_rename, 3000},
	{"two switches", do_switch, 1000},
};
#define N_WORKS (sizeof(works) / sizeof(*works))

static uint64_t ns_of(struct timeval t)
{
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_usec * 1000u;
}

static uint64_t spent_ns(void)
{
	struct rusage children;
	struct timespec own;
	getrusage(RUSAGE_CHILDREN, &children);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &own);
	return ns_of(children.ru_utime) + ns_of(children.ru_stime) +
	       (uint64_t)own.tv_sec * 1000000000u + (uint64_t)own.tv_nsec;
}

static double work_ns(const struct work *w)
{
	for (unsigned i = 0; i < w->times / 8 + 1; i++)
		w->once();
	uint64_t begin = spent_ns();
	for (unsigned i = 0; i < w->times; i++)
		w->once();
	return (double)(spent_ns() - begin) / w->times;
}

/* --- the rounds ------------------------------------------------------------------------------- */

static double took_ns[N_WORKS][N_WAYS][ROUNDS_MAX];
static double wrote_bytes[N_WORKS][N_WAYS];
static bool refused[N_WAYS];

/* What a way has open during a round. */
struct opened {
	int fd;
	struct perf_event_mmap_page *page;
	struct sampler *sampler;
};

static bool open_sampler(unsigned bits, struct sampler **ret_sampler)
{
	static struct kernel kernel;
	static struct event_list events;
	struct event_error error = {""};
	const struct sampler_options o = {.hz = 1, .events = &events, .always = true};

	kernel = kernel_real;
	if (bits & NO_BPF)
		kernel.exec_new = NULL;
	events = (struct event_list){0};
	if (event_parse(&kernel, "cpu-clock", &events, &error) != 0 ||
		sampler_new(&kernel, &o, ret_sampler, &error) != 0)
		return false;
	if (sampler_start(*ret_sampler) < 0)
		fail("mperfd's events");
	return true;
}

static bool open_way(unsigned bits, int hart, struct opened *ret)
{
	*ret = (struct opened){.fd = -1};
	if (bits & SAMPLER)
		return open_sampler(bits, &ret->sampler);
	if (bits & NO_EVENT)
		return true;
	ret->fd = event_open(bits, hart);
	if (ret->fd < 0)
		return false;
	ret->page = mmap(NULL, RING_BYTES + (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE,
		MAP_SHARED, ret->fd, 0);
	if (ret->page == MAP_FAILED)
		fail("a ring");
	return true;
}

static void close_way(struct opened *o)
{
	if (o->sampler)
		sampler_free(o->sampler);
	if (o->page)
		munmap(o->page, RING_BYTES + (size_t)sysconf(_SC_PAGESIZE));
	if (o->fd >= 0)
		close(o->fd);
}

static uint64_t empty(struct ring *ring, size_t n)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < n; i++) {
		ring_snapshot(&ring[i]);
		bytes += ring[i].head - ring[i].tail;
		ring[i].tail = ring[i].head;
		ring_release(&ring[i]);
	}
	return bytes;
}

/* A full ring would take no record, and so cost less. */
static uint64_t empty_rings(const struct opened *o)
{
	uint64_t bytes = 0;

	if (o->page) {
		bytes = o->page->data_head - o->page->data_tail;
		o->page->data_tail = o->page->data_head;
	}
	if (o->sampler)
		bytes = empty(o->sampler->ring, o->sampler->n_rings) +
			empty(o->sampler->exec_ring, o->sampler->n_exec_rings);
	return bytes;
}

static void measure(size_t way, int hart, unsigned round)
{
	struct opened o;

	if (!open_way(ways[way].bits, hart, &o)) {
		refused[way] = true;
		return;
	}
	for (size_t i = 0; i < N_WORKS; i++) {
		empty_rings(&o);
		took_ns[i][way][round] = work_ns(&works[i]);
		wrote_bytes[i][way] =
			(double)empty_rings(&o) / (works[i].times + works[i].times / 8 + 1);
	}
	close_way(&o);
}

/* --- the table -------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* The rank below which at most 2.5 % of medians lie. Source: David and Nagaraja, Order Statistics, 3rd ed., 7.1. */
static unsigned rank_low(unsigned n)
{
	double chance = pow(0.5, n), beyond = chance;
	unsigned k = 0;
	while (beyond <= 0.025) {
		k++;
		chance = chance * (n - k + 1) / k;
		beyond += chance;
	}
	return k ? k - 1 : 0;
}

static void print_ratio(size_t work, size_t way, unsigned rounds)
{
	double ratio[ROUNDS_MAX];
	for (unsigned i = 0; i < rounds; i++)
		ratio[i] = took_ns[work][way][i] / took_ns[work][0][i];
	qsort(ratio, rounds, sizeof(*ratio), compare);
	const unsigned low = rank_low(rounds);
	printf("  %-26s %6.3f (%.3f to %.3f) %6.0f bytes\n", ways[way].name, ratio[rounds / 2],
		ratio[low], ratio[rounds - 1 - low], wrote_bytes[work][way]);
}

static bool is_wanted(size_t way, char *const *names)
{
	bool found = !*names || way == 0;

	for (; *names; names++)
		found |= strcmp(*names, ways[way].name) == 0;
	return found;
}

static void print_table(unsigned rounds, char *const *names)
{
	printf("user and system time over that without an event; %u rounds, medians with 95 %% "
	       "intervals; bytes written\n",
		rounds);
	for (size_t work = 0; work < N_WORKS; work++) {
		printf("%s\n", works[work].name);
		for (size_t way = 1; way < N_WAYS; way++)
			if (!refused[way] && is_wanted(way, names))
				print_ratio(work, way, rounds);
	}
	for (size_t way = 0; way < N_WAYS; way++)
		if (refused[way])
			printf("refused: %s\n", ways[way].name);
}

static int pin(void)
{
	cpu_set_t set;
	int hart = CPU_SETSIZE - 1;
	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		fail("sched_getaffinity");
	while (hart > 0 && !CPU_ISSET(hart, &set))
		hart--;
	CPU_ZERO(&set);
	CPU_SET(hart, &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		fail("sched_setaffinity");
	return hart;
}

int main(int argc, char **argv)
{
	unsigned rounds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : ROUNDS;
	char *const *names = argc > 2 ? argv + 2 : argv + argc;
	const int hart = pin();
	pthread_t other;

	if (rounds == 0 || rounds > ROUNDS_MAX) {
		fprintf(stderr, "sideband: from 1 to %d rounds\n", ROUNDS_MAX);
		return 2;
	}
	program_fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	if (program_fd < 0 || pipe2(to_other, O_CLOEXEC) < 0 || pipe2(to_us, O_CLOEXEC) < 0)
		fail("files");
	if (pthread_create(&other, NULL, answer, NULL) != 0)
		fail("pthread_create");
	for (unsigned round = 0; round < rounds; round++)
		for (size_t i = 0; i < N_WAYS; i++) {
			const size_t way = (i + round) % N_WAYS;
			if (is_wanted(way, names))
				measure(way, hart, round);
		}
	print_table(rounds, names);
	return 0;
}
