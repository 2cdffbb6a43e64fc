/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Shared by the files of this room only
 *
 *      attribute.c ── record ──┬─▶ sideband.c   live tasks and mappings
 *                              ├─▶ charge.c     counts, charged to tasks
 *                              ├─▶ weigh.c      the time that a sample represents
 *                              ├─▶ throttle.c   … and what the kernel throttled away
 *                              └─▶ stack_walk.c where: frames of a stack ─▶ sink
 *                                   waiting.c   … or later, when the copied stack is unwound
 *                                   generated.c code that the kernel generates
 *                                   place_cache.h  frames of addresses seen before
 *      life.c         how a task begins and ends; mapping.c: what is mapped in it; remapped.c: in place of its text
 *      owner.c        the owner of a process, and its samples when the owner changes
 *      job.c          labels, given by requests and read from the environment
 *      exec_argv.c    arguments of a process that execs, read at once (exec_table.h)
 *      lost_exec.c    execs whose record was lost
 *      proc.c         reads one process in /proc; census.c: takes what was read
 *      census_scan.c  all processes, or some with their descendants; unanswered.h: those that did not answer
 *      cgroup_root.c  control groups by id and path
 *
 * The state of each file is a struct that its .c defines, at its head: only that file can touch it. A function
 * whose first parameter is such a struct, or the options, uses nothing else of the room. A struct that has no function
 * to free it is plain memory.
 */

#include "daemon/attribute/attribute.h"
#include "daemon/attribute/delta.h"
#include "daemon/attribute/kernel_code.h"
#include "daemon/attribute/kernel_map.h"
#include "daemon/attribute/place_cache.h"
#include "daemon/attribute/proc_reader.h"
#include "daemon/attribute/rights.h"
#include "daemon/attribute/sweep.h"
#include "daemon/attribute/unanswered.h"

struct attribute {
	/* from attribute_new, with defaults filled in; constant from then on */
	struct attribute_options o;
	struct intake *intake;               /* attribute.c */
	struct lives *lives;                 /* life.c */
	struct owners *owners;               /* owner.c */
	struct execs *execs;                 /* exec_argv.c */
	struct awaited_execs *awaited;       /* lost_exec.c */
	bool execs_apart;                    /* see attribute_execs_apart */
	struct charges *charges;             /* charge.c */
	struct sample_clocks *clocks;        /* weigh.c */
	struct throttles *throttles;         /* throttle.c */
	struct checked_files *checked_files; /* mapping.c */
	struct comparisons *comparisons;     /* remapped.c */
	struct kernel_map kernel;            /* kernel_map.h */
	struct generated *generated;         /* generated.c */
	struct place_cache *places;          /* place_cache.h */
	struct walks *walks;                 /* stack_walk.c */
	struct waits *waits;                 /* waiting.c */
	struct unanswered *unanswered;       /* unanswered.h */
	struct census *census;               /* census_scan.c; NULL: no scan is under way */
	struct cgroup_root *cgroups;         /* cgroup_root.c */
};

static inline void lose(const struct attribute_options *o, int hart, enum loss loss, uint64_t n)
{
	if (o->lost)
		o->lost[hart][loss] += n;
}

/* The stream that leads the group of a record's event; NULL: none. */
static inline const struct stream *group_leader(
	const struct attribute_options *o, const struct record *r)
{
	return r->stream ? stream_table_find(o->streams, r->stream->leader) : NULL;
}

/* The number of groups: one for each hart and event of the session, at least 1. */
static inline size_t n_groups(const struct attribute_options *o)
{
	return (o->n_harts > 0 ? (size_t)o->n_harts : 1) *
	       (o->n_events > 0 ? (size_t)o->n_events : 1);
}

/* The index of a leader's group on a hart, below n_groups; -1: it is no event of the session. */
static inline ptrdiff_t group_index(
	const struct attribute_options *o, const struct stream *leader, int hart)
{
	if (!leader || leader->event < 0 || leader->event >= o->n_events)
		return -1;
	return (ptrdiff_t)hart * o->n_events + leader->event;
}

/* --- proc.c ----------------------------------------------------------------------------------- */

/* Does no process of this machine have this pid? One system call. */
bool proc_is_gone(pid_t pid);
/* Does the process have a folder in /proc? Does not wait. */
bool proc_is_there(const struct attribute_options *o, pid_t pid);
/* Read the wanted parts (PROC_*) of a process. 0, and the caller clears *ret_view; PROC_GONE; PROC_SILENT,
 * which is counted; -ENOMEM. */
int proc_read(
	const struct attribute_options *o, pid_t pid, unsigned wants, struct proc_view *ret_view);
/* Read the owner of a process. 0; RIGHTS_GONE; PROC_SILENT: it lives, and did not answer. */
int proc_rights(const struct attribute_options *o, pid_t pid, struct rights *ret_rights);
/* Does the process have the bytes of its program, from that offset on, in the mapping m? Pages all over it are
 * compared. PROC_SAME; PROC_OTHER; another outcome of proc_read: not known. */
int proc_compare(const struct attribute_options *o, pid_t pid, const struct map *m);

/* --- life.c ----------------------------------------------------------------------------------- */

/* Slots of ended tasks, by tid modulo this. In a collision the later task takes the slot, and samples of the earlier
 * one's teardown are lost. */
#define ENDED_SLOTS 4096
/* While a user has at most this many tasks, the user's dead threads stay in the table until a
 * sweep, even if never sampled: a program may report many threads that died (loops/feed_task.c). */
#define DEAD_KEPT 32768u
struct lives *life_new(const struct attribute_options *o);

/* The time at which a task began, by the ticks in /proc. */
uint64_t life_start_ns(const struct lives *l, uint64_t start_ticks);
/* Is it the same task? One of the two times may come from /proc's ticks. */
bool life_same_start(const struct lives *l, const struct task *task, uint64_t time_ns);
/* A task inherits its parent's properties; a process also inherits its mappings and program. 0 or
 * -ENOMEM. */
void life_inherit_task(struct task *child, const struct task *parent);
int life_inherit_process(struct task *child, const struct task *parent);
/* End the process's task at that time, with its samples. Another task continues the process and
 * inherits from it; the same goes for each of its other threads that has counts. Without room,
 * *process stays as it is. O(threads). 0 or -ENOMEM. */
int life_continue(struct attribute *a, struct task **process, uint64_t time_ns, int hart);
/* Begin another task of the same thread for later samples, since its name, cgroup or job changes.
 * *task stays as it is without room for that task and, if it is a leader, for its other threads. 0
 * or -ENOMEM. */
int life_separate(struct attribute *a, struct task **task, uint64_t time_ns, int hart);
/* The same, but only if the task or a thread of its process has counts, and at most TASK_PASTS_MAX times. */
int life_change(struct attribute *a, struct task **task, uint64_t time_ns, int hart);
/* The process execs: earlier counts stay with the earlier program, with its name and arguments. The next program may
 * have TASK_PASTS_MAX names of its own. *process as in life_separate. 0 or -ENOMEM. */
int life_leave(struct attribute *a, struct task **process, uint64_t time_ns, int hart);
/* The task to which the thread's counts go now: the task itself, or the last one that continues
 * it. */
struct task *life_now(const struct task_table *t, struct task *task);
/* The task of that pid and tid that ended less than 5 s before; NULL: none. */
struct task *life_find_ended(const struct lives *l, pid_t pid, pid_t tid, uint64_t time_ns);
/* Deliver pending counts and remove the task from the live ones. */
void life_end(struct attribute *a, struct task *task, uint64_t time_ns, int hart);
/* Note that the task's EXIT is the last one on the hart: later records without a task
 * (RECORD_TID_GONE) are about this task. */
void life_set_exited(struct lives *l, int hart, struct task *task);
/* The task of the last EXIT on the hart; NULL: none. */
struct task *life_exited(const struct lives *l, int hart);
/* Forget tasks that ended so long ago that no record of them can come. */
void life_forget_ended(struct lives *l, uint64_t now_ns);
void life_mark(const struct lives *l, struct sweep *s);

/* --- mapping.c -------------------------------------------------------------------------------- */

struct checked_files *mapping_new(void);
/* Check again whether files were rewritten: a drain ended, or files were freed. */
void mapping_recheck(struct checked_files *c);
/* Enter an executable mapping of the task's process, seen at time_ns. Losses are counted. 0 or
 * -errno. */
int mapping_enter(struct attribute *a, struct task *task, const struct record_mmap *m,
	uint64_t time_ns, int hart);

/* --- remapped.c ------------------------------------------------------------------------------- */

/* Comparisons of a program's text with memory mapped in its place: 50 us each, while the loop waits. The limit is
 * for all users between two drains; each user has a quota of it. */
#define TEXTS_COMPARED_MAX 64u

struct comparisons *remapped_new(void);
struct comparisons *remapped_free(struct comparisons *c);
/* Enter new executable memory without a file as the text of the process's program, if it replaced a part of that
 * text in place. REMAPPED_DONE; 0: it is something else; -ENOMEM. */
enum { REMAPPED_DONE = 1 };
int remapped_enter(struct attribute *a, struct task *process, const struct record_mmap *m);
/* Likewise for memory that /proc showed between parts of the program's text, with at most
 * TEXTS_FILLED_MAX comparisons. 0, SPACE_FULL, -ENOMEM. */
int remapped_fill(const struct attribute_options *o, struct task *process);
/* Restore each user's full quota of comparisons: a drain ended. */
void remapped_drained(struct comparisons *c);
/* Comparisons since the last drain. Exported for tests. */
uint64_t remapped_n_compared(const struct comparisons *c);

/* --- sideband.c ------------------------------------------------------------------------------- */

int sideband_mmap(struct attribute *a, const struct record *r, int hart);
int sideband_comm(struct attribute *a, const struct record *r, int hart);
int sideband_fork(struct attribute *a, const struct record *r, int hart);
int sideband_exit(struct attribute *a, const struct record *r, int hart);

/* The task that a record is about, including recently ended ones; an unknown task is looked up in
 * /proc, and added without a name if it is not there. *ret_task is NULL for idle, and if there is
 * no room. 0 or -errno. */
int sideband_task(struct attribute *a, const struct record *r, int hart, struct task **ret_task);

/* Drop all data that does not survive an exec: the process became another program. */
void sideband_exec(struct attribute *a, struct task *process, uint64_t time_ns, int hart);

/* --- census.c --------------------------------------------------------------------------------- */

/* Read one process and its threads from /proc: add them, or fill in what is not known yet. Its
 * mappings are read once a second at most, and at once after an exec. ret_parent (may be NULL) is the parent's pid.
 * ret_children (NULL: they are not read) is to be freed by the caller. 0; PROC_GONE; PROC_SILENT: it is read again
 * later; -errno. */
struct census_children {
	bool listed; /* the kernel lists children */
	pid_t *pid;  /* processes that its threads started; NULL: none */
	size_t n;
};
int census_read(struct attribute *a, const struct unanswered_pid *p, pid_t *ret_parent,
	struct census_children *ret_children);
/* The same without children, for the first time. */
int census_process(struct attribute *a, pid_t pid, pid_t *ret_parent);
/* The same, also for its ancestors that are not known. */
int census_kin(struct attribute *a, pid_t pid);
/* Set the parent of a process whose FORK was not seen. The process takes the parent's labels. */
void census_set_parent(struct task *process, struct task *parent);
/* Is the process wanted as a descendant of a wanted task? */
bool census_is_kin_of_wanted(const struct task *process);

/* Read arguments and owner of a process that exec'd; *process may become another task, as in
 * owner_set. 0; PROC_GONE; PROC_EMPTY: they are not in place yet, or the process is a zombie; PROC_SILENT;
 * -ENOMEM. */
int census_argv(struct attribute *a, struct task **process);
/* Read name, owner, file and mappings of a process whose exec was not reported; *process may become
 * another task, as in owner_set. 0, PROC_GONE, PROC_SILENT, -ENOMEM. */
int census_program(struct attribute *a, struct task **process);
/* Name the cgroup that the process is in now. 0 or -ENOMEM. */
int census_cgroup(struct attribute *a, struct task *process);

/* --- census_scan.c ---------------------------------------------------------------------------- */

/* Drop a scan; NULL is fine. Returns NULL. */
struct census *census_free(struct census *c);
/* Read again the processes that did not answer. 0 or -errno. */
int census_retry(struct attribute *a, uint64_t now_ns);

/* --- cgroup_root.c ---------------------------------------------------------------------------- */

/* Open the root of the hierarchy whose ids perf gives, next to the folder proc; NULL: no memory. */
struct cgroup_root *cgroup_root_new(const char *proc);
struct cgroup_root *cgroup_root_free(struct cgroup_root *c);
/* Name all cgroups. 0 or -errno. */
int cgroup_root_scan(const struct cgroup_root *c, struct task_table *tasks);
/* The id of a path of that hierarchy: the inode of its folder, if perf's ids are of that hierarchy; else a
 * number of our own with the highest bit set, which no kernel inode has. */
uint64_t cgroup_root_id(
	const struct cgroup_root *c, enum scan_hierarchy hierarchy, const char *path);
/* Begin a sweep. */
void cgroup_root_sweep_begin(struct cgroup_root *c);
/* Is the cgroup gone? Also false if this sweep does not check it: a sweep checks SWEEP_CGROUPS_MAX cgroups, and
 * sweeps check all of them in rotation, so that each one that is gone is found. */
bool cgroup_root_is_gone(struct cgroup_root *c, struct cgroup *cgroup);
void cgroup_root_sweep_end(struct cgroup_root *c);

/* --- owner.c ---------------------------------------------------------------------------------- */

/* proc: the passwd file is found next to it. 0 or -ENOMEM. */
int owner_new(const char *proc, struct owners **ret_owners);
struct owners *owner_free(struct owners *w);

/* Set the owner of the process, known by a reading that ended at read_ns, or by its exec's record
 * (0). Samples from before a change of owner stay separate: *process is then ended, and a new task
 * of the same pid replaces it. 0 or -ENOMEM. */
int owner_set(
	struct attribute *a, struct task **process, const struct rights *rights, uint64_t read_ns);
/* The process execs at time_ns, and continues as another task: its earlier samples belong to nobody if its owner was
 * never read. */
void owner_leave(struct task *before, uint64_t time_ns);
/* The process execs at time_ns: its owner is unknown until owner_set. */
void owner_exec(struct task *process, uint64_t time_ns);
/* Execs may have been lost up to that time: no owner that was learned before is sure. */
void owner_lost(struct attribute *a, uint64_t time_ns);
/* The process is sampled: read its owner if that is in doubt. If it has another one, or is gone, it belongs to
 * nobody. */
void owner_confirm(struct attribute *a, struct task *process);
/* The process was sampled for the first time since its rights were last read. */
void owner_watch(struct attribute *a, struct task *process);
/* Stop watching processes that ended, so that a sweep need not keep them. */
void owner_forget_ended(struct attribute *a);
void owner_mark(const struct owners *w, struct sweep *s);
/* Processes whose rights will be read again. Exported for tests. */
size_t owner_n_watched(const struct owners *w);
/* Call for each sample or count of a task. */
static inline void owner_sampled(struct attribute *a, struct task *task)
{
	struct task *process = task->process;

	task->used = true;
	process->sampled = true;
	owner_confirm(a, process);
	if (!process->watched)
		owner_watch(a, process);
}

/* --- job.c ------------------------------------------------------------------------------------ */

/* May its environment give the process labels that it does not have? NULL: a process that is not known. */
bool job_wants(const struct attribute_options *o, const struct task *process);
/* Give the process the labels from its environment, if the environment was read, the process was given no
 * labels, and it belongs wholly to a user. 0 or -ENOMEM. */
int job_read(struct attribute *a, struct task **process, const struct proc_view *v);

/* --- exec_argv.c ------------------------------------------------------------------------------ */

struct execs *exec_argv_new(void);
struct execs *exec_argv_free(struct execs *x);
/* The record of an exec came: give the process its arguments and owner, those that were read early or else
 * those in /proc now. If they are not in place yet, they are read again later. */
void exec_argv_take(struct attribute *a, struct task *process, uint64_t time_ns, int hart);
/* A drain ended: read those arguments again that were not in place when their exec came. */
void exec_argv_reread(struct attribute *a, uint64_t now_ns);
/* Forget execs whose record has not come in time. */
void exec_argv_expire(struct execs *x, uint64_t now_ns);
void exec_argv_mark(const struct execs *x, struct sweep *s);
/* Reported execs whose record has not come. Exported for tests. */
size_t exec_argv_n(const struct execs *x);
/* The pid and time of the i-th reported exec, as they were reported. Exported for tests. */
pid_t exec_argv_at(const struct execs *x, size_t i, uint64_t *ret_time_ns);

/* --- lost_exec.c ------------------------------------------------------------------------------ */

struct awaited_execs *lost_exec_new(void);
/* Watch for the next exec of the process, which must not be missed. Beyond a limit of processes it
 * may be. */
void lost_exec_await(struct attribute *a, pid_t pid);
/* Was the record of the process's reported exec lost? Yes, if another record of the process comes
 * first and has a later time, time_ns. */
static inline bool lost_exec_shows(const struct task *process, uint64_t time_ns)
{
	return process->reported_exec_ns > process->exec_ns && time_ns > process->reported_exec_ns;
}
/* Handle an exec whose record was lost: take the process as it is now. 0 or -ENOMEM. */
int lost_exec_take(struct attribute *a, struct task *process, int hart);
/* Look for execs among the records that were lost up to that time. 0 or -ENOMEM. */
int lost_exec_look(struct attribute *a, uint64_t time_ns, int hart);
/* The same after a drain, for sessions without another sign: a process that ran another program
 * at the last drain, without a record of it, has missed its exec. 0 or -ENOMEM. */
int lost_exec_drained(struct attribute *a, uint64_t now_ns);
/* Processes that await their exec, and when the first of them was seen running another program. Exported for tests. */
size_t lost_exec_n_awaited(const struct awaited_execs *w);
/* Exported for tests. */
uint64_t lost_exec_other_ns(const struct awaited_execs *w);

/* --- charge.c --------------------------------------------------------------------------------- */

struct charges *charge_new(const struct attribute_options *o);
struct charges *charge_free(struct charges *c);
/* Records of the hart were lost: counts since then cannot be charged to a task. */
void charge_forget_hart(struct charges *c, int hart);
/* The task is gone. */
void charge_forget_task(struct charges *c, pid_t tid);
/* The counts of this sample's or switch's group since its last reading; n_reads 0 if not known.
 * Must see every reading, including those of idle and of unwanted tasks. */
int charge_delta(struct charges *c, const struct record *r, int hart, struct delta *ret_delta);
/* The same for a record of STREAM_SWITCH_SUMS: the counts of its own task. */
void charge_sums(struct charges *c, const struct record *r, int hart, struct delta *ret_delta);
/* Return 1 if the sample's group is not cut at switches, so that its counts are charged to no task;
 * else 0. */
uint64_t charge_uncounted(const struct record *r, const struct delta *d);
/* Add to the task's pending counts. 0 or -ENOMEM. */
int charge_pending(struct charges *c, struct task *task, const struct delta *d);
/* Move the task's pending counts of this record's group into the attribution. */
void charge_take(struct charges *c, struct task *task, const struct record_sample *s,
	struct attribution *ret_attribution);
/* Sink all of the task's pending counts, as attributions without a sample. */
void charge_flush(struct charges *c, struct task *task, uint64_t time_ns, int hart);

/* --- weigh.c ---------------------------------------------------------------------------------- */

struct sample_clocks *weigh_new(const struct attribute_options *o);
/* End a stretch in which a wanted task ran, at a reading of its group. */
void weigh_stretch(
	struct sample_clocks *c, const struct record *r, int hart, const struct delta *d);
/* Take the time for which tasks ran from a record of STREAM_SWITCH_SUMS. */
void weigh_sums(struct sample_clocks *c, const struct record *r, int hart);
/* Add time in the record's group: time that tasks ran, or time for which the kernel throttled a
 * wanted task. */
void weigh_ran(struct sample_clocks *c, const struct record *r, int hart, uint64_t ns);
void weigh_throttled(struct sample_clocks *c, const struct record *r, int hart, uint64_t ns);
/* The time in ns that a sample represents; the next one starts at 0. d is its own delta, which was
 * passed to weigh_stretch. */
uint64_t weigh_take(
	struct sample_clocks *c, const struct record *r, int hart, const struct delta *d);

/* --- throttle.c ------------------------------------------------------------------------------- */

struct throttles *throttle_new(const struct attribute_options *o);
/* The kernel begins or stops throttling the record's event. */
void throttle_begin(struct attribute *a, const struct record *r, int hart);
void throttle_end(struct attribute *a, const struct record *r, int hart);
/* Take a reading of a group, whose delta is d: set d->throttled_ns, and take out of d the time that belongs to
 * a task that was throttled before another task was read. Must see every reading. 0 or -ENOMEM. */
int throttle_cut(struct attribute *a, const struct record *r, int hart, struct delta *d);
/* Forget the throttling on this hart: records were lost, so it is not known. */
void throttle_forget_hart(struct attribute *a, int hart);

/* --- generated.c ------------------------------------------------------------------------------ */

struct generated *generated_new(void);
struct generated *generated_free(struct generated *g);
/* The kernel generated code, or dropped it. 0 or -ENOMEM. */
int generated_change(struct attribute *a, const struct record *r);
/* The piece of generated code at that address at the time of the sample. NULL: none. */
const struct kernel_code_piece *generated_find(
	struct attribute *a, uint64_t addr, uint64_t time_ns);

/* --- stack_walk.c ----------------------------------------------------------------------------- */

struct walks *stack_walk_new(const char *proc);
/* Mark the files that walks need later. */
void stack_walk_mark(const struct walks *w, struct sweep *s);

/* A stack in the making, for a sample of that task, hart and time. */
struct stack_walk {
	struct attribute *a;
	struct task *task;
	int hart;
	struct frame *frame[STACK_FRAMES_MAX];
	uint32_t n_frames;
	bool truncated;
	bool is_offcpu;   /* its row alone says what is missing: losses are of samples */
	bool has_user;    /* the innermost user frame was seen */
	bool ended;       /* a caller was outside all code: further callers are left out */
	bool kernel_only; /* leave out user frames, but keep the innermost address */
	uint64_t user_ip; /* 0: none seen */
	uint64_t time_ns; /* of the sample; 0: now */
};

static inline void stack_walk_lose(const struct stack_walk *w, enum loss cause)
{
	if (!w->is_offcpu)
		lose(&w->a->o, w->hart, cause, 1);
}

/* Add the frames of a sample's callchain, or of its ip alone. 0 or -errno. */
int stack_walk_chain(struct stack_walk *w, const struct record_sample *s);
/* Add the frame of one user address. 0 or -errno. */
int stack_walk_user(struct stack_walk *w, uint64_t addr);
/* Add a frame, and have it named. file NULL: unknown. 0 or -errno. */
int stack_walk_push(struct stack_walk *w, struct file *file, uint64_t offset);
/* Has the walk reached the start of the stack? */
bool stack_walk_has_start(const struct stack_walk *w);
/* A walk by tables ended early at that address. The kernel followed frame pointers, also onto the stack that a program
 * changed for another, as Go's runtime does: add what its chain has beyond that address, if that leads to the start of
 * the stack; else it may have gone wrong anywhere. 0 or -errno. */
int stack_walk_go_on(struct stack_walk *w, const struct record_sample *s, uint64_t address);
/* Pass the attribution to the sink, with the frames of the walk. */
void stack_walk_sink(struct stack_walk *w, struct attribution *attribution);

/* --- waiting.c -------------------------------------------------------------------------------- */

/* Copied stacks being unwound; with the smallest stacks this limit is reached before
 * NAMER_UNWIND_BYTES_MAX. */
#define WAITING_MAX 16384

struct waits *waiting_new(void);
struct waits *waiting_free(struct waits *w);
/* Send the sample's copied stack to be unwound; w holds its kernel frames. If that fails, the leaf
 * goes to the sink at once. 0 or -errno. */
int waiting_add(struct stack_walk *w, const struct record *r, struct attribution *attribution);
/* Mark tasks and frames of all waiting samples. */
void waiting_mark(const struct waits *w, struct sweep *s);
/* Visit the cgroups of all waiting samples. */
void waiting_each_cgroup(
	const struct waits *w, void (*each)(void *userdata, uint64_t id), void *userdata);
