/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/* Who ends the waits that a look has found (offcpu.bpf.c)
 *
 * The tracepoint runs in the task that wakes a thread. Most wakes are of waits that no look has found, and cost a look into
 * what is remembered of the thread. Of the others the waker's stack is copied: not more often than looks find threads.
 *
 * A look is of one moment, and reaches a thread some time later. So a thread that it has not reached yet may have been
 * woken from the very wait that it will be told to be in: until then wakes are recorded too. Waits have numbers, by
 * which the reader finds what belongs together.
 *
 * The kernel holds a lock of the woken thread, with interrupts off, so nothing here may sleep: pages of the stack that
 * are not in memory are missing.
 */

#include "daemon/kernel/offcpu_thread.h"

/* Innermost addresses of the chain, which are the tracepoint's own: this program, bpf_trace_run, and its caller. */
#define OWN_FRAMES 3

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* The record being made: too large for the program's stack. The kernel does not let a program interrupt itself. */
struct room {
	struct offcpu_waking waking;
	__u8 stack[OFFCPU_STACK_MAX];
	struct user_regs user;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct room);
} rooms SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, OFFCPU_WAKINGS_BYTES);
} wakings SEC(".maps");

/* --- interrupts ------------------------------------------------------------------------------- */

#if defined(MPERF_x86_64)
/* Interrupts of the kernel, also soft ones, run on stacks of their own, and the context is on the stack in use. Those of
 * user mode run on the task's stack, which is empty then but for its registers: these say that it is in no call. So do
 * faults, which hardly ever wake anybody. The count that other machines have in the task is not there, and not every
 * kernel's types lead to it. Source: arch/x86/include/asm/irq_stack.h, arch/x86/entry/entry_64.S and bpf_trace_run1 in
 * kernel/trace/bpf_trace.c of Linux 6.12. */
static __always_inline _Bool is_interrupted(const __u64 *ctx, struct task_struct *task)
{
	const __u64 at = (__u64)ctx, regs = (__u64)bpf_task_pt_regs(task);
	__u64 call = 0;

	if (at < (__u64)task->stack || at >= regs)
		return 1;
	bpf_probe_read_kernel(
		&call, sizeof(call), (void *)(regs + offsetof(struct user_regs, orig_ax)));
	return !(task->flags & PF_KTHREAD) && (__s64)call == -1;
}
#else
/* NMI and hard interrupts, and a soft one that is served. Source: include/linux/preempt.h of Linux 6.12. */
#define IN_INTERRUPT 0x00ff0100

static __always_inline _Bool is_interrupted(const __u64 *ctx, struct task_struct *task)
{
	int count = 0;

	(void)ctx;
	bpf_core_read(&count, sizeof(count), &task->thread_info.preempt_count);
	return count & IN_INTERRUPT;
}
#endif

/* --- the waker -------------------------------------------------------------------------------- */

static __always_inline __u32 take_stack(struct room *r, __u64 sp)
{
	__u32 n = 0;

	for (__u32 i = 0; i <= COPIES; i++) {
		__u32 bytes = COPY_BYTES - (__u32)((sp + n) & (COPY_BYTES - 1));
		if (n > OFFCPU_STACK_MAX - COPY_BYTES)
			break;
		if (bytes > COPY_BYTES)
			break;
		if (bpf_probe_read_user(r->stack + n, bytes, (const void *)(sp + n)))
			break;
		n += bytes;
	}
	return n & ~7u;
}

/* The task that runs here, unless an interrupt does. */
static __always_inline void take_waker(__u64 *ctx, struct room *room, __u32 level)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct offcpu_record *r = &room->waking.record;
	__u64 sp = 0, argument = 0;

	if (task->tgid == 0 || is_interrupted(ctx, task)) {
		r->head.flags |= OFFCPU_INTERRUPT;
		return;
	}
	r->head.pid = number_of(BPF_CORE_READ(task, group_leader, thread_pid), level);
	r->head.tid = number_of(task->thread_pid, level);
	r->head.hart = bpf_get_smp_processor_id();
	const long n = bpf_get_stack(ctx, r->chain, sizeof(r->chain), OWN_FRAMES);
	r->head.n_chain = n > 0 ? (__u8)((unsigned long)n / 8) : 0;
	if (task->flags & PF_KTHREAD || !task->mm) {
		r->head.flags |= OFFCPU_KERNEL_THREAD;
		return;
	}
	if (bpf_probe_read_kernel(&room->user, sizeof(room->user), (void *)bpf_task_pt_regs(task)))
		return;
	take_registers(r, &room->user, &sp, &argument);
	r->head.n_stack = take_stack(room, sp);
}

/* Is this the end of a wait that a look has found, or may find yet? */
static __always_inline _Bool is_wanted(
	struct offcpu_told *t, const struct offcpu_state *state, __u32 wait)
{
	if (t->open == wait) {
		t->open = 0;
		return 1;
	}
	if (!state->is_looking || t->look == (__u32)state->n_looks || t->woken == wait ||
		t->n_early >= OFFCPU_EARLY_MAX)
		return 0;
	t->n_early++;
	return 1;
}

/* cppcheck-suppress unknownMacro */
SEC("tp_btf/sched_waking")
int on_waking(__u64 *ctx)
{
	struct task_struct *task = (struct task_struct *)ctx[0];
	struct offcpu_told *t = bpf_task_storage_get(&told, task, 0, 0);
	const __u32 zero = 0;

	if (!t)
		return 0;
	struct offcpu_state *state = bpf_map_lookup_elem(&states, &zero);
	const __u32 wait = wait_of(task);
	if (!state || !t->tid || !is_wanted(t, state, wait))
		return 0;
	t->woken = wait;

	struct room *room = bpf_map_lookup_elem(&rooms, &zero);
	if (!room)
		return 0;
	__builtin_memset(&room->waking, 0, sizeof(room->waking));
	room->waking.time_ns = bpf_ktime_get_ns();
	room->waking.record.head = (struct offcpu_head){
		.syscall = -1, .flags = OFFCPU_WAKER, .wait = wait, .wakee = t->tid};
	take_waker(ctx, room, state->level);
	__u64 n_stack = room->waking.record.head.n_stack;
	asm volatile(""
		: "+r"(n_stack)); /* else the compiler checks a copy, and the verifier misses it */
	if (n_stack > OFFCPU_STACK_MAX)
		return 0;
	if (bpf_ringbuf_output(&wakings, room, sizeof(room->waking) + n_stack, BPF_RB_NO_WAKEUP))
		__sync_fetch_and_add(&state->n_wakings_lost, 1);
	return 0;
}
