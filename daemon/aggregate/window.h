/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Windows: counts per (hart, task, stack, event, rung) over a time interval
 *
 * Stacks are nodes of a call-site tree, (parent, frame), shared by all windows of a session; the
 * outermost caller hangs from node 0. A window is emptied into the store and used again.
 */

#include "daemon/aggregate/loop_window.h"
#include "daemon/aggregate/seconds.h"
#include "daemon/attribute/attribute.h"

struct sweep;

/* Up to 75 bytes each with their table entries: 75 MB, of which one user has a quota. The last eighth is
 * reserved for leaves without callers; beyond it samples have no stack. Both are counted
 * LOSS_STACK_TRUNCATED. */
#define STACK_NODES_MAX 1000000
#define STACK_NODE_BYTES 75u
/* of one window, some 170 bytes each: 85 MB; beyond it the window must be flushed early */
#define WINDOW_ROWS_MAX 500000
#define WINDOW_ROW_BYTES 170u

struct stack_node {
	uint32_t id;     /* from 1 */
	uint32_t parent; /* 0: outermost */
	struct frame *frame;
};

struct stack_chunk;
struct stack_slot;
struct stack_path;
struct stack_tree {
	struct stack_node **node; /* by id - 1 */
	uint32_t n_nodes, size;
	/* stacks that did not fit and kept only their leaf: LOSS_STACK_TRUNCATED */
	uint64_t n_refused;
	uid_t uid; /* the user of the next stack: new nodes are charged to it */
	struct quota of;
	/* set by the owner: memory that several trees share, in bytes (POOL_BYTES_MAX), and who has
	 * this one; NULL: none */
	struct quota *pool;
	uid_t pool_uid;
	/* the rest is stack.c's */
	struct stack_chunk *chunk; /* of nodes, the newest first */
	struct stack_slot *slot;   /* n_slots, open addressing by (parent, frame) */
	size_t n_slots;
	struct stack_path *path; /* recently looked-up stacks */
};

/* The node of a whole stack (leaf first); 0 for an empty one. -ENOMEM, STACK_TREE_FULL. */
enum { STACK_TREE_FULL = 1 };
int stack_get(
	struct stack_tree *t, struct frame *const *frame, uint32_t n_frames, uint32_t *ret_node);
/* Mark the frames of all nodes for a sweep: they are needed until the tree is cleared. */
void stack_tree_keep(const struct stack_tree *t, struct sweep *s);
/* It keeps its pool. */
void stack_tree_clear(struct stack_tree *t);

struct window_read {
	int event;
	uint64_t value, enabled_ns, running_ns;
};

struct window_row {
	struct window_key {
		uint32_t task, stack;
		int32_t hart;
		int16_t event;
		int16_t rung;
	} key;
	uint64_t count, weight_ns, period;
	bool is_offcpu; /* of threads that waited: no samples of a hart */
	uint32_t n_truncated;
	uint32_t n_uncounted;     /* samples without counts of their group (struct attribution) */
	struct window_read *read; /* n_reads */
	uint32_t n_reads;
	uint32_t number; /* of rows before it */
	struct task *who;
	struct {
		/* in order of first sight; NULL: the last */
		struct window_row *next;
	} hh;
};

/* Times of a thread in the window (session/thread_times.h): of lived_ns it had a hart for ran_ns, and waited for one for
 * ready_ns; for unsplit_ns it had none, and what it waited for is not known; else it waited for something else. */
struct window_time {
	struct task *who;
	uint64_t lived_ns, ran_ns, ready_ns, unsplit_ns;
};

/* When a sample was taken, and its row's number. */
#define WINDOW_MOMENTS_MAX 500000u /* 8 MB; beyond it the window must be flushed early */
struct window_moment {
	uint64_t time_ns;
	uint32_t row;
};

/* Processes of jobs that end in one window: a machine starts some thousands in a second. Of further ones only those with
 * samples are kept. */
#define WINDOW_ENDED_MAX 65536u

struct window_slot;
struct window_chunk;

struct window {
	uint64_t start_ns, end_ns; /* CLOCK_MONOTONIC; end is exclusive */
	struct window_row *rows;   /* the first; continue with hh.next */
	uint32_t n_rows;
	uint64_t n_samples;
	struct loop_window loops; /* counts of instrumented programs; its owner adds them */
	bool keeps_moments;       /* set by the owner */
	struct window_moment *moment;
	uint32_t n_moments, size_moments;
	struct seconds seconds;   /* its owner sets are_kept */
	struct window_time *time; /* a thread may have several */
	uint32_t n_times, size_times;
	struct task **
		ended; /* processes of jobs that ended in it, which are kept also if they have no samples */
	uint32_t n_ended, size_ended;
	/* as in struct stack_tree; flushing a window that this limit fills makes no room for others
	 * */
	struct quota *pool;
	uid_t pool_uid;
	/* the rest is window.c's */
	struct window_row *last;
	struct window_slot *slot; /* n_slots, open addressing by key */
	size_t n_slots;
	struct window_chunk *chunk; /* of rows, the newest first */
};

/* Count one attribution. The owner sets start_ns and end_ns. 0, WINDOW_FULL (flush and call again),
 * -ENOMEM. */
enum { WINDOW_FULL = 1 };
int window_add(struct window *w, struct stack_tree *t, const struct attribution *a);
/* Add times of a thread. 0 or -ENOMEM. */
int window_add_time(struct window *w, const struct window_time *time);
/* Keep a process that ended. 0, also if there are too many, or -ENOMEM. */
int window_add_ended(struct window *w, struct task *process);
/* Mark the tasks of all rows for a sweep (attribute/sweep.h): they are needed until the window is cleared. */
void window_keep(const struct window *w, struct sweep *s);
/* It keeps its pool, and whether it keeps moments and seconds. */
void window_clear(struct window *w);
