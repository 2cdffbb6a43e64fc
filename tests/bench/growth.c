/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* What one of a thing costs when there are many: growth WHAT N prints the time and the memory of
 * one.
 *
 *      rings N       a sample, out of N rings of 2,000 samples in order of time, into a window
 *      stacks N      the first look at each of N distinct stacks of 12 frames
 *      again N       … and the second look
 *      tasks N       FORK, COMM and three MMAPs of each of N processes that live at once
 *      live N        a sample, while N processes live
 *      spawn N       nothing: starts N processes and waits for the end of standard input
 */

#include <errno.h>
#include <linux/perf_event.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "daemon/aggregate/window.h"
#include "daemon/attribute/attribute.h"
#include "daemon/decode/merge.h"
#include "tests/unit/recording.h"

enum { SIDE = 1, SAMPLES = 2, DEPTH = 12, PER_RING = 2000, FIRST_PID = 1000 };

static struct stream_table streams;
static struct file_table files;
static struct task_table tasks;
static struct stack_tree stacks;
static struct window window;
static struct attribute *attribute;
static struct recording_writer writer;
static uint64_t (*lost)[N_LOSSES];
static uint64_t seed = 1;

static void die(const char *what, int r)
{
	fprintf(stderr, "growth: %s: %s\n", what, strerror(r < 0 ? -r : EINVAL));
	exit(1);
}

static uint64_t any(uint64_t below)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (seed >> 33) % below;
}

static double now_s(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static size_t heap_bytes(void)
{
	struct mallinfo2 m = mallinfo2();
	return m.uordblks + m.hblkhd;
}

/* What ran since the last begin, for n of them. */
static double begin_s;
static size_t begin_bytes;

static void begin(void)
{
	begin_bytes = heap_bytes();
	begin_s = now_s();
}

static int end(size_t n)
{
	double s = now_s() - begin_s;
	size_t bytes = heap_bytes();
	bytes = bytes > begin_bytes ? bytes - begin_bytes : 0;
	printf("{\"ns\": %.2f, \"bytes\": %.2f}\n", s * 1e9 / (double)n, (double)bytes / (double)n);
	return 0;
}

static void sink(void *userdata, const struct attribution *a)
{
	(void)userdata;
	for (uint32_t i = 0; i < a->n_frames; i++)
		a->frame[i]->state = FRAME_NAMED; /* as in a daemon that runs for a while */
	int r = window_add(&window, &stacks, a);
	if (r)
		die("window_add", r);
}

static void open_stations(int n_harts)
{
	const struct stream side = {.id = SIDE,
		.leader = SIDE,
		.role = STREAM_SIDEBAND,
		.event = -1,
		.fd = -1,
		.sample_type = STREAM_SAMPLE_ID};
	const struct stream samples = {.id = SAMPLES,
		.leader = SAMPLES,
		.role = STREAM_SAMPLER,
		.rung = RUNG_CLOCK,
		.fd = -1,
		.weight_ns = 1000000,
		.sample_type = STREAM_SAMPLE_ID | PERF_SAMPLE_IP | PERF_SAMPLE_PERIOD |
			       PERF_SAMPLE_CALLCHAIN};
	lost = calloc((size_t)n_harts, sizeof(*lost));
	struct attribute_options o = {
		.files = &files,
		.tasks = &tasks,
		.streams = &streams,
		.lost = lost,
		.n_harts = n_harts,
		.n_events = 1,
		.proc = "/proc",
		.all = true,
		.sink = sink,
	};
	int r = lost ? stream_table_add(&streams, &side) : -ENOMEM;
	if (!r)
		r = stream_table_add(&streams, &samples);
	if (!r)
		r = attribute_new(&o, &attribute);
	if (r)
		die("cannot begin", r);
}

static void take(enum record_kind kind, uint32_t pid, struct record r)
{
	r.kind = kind;
	r.stream = stream_table_find(&streams, SIDE);
	r.pid = r.tid = pid;
	if (attribute_record(attribute, &r, 0))
		die("attribute_record", 0);
}

/* A process as the kernel tells of it: 64 programs, two libraries that all have. */
static void live(uint32_t pid, uint64_t time_ns)
{
	static const char *const libraries[] = {"/lib/libc.so.6", "/lib/libm.so.6"};
	char path[32];

	take(RECORD_FORK, pid, (struct record){.time_ns = time_ns, .fork = {1, 1}});
	take(RECORD_COMM, pid, (struct record){.time_ns = time_ns, .comm = {"worker", false}});
	snprintf(path, sizeof(path), "/usr/bin/prog-%u", pid % 64);
	for (uint64_t i = 0; i < 3; i++)
		take(RECORD_MMAP, pid,
			(struct record){.time_ns = time_ns,
				.mmap = {.start = 0x400000 + i * 0x10000000,
					.bytes = 0x400000,
					.major = 8,
					.inode = i < 2 ? i + 1 : 100 + pid % 64,
					.executable = true,
					.path = i < 2 ? libraries[i] : path}});
}

static void write_sample(uint64_t time_ns, uint32_t pid, uint32_t cpu)
{
	recording_begin(&writer, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
	recording_put_u64(&writer, SAMPLES);
	uint64_t leaf = 0x400000 + any(0x1000);
	recording_put_u64(&writer, leaf);
	recording_put_u32(&writer, pid);
	recording_put_u32(&writer, pid);
	recording_put_u64(&writer, time_ns);
	recording_put_u32(&writer, cpu);
	recording_put_u32(&writer, 0);
	recording_put_u64(&writer, 1);
	recording_put_u64(&writer, DEPTH + 1);
	recording_put_u64(&writer, PERF_CONTEXT_USER);
	recording_put_u64(&writer, leaf);
	for (uint64_t i = 1; i < DEPTH; i++) /* a few ways lead to each leaf */
		recording_put_u64(&writer, 0x10400000 + i * 0x1000 + any(i < 4 ? 4 : 1) * 16);
	recording_end(&writer);
}

static int rings(size_t n)
{
	struct ring *ring = calloc(n, sizeof(*ring));
	static uint8_t bytes[PER_RING * 256];
	uint64_t start_ns = 1000000000;

	open_stations((int)n);
	for (uint32_t pid = 0; pid < 100; pid++)
		live(FIRST_PID + pid, start_ns);
	for (size_t i = 0; ring && i < n; i++) {
		size_t used = 0;
		for (uint64_t k = 0; k < PER_RING; k++) {
			write_sample(start_ns + k * 1000000 + i * 1000,
				FIRST_PID + (uint32_t)any(100), (uint32_t)i);
			memcpy(bytes + used, writer.bytes, writer.n);
			used += writer.n;
		}
		int r = recording_mount(bytes, used, 0, 0, &ring[i]);
		if (r)
			die("recording_mount", r);
		ring[i].hart = (int)i;
	}

	struct merge merge = {.ring = ring, .n_rings = n, .streams = &streams, .lost = lost};
	struct record record;
	int hart;
	begin();
	if (merge_begin(&merge, UINT64_MAX))
		die("merge_begin", 0);
	while (merge_next(&merge, &record, &hart) == 0)
		if (attribute_record(attribute, &record, hart))
			die("attribute_record", 0);
	merge_end(&merge);
	if (window.n_samples != n * PER_RING)
		die("samples are missing", 0);
	return end(n * PER_RING);
}

static int many_stacks(size_t n, bool again)
{
	/* fewer, the further out */
	static const uint64_t choices[DEPTH] = {0, 64, 16, 4, 2, 2, 2, 2, 1, 1, 1, 1};
	size_t n_frames = n / 4 + 64;
	struct frame *all = calloc(n_frames, sizeof(*all));
	struct frame *stack[DEPTH];
	uint32_t node;

	for (uint32_t i = 0; all && i < n_frames; i++)
		all[i].id = i + 1;
	for (int round = 0; all && round <= again; round++) {
		seed = 1;
		begin();
		for (size_t i = 0; i < n; i++) {
			for (size_t k = 1; k < DEPTH; k++)
				stack[k] = &all[any(choices[k])];
			stack[0] = &all[i % n_frames];
			int r = stack_get(&stacks, stack, DEPTH, &node);
			if (r)
				die(r == STACK_TREE_FULL ? "more stacks than a tree holds"
							 : "stack_get",
					r < 0 ? r : -ENOSPC);
		}
	}
	return end(n);
}

static int many_tasks(size_t n, bool samples)
{
	open_stations(1);
	begin();
	for (size_t i = 0; i < n; i++)
		live(FIRST_PID + (uint32_t)i, 1000000000 + i);
	if (!samples)
		return end(n);

	const size_t n_samples = 200000;
	begin();
	for (size_t i = 0; i < n_samples; i++) {
		struct record r;
		write_sample(2000000000 + i, FIRST_PID + (uint32_t)any(n), 0);
		if (record_decode(writer.bytes, writer.n, &streams, &r) ||
			attribute_record(attribute, &r, 0))
			die("a sample", 0);
	}
	return end(n_samples);
}

static int spawn(size_t n)
{
	char byte;
	pid_t group = 0;

	for (size_t i = 0; i < n; i++) {
		pid_t pid = fork();
		if (pid < 0)
			die("fork", -errno);
		if (pid == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			setpgid(0, group);
			for (;;)
				pause();
		}
		setpgid(pid, group);
		group = group ? group : pid;
	}
	printf("ready\n");
	fflush(stdout);
	(void)!read(STDIN_FILENO, &byte, 1);
	if (group)
		kill(-group, SIGKILL);
	while (wait(NULL) > 0)
		;
	return 0;
}

int main(int argc, char **argv)
{
	size_t n = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
	if (n == 0) {
		fputs("usage: growth rings|stacks|again|tasks|live|spawn N\n", stderr);
		return 2;
	}
	if (!strcmp(argv[1], "rings") && n <= RECORDING_RINGS_MAX)
		return rings(n);
	if (!strcmp(argv[1], "stacks") || !strcmp(argv[1], "again"))
		return many_stacks(n, argv[1][0] == 'a');
	if (!strcmp(argv[1], "tasks") || !strcmp(argv[1], "live"))
		return many_tasks(n, argv[1][0] == 'l');
	if (!strcmp(argv[1], "spawn"))
		return spawn(n);
	return 2;
}
