/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* What the files of this station share, and nobody else includes
 *
 *      attribute.c ── record ──┬─▶ sideband.c   who lives, what is mapped
 *                              ├─▶ charge.c     what was counted, for whom
 *                              ├─▶ weigh.c      how much time it stands for
 *                              └─▶ walk.c       where: frames of a stack ─▶ sink
 *                                   waiting.c   … or later, when the copied stack is unwound
 *      census.c   what /proc says of one process, or all
 *      exec.c     … and of one that execs, at once
 *      owner.c    whose a process is, and what becomes of its samples when that changes
 *      missed.c   … and of one whose exec's record was lost
 */

#include "daemon/attribute/attribute.h"
#include "daemon/attribute/delta.h"
#include "daemon/attribute/kernel_map.h"
#include "daemon/attribute/rights.h"

/* Tasks that ended lately and are still sampled: the kernel says EXIT, and then takes the memory
 * of the process apart. Found by tid modulo this; a collision only costs the samples of that. */
#define ENDED_SLOTS 4096
#define ENDED_NS                                                                                   \
	5000000000u /* taking 100 GB apart takes seconds; tids come again later than that */

/* Between the stamp of a task's start and its FORK record, and between the two clocks' readings. */
#define START_SLACK_NS 10000000u

/* Processes whose arguments were not there yet when their exec was handled. */
#define REREAD_MAX 4096

/* Execs that were heard of at once and have not come through the merge: of a quarter of a second,
 * 4 KiB each at most. Few enough to be searched one by one. Beyond it, as if not heard of. */
#define EXECS_MAX 1024

/* What an exec left in /proc. */
struct exec_text {
	char *argv; /* as in struct task; NULL: not read */
	uint32_t n_argv;
	struct rights rights;
	bool has_rights; /* they were read */
	bool from_stack; /* not read there but copied by the kernel; then these count: */
	bool secure;     /* setuid and the like */
	uint32_t own_uid; /* as the process sees it, in its user namespace */
};

struct exec {
	pid_t pid;
	uint64_t time_ns;      /* of its record */
	uint64_t read_ns;      /* when the last look was over */
	uint64_t due_ns;       /* of the next look; UINT64_MAX: none, read or given up */
	uint32_t n_looks;      /* that were planned after the first */
	struct exec_text text;
	struct task *process;  /* whose record came while looks are due; NULL: not come */
	int hart;              /* of that record */
};

/* Frames found lately, by where they were looked for: 24 bytes each, 192 KB, which is what a core
 * has for itself. Most return addresses of a drain are in there. */
#define PLACES_KNOWN 8192u

struct known_place {
	uint64_t generation; /* of the space; 0: the kernel */
	uint64_t addr;       /* 0: none */
	struct frame *frame;
};

/* Files that were looked at in this drain, by id modulo this; a collision costs a call of the kernel. */
#define FILES_LOOKED 64u

/* Processes that await their exec: recordings' commands, TARGETS_MAX of each. */
#define AWAITED_MAX 256

struct awaited {
	pid_t pid;
	uint64_t seen_ns; /* when it was another program without a record of it; 0: it was not */
};

struct reread {
	struct task *process;
	int hart;
};

/* Copied stacks under way; with the smallest stacks NAMER_UNWIND_BYTES_MAX comes later than this.
 */
#define WAITING_MAX 16384

/* Folders of cgroups walked at the start; a large container host has some thousands. */
#define CGROUP_DIRS_MAX 20000
#define CGROUP_DEPTH_MAX 32

/* Source: Documentation/admin-guide/sysctl/kernel.rst, perf_event_max_stack. */
#define STACK_DEPTH_DEFAULT 127

/* What the next sample of one event on one hart stands for. */
struct stand {
	uint64_t ran_ns;       /* that readings say somebody ran since the last one */
	bool unsure;           /* there were switches that no reading told of */
	uint64_t throttled_ns; /* when the kernel began to keep it silent; 0: it does not */
	uint64_t silent_ns;    /* for how long it did since the last one */
};

struct waiting;

struct attribute {
	struct attribute_options o;
	struct kernel_map kernel;
	struct delta_table deltas;
	struct file *unknown;    /* FILE_UNKNOWN, once needed */
	struct waiting *waiting; /* uthash by ticket */
	uint64_t last_ticket;
	struct task **ended;  /* ENDED_SLOTS */
	struct task **exited; /* per hart: who ended there last */
	int *leader_of;       /* per session event: the sampling event of its group, as last seen */
	enum rung *rung_of;   /* likewise */
	struct stand *stand;  /* by hart and session event */
	struct known_place *known; /* PLACES_KNOWN */
	const struct file *looked[FILES_LOOKED]; /* whether they were rewritten */
	struct reread *reread; /* REREAD_MAX */
	size_t n_reread;
	struct awaited *awaited; /* AWAITED_MAX, in no order */
	size_t n_awaited;
	struct exec *exec; /* EXECS_MAX, in no order */
	size_t n_execs;
	uint64_t exec_due_ns; /* of the next look; UINT64_MAX: none */
	struct task **watched; /* n_watched sampled processes of users, the longest ago first */
	size_t n_watched, size_watched;
	uint64_t checked_ns; /* when their rights were last read again */
	struct login_groups logins;
	uint32_t max_stack;
	uint64_t tick_ns, suspended_ns;
	int cgroup_root_fd; /* of the hierarchy whose ids perf gives; -1: none mounted */
	bool cgroup_root_is_v1;
};

static inline void lose(struct attribute *a, int hart, enum loss loss, uint64_t n)
{
	if (a->o.lost)
		a->o.lost[hart][loss] += n;
}

/* --- sideband.c ------------------------------------------------------------------------------- */

int sideband_mmap(struct attribute *a, const struct record *r, int hart);
int sideband_comm(struct attribute *a, const struct record *r, int hart);
int sideband_fork(struct attribute *a, const struct record *r, int hart);
int sideband_exit(struct attribute *a, const struct record *r, int hart);

/* Enter an executable mapping of the task's process, seen at time_ns. Losses are counted. 0 or
 * -errno. */
int sideband_map(struct attribute *a, struct task *task, const struct record_mmap *m,
	uint64_t time_ns, int hart);

/* The task that a record is about, lately ended ones included; one that we never heard of is looked
 * for in /proc, and added without a name where it is not there. *ret_task is NULL for idle, and
 * where there is no room. 0 or -errno. */
int sideband_task(struct attribute *a, const struct record *r, int hart, struct task **ret_task);

/* Same task, though one of the two times may come from /proc's ticks? */
bool sideband_same_start(const struct attribute *a, const struct task *task, uint64_t time_ns);

/* The process became another program: what that leaves nothing of is dropped. */
void sideband_exec(struct attribute *a, struct task *process, uint64_t time_ns, int hart);

/* Deliver what is pending and take the task out of the live ones. */
void sideband_end(struct attribute *a, struct task *task, uint64_t time_ns, int hart);

/* Give a new process what a process has that goes on in it, by fork or otherwise. 0 or -ENOMEM. */
int sideband_inherit(struct task *child, const struct task *parent);

/* --- census.c --------------------------------------------------------------------------------- */

/* What /proc says of one process and its threads: adds them, or fills in what is not known yet.
 * ret_parent (may be NULL) is its parent's pid. 0, CENSUS_GONE, -errno. */
enum { CENSUS_GONE = 1, CENSUS_EMPTY };
int census_process(struct attribute *a, pid_t pid, pid_t *ret_parent);

/* Read arguments and owner of a process that exec'd; *process may become another task, as in
 * owner_set. 0; CENSUS_GONE; CENSUS_EMPTY: they are not in place yet, or it has ended and nobody
 * waited for it; -ENOMEM. */
int census_argv(struct attribute *a, struct task **process);
int census_exec(const struct attribute *a, pid_t pid, struct exec_text *ret_text);
/* Read whose it is. 0, RIGHTS_GONE. */
int census_rights(const struct attribute *a, pid_t pid, struct rights *ret_rights);
/* Is it another program than we know? By its file and its arguments; false where it is gone. */
bool census_is_other(const struct attribute *a, const struct task *process);
/* Take in name, owner, file and mappings of a process that exec'd unheard; *process may become another
 * task, as in owner_set. 0, CENSUS_GONE, -ENOMEM. */
int census_program(struct attribute *a, struct task **process);
/* Copy arguments (n bytes, NUL between them), cut at TASK_ARGV_BYTES_MAX. 0 or -ENOMEM. */
int census_argv_copy(const char *text, size_t n, char **ret_argv, uint32_t *ret_n_argv);

/* Open the root of the hierarchy whose ids perf gives; 0 also where there is none. */
void census_cgroup_root(struct attribute *a);
/* Name all cgroups. 0 or -errno. */
int census_cgroups(struct attribute *a);

/* --- owner.c ---------------------------------------------------------------------------------- */

/* It is known, by a reading that was over at read_ns, or by its exec's record (0), whose the
 * process is. What was sampled while it was another's stays apart: *process is then ended, and
 * another task of the same pid takes its place. 0 or -ENOMEM. */
int owner_set(
	struct attribute *a, struct task **process, const struct rights *rights, uint64_t read_ns);
/* Which groups users log in with, if that changed. 0 or -ENOMEM. */
int owner_read_logins(struct attribute *a);
/* It execs at time_ns: whose it is now is not known yet, unless owner_set says so. */
void owner_exec(struct task *process, uint64_t time_ns);
/* It was sampled for the first time since its rights were last read. */
void owner_watch(struct attribute *a, struct task *process);
/* Those that ended are not to be read again; a sweep need not keep them for it, also while nobody
 * asks whose the others are. */
void owner_forget_ended(struct attribute *a);
/* To be called for what is sampled, or counted, of a task. */
static inline void owner_sampled(struct attribute *a, struct task *task)
{
	struct task *process = task->process;

	process->sampled = true;
	if (!process->watched)
		owner_watch(a, process);
}

/* --- exec.c ----------------------------------------------------------------------------------- */

/* The record of an exec came: give the process what was read for it at once; *process as in
 * owner_set. True: given, or it will be when a look that is due finds it. False: ask /proc. */
bool exec_take(struct attribute *a, struct task **process, uint64_t time_ns, int hart);
/* Forget execs whose record has not come in time. */
void exec_expire(struct attribute *a, uint64_t now_ns);
/* Count a process whose arguments will not come, if they have not. */
void exec_lost(struct attribute *a, const struct task *process, int hart);
void exec_clear(struct attribute *a);

/* --- missed.c --------------------------------------------------------------------------------- */

/* The process awaits its exec, which must not be missed. Beyond AWAITED_MAX it may be. */
void missed_await(struct attribute *a, pid_t pid);
/* A record of that time, of another kind than its exec's, is about this process: has an exec that
 * was heard of before gone without its record? */
static inline bool missed_has(const struct task *process, uint64_t time_ns)
{
	return process->heard_ns > process->exec_ns && time_ns > process->heard_ns;
}
/* It has: the process is what it became. 0 or -ENOMEM. */
int missed_exec(struct attribute *a, struct task *process, int hart);
/* Records were lost by then: look for execs among them. 0 or -ENOMEM. */
int missed_look(struct attribute *a, uint64_t time_ns, int hart);
/* The same after a drain, where there is no other sign: a process that was another program at the
 * last drain, while none of its records said so, has missed its exec. 0 or -ENOMEM. */
int missed_drained(struct attribute *a, uint64_t now_ns);

/* --- charge.c --------------------------------------------------------------------------------- */

/* What the group of this sample or switch counted since its last reading; n_reads 0 where that is
 * not known. Must see every reading, also those of idle and of tasks that nobody asked for. */
int charge_delta(struct attribute *a, const struct record *r, int hart, struct delta *ret_delta);
/* Add to what the task has pending. 0 or -ENOMEM. */
int charge_pending(struct attribute *a, struct task *task, const struct delta *d);
/* Move what the task has pending of this record's group into the attribution. */
void charge_take(struct attribute *a, struct task *task, const struct record_sample *s,
	struct attribution *ret_attribution);
/* Sink all that the task has pending, as attributions without a sample. */
void charge_flush(struct attribute *a, struct task *task, uint64_t time_ns, int hart);

/* --- weigh.c ---------------------------------------------------------------------------------- */

/* A reading of a group ends a stretch in which somebody ran who is wanted. */
void weigh_stretch(struct attribute *a, const struct record *r, int hart, const struct delta *d);
/* The time in ns that a sample stands for; the next one begins anew. d is its own delta, which
 * weigh_stretch has had. */
uint64_t weigh_take(struct attribute *a, const struct record *r, int hart, const struct delta *d);
/* The kernel keeps the record's event silent from now on, or no more. */
void weigh_throttle(struct attribute *a, const struct record *r, int hart);
void weigh_unthrottle(struct attribute *a, const struct record *r, int hart);

/* --- walk.c ----------------------------------------------------------------------------------- */

struct walk {
	struct attribute *a;
	struct task *task;
	int hart;
	struct frame *frame[STACK_FRAMES_MAX];
	uint32_t n_frames;
	bool truncated;
	bool has_user; /* the innermost user frame has been there */
	bool ended;    /* a caller was found in no code: the rest is left out */
	bool kernel_only; /* leave out user frames, but keep the innermost's address */
	uint64_t user_ip; /* 0: none seen */
};

/* Add the frames of a sample's callchain, or of its ip alone. 0 or -errno. */
int walk_chain(struct walk *w, const struct record_sample *s);
/* Add the frame of one user address. 0 or -errno. */
int walk_user(struct walk *w, uint64_t addr);
/* Add a frame, and have it named. file NULL: unknown. 0 or -errno. */
int walk_push(struct walk *w, struct file *file, uint64_t offset);

/* --- waiting.c -------------------------------------------------------------------------------- */

/* Send the sample's copied stack to be unwound; w holds its kernel frames. Where that cannot be,
 * the leaf goes to the sink at once. 0 or -errno. */
int waiting_add(struct walk *w, const struct record *r, struct attribution *attribution);
void waiting_clear(struct attribute *a);

/* Look at all that waits, for a sweep. */
struct waiting_view {
	const struct attribution *attribution;
	const struct frame *leaf; /* NULL: none */
	struct frame *const *frame;
	uint32_t n_frames;
};
void waiting_each(const struct attribute *a,
	void (*each)(void *userdata, const struct waiting_view *v), void *userdata);

/* Hand to the sink, with the frames of the walk. */
void attribute_sink(struct walk *w, struct attribution *attribution);
