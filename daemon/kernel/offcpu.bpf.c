/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/* An iterator over all threads, which writes where those that have no hart wait
 *
 * One read of it is a look. A thread that did not run since the last look has a short record: its switches
 * are counted, and its stack cannot have changed. Of others it writes the kernel's stack, the registers with which they
 * left user mode, and what is above their stack pointer.
 *
 * The iterator may sleep, so a page that is not in memory is read. No lock is held here; a thread whose memory is
 * locked for writing (in a long exec or mmap) has a record without its stack. The kernel drops a thread that did not
 * fit into the reader's page, and comes again with it, so what is remembered of it changes last.
 */

#include "daemon/kernel/offcpu_thread.h"

/* Source: include/linux/sched.h of Linux 6.12; before 5.14 the field is `state`. */
#define TASK_UNINTERRUPTIBLE 0x2u
#define TASK_STOPPED_OR_TRACED 0xcu
#define TASK_NOLOAD 0x400u
#define TASK_FROZEN 0x8000u
/* Source: include/linux/sched/jobctl.h of Linux 6.12 */
#define JOBCTL_TRAP_FREEZE (1ul << 23)
/* Source: include/linux/rwsem.h and kernel/locking/rwsem.c of Linux 6.12 */
#define RWSEM_WRITER_LOCKED 1
/* Stacks for which there is room, however large they are. */
#define STACKS_SURE (OFFCPU_LOOK_STACKS_MAX / OFFCPU_STACK_MAX)

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct id {
	__u32 val;
} KERNELS;

struct cred {
	struct id uid;
} KERNELS;

struct rw_semaphore {
	struct {
		long counter;
	} count;
} KERNELS;

struct mm_struct {
	struct rw_semaphore mmap_lock;
} KERNELS;

struct inode {
	unsigned short i_mode;
} KERNELS;

struct file {
	struct inode *f_inode;
} KERNELS;

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
} KERNELS;

struct files_struct {
	struct fdtable *fdt;
} KERNELS;

struct bpf_iter_meta {
	void *seq;
	__u64 session_id, seq_num;
} KERNELS;

/* Source: struct bpf_iter__task in kernel/bpf/task_iter.c of Linux 6.12 */
struct iter {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

/* The record being made. Only one reader looks at a time. */
struct room {
	struct offcpu_record record;
	__u8 stack[OFFCPU_STACK_MAX];
	struct user_regs user;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct room);
} rooms SEC(".maps");

/* Processes whose stacks are not copied: a copy of one took too long, since what it reads is where its
 * owner decides when it comes (FUSE, userfaultfd). */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, __u64);
	__type(value, __u8);
} barred SEC(".maps");

/* The type of the file with that descriptor (offcpu_head.file); 0: none. */
static __always_inline __u8 file_type(struct task_struct *task, __u64 fd)
{
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	struct file *file = NULL;

	if (!table || fd >= BPF_CORE_READ(table, max_fds))
		return 0;
	if (bpf_probe_read_kernel(&file, sizeof(file), BPF_CORE_READ(table, fd) + fd) || !file)
		return 0;
	return (__u8)(BPF_CORE_READ(file, f_inode, i_mode) >> 12);
}

/* The kernel leaves out the scheduler's own functions, which all that wait have innermost. */
static __always_inline void take_chain(struct offcpu_record *r, struct task_struct *task)
{
	__builtin_memset(r->chain, 0, sizeof(r->chain));
	const long n = bpf_get_task_stack(task, r->chain, sizeof(r->chain), 0);
	r->head.n_chain = n > 0 ? (__u8)((unsigned long)n / 8) : 0;
}

/* All processes of an ordinary user are barred, or the user continues with the next one. */
static __always_inline __u64 who(struct task_struct *task)
{
	const __u64 uid = BPF_CORE_READ(task, real_cred, uid.val);

	return uid ? OFFCPU_USER | uid : (__u64)task->tgid;
}

/* Whole pages as far as there are some. Returns bytes, a multiple of 8. */
static __always_inline __u32 take_stack(
	struct room *r, struct offcpu_state *state, struct task_struct *task, __u64 sp)
{
	__u32 n = 0;

	state->began_ns = bpf_ktime_get_ns();
	state->copying = who(task);
	for (__u32 i = 0; i <= COPIES; i++) {
		__u32 bytes = COPY_BYTES - (__u32)((sp + n) & (COPY_BYTES - 1));
		if (n > OFFCPU_STACK_MAX - COPY_BYTES)
			break;
		if (bytes > COPY_BYTES)
			break;
		if (bpf_copy_from_user_task(r->stack + n, bytes, (const void *)(sp + n), task, 0))
			break;
		n += bytes;
	}
	state->copying = 0;
	return n & ~7u;
}

static __always_inline _Bool is_barred(struct task_struct *task)
{
	const __u64 key = who(task);

	return bpf_map_lookup_elem(&barred, &key) != NULL;
}

/* Kernels for a single hart do not have the field: the one that runs is the reader. */
static __always_inline _Bool is_running(struct task_struct *task)
{
	return bpf_core_field_exists(task->on_cpu) && task->on_cpu;
}

/* What a thread did when our reader got its hart. Since then the reader has kept others from running there, and those from
 * working on whom they would have woken: of threads that wake each other ten thousand times a second, one in three was
 * found in another state than this. */
enum {
	RUNS,
	WAITS,
	READY,
	WAITED, /* it runs by now: where it waited is known only if it was found there before */
};

/* Both times are of the clocks of harts, which differ by less than a switch takes. Source: kernel/sched/stats.h and
 * update_curr in kernel/sched/fair.c of Linux 6.12. */
static __always_inline int did(struct task_struct *task, unsigned int doing)
{
	struct task_struct *reader = bpf_get_current_task_btf();
	const __u64 since = reader->sched_info.last_arrival;

	if (!bpf_core_field_exists(task->sched_info.last_queued) ||
		!bpf_core_field_exists(task->se.prev_sum_exec_runtime))
		return is_running(task) ? RUNS : doing == 0 ? READY : WAITS;
	if (is_running(task))
		return task->sched_info.last_arrival > since ? WAITED : RUNS;
	const __u64 queued = task->sched_info.last_queued;
	if (doing == 0 && queued == since && bpf_core_field_exists(task->thread_info.cpu) &&
		task->thread_info.cpu == reader->thread_info.cpu)
		return RUNS; /* the reader took its hart */
	if (doing == 0 && queued <= since)
		return READY;
	/* since then it went to sleep, and perhaps was woken; before, it had run for that long */
	const __u64 arrival = task->sched_info.last_arrival;
	const __u64 ran = task->se.sum_exec_runtime - task->se.prev_sum_exec_runtime;
	return arrival <= since && arrival + ran >= since ? RUNS : WAITS;
}

static __always_inline __u16 flags_of(struct task_struct *task, unsigned int doing, int what)
{
	__u16 flags = what == READY ? OFFCPU_RUNNABLE : 0;

	flags |= task->flags & PF_KTHREAD ? OFFCPU_KERNEL_THREAD : 0;
	flags |= BPF_CORE_READ_BITFIELD(task, in_iowait) ? OFFCPU_IN_DISK : 0;
	if (doing & (TASK_STOPPED_OR_TRACED | TASK_FROZEN))
		flags |= OFFCPU_IS_STOPPED;
	/* the kernel also sets `frozen` in a parent that waits for its vfork child */
	if (bpf_core_field_exists(task->frozen) && BPF_CORE_READ_BITFIELD(task, frozen) &&
		task->jobctl & JOBCTL_TRAP_FREEZE)
		flags |= OFFCPU_IS_STOPPED;
	return flags;
}

/* A long exec or mmap is under way. Not known of kernels for real time, whose lock is another: there the copy waits. */
static __always_inline _Bool is_locked(struct mm_struct *mm)
{
	return bpf_core_field_exists(mm->mmap_lock.count) &&
	       BPF_CORE_READ(mm, mmap_lock.count.counter) & RWSEM_WRITER_LOCKED;
}

/* Never 0, as of a thread without a record yet. */
static __always_inline __u64 told_key(
	struct task_struct *task, __u16 flags, const struct offcpu_state *state)
{
	const __u64 what = flags & (OFFCPU_RUNNABLE | OFFCPU_IS_STOPPED);

	return state->n_lost << 48 ^ ((task->nvcsw + task->nivcsw) << 4 | what | 1);
}

static __always_inline _Bool has_room(const struct offcpu_state *state)
{
	return state->stack_bytes + OFFCPU_STACK_MAX <= OFFCPU_LOOK_STACKS_MAX;
}

/* Threads come in the order of their numbers: where not all have room, each has the same chance. */
static __always_inline _Bool draw(struct offcpu_state *state)
{
	state->n_wanted++;
	return has_room(state) &&
	       (state->n_wanted_before <= STACKS_SURE ||
		       bpf_get_prandom_u32() % state->n_wanted_before < STACKS_SURE);
}

/* Is a full record of it due again, though it did not run since the last one? */
static __always_inline _Bool is_again(const struct offcpu_told *t, const struct offcpu_state *state)
{
	return ((t->tid ^ state->n_looks) & (OFFCPU_TELL_AGAIN - 1)) == 0;
}

/* The call that a thread of a program is in, and what is on its stack. */
static __always_inline void take_user(struct room *room, struct offcpu_state *state,
	struct task_struct *task, struct mm_struct *mm, _Bool is_drawn)
{
	struct offcpu_record *r = &room->record;
	__u64 sp = 0, argument = 0;

	if (bpf_probe_read_kernel(&room->user, sizeof(room->user), (void *)bpf_task_pt_regs(task)))
		return;
	take_registers(r, &room->user, &sp, &argument);
	if (r->head.syscall >= 0)
		r->head.file = file_type(task, argument);
	if (is_barred(task))
		return;
	if (!is_drawn || is_locked(mm))
		r->head.flags |= OFFCPU_NO_STACK;
	else
		r->head.n_stack = take_stack(room, state, task, sp);
}

static __always_inline int end_look(void *seq, struct offcpu_state *state)
{
	const struct offcpu_head end = {.flags = OFFCPU_END};

	state->is_looking = 0;
	bpf_seq_write(seq, &end, sizeof(end));
	return 0;
}

/* When it got a hart last; its switches, where the kernel does not say that. */
static __always_inline __u64 arrival_of(struct task_struct *task)
{
	return bpf_core_field_exists(task->sched_info.last_arrival) ? task->sched_info.last_arrival
								    : wait_of(task);
}

/* The look has reached that thread: if it sleeps, the end of this wait is to be recorded (wakers.bpf.c). */
static __always_inline void found(
	struct offcpu_told *t, const struct offcpu_state *state, __u32 wait, _Bool sleeps)
{
	t->look = (__u32)state->n_looks;
	t->n_early = 0;
	if (sleeps && t->woken != wait)
		t->open = wait;
}

/* cppcheck-suppress unknownMacro */
SEC("iter.s/task")
int on_thread(struct iter *it)
{
	struct task_struct *task = it->task;
	void *seq = it->meta->seq;
	const __u32 zero = 0;
	struct room *room = bpf_map_lookup_elem(&rooms, &zero);
	struct offcpu_state *state = bpf_map_lookup_elem(&states, &zero);

	if (!room || !state)
		return 0;
	if (it->meta->seq_num == 0) {
		state->n_looks++;
		state->stack_bytes = 0;
		state->n_wanted_before = state->n_wanted;
		state->n_wanted = 0;
		state->level = BPF_CORE_READ(bpf_get_current_task_btf(), thread_pid, level);
		state->is_looking = 1;
	}
	if (!task)
		return end_look(seq, state);

	/* threads of the kernel matter only where something uninterruptible holds them up */
	const unsigned int doing = task->__state, is_kernels = task->flags & PF_KTHREAD;
	if (task->exit_state || (is_kernels && doing != 0 &&
					(!(doing & TASK_UNINTERRUPTIBLE) || doing & TASK_NOLOAD)))
		return 0;
	const int what = did(task, doing);
	if (what == RUNS || task->tgid == (int)(bpf_get_current_pid_tgid() >> 32))
		return 0;

	struct offcpu_head *h = &room->record.head;
	struct offcpu_told *t = bpf_task_storage_get(
		&told, task, 0, what == WAITED ? 0 : BPF_LOCAL_STORAGE_GET_F_CREATE);
	const __u32 wait = wait_of(task);
	if (t)
		found(t, state, wait, what == WAITS && doing != 0);
	if (what == WAITED) {
		if (!t || !t->pid)
			return 0;
		*h = (struct offcpu_head){.pid = t->pid,
			.tid = t->tid,
			.syscall = -1,
			.flags = OFFCPU_SAME,
			.wait = wait};
		bpf_seq_write(seq, h, sizeof(*h));
		return 0;
	}
	const __u16 flags = flags_of(task, doing, what);
	const __u64 key = told_key(task, flags, state);
	const _Bool stays = t && t->key == key, lacks = stays && t->lacks;
	_Bool drawn = lacks && draw(state);
	const _Bool again = lacks ? drawn : stays && is_again(t, state);

	*h = (struct offcpu_head){.syscall = -1, .flags = flags, .wait = wait};
	if (stays && !again) {
		h->pid = t->pid;
		h->tid = t->tid;
		h->flags |= OFFCPU_SAME;
		bpf_seq_write(seq, h, sizeof(*h));
		return 0;
	}

	h->pid = number_of(BPF_CORE_READ(task, group_leader, thread_pid), state->level);
	h->tid = number_of(task->thread_pid, state->level);
	h->hart = bpf_core_field_exists(task->thread_info.cpu) ? task->thread_info.cpu : 0;
	h->flags |= again ? OFFCPU_AGAIN : 0;
	if (!h->pid || !h->tid)
		return 0; /* of another pid namespace, or about to be freed */

	struct offcpu_record *r = &room->record;
	struct mm_struct *mm = task->mm;
	const __u64 arrival = arrival_of(task);
	take_chain(r, task);
	__builtin_memset(r->regs, 0, sizeof(r->regs));
	if (mm && !is_kernels) {
		drawn = drawn || draw(state);
		take_user(room, state, task, mm, drawn);
	}
	/* it ran while its stack was copied */
	if (is_running(task) || arrival_of(task) != arrival || wait_of(task) != wait)
		h->wait = 0;
	__u64 n_stack = r->head.n_stack;
	if (bpf_seq_write(seq, r, sizeof(*r)))
		return 0;
	asm volatile(""
		: "+r"(n_stack)); /* else the compiler checks a copy, and the verifier misses it */
	if (n_stack > OFFCPU_STACK_MAX || bpf_seq_write(seq, room->stack, n_stack))
		return 0;
	state->stack_bytes += n_stack;
	if (!t)
		return 0;
	t->key = key;
	t->pid = h->pid;
	t->tid = h->tid;
	t->lacks = (h->flags & OFFCPU_NO_STACK) != 0;
	return 0;
}
