/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Tasks: who ran
 *
 * A task is a thread that lived: (pid, tid, start time). Tasks outlive their threads, since samples
 * and answers refer to them. The live ones are found by tid; an EXIT or a reused tid takes a task
 * out of that index, never out of the table.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/attribute/file.h"
#include "proto/hash_table.h"

#define TASK_COMM_BYTES 16        /* Source: TASK_COMM_LEN, include/linux/sched.h */
#define TASK_ARGV_BYTES_MAX 4096  /* per process; longer ones are cut and end in "…" */
#define TASKS_LIVE_MAX 262144     /* beyond it the kernel's own pid_max is the smaller limit on our boards */
#define TASKS_MAX 1000000         /* between two sweeps, dead ones included: 250 MB; a kernel build has 100,000 */
#define CGROUPS_MAX 65536         /* the kernel's default of cgroups below one memory controller */
#define MAPS_MAX 16384            /* executable mappings of one process; a JVM has a few thousand */

/* One executable mapping. */
struct map {
	uint64_t start, end;
	uint64_t file_offset;
	struct file *file;
};

/* The executable mappings of one process, shared by its threads and, until one of them maps
 * something, with its forked children. */
struct space {
	uint32_t n_users;
	struct map *map;          /* sorted, disjoint */
	uint32_t n_maps, size;
	uid_t uid;                /* of the process that used it last: whose files those are */
	uint64_t generation;      /* unique over all spaces; changes with every change */
};

struct task {
	uint32_t id;              /* from 1; key in the store */
	pid_t pid, tid;
	uint64_t start_ns;        /* CLOCK_MONOTONIC */
	uint64_t end_ns;          /* 0: lives */
	uint64_t exec_ns;         /* of a leader: its last exec that a record told of; 0: none */
	uint64_t heard_ns;        /* of a leader: its last exec that was heard of and whose
				     record has not come through the merge; 0: none */
	uint64_t missed_ns;       /* of a leader: its last exec whose record was lost; 0: none */
	struct task *process;     /* the thread-group leader's task; itself for a leader */
	struct task *parent;      /* who forked the process; NULL unknown */
	char comm[TASK_COMM_BYTES];
	uint32_t n_threads;       /* of a leader: its threads that live, itself included */
	/* exe and argv are the process's: NULL in threads that are no leader */
	char *exe;                /* path, from the first executable mapping after exec; may be NULL */
	char *argv;               /* arguments joined by NUL; n_argv bytes; NULL: was gone before we looked */
	uint32_t n_argv;
	uint64_t cgroup;          /* id; 0 unknown */
	uid_t uid;                /* whose it wholly is (rights.h), 0 also where it is nobody's;
				     (uid_t)-1 unknown */
	gid_t gid;                /* that user's group, with uid */
	bool other_group;         /* gid is not the one that user logs in with */
	/* of a leader, for owner.c: */
	uid_t past_uid;           /* whose it was before its last exec, if it was sampled by then */
	gid_t past_gid;
	bool sampled, past;       /* since that exec; before it */
	bool watched;             /* is among those whose rights are to be read again */
	uint64_t read_ns;         /* since when it is uid's by a reading; 0: by inheritance */
	uint64_t looked_ns;       /* when its rights were last read */
	bool kernel_thread;
	bool wanted;              /* belongs to the session's targets */
	bool awaits_exec;         /* becomes wanted with its next exec */
	bool changed;             /* since it was stored */
	struct space *space;      /* of a leader; NULL in its other threads and for kernel threads: use task_space */
	struct file *jitdump;     /* of a leader: what describes the code that it generates; NULL: a perf map */
	uint64_t *pending;        /* counts of the group that no sample has taken yet: a value, enabled and
	                             running ns for each session event in turn; NULL: none */
	UT_hash_handle hh;        /* by tid, while it lives */
};

/* A cgroup as CGROUP records and the scan name it. */
struct cgroup {
	uint64_t id;
	char *path;
	UT_hash_handle hh;
};

struct task_table {
	struct task *live;        /* uthash by tid */
	struct task **task;       /* by id - 1; NULL: freed by a sweep */
	uint32_t n_tasks, size;   /* n_tasks is the highest id */
	uint32_t *free_id;        /* below n_tasks, the next to be given last */
	uint32_t n_free;
	struct cgroup *cgroups;   /* uthash by id */
	uint64_t last_generation;
};

/* The live task of that tid; NULL if unknown. */
struct task *task_find(const struct task_table *t, pid_t tid);

/* Add a live task. A live one of the same tid is ended at start_ns and loses its space. A thread
 * whose leader is not known is its own process. 0, TASK_TABLE_FULL, -ENOMEM. */
enum { TASK_TABLE_FULL = 1 };
int task_add(struct task_table *t, pid_t pid, pid_t tid, uint64_t start_ns, struct task **ret_task);
/* Take it out of the live ones. Its space stays until space_drop, since the kernel goes on working
 * for a task, and is sampled, after it has said EXIT. */
void task_end(struct task_table *t, struct task *task, uint64_t end_ns);
void task_set_comm(struct task *task, const char *comm);

/* The mappings of the task's process; NULL for kernel threads and where none is known. */
static inline const struct space *task_space(const struct task *task)
{
	return task->process->space;
}

/* The user whose files it maps, who is also shown its samples. Until that is known after an exec,
 * it is the user who started it, unless that was root, whose children become anybody. -1: nobody.
 */
static inline uid_t task_files_uid(const struct task *process)
{
	if (process->uid != (uid_t)-1 || !process->parent || process->parent->uid == 0)
		return process->uid;
	return process->parent->uid;
}

/* Map [start, start + bytes) of file; what it overlaps is cut. -ENOMEM, SPACE_FULL. */
enum { SPACE_FULL = 1 };
int space_map(struct task_table *t, struct task *task, uint64_t start, uint64_t bytes,
	uint64_t file_offset, struct file *file);
/* The process is another user's by now: what was computed from its space holds no more. */
void space_change_user(struct task_table *t, struct task *process);
/* The mapping that holds addr, or NULL. O(log n). */
const struct map *space_find(const struct space *s, uint64_t addr);
/* Share the space of parent's process with child's (fork), or drop it (exec, exit). */
void space_share(struct task *child, const struct task *parent);
void space_drop(struct task *task);

/* Name a cgroup, or rename it. 0, CGROUP_TABLE_FULL, -ENOMEM. */
enum { CGROUP_TABLE_FULL = 1 };
int cgroup_set(struct task_table *t, uint64_t id, const char *path);
const struct cgroup *cgroup_find(const struct task_table *t, uint64_t id);

/* Free all tasks but those of mark[id - 1] == SWEEP_KEPT (sweep.h), which must hold all that live
 * and the processes of those that are kept; the ids of the rest are given again unless
 * SWEEP_RESERVED. 0; -ENOMEM: nothing was freed. */
int task_table_sweep(struct task_table *t, const uint8_t *mark);
/* Free all cgroups for which `keep` says no. */
void cgroup_table_sweep(struct task_table *t,
	bool (*keep)(void *userdata, const struct cgroup *cgroup), void *userdata);

void task_table_clear(struct task_table *t);
