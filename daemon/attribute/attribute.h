/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Attribute: from a record to the task and code that ran
 *
 * Side-band records maintain tasks and mappings; a sample record becomes an attribution: task,
 * frames, and what the group counted since the task last ran (decision 3). Every attribution
 * reaches the sink, some of them later (copied stacks, while the parser unwinds).
 */

#include "daemon/attribute/label_variables.h"
#include "daemon/attribute/rights.h"
#include "daemon/attribute/stack_start.h"
#include "daemon/attribute/task.h"
#include "daemon/decode/record.h"
#include "daemon/naming/file.h"
#include "daemon/naming/namer.h"

/* kernel and user together; kernel.perf_event_max_stack is 127 by default */
#define STACK_FRAMES_MAX 512

/* A waker: who ended a wait. */
enum waker_kind {
	WAKER_TASK,
	WAKER_INTERRUPT, /* the hart was interrupted, or idle */
	WAKER_OUTSIDE,   /* a task that no pid namespace seen from here has */
};
struct waker {
	enum waker_kind kind;
	struct task *task;    /* WAKER_TASK; NULL: not known */
	struct frame **frame; /* its stack, leaf first; n_frames may be 0 */
	uint32_t n_frames;
};

struct attribution {
	struct task *task;
	const struct cgroup *cgroup;
	uint64_t time_ns;
	uint64_t
		first_ns; /* of several samples at even distances, the first; 0: all are of time_ns */
	int hart;
	int event; /* index into the session's events: the one that sampled */
	enum rung rung;
	/* samples: 1, or 0 for counts that a switch or an exit delivers */
	uint64_t count;
	/* number of these samples without known counts: their group is not cut at switches, and a
	 * switch came, or may have come, since the sample before */
	uint64_t uncounted;
	uint64_t weight_ns;
	uint64_t period;
	struct frame **frame; /* leaf first, borrowed for the call; n_frames may be 0 */
	uint32_t n_frames;
	bool truncated;
	bool is_deep; /* if truncated: it is deeper than its copy */
	/* counts of the group, by session event; n_reads 0 outside groups */
	struct {
		int event;
		uint64_t value;
		uint64_t enabled_ns, running_ns;
	} read[EVENT_GROUP_MAX];
	uint32_t n_reads;
	bool is_offcpu; /* of a thread without a hart: weight_ns is time for which it waited */
	const struct waker *
		waker; /* who ended that wait, borrowed as `frame`; NULL: not known, or not asked */
	uint64_t
		waker_of; /* no sample: the stack of a waker (attribute_waker), by its number; else 0 */
	uint8_t raise; /* a sample of that raise (sampler_raise_task), not of the session's events; else 0 */
};

/* How many samples of harts it is: a thread that waits is none, and no loss if it is missing. */
static inline uint64_t attribution_samples(const struct attribution *a)
{
	return a->is_offcpu ? 0 : a->count;
}

struct kernel;

struct attribute_options {
	struct namer *namer; /* borrowed; NULL: no names, no unwinding (tests) */
	const struct kernel
		*kernel;          /* borrowed; lists code generated before; NULL: no list (tests) */
	struct file_table *files; /* borrowed */
	struct task_table *tasks; /* borrowed */
	const struct stream_table *streams; /* borrowed */
	uint64_t (*lost)[N_LOSSES];         /* borrowed, per hart */
	uint64_t *lost_ahead;  /* borrowed, per hart, see sampler.h; NULL: nothing is ahead */
	uint64_t *raised_lost; /* borrowed, by raise, see sampler.h; NULL: there are none */
	int n_harts;
	int n_events;                      /* of the session */
	const struct stack_starts *starts; /* borrowed; NULL: the start of stacks is not known */
	const struct label_variables *variables; /* borrowed; NULL: none */
	/* borrowed; "/proc", or a folder of files in tests; sys is next to it */
	const char *proc;
	/* borrowed; NULL: /proc is read at once, even if that blocks (tests) */
	struct proc_reader *reader;
	/* NULL: rights_read; tests that use files pass their own */
	int (*rights)(int folder_fd, uid_t account, struct rights *ret_rights);
	/* Does no process have this pid any more? Called before its folder is opened, which
	 * takes ten times as long to fail. NULL: proc_is_gone if proc is "/proc", else no check. */
	bool (*is_gone)(pid_t pid);
	/* all tasks are wanted; else only marked tasks and their children */
	bool all;
	/* the pids of attribute_scan are wanted from their next exec on */
	bool after_exec;
	/* events were opened per task, so that each group counts one task alone */
	bool per_task;
	/* the side band has rings of its own */
	bool sideband_apart;
	/* the kernel stops the siblings of a throttled event too (struct machine) */
	bool throttles_groups;
	/* kernel frames become one "[kernel]" frame without an address */
	bool hide_kernel;
	void (*sink)(void *userdata, const struct attribution *a);
	/* A thread ended; before its samples that still wait for callers. NULL: nobody asks. */
	void (*ended)(void *userdata, struct task *task, uint64_t time_ns);
	void *userdata;
};

struct attribute;

int attribute_new(const struct attribute_options *o, struct attribute **ret_attribute);
/* The reader of the options; NULL: there is none, or a is NULL. */
struct proc_reader *attribute_reader(const struct attribute *a);
/* Samples of that hart's own event so far, of all tasks and of idle. */
uint64_t attribute_n_fired(const struct attribute *a, int hart);

/* Read /proc once: name, argv, cgroup and executable mappings of every task. If only some tasks are wanted, read those
 * in pids and their descendants; other tasks, with their ancestors, are read once a record mentions them. If n_pids is
 * 0, read all. Tasks in pids (and their descendants) are marked wanted. Takes about 50 µs per task. Scanning again is
 * harmless: it is done before and after the events are enabled, and after a hart comes back. Only tests scan at once.
 * 0 or -errno. Exported for tests. */
int attribute_scan(struct attribute *a, const pid_t *pids, size_t n_pids);
/* The same in steps, between which records may come: the first step reads all cgroups, each later one a process. A
 * scan under way is dropped. 0 or -errno, which ends the scan. */
int attribute_scan_begin(struct attribute *a, const pid_t *pids, size_t n_pids);
int attribute_scan_next(struct attribute *a);
/* Is a scan under way? */
bool attribute_scans(const struct attribute *a);

/* Take one record. Returns 0; -errno only for an internal failure. Losses are counted. */
int attribute_record(struct attribute *a, const struct record *r, int hart);

/* Take a thread without a hart, a sample of STREAM_OFFCPU, which waited for about weight_ns; 0: it is no sample, and
 * only its callers are found. 0 or -errno. */
int attribute_offcpu(struct attribute *a, const struct record *r, uint64_t weight_ns);

/* Find the stack of a waker, a sample of STREAM_OFFCPU: the sink gets it, at once or later, as an attribution without
 * samples that has that number. *ret_task NULL: the waker is not known, and nothing comes. 0 or -errno. */
int attribute_waker(
	struct attribute *a, const struct record *r, uint64_t number, struct task **ret_task);

/* Find the frame of the call that returns to that address of the task's process, and have it named like
 * frames of samples. 0; ATTRIBUTE_NO_FRAME: no code is known there, or there is no room; -errno. */
enum { ATTRIBUTE_NO_FRAME = 1 };
int attribute_call(
	struct attribute *a, struct task *task, uint64_t return_address, struct frame **ret_frame);

/* Read the arguments of an exec at once: it was reported before its record came through the merge.
 * Execs of known processes that are not wanted are skipped, as are those beyond a limit: their
 * arguments are read when the record comes. */
void attribute_exec(struct attribute *a, pid_t pid, uint64_t time_ns);
/* The same, if the record carries a copy of the new program's stack: its arguments are taken from
 * the copy, and /proc is read only for what the copy lacks. */
void attribute_exec_stack(struct attribute *a, const struct record *r);
/* The same by a RECORD_EXEC, which may come at any time until the exec's other record is taken. */
void attribute_exec_record(struct attribute *a, const struct record *r);
/* Do BPF programs report the execs of all harts, in rings of their own? Then only what is lost there hides an exec. */
void attribute_execs_apart(struct attribute *a, bool apart);
/* Records were lost before that time, in a ring of BPF's (apart) or another: owners are in doubt if an exec may be
 * among them. */
void attribute_execs_lost(struct attribute *a, uint64_t time_ns, bool apart);
/* These processes, which are alive and known, are wanted from their next exec on: if its record may
 * have been lost, /proc is searched for it. Not needed for pids passed to attribute_scan. */
void attribute_await_exec(struct attribute *a, const pid_t *pids, size_t n_pids);
/* Read the arguments of all execs that are due, and forget old ones. */
void attribute_read_execs(struct attribute *a, uint64_t now_ns);
/* The time of the next attribute_read_execs: 0 after attribute_exec; UINT64_MAX: no call is
 * needed. */
uint64_t attribute_exec_due_ns(const struct attribute *a);

/* Put the process of that pid, and all that it starts from time_ns on, into that user's job with these
 * labels (proto/syntax/label.h); NULL: into none. 0; ATTRIBUTE_GONE: there is no such process;
 * ATTRIBUTE_FULL: there are too many jobs; -ENOMEM. */
enum { ATTRIBUTE_GONE = 1, ATTRIBUTE_FULL };
int attribute_set_labels(
	struct attribute *a, pid_t pid, uid_t uid, const char *json, uint64_t time_ns);

/* The namer's owner forwards this callback. */
void attribute_unwound(struct attribute *a, const struct unwind_result *r);

/* Read again the owners of processes sampled since the last call, and hide the samples of a process
 * that no longer belongs to its user. Call before samples are stored or shown. Reads each process
 * at most once a second, and OWNERS_READ_MAX per call (15 ms), those that waited longest first. */
#define OWNERS_READ_MAX 1000
#define OWNERS_SECOND_MAX 400 /* per second since the last call: 1 % of a hart */
#define OWNER_AGAIN_NS 1000000000u
void attribute_check_owners(struct attribute *a, uint64_t now_ns);
/* Read the owner of the task's process again, unless that was done since since_ns: what is about to be shown of it must
 * belong to its user. */
void attribute_confirm_owner(struct attribute *a, const struct task *task, uint64_t since_ns);
/* Note that the task reported its own counts: like a sample, they belong to its present owner. */
void attribute_counted(struct attribute *a, struct task *task);

/* End a drain: read missing arguments of processes that exec'd since the last drain, and reset
 * the limits that hold between two drains. */
void attribute_drained(struct attribute *a);

/* Drop cached frames, files and mappings: some of them were freed. */
void attribute_forget_places(struct attribute *a);

/* Learn which BPF programs the kernel has, once; else that is done at the first sample in one, and takes a tenth of a
 * second or more. */
void attribute_list_programs(struct attribute *a, uint64_t time_ns);

/* Visit the samples from before before_ns that wait for the unwinder, each with only its leaf, until `see` returns
 * false, which is returned. They go on waiting. Stacks of wakers are no samples. */
bool attribute_each_waiting(struct attribute *a, uint64_t before_ns,
	bool (*see)(void *userdata, const struct attribution *a), void *userdata);
/* The number of samples that wait. Exported for tests. */
size_t attribute_waiting(const struct attribute *a);

/* Copied stacks of the session's own samples that were walked by tables since the last call. */
struct copy_depths {
	uint64_t n, n_deep; /* of them, deeper than their copy */
	uint64_t deepest;   /* bytes of the deepest of the others */
};
struct copy_depths attribute_take_depths(struct attribute *a);

struct attribute *attribute_free(struct attribute *a);
