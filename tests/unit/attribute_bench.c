/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* A bench to test the station `attribute` on. All that it writes lies in a folder of its own, which
 * bench_free removes.
 */

#include "tests/unit/attribute_bench.h"

#include <check.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "daemon/attribute/scan.h"

static uint64_t clock_of(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void bench_sink(void *userdata, const struct attribution *a)
{
	struct bench *b = userdata;

	ck_assert_uint_lt(b->n_sunk, BENCH_SUNK_MAX);
	ck_assert_uint_le(a->n_frames, BENCH_FRAMES_MAX);
	struct bench_sunk *s = &b->sunk[b->n_sunk++];
	s->a = *a;
	if (a->n_frames)
		memcpy(s->frame, a->frame, a->n_frames * sizeof(*s->frame));
	s->a.frame = s->frame;
}

/* As if the owner of environ were the process's user: these files belong to the user who
 * runs the test. */
static int bench_rights(int folder_fd, uid_t account, struct rights *ret_rights)
{
	char text[SCAN_STAT_BYTES_MAX];
	struct rights claimed;
	(void)account;

	if (scan_text(folder_fd, "status", text, sizeof(text)) <= 0 ||
		scan_uid_parse(text, &claimed.uid, &claimed.gid, &claimed.account))
		return RIGHTS_GONE;
	return rights_parse(text, claimed.uid, true, ret_rights);
}

static void bench_streams(struct bench *b, int hart)
{
	uint64_t first = hart ? BENCH_HART : 0;
	const struct stream streams[] = {
		{.id = BENCH_SIDEBAND, .role = STREAM_SIDEBAND, .event = -1},
		{.id = BENCH_LEADER, .role = STREAM_SAMPLER, .event = 0, .rung = RUNG_LEADER},
		{.id = BENCH_SIBLING, .role = STREAM_SIBLING, .event = 1, .rung = RUNG_LEADER},
		{.id = BENCH_SWITCH, .role = STREAM_SWITCH, .event = -1, .rung = RUNG_LEADER},
		{.id = BENCH_ALONE, .role = STREAM_SAMPLER, .event = 2, .rung = RUNG_CLOCK},
		{.id = BENCH_STACKS, .role = STREAM_SAMPLER, .event = 2, .rung = RUNG_CLOCK},
		{.id = BENCH_COUNT, .role = STREAM_SWITCH_COUNT, .event = -1, .rung = RUNG_LEADER},
		{.id = BENCH_SUMS, .role = STREAM_SWITCH_SUMS, .event = -1, .rung = RUNG_LEADER},
	};

	for (size_t i = 0; i < sizeof(streams) / sizeof(*streams); i++) {
		struct stream s = streams[i];

		bool member = s.role == STREAM_SIBLING || s.role == STREAM_SWITCH ||
			      s.role == STREAM_SWITCH_COUNT || s.role == STREAM_SWITCH_SUMS;
		s.leader = member ? BENCH_LEADER : s.id;
		s.id += first;
		s.leader += first;
		s.hart = hart;
		s.weight_ns = 10101010;
		s.regs_user = streams[i].id == BENCH_STACKS ? BENCH_REGS : 0;
		s.fd = -1;
		ck_assert_int_eq(stream_table_add(&b->streams, &s), 0);
	}
}

struct bench *bench_new(void)
{
	struct bench *b = calloc(1, sizeof(*b));

	ck_assert_ptr_nonnull(b);
	b->sunk = calloc(BENCH_SUNK_MAX, sizeof(*b->sunk));
	ck_assert_ptr_nonnull(b->sunk);
	strcpy(b->root, "/tmp/mperf-test-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(b->root));
	snprintf(b->proc, sizeof(b->proc), "%s/proc", b->root);
	bench_text(b, "proc/kallsyms", "ffffffff81000000 T _text\nffffffff81000000 T _stext\n");
	bench_text(b, "proc/modules", "nf_tables 4096 1 - Live 0xffffffffc0000000\n");
	bench_text(b, "proc/sys/kernel/perf_event_max_stack", "127\n");

	bench_streams(b, 0);
	bench_streams(b, 1);
	b->options = (struct attribute_options){
		.files = &b->files,
		.tasks = &b->tasks,
		.streams = &b->streams,
		.lost = b->lost,
		.n_harts = 2,
		.n_events = 3,
		.proc = b->proc,
		.rights = bench_rights,
		.all = true,
		.sink = bench_sink,
		.userdata = b,
	};
	return b;
}

void bench_start(struct bench *b)
{
	ck_assert_int_eq(attribute_new(&b->options, &b->attribute), 0);
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

void bench_free(struct bench *b)
{
	attribute_free(b->attribute);
	task_table_clear(&b->tasks);
	file_table_clear(&b->files);
	stream_table_clear(&b->streams);
	nftw(b->root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	free(b->sunk);
	free(b);
}

void bench_bytes(struct bench *b, const char *path, const void *bytes, size_t n)
{
	char whole[512];

	snprintf(whole, sizeof(whole), "%s/%s", b->root, path);
	for (char *p = whole + strlen(b->root) + 1; (p = strchr(p, '/')); p++) {
		*p = '\0';
		mkdir(whole, 0700);
		*p = '/';
	}
	FILE *f = fopen(whole, "w");
	ck_assert_ptr_nonnull(f);
	ck_assert_uint_eq(fwrite(bytes, 1, n, f), n);
	fclose(f);
}

void bench_text(struct bench *b, const char *path, const char *text)
{
	bench_bytes(b, path, text, strlen(text));
}

static void write_stat(struct bench *b, const char *path, const struct bench_process *p, int tid)
{
	uint64_t suspended = clock_of(CLOCK_BOOTTIME) - clock_of(CLOCK_MONOTONIC);
	uint64_t tick_ns = 1000000000u / (uint64_t)sysconf(_SC_CLK_TCK);
	char text[512];

	snprintf(text, sizeof(text),
		"%d (%s) S %d 1 1 0 -1 %u 0 0 0 0 0 0 0 0 20 0 1 0 %llu 4096 1 0\n", tid, p->comm,
		p->parent, p->flags,
		(unsigned long long)((p->start_ns + (suspended > 1000000 ? suspended : 0)) /
				     tick_ns));
	bench_text(b, path, text);
}

void bench_process(struct bench *b, const struct bench_process *p)
{
	char path[64];

	snprintf(path, sizeof(path), "proc/%d/stat", p->pid);
	write_stat(b, path, p, p->pid);
	bench_owner(b, p->pid, 1000);
	snprintf(path, sizeof(path), "proc/%d/maps", p->pid);
	bench_text(b, path, p->maps ? p->maps : "");
	snprintf(path, sizeof(path), "proc/%d/cgroup", p->pid);
	bench_text(b, path, "0::/user.slice\n");
	bench_thread(b, p, p->pid);
}

void bench_children(struct bench *b, int pid, const char *pids)
{
	char path[64];

	snprintf(path, sizeof(path), "proc/%d/task/%d/children", pid, pid);
	bench_text(b, path, pids);
}

static void write_status(struct bench *b, int pid, unsigned int real, unsigned int uid)
{
	char path[64], text[256];

	snprintf(path, sizeof(path), "proc/%d/status", pid);
	snprintf(text, sizeof(text),
		"Name:\tx\nUid:\t%u\t%u\t%u\t%u\nGid:\t50\t50\t50\t50\nVmSize:\t1 kB\n"
		"CapPrm:\t0000000000000000\n",
		real, uid, uid, uid);
	bench_text(b, path, text);
}

void bench_owner(struct bench *b, int pid, unsigned int uid)
{
	write_status(b, pid, uid, uid);
}

void bench_hidden(struct bench *b, int pid, unsigned int real)
{
	write_status(b, pid, real, 0);
}

void bench_thread(struct bench *b, const struct bench_process *p, int tid)
{
	char path[64];

	snprintf(path, sizeof(path), "proc/%d/task/%d/stat", p->pid, tid);
	write_stat(b, path, p, tid);
}

/* --- records ---------------------------------------------------------------------------------- */

struct record bench_record(struct bench *b, enum record_kind kind, uint64_t time_ns, int pid)
{
	return (struct record){
		.kind = kind,
		.stream = stream_table_find(&b->streams, BENCH_SIDEBAND),
		.time_ns = time_ns,
		.pid = (uint32_t)pid,
		.tid = (uint32_t)pid,
	};
}

void bench_take(struct bench *b, const struct record *r, int hart)
{
	ck_assert_int_eq(attribute_record(b->attribute, r, hart), 0);
}

void bench_fill(struct bench *b, uid_t account, uint32_t n_left)
{
	for (uint32_t n = TASKS_MAX; n > 0; n /= 2)
		while (task_has_room(&b->tasks, account, n + n_left))
			ck_assert(quota_take(&b->tasks.of, account, TASKS_MAX, n));
}

void bench_fork(struct bench *b, uint64_t time_ns, int pid, int tid, int parent)
{
	struct record r = bench_record(b, RECORD_FORK, time_ns, pid);

	r.tid = (uint32_t)tid;
	r.fork.parent_pid = r.fork.parent_tid = (uint32_t)parent;
	bench_take(b, &r, 0);
}

void bench_exit(struct bench *b, uint64_t time_ns, int pid, int tid)
{
	struct record r = bench_record(b, RECORD_EXIT, time_ns, pid);

	r.tid = (uint32_t)tid;
	bench_take(b, &r, 0);
}

void bench_comm(struct bench *b, uint64_t time_ns, int pid, const char *name, bool exec)
{
	struct record r = bench_record(b, RECORD_COMM, time_ns, pid);

	r.comm.name = name;
	r.comm.exec = exec;
	bench_take(b, &r, 0);
}

void bench_map(struct bench *b, int pid, uint64_t start, uint64_t bytes, const char *path)
{
	struct record r = bench_record(b, RECORD_MMAP, 1, pid);

	r.mmap = (struct record_mmap){
		.start = start,
		.bytes = bytes,
		.file_offset = 0x1000,
		.major = 8,
		.inode = 77,
		.executable = true,
		.path = path,
	};
	bench_take(b, &r, 0);
}

struct record bench_sample(struct bench *b, uint64_t stream, uint64_t time_ns, int pid, uint64_t ip)
{
	struct record r = bench_record(b, RECORD_SAMPLE, time_ns, pid);

	r.stream = stream_table_find(&b->streams, stream);
	r.id = stream;
	r.sample.ip = ip;
	r.sample.period = 1;
	return r;
}

void bench_read(
	struct bench *b, uint64_t stream, uint64_t time_ns, int pid, const uint64_t totals[2])
{
	uint64_t first = stream >= BENCH_HART ? BENCH_HART : 0;
	struct record r = bench_sample(b, stream, time_ns, pid, 0x1000);

	r.sample.n_read = 2;
	r.sample.read[0] = (struct record_read_value){BENCH_LEADER + first, totals[0]};
	r.sample.read[1] = (struct record_read_value){BENCH_SIBLING + first, totals[1]};
	r.sample.enabled_ns = time_ns;
	r.sample.running_ns = time_ns / 2;
	bench_take(b, &r, first ? 1 : 0);
}

/* --- what came out ---------------------------------------------------------------------------- */

const struct attribution *bench_got(const struct bench *b, size_t i)
{
	ck_assert_uint_lt(i, b->n_sunk);
	return &b->sunk[i].a;
}

uint64_t bench_counted(const struct bench *b, int pid, int event)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < b->n_sunk; i++)
		for (uint32_t k = 0; k < b->sunk[i].a.n_reads; k++)
			if (b->sunk[i].a.task->pid == pid && b->sunk[i].a.read[k].event == event)
				sum += b->sunk[i].a.read[k].value;
	return sum;
}
