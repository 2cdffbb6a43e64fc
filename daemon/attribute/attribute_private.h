/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Shared by the files of this room only
 *
 *      attribute.c ── record ──┬─▶ sideband.c   live tasks and mappings
 *                              ├─▶ charge.c     counts, charged to tasks
 *                              ├─▶ weigh.c      how much time a sample represents
 *                              ├─▶ throttle.c   … and what the kernel throttled away
 *                              ├─▶ generated.c  code that the kernel generates
 *                              └─▶ stack_walk.c where: frames of a stack ─▶ sink
 *                                   waiting.c   … or later, when the copied stack is unwound
 *      proc.c     one process in /proc
 *      life.c     how a task begins and ends; mapping.c: what is mapped in it; remapped.c: in place of its text
 *      owner.c    the owner of a process, and its samples when the owner changes
 *      exec_argv.c   arguments of a process that execs, read at once
 *      census.c   reads one process from /proc, or all
 *      lost_exec.c   … or one whose exec record was lost
 *      job.c      labels, given by requests and read from the environment
 */

#include <limits.h>

#include "daemon/attribute/attribute.h"
#include "daemon/attribute/delta.h"
#include "daemon/attribute/kernel_code.h"
#include "daemon/attribute/kernel_map.h"
#include "daemon/attribute/proc_reader.h"
#include "daemon/attribute/rights.h"
#include "daemon/attribute/scan.h"

/* Recently ended tasks that are still sampled: after EXIT the kernel tears down the memory of the
 * process. Found by tid modulo this; a collision only loses the samples of that teardown. */
#define ENDED_SLOTS 4096
/* Tasks of one user up to which its dead threads stay in the table until a sweep, even if never sampled: a
 * program may report many threads that died (loops/feed_task.c). */
#define DEAD_KEPT 32768u
/* tearing down 100 GB takes seconds; tids are reused later than that */
#define ENDED_NS 5000000000u

/* Tolerance between a task's start time and its FORK record, and between readings of the two
 * clocks. */
#define START_SLACK_NS 10000000u

/* Processes whose arguments were not in place yet when their exec was handled. */
#define REREAD_MAX 4096

/* Execs that were reported early and have not come through the merge: a quarter of a second's
 * worth, at most 4 KiB each. Few enough for a linear search. Further ones are treated as not
 * reported. */
#define EXECS_MAX 1024

/* The arguments and rights of a process after an exec. */
struct exec_text {
	char *argv; /* as in struct task; NULL: not read */
	uint32_t n_argv;
	struct rights rights;
	bool has_rights;  /* they were read */
	bool from_stack;  /* not read from /proc but copied by the kernel; then these are valid: */
	bool secure;      /* setuid and the like */
	uint32_t own_uid; /* as the process sees it, in its user namespace */
};

struct exec {
	pid_t pid;
	uint64_t time_ns; /* of its record */
	uint64_t read_ns; /* when the last read ended */
	uint64_t
		due_ns; /* of the next attempt; UINT64_MAX: no more attempts, since it was read or given up */
	uint32_t n_looks; /* attempts planned after the first */
	struct exec_text text;
	struct task *process; /* whose record came while attempts are due; NULL: not come */
	int hart;             /* of that record */
};

/* Cache of frames by (space, address): 24 bytes each, 192 KB, about a core's private cache. Most
 * return addresses of a drain are found here. */
#define PLACES_KNOWN 8192u

struct known_place {
	uint64_t generation; /* of the space, or kernel_generation */
	uint64_t addr;       /* 0: none */
	struct frame *frame;
};

/* Files checked in this drain, by id modulo this; a collision costs a system call. */
#define FILES_LOOKED 64u

/* Comparisons of memory in the place of a program's text with that text: 50 us each, while the loop waits. The limits
 * are for all users between two drains, of which each user has a quota, and for a process that is read from /proc. */
#define TEXTS_COMPARED_MAX 64u
#define TEXTS_FILLED_MAX 4u

/* Processes that await their exec: recordings' commands, TARGETS_MAX of each. */
#define AWAITED_MAX 256

struct awaited {
	pid_t pid;
	uint64_t seen_ns; /* when it was seen running another program without a record; 0: never */
};

/* Processes that did not answer when they were first asked, which are asked again once a second. */
#define SILENT_MAX 256
#define SILENT_TRIES_MAX 120u

struct silent {
	pid_t pid;
	uint32_t n_tries;
	bool is_target; /* of a scan that ended before it answered: it and its descendants are wanted */
};

struct reread {
	struct task *process;
	int hart;
};

/* Copied stacks being unwound; with the smallest stacks this limit is reached before
 * NAMER_UNWIND_BYTES_MAX. */
#define WAITING_MAX 16384

/* Cgroup folders walked at the start; a large container host has a few thousand. */
#define CGROUPS_ASKED 64u
#define CGROUP_DIRS_MAX 20000
#define CGROUP_DEPTH_MAX 32

/* Source: Documentation/admin-guide/sysctl/kernel.rst, perf_event_max_stack. */
#define STACK_DEPTH_DEFAULT 127

/* The time that the next sample of an event on a hart represents. */
struct stand {
	uint64_t ran_ns; /* time that tasks ran since the last sample, by readings */
	bool unsure;     /* some switches had no reading */
	bool summed;     /* ran_ns is as of now: a record of sums came since the last sample */
	/* throttle.c */
	uint64_t silent_ns;       /* time throttled since the last sample, of wanted tasks */
	uint64_t throttled_ns;    /* when the kernel began to throttle it; 0: not throttled */
	uint64_t silent_since_ns; /* then, or its last reading since */
	uint64_t silent_leader;   /* its stream, which may be opened again meanwhile */
	uint64_t unread_ns;       /* time throttled since its last reading */
	uint32_t silent_pid, silent_tid; /* the task that was throttled last; */
	bool other_end;                  /* another task ran when the throttling ended */
	bool by_bpf;                     /* BPF reads it at switches, throttled or not */
};

struct waiting;

struct attribute {
	struct attribute_options o;
	struct kernel_map kernel;
	struct kernel_code code;
	bool code_listed; /* what was there before records told of it */
	uint64_t
		kernel_generation; /* as that of a space: new with each change of what the kernel generates */
	struct delta_table deltas;
	struct file *unknown;    /* FILE_UNKNOWN, once needed */
	struct waiting *waiting; /* uthash by ticket */
	uint64_t last_ticket;
	struct task **ended;  /* ENDED_SLOTS */
	uint64_t *n_fired;    /* per hart: samples of its own event */
	struct task **exited; /* per hart: the task that ended there last */
	int *leader_of;       /* per session event: the sampling event of its group, as last seen */
	enum rung *rung_of;   /* likewise */
	struct stand *stand;  /* by hart and session event */
	bool throttles_groups;     /* this kernel stops the siblings of a throttled event too */
	struct known_place *known; /* PLACES_KNOWN */
	const struct file *looked[FILES_LOOKED]; /* checked for rewriting in this drain */
	struct quota compared;                   /* texts, likewise */
	struct reread *reread;                   /* REREAD_MAX */
	size_t n_reread;
	struct census *census; /* of /proc; NULL: none goes on */
	uint64_t asked_cgroup
		[CGROUPS_ASKED]; /* that had no name, and their processes were asked once */
	struct silent *silent;   /* SILENT_MAX, in no order */
	size_t n_silent;
	uint64_t silent_ns;      /* when they were asked last */
	struct awaited *awaited; /* AWAITED_MAX, in no order */
	size_t n_awaited;
	struct exec *exec; /* EXECS_MAX, in no order */
	size_t n_execs;
	uint64_t exec_due_ns;  /* of the next attempt; UINT64_MAX: none */
	struct task **watched; /* n_watched sampled processes of users, oldest check first */
	size_t n_watched, size_watched;
	uint64_t checked_ns; /* when their rights were last read again */
	struct login_groups logins;
	uint32_t max_stack;
	uint64_t tick_ns, suspended_ns;
	int cgroup_root_fd; /* of the hierarchy whose ids perf gives; -1: none mounted */
	bool cgroup_root_is_v1;
	uint32_t cgroup_pass; /* of sweeps over the whole table of groups, from 1 */
};

static inline void lose(struct attribute *a, int hart, enum loss loss, uint64_t n)
{
	if (a->o.lost)
		a->o.lost[hart][loss] += n;
}

/* --- proc.c ----------------------------------------------------------------------------------- */

/* Does no process of this machine have this pid? One system call. */
bool proc_is_gone(pid_t pid);
/* Does the process have a folder in /proc? Does not wait. */
bool proc_is_there(const struct attribute *a, pid_t pid);
/* The account by which rights_read may spare itself a file: an exec, after which it may be unknown, keeps it. */
static inline uid_t proc_account(const struct task *task)
{
	const struct task *process = task ? task->process : NULL;

	if (!process)
		return ACCOUNT_NOBODY;
	return process->account != ACCOUNT_NOBODY ? process->account : process->past_account;
}
/* Read the wanted parts (PROC_*) of a process. 0, and the caller clears *ret_view; PROC_GONE; PROC_SILENT,
 * which is counted; -ENOMEM. */
int proc_read(struct attribute *a, pid_t pid, unsigned wants, struct proc_view *ret_view);
/* Read the owner of a process. 0; RIGHTS_GONE; PROC_SILENT: it lives, and did not answer. */
int proc_rights(struct attribute *a, pid_t pid, struct rights *ret_rights);
/* Does the process have the bytes of its program, from that offset on, in the mapping m? Pages all over it are
 * compared. PROC_SAME; PROC_OTHER; another outcome of proc_read: not known. */
int proc_compare(struct attribute *a, pid_t pid, const struct map *m);
/* Arguments and owner of a process that execs; the outcomes of proc_read; PROC_EMPTY: they are not in place
 * yet, or the process is a zombie. */
int proc_exec(struct attribute *a, pid_t pid, struct exec_text *ret_text);
/* Does it run another program than the one we know? Decided by its file and its arguments; false if
 * it is gone. */
bool proc_is_other(struct attribute *a, const struct task *process);

/* --- life.c ----------------------------------------------------------------------------------- */

/* Is it the same task? One of the two times may come from /proc's ticks. */
bool life_same_start(const struct attribute *a, const struct task *task, uint64_t time_ns);
/* A task inherits its parent's properties; a process also inherits its mappings and program. 0 or
 * -ENOMEM. */
void life_inherit_task(struct task *child, const struct task *parent);
int life_inherit_process(struct task *child, const struct task *parent);
/* Both: a new process inherits what the process that it continues has, by fork or otherwise. */
int life_inherit(struct task *child, const struct task *parent);
/* End the task with its samples at that time; the process continues as another task that inherits from it, and so do
 * those of its other threads of which something was counted. *process stays if there is no room. O(threads). 0 or
 * -ENOMEM. */
int life_continue(struct attribute *a, struct task **process, uint64_t time_ns, int hart);
/* Let later samples count for another task of the same thread, since its name, cgroup or job changes. *task stays if
 * there is no room for that task and, if it is a leader, for its other threads. 0 or -ENOMEM. */
int life_separate(struct attribute *a, struct task **task, uint64_t time_ns, int hart);
/* The same, but only if something was counted of the task or of a thread of its process, and at most TASK_PASTS_MAX
 * times. */
int life_change(struct attribute *a, struct task **task, uint64_t time_ns, int hart);
/* The process execs: earlier counts stay with the earlier program, with its name and arguments. The next program may
 * have TASK_PASTS_MAX names of its own. *process as in life_separate. 0 or -ENOMEM. */
int life_leave(struct attribute *a, struct task **process, uint64_t time_ns, int hart);
/* The task for which its thread counts now: itself, or the last that it goes on as. */
struct task *life_now(const struct attribute *a, struct task *task);
/* The task of that pid and tid that ended recently; NULL: none. */
struct task *life_find_ended(const struct attribute *a, pid_t pid, pid_t tid, uint64_t time_ns);
/* Free a thread that ended, was never sampled and is referred to by nothing, if the dead threads of its user fill
 * the table. */
void life_forget(struct attribute *a, struct task *task);
/* Deliver pending counts and remove the task from the live ones. */
void life_end(struct attribute *a, struct task *task, uint64_t time_ns, int hart);

/* --- mapping.c -------------------------------------------------------------------------------- */

/* Enter an executable mapping of the task's process, seen at time_ns. Losses are counted. 0 or
 * -errno. */
int mapping_enter(struct attribute *a, struct task *task, const struct record_mmap *m,
	uint64_t time_ns, int hart);

/* --- remapped.c ------------------------------------------------------------------------------- */

/* Enter new executable memory without a file as the text of the process's program, if it replaced a part of that
 * text in place. REMAPPED_DONE; 0: it is something else; -ENOMEM. */
enum { REMAPPED_DONE = 1 };
int remapped_enter(struct attribute *a, struct task *process, const struct record_mmap *m);
/* The same for memory that /proc showed between parts of the program's text. 0, SPACE_FULL, -ENOMEM. */
int remapped_fill(struct attribute *a, struct task *process);

/* --- sideband.c ------------------------------------------------------------------------------- */

int sideband_mmap(struct attribute *a, const struct record *r, int hart);
int sideband_comm(struct attribute *a, const struct record *r, int hart);
int sideband_fork(struct attribute *a, const struct record *r, int hart);
int sideband_exit(struct attribute *a, const struct record *r, int hart);

/* The task that a record is about, including recently ended ones; an unknown task is looked up in
 * /proc, and added without a name if it is not there. *ret_task is NULL for idle, and if there is
 * no room. 0 or -errno. */
int sideband_task(struct attribute *a, const struct record *r, int hart, struct task **ret_task);

/* The process became another program: drop what does not survive an exec. */
void sideband_exec(struct attribute *a, struct task *process, uint64_t time_ns, int hart);

/* --- census.c --------------------------------------------------------------------------------- */

/* Read one process and its threads from /proc: add them, or fill in what is not known yet. Its
 * mappings are read once a second at most, and at once after an exec.
 * ret_parent (may be NULL) is the parent's pid. 0; PROC_GONE; PROC_SILENT: it is asked again later; -errno. */
int census_process(struct attribute *a, pid_t pid, pid_t *ret_parent);
/* The same, also for its ancestors that are not known. */
int census_kin(struct attribute *a, pid_t pid);

/* Read arguments and owner of a process that exec'd; *process may become another task, as in
 * owner_set. 0; PROC_GONE; PROC_EMPTY: they are not in place yet, or the process is a zombie; PROC_SILENT;
 * -ENOMEM. */
int census_argv(struct attribute *a, struct task **process);
/* Read name, owner, file and mappings of a process whose exec was not reported; *process may become
 * another task, as in owner_set. 0, PROC_GONE, PROC_SILENT, -ENOMEM. */
int census_program(struct attribute *a, struct task **process);
/* Name the cgroup that the process is in now. 0 or -ENOMEM. */
int census_cgroup(struct attribute *a, struct task *process);
/* Give up a scan that goes on. */
void census_free(struct attribute *a);

/* Read again the processes that did not answer. 0 or -errno. */
int census_silent(struct attribute *a, uint64_t now_ns);

/* Open the root of the hierarchy whose ids perf gives; 0 also if there is none. */
void census_cgroup_root(struct attribute *a);
/* Name all cgroups. 0 or -errno. */
int census_cgroups(struct attribute *a);

/* --- owner.c ---------------------------------------------------------------------------------- */

/* Set the owner of the process, known by a reading that ended at read_ns, or by its exec's record
 * (0). Samples from before a change of owner stay separate: *process is then ended, and a new task
 * of the same pid replaces it. 0 or -ENOMEM. */
int owner_set(
	struct attribute *a, struct task **process, const struct rights *rights, uint64_t read_ns);
/* Read the users' login groups if they changed. 0 or -ENOMEM. */
int owner_read_logins(struct attribute *a);
/* The process execs at time_ns, and continues as another task: its earlier samples belong to nobody if its owner was
 * never read. */
void owner_leave(struct task *before, uint64_t time_ns);
/* The process execs at time_ns: its owner is unknown until owner_set. */
void owner_exec(struct task *process, uint64_t time_ns);
/* The process was sampled for the first time since its rights were last read. */
void owner_watch(struct attribute *a, struct task *process);
/* Stop watching processes that ended, so that a sweep need not keep them. */
void owner_forget_ended(struct attribute *a);
/* Call for each sample or count of a task. */
static inline void owner_sampled(struct attribute *a, struct task *task)
{
	struct task *process = task->process;

	task->used = true;
	process->sampled = true;
	if (!process->watched)
		owner_watch(a, process);
}

/* --- job.c ------------------------------------------------------------------------------------ */

/* May its environment give the process labels that it does not have? NULL: a process that is not known. */
bool job_wants(const struct attribute *a, const struct task *process);
/* Give the process the labels from its environment, if the environment was read, the process was given no
 * labels, and it belongs wholly to a user. 0 or -ENOMEM. */
int job_read(struct attribute *a, struct task **process, const struct proc_view *v);

/* --- exec_argv.c ------------------------------------------------------------------------------ */

/* The record of an exec came: give the process what was read early; *process as in owner_set. True:
 * done, or a later attempt is due. False: read /proc. */
bool exec_take(struct attribute *a, struct task **process, uint64_t time_ns, int hart);
/* Forget execs whose record has not come in time. */
void exec_expire(struct attribute *a, uint64_t now_ns);
/* Count a process whose arguments could not be read. */
void exec_lost(struct attribute *a, const struct task *process, int hart);
/* The process awaits its exec, which must not be missed. Beyond AWAITED_MAX it may be missed. */
void exec_await(struct attribute *a, pid_t pid);
void exec_clear(struct attribute *a);

/* --- lost_exec.c ------------------------------------------------------------------------------ */

/* A record of that time, other than an exec's, is about this process: was the record of an earlier
 * reported exec lost? */
static inline bool missed_has(const struct task *process, uint64_t time_ns)
{
	return process->heard_ns > process->exec_ns && time_ns > process->heard_ns;
}
/* Handle an exec whose record was lost: take the process as it is now. 0 or -ENOMEM. */
int missed_exec(struct attribute *a, struct task *process, int hart);
/* Records were lost up to then: look for execs among them. 0 or -ENOMEM. */
int missed_look(struct attribute *a, uint64_t time_ns, int hart);
/* The same after a drain, if there is no other sign: a process that ran another program at the last
 * drain without a record of it has missed its exec. 0 or -ENOMEM. */
int missed_drained(struct attribute *a, uint64_t now_ns);

/* --- charge.c --------------------------------------------------------------------------------- */

/* The counts of this sample's or switch's group since its last reading; n_reads 0 if not known.
 * Must see every reading, including those of idle and of unwanted tasks. */
int charge_delta(struct attribute *a, const struct record *r, int hart, struct delta *ret_delta);
/* The same for a record of STREAM_SWITCH_SUMS: the counts of its own task. */
void charge_sums(struct attribute *a, const struct record *r, int hart, struct delta *ret_delta);
/* 1: that sample's group is not cut, and its counts are charged to no task; else 0. */
uint64_t charge_uncounted(const struct record *r, const struct delta *d);
/* Add to the task's pending counts. 0 or -ENOMEM. */
int charge_pending(struct attribute *a, struct task *task, const struct delta *d);
/* Move the task's pending counts of this record's group into the attribution. */
void charge_take(struct attribute *a, struct task *task, const struct record_sample *s,
	struct attribution *ret_attribution);
/* Sink all of the task's pending counts, as attributions without a sample. */
void charge_flush(struct attribute *a, struct task *task, uint64_t time_ns, int hart);

/* --- weigh.c ---------------------------------------------------------------------------------- */

/* A reading of a group ends a stretch in which a wanted task ran. */
void weigh_stretch(struct attribute *a, const struct record *r, int hart, const struct delta *d);
/* A record of STREAM_SWITCH_SUMS: how long tasks ran. */
void weigh_sums(struct attribute *a, const struct record *r, int hart);
/* The time in ns that a sample represents; the next one starts at 0. d is its own delta, which was
 * passed to weigh_stretch. */
uint64_t weigh_take(struct attribute *a, const struct record *r, int hart, const struct delta *d);
/* The state that is kept for the group of a record's event; NULL: none. */
struct stand *weigh_stand(struct attribute *a, const struct record *r, int hart);

/* --- throttle.c ------------------------------------------------------------------------------- */

/* The kernel begins or stops throttling the record's event. */
void silence_begin(struct attribute *a, const struct record *r, int hart);
void silence_end(struct attribute *a, const struct record *r, int hart);
/* Take a reading of a group, whose delta is d: set d->silent_ns, and take out of d the time that belongs to
 * a task that was throttled before another task was read. Must see every reading. 0 or -ENOMEM. */
int silence_cut(struct attribute *a, const struct record *r, int hart, struct delta *d);
/* Forget the throttling on this hart: records were lost, so it is not known. */
void silence_forget_hart(struct attribute *a, int hart);

/* --- generated.c ------------------------------------------------------------------------------ */

/* The kernel generated code, or dropped it. 0 or -ENOMEM. */
int generated_change(struct attribute *a, const struct record *r);
/* The piece of code that was there at the time of the sample. NULL: the address is in none. */
const struct kernel_code_piece *generated_find(
	struct attribute *a, uint64_t addr, uint64_t time_ns);

/* --- stack_walk.c ----------------------------------------------------------------------------- */

struct stack_walk {
	struct attribute *a;
	struct task *task;
	int hart;
	struct frame *frame[STACK_FRAMES_MAX];
	uint32_t n_frames;
	bool truncated;
	bool has_user;    /* the innermost user frame was seen */
	bool ended;       /* a caller was outside all code: the rest is left out */
	bool kernel_only; /* leave out user frames, but keep the innermost address */
	uint64_t user_ip; /* 0: none seen */
	uint64_t time_ns; /* of the sample; 0: now */
};

/* Add the frames of a sample's callchain, or of its ip alone. 0 or -errno. */
int stack_walk_chain(struct stack_walk *w, const struct record_sample *s);
/* Add the frame of one user address. 0 or -errno. */
int stack_walk_user(struct stack_walk *w, uint64_t addr);
/* Add a frame, and have it named. file NULL: unknown. 0 or -errno. */
int stack_walk_push(struct stack_walk *w, struct file *file, uint64_t offset);
/* Pass the attribution to the sink, with the frames of the walk. */
void stack_walk_sink(struct stack_walk *w, struct attribution *attribution);

/* --- waiting.c -------------------------------------------------------------------------------- */

/* Send the sample's copied stack to be unwound; w holds its kernel frames. If that fails, the leaf
 * goes to the sink at once. 0 or -errno. */
int waiting_add(struct stack_walk *w, const struct record *r, struct attribution *attribution);
void waiting_clear(struct attribute *a);

/* Visit all waiting samples, for a sweep. */
struct waiting_view {
	const struct attribution *attribution;
	const struct frame *leaf; /* NULL: none */
	struct frame *const *frame;
	uint32_t n_frames;
};
void waiting_each(const struct attribute *a,
	void (*each)(void *userdata, const struct waiting_view *v), void *userdata);
