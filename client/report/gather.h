/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Gathered: the samples of one or more exports as a page needs them
 *
 *      samples ──▶ rows (time, task, hart, event, node, value) ──▶ gather_finish: in order of time, those
 *      of one bucket of time, task, hart, event and node added up
 *
 * A node is a function under its callers, so what only differs by line or address is one node. Nodes, functions, tasks
 * and texts of several exports become one set. After gather_finish a caller has a lower number than what it calls, and
 * the callees of a caller stand in the order of their names.
 */

#include <stdbool.h>
#include <stdint.h>

#include "client/export/profile.h"

/* 24 million samples of 32 bytes: a day of two busy harts at 99 Hz has 17 million. */
#define GATHER_ROWS_MAX (24u << 20)
#define GATHER_NODES_MAX (8u << 20)
#define GATHER_DEPTH_MAX (4 * PROFILE_DEPTH_MAX) /* functions that are inlined have nodes, too */
/* Steps of a timeline: a screen has fewer columns. */
#define GATHER_BUCKETS_MAX 4000

enum gather_kind { GATHER_USER, GATHER_KERNEL, GATHER_JIT, GATHER_INLINED, GATHER_UNNAMED };

struct gather_function {
	uint32_t name, module; /* texts */
	enum gather_kind kind;
};

struct gather_node {
	uint32_t caller, function; /* node 0 is the root, with function 0, and its own caller */
	uint32_t depth;            /* of the root: 0 */
};

struct gather_task {
	int32_t pid, tid;
	uint32_t process, thread, cgroup; /* texts */
};

struct gather_row {
	int64_t at_ns; /* CLOCK_REALTIME; after gather_finish: number of the bucket */
	uint64_t value;
	uint32_t task, event, node; /* event: a text */
	int32_t hart;               /* -1: not known */
};

struct gather_maps;
struct gathered {
	Mperf__Unit unit; /* of values */
	char **text;
	struct gather_function *function;
	struct gather_node *node;
	struct gather_task *task;
	struct gather_row *row;
	uint32_t n_texts, n_functions, n_nodes, n_tasks, n_rows;
	int64_t begin_ns, end_ns; /* CLOCK_REALTIME of the samples */
	int64_t bucket_ns;
	uint32_t n_buckets;
	/* The longest window without times of its samples; 0: nearly all of CPU time have times */
	int64_t coarse_ns;
	uint32_t n_timeless, n_timed; /* samples of CPU time without, and with */
	struct gather_maps *maps;     /* private */
};

/* 0 or -ENOMEM; the struct needs gather_clear in both cases. */
int gather_init(struct gathered *g);
void gather_clear(struct gathered *g);

/* Samples from here on are of another export, whose numbers mean other things. */
void gather_next(struct gathered *g);
/* 0, PROFILE_TOO_LARGE, -ENOMEM. */
int gather_sample(struct gathered *g, const struct profile *p, const struct profile_sample *s);
/* 0, -ENOMEM. */
int gather_finish(struct gathered *g);
