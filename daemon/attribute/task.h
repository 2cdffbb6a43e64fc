/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Tasks: the threads that ran
 *
 * A task is a thread: (pid, tid, start time). Tasks outlive their threads, since samples and
 * answers refer to them. Live ones are found by tid; an EXIT or a reused tid removes a task from
 * that index, but not from the table.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/attribute/label_set.h"
#include "daemon/naming/space.h"
#include "proto/base/hash_table.h"

#define TASK_COMM_BYTES 16       /* Source: TASK_COMM_LEN, include/linux/sched.h */
#define TASK_ARGV_BYTES_MAX 4096 /* per process; longer ones are cut and end in "…" */
/* on our boards the kernel's pid_max is the smaller limit */
#define TASKS_LIVE_MAX 262144
/* between two sweeps, dead ones included, of which one user has a quota: 190 MB; a kernel build has
 * 100,000 */
#define TASKS_MAX 500000
/* separate names and cgroups of one thread of a program; further ones count as the last, so that a
 * program cannot make tasks without limit */
#define TASK_PASTS_MAX 16
/* Lists of dead tasks: 64 KiB. A full table has 61 in each. */
#define DEAD_LISTS 8192u
#define CGROUPS_MAX 65536       /* the kernel's default limit for one memory controller */
#define CGROUP_PLACE_BYTES 256u /* bytes of a path per place of CGROUPS_MAX, so all take 23 MB */

struct task {
	uint32_t id; /* from 1; key in the store */
	pid_t pid, tid;
	uint64_t start_ns; /* CLOCK_MONOTONIC */
	uint64_t end_ns;   /* 0: alive */
	uint64_t exec_ns;  /* of a leader: its last exec with a record; 0: none */
	/* of a leader: its last reported exec whose record has not come through the merge; 0: none */
	uint64_t reported_exec_ns;
	/* of a leader: is that exec's early report still to come? (exec_argv.c) */
	bool awaits_report;
	uint64_t lost_exec_ns; /* of a leader: its last exec whose record was lost; 0: none */
	struct task *process;  /* the thread-group leader's task; itself for a leader */
	struct task *parent;   /* the process that forked it; NULL unknown */
	char comm[TASK_COMM_BYTES];
	uint32_t n_threads;   /* of a leader: its live threads, including itself */
	struct task *threads; /* of a leader: its other live threads */
	struct task *threads_prev, *threads_next;
	/* exe and argv belong to the process: NULL in threads other than the leader */
	/* path, from the first executable mapping after exec; may be NULL */
	char *exe;
	uint64_t memfd_inode; /* inode of the memfd that was executed; 0: a file was */
	/* arguments joined by NUL; n_argv bytes; NULL: the process was gone before they were
	 * read */
	char *argv;
	uint32_t n_argv;
	/* of a leader: the job that it belongs to; NULL: none. Has a reference */
	struct label_set *labels;
	/* while alive, among those that have the same labels (label_set.live); else labels_prev is NULL */
	struct task *labels_prev, *labels_next;
	bool own_labels;  /* of a leader: they were given to it, and not inherited */
	uint64_t cgroup;  /* id; 0 unknown */
	uid_t uid;        /* the owner (rights.h), 0 also if it belongs to no user;
			     (uid_t)-1 unknown */
	gid_t gid;        /* that user's group, with uid */
	uid_t account;    /* of a leader: the user who pays for it (rights.h); use task_account */
	bool other_group; /* gid is not the one that user logs in with */
	/* of a leader, for owner.c: */
	uid_t past_uid; /* owner before its last exec, if it was sampled then */
	gid_t past_gid;
	uid_t past_account;      /* before its last exec */
	bool sampled, past;      /* since that exec; before it */
	bool watched;            /* its rights will be read again */
	uint64_t owner_since_ns; /* owned by uid since this reading; 0: inherited */
	uint64_t rights_read_ns; /* when its rights were last read */
	uint64_t owner_sure_ns;  /* the owner is right if no exec was lost later than this */
	bool kernel_thread;
	bool used;       /* something may refer to it: it was sampled, or counted */
	uid_t place_of;  /* the account that is charged for its place in the table */
	uint8_t n_pasts; /* former names and cgroups, each a task of its own */
	uint8_t raised;  /* samples of that raise are taken of it as well; 0: none */
	pid_t raised_by; /* the task for which its events were opened: itself, or one it descends from */
	uint64_t raised_ns; /* since when; UINT64_MAX: not yet */
	bool wanted;        /* belongs to the session's targets */
	bool awaits_exec;   /* becomes wanted with its next exec */
	bool changed;       /* since it was stored */
	/* of a leader; NULL in its other threads and for kernel threads: use task_space */
	struct space *space;
	uint64_t maps_read_ns; /* of a leader: when its space was last read from /proc; 0: never */
	/* of a leader: the file that describes its generated code; NULL: a perf map */
	struct file *jitdump;
	/* pending counts of the group, which the next sample takes: value, enabled and running ns
	 * for each session event in turn; NULL: none */
	uint64_t *pending;
	UT_hash_handle hh; /* by tid, while alive */
	/* of a dead task: the one that entered its list before; NULL: none */
	struct task *before;
};

/* A cgroup, named by CGROUP records and the scan. */
struct cgroup {
	uint64_t id;
	char *path;
	uid_t place_of; /* the user who made it, who is charged for its places in the table */
	uint32_t pass;  /* number of the sweep that looked for it last; 0: none */
	UT_hash_handle hh;
};

struct task_table {
	struct task *live; /* uthash by tid */
	/* DEAD_LISTS, by a hash of the tid, the last that entered first; NULL: none died */
	struct task **dead;
	struct task **task;     /* by id - 1; NULL: freed by a sweep */
	uint32_t n_tasks, size; /* n_tasks is the highest id */
	uint32_t *free_id;      /* below n_tasks; the next one to reuse is last */
	uint32_t n_free, size_free;
	struct cgroup *cgroups; /* uthash by id */
	struct label_sets label_sets;
	uint64_t last_generation;
	struct quota of, cgroups_of; /* places of each user */
};

struct task_key {
	pid_t pid, tid;
	uint64_t start_ns;
};

/* The live task of that tid; NULL if unknown. */
struct task *task_find(const struct task_table *t, pid_t tid);

/* The task of that tid that died last, and the one of the same tid that died before a dead task. Linear in a list of
 * dead tasks. NULL: none is in the table, or it could not be noted without memory. */
struct task *task_find_dead(const struct task_table *t, pid_t tid);
struct task *task_find_before(const struct task *dead);

/* Add a live task. A live one of the same tid is ended at start_ns and loses its space. A thread
 * with an unknown leader is its own process. 0, TASK_TABLE_FULL, -ENOMEM. */
enum { TASK_TABLE_FULL = 1 };
int task_add(struct task_table *t, pid_t pid, pid_t tid, uint64_t start_ns, struct task **ret_task);
/* Are there places for n more of that user? */
bool task_has_room(struct task_table *t, uid_t place_of, uint32_t n);
/* Add a task, charged to that user (-1: to no user) for its place; task_add charges -1. */
int task_add_for(
	struct task_table *t, const struct task_key *key, uid_t place_of, struct task **ret_task);
/* Move a live thread to that process. */
void task_join(struct task_table *t, struct task *thread, struct task *process);
/* Free a thread that ended, to which nothing refers; its id is used again. Without memory it stays until a
 * sweep. */
void task_forget(struct task_table *t, struct task *task);
/* Remove it from the live ones. Its space stays until space_drop, since the kernel still works for
 * a task, and is sampled, after its EXIT record. */
void task_end(struct task_table *t, struct task *task, uint64_t end_ns);
void task_set_comm(struct task *task, const char *comm);
/* Give a process these labels, whose reference it takes; NULL: none. */
void task_set_labels(struct task_table *t, struct task *process, struct label_set *labels);
/* Give a process that has none the labels of another one. */
void task_inherit_labels(struct task *process, const struct task *from);

/* The mappings of the task's process; NULL for kernel threads and if unknown. */
static inline const struct space *task_space(const struct task *task)
{
	return task->process->space;
}

/* The user who pays for what a task costs: samples, stacks, names. -1 if task is NULL. */
static inline uid_t task_account(const struct task *task)
{
	return !task ? (uid_t)-1 : task->process ? task->process->account : task->account;
}

/* The user whose files it maps and who may see its samples. Until that is known after an exec, it
 * is the user who started it, unless that was root, whose children may become any user. -1:
 * nobody. */
static inline uid_t task_files_uid(const struct task *process)
{
	if (process->uid != (uid_t)-1 || !process->parent || process->parent->uid == 0)
		return process->uid;
	return process->parent->uid;
}

/* Map [start, start + bytes) of file; overlapped mappings are cut. -ENOMEM, SPACE_FULL. */
int space_map(struct task_table *t, struct task *task, uint64_t start, uint64_t bytes,
	uint64_t file_offset, struct file *file);
/* The process belongs to another user now: what was computed from its space is no longer valid. */
void space_change_user(struct task_table *t, struct task *process);
/* Share the space of parent's process with child's (fork), or drop it (exec, exit). */
void space_share(struct task *child, const struct task *parent);
void space_drop(struct task *task);

/* Name a cgroup, or rename it. A new one takes places of that user, who made it; (uid_t)-1: not known.
 * 0, CGROUP_TABLE_FULL: also for that user alone; -ENOMEM. */
enum { CGROUP_TABLE_FULL = 1 };
int cgroup_set(struct task_table *t, uint64_t id, const char *path, uid_t place_of);
const struct cgroup *cgroup_find(const struct task_table *t, uint64_t id);

/* Free all tasks except those with mark[id - 1] == SWEEP_KEPT, which must include all live tasks
 * and the processes of kept ones; the other ids are reused unless SWEEP_RESERVED. 0; -ENOMEM:
 * nothing was freed. */
int task_table_sweep(struct task_table *t, const uint8_t *mark);
/* Free all cgroups for which `keep` returns false. */
void cgroup_table_sweep(
	struct task_table *t, bool (*keep)(void *userdata, struct cgroup *cgroup), void *userdata);

void task_table_clear(struct task_table *t);
