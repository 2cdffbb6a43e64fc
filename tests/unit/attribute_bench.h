/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* A bench to test the station `attribute` on: a /proc of files, streams of two harts, records made
 * by hand, and a sink that keeps what it gets.
 */

#include "daemon/attribute/attribute.h"

#define BENCH_SUNK_MAX 512
#define BENCH_FRAMES_MAX 160

/* Streams of hart 0; those of hart 1 are BENCH_HART more. */
enum {
	BENCH_SIDEBAND = 1,
	BENCH_LEADER = 10,  /* session event 0 */
	BENCH_SIBLING = 11, /* session event 1 */
	BENCH_SWITCH = 12,
	BENCH_ALONE = 13,  /* session event 2, no group */
	BENCH_STACKS = 14, /* session event 2, with user registers 0, 6, 7, 8, 32 */
	BENCH_COUNT = 15,  /* counts switches in the group; nothing reads it unless a test does */
	BENCH_SUMS = 16,   /* what BPF sums up of the group, for tests that mark its leader */
	BENCH_HART = 100,
};
#define BENCH_REGS UINT64_C(0x1000001c1)

struct bench_sunk {
	struct attribution a; /* its frame points into this */
	struct frame *frame[BENCH_FRAMES_MAX];
};

struct bench {
	char root[64], proc[96];
	struct file_table files;
	struct task_table tasks;
	struct stream_table streams;
	uint64_t lost[2][N_LOSSES];
	struct attribute_options options;
	struct attribute *attribute;
	struct bench_sunk *sunk;
	size_t n_sunk;
};

/* A bench whose options may still be changed, and its attribute, once they are. */
struct bench *bench_new(void);
void bench_start(struct bench *b);
void bench_free(struct bench *b);

/* Write a file below the bench's root, with the folders that it needs. */
void bench_bytes(struct bench *b, const char *path, const void *bytes, size_t n);
void bench_text(struct bench *b, const char *path, const char *text);
/* Write what /proc has of a process: began at start_ns, maps as text. */
struct bench_process {
	int pid, parent;
	const char *comm, *maps;
	uint64_t start_ns;
	unsigned int flags;
};
void bench_process(struct bench *b, const struct bench_process *p);
/* What its first thread started, "20 30 "; before, the kernel lists none. */
void bench_children(struct bench *b, int pid, const char *pids);
void bench_thread(struct bench *b, const struct bench_process *p, int tid);
/* Write whose it is; of a process it is user 1000. */
void bench_owner(struct bench *b, int pid, unsigned int uid);
/* It belongs to nobody, as a set-user-ID program of root's that this user runs. */
void bench_hidden(struct bench *b, int pid, unsigned int real);

/* Take the places for tasks of that user but so many. */
void bench_fill(struct bench *b, uid_t account, uint32_t n_left);

/* Give the attribute one record. */
void bench_fork(struct bench *b, uint64_t time_ns, int pid, int tid, int parent);
void bench_exit(struct bench *b, uint64_t time_ns, int pid, int tid);
void bench_comm(struct bench *b, uint64_t time_ns, int pid, const char *name, bool exec);
void bench_map(struct bench *b, int pid, uint64_t start, uint64_t bytes, const char *path);
struct record bench_record(struct bench *b, enum record_kind kind, uint64_t time_ns, int pid);
struct record bench_sample(
	struct bench *b, uint64_t stream, uint64_t time_ns, int pid, uint64_t ip);
void bench_take(struct bench *b, const struct record *r, int hart);
/* A reading of the group: leader and sibling have these totals, enabled as long as the
 * time says. */
void bench_read(
	struct bench *b, uint64_t stream, uint64_t time_ns, int pid, const uint64_t totals[2]);

/* What the sink got: the i-th, and sums over those of one pid. */
const struct attribution *bench_got(const struct bench *b, size_t i);
uint64_t bench_counted(const struct bench *b, int pid, int event);
