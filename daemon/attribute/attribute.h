/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Attribute: from a record to who ran, where
 *
 * Side-band records build the picture of tasks and mappings; a sample record becomes an
 * attribution: task, frames, and what the group counted since the task last ran (decision 3).
 * Every attribution reaches the sink, some of them later (copied stacks, while the parser unwinds).
 */

#include "daemon/attribute/file.h"
#include "daemon/attribute/namer.h"
#include "daemon/attribute/rights.h"
#include "daemon/attribute/stack_start.h"
#include "daemon/attribute/task.h"
#include "daemon/decode/record.h"

#define STACK_FRAMES_MAX 512 /* kernel and user together; kernel.perf_event_max_stack is 127 by default */

struct attribution {
	struct task *task;
	const struct cgroup *cgroup;
	uint64_t time_ns;
	int hart;
	int event;                   /* index into the session's events: the one that sampled */
	enum rung rung;
	uint64_t count;              /* samples: 1, or 0 for counts that a switch or an exit delivers */
	uint64_t weight_ns;
	uint64_t period;
	struct frame **frame;        /* leaf first, borrowed for the call; n_frames may be 0 */
	uint32_t n_frames;
	bool truncated;
	/* what the group counted, by session event; n_reads 0 outside groups */
	struct {
		int event;
		uint64_t value;
		uint64_t enabled_ns, running_ns;
	} read[EVENT_GROUP_MAX];
	uint32_t n_reads;
};

struct attribute_options {
	struct namer *namer;         /* borrowed; NULL: no names, no unwinding (tests) */
	struct file_table *files;    /* borrowed */
	struct task_table *tasks;    /* borrowed */
	const struct stream_table *streams; /* borrowed */
	uint64_t (*lost)[N_LOSSES];  /* borrowed, per hart */
	uint64_t *lost_ahead;        /* borrowed, per hart, see sampler.h; NULL: nothing is ahead */
	int n_harts;
	int n_events;                /* of the session */
	const struct stack_starts *starts; /* borrowed; NULL: not known where stacks begin */
	const char *proc;            /* borrowed; "/proc", a folder of files in tests; sys is its neighbour */
	/* NULL: rights_read; another for files */
	int (*rights)(int folder_fd, struct rights *ret_rights);
	bool all;                    /* everything is wanted; else only tasks marked so and their children */
	bool after_exec;             /* the pids of attribute_scan are wanted from their next exec on */
	bool per_task;               /* events were opened per task, so that each group counts one task alone */
	bool hide_kernel;            /* kernel frames become one "[kernel]" frame without an address */
	void (*sink)(void *userdata, const struct attribution *a);
	void *userdata;
};

struct attribute;

int attribute_new(const struct attribute_options *o, struct attribute **ret_attribute);

/* Read /proc once: every task, its name, argv, cgroup, executable mappings. Tasks in pids (and
 * their descendants) are marked wanted. Takes about 50 µs a task. Scanning again is harmless: before
 * and after the events are enabled, and after a hart came back. 0 or -errno. */
int attribute_scan(struct attribute *a, const pid_t *pids, size_t n_pids);

/* Take one record. Returns 0; -errno only for our own trouble. Losses are counted. */
int attribute_record(struct attribute *a, const struct record *r, int hart);

/* An exec was heard of before its record comes through the merge: its arguments are to be read at
 * once. Execs of processes that are known and not wanted are passed over, and those beyond a bound
 * too: their arguments are read when the record comes. */
void attribute_exec(struct attribute *a, pid_t pid, uint64_t time_ns);
/* The same, where the record brings a copy of the new program's stack: its arguments are taken from
 * there, and /proc is asked only for what the copy does not hold. */
void attribute_exec_stack(struct attribute *a, const struct record *r);
/* These processes, which live and are known, count from their next exec on: where its record may
 * have been lost, /proc is searched for it. Not needed for pids that attribute_scan was given. */
void attribute_await_exec(struct attribute *a, const pid_t *pids, size_t n_pids);
/* Read the arguments of all execs that are due, and forget old ones. */
void attribute_read_execs(struct attribute *a, uint64_t now_ns);
/* When that is to be called next: 0 after attribute_exec; UINT64_MAX: not at all. */
uint64_t attribute_exec_due_ns(const struct attribute *a);

/* The callbacks that the namer's owner forwards. */
void attribute_unwound(struct attribute *a, const struct unwind_result *r);

/* Read again the owners of processes that were sampled since the last call, and hide the samples of
 * those that are no longer their user's. Call before samples are stored or shown. Each process is
 * read once a second at most, and OWNERS_READ_MAX in one call, those that waited longest first:
 * 15 ms.
 */
#define OWNERS_READ_MAX 1000
#define OWNERS_SECOND_MAX 400 /* for each second since the last call: 1 % of a hart */
#define OWNER_AGAIN_NS 1000000000u
void attribute_check_owners(struct attribute *a, uint64_t now_ns);
/* The task told what it counted itself: as with a sample, that is its owner's of this moment. */
void attribute_counted(struct attribute *a, struct task *task);

/* At the end of a drain: read argv of processes that exec'd since the last one, and the like. */
void attribute_drained(struct attribute *a);

/* Frames, files or mappings were freed: what was kept of them is looked up anew. */
void attribute_forget_places(struct attribute *a);

/* Hand what waits for the unwinder to the sink with its leaf alone (at the end of a recording). */
void attribute_give_up(struct attribute *a);
size_t attribute_waiting(const struct attribute *a);

struct attribute *attribute_free(struct attribute *a);
