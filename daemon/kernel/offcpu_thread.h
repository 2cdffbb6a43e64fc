/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

/* A thread, as the programs that look at threads (offcpu.bpf.c, wakers.bpf.c) see it: its numbers, its registers, and
 * what they remember of it in maps that they share. Only they include this. */

#include <linux/bpf.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <stddef.h>

#include "daemon/kernel/offcpu_layout.h"

/* Source: include/linux/sched.h of Linux 6.12 */
#define PF_KTHREAD 0x200000u

#define COPY_BYTES 4096u /* at a time: a page of most machines */
#define COPIES (OFFCPU_STACK_MAX / COPY_BYTES)

/* Only the fields used here; the loader relocates them for this kernel. */
#define KERNELS __attribute__((preserve_access_index))

struct upid {
	int nr;
} KERNELS;

struct pid {
	unsigned int level;
	struct upid numbers[1];
} KERNELS;

struct thread_info {
	__u32 cpu;
	int preempt_count; /* x86-64 keeps it elsewhere */
} KERNELS;

struct mm_struct;
struct files_struct;
struct cred;

struct sched_info {
	unsigned long long last_arrival, last_queued;
} KERNELS;

struct sched_entity {
	__u64 sum_exec_runtime, prev_sum_exec_runtime;
} KERNELS;

struct task_struct {
	struct thread_info thread_info;
	struct sched_info sched_info;
	struct sched_entity se;
	unsigned int __state;
	unsigned int flags;
	int on_cpu;
	int exit_state;
	int tgid;
	struct pid *thread_pid;
	struct task_struct *group_leader;
	unsigned in_iowait : 1;
	unsigned frozen : 1;
	unsigned long nvcsw, nivcsw, jobctl;
	struct mm_struct *mm;
	void *stack;
	struct files_struct *files;
	const struct cred *real_cred;
} KERNELS;

/* The used part of struct pt_regs, on each machine. Source: arch/ARCH/include/asm/ptrace.h of Linux 6.12. */
#if defined(MPERF_x86_64)
struct user_regs {
	__u64 r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs,
		flags, sp, ss;
};
#elif defined(MPERF_arm64)
struct user_regs {
	__u64 x[31], sp, pc, pstate, orig_x0;
	__s32 syscall;
	__u32 unused;
};
#elif defined(MPERF_riscv64)
struct user_regs {
	__u64 x[32]; /* the program counter, then the registers from 1 on, as perf has them */
	__u64 status, badaddr, cause, orig_a0;
};
#endif

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct offcpu_told);
} told SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct offcpu_state);
} states SEC(".maps");

static __always_inline void take_registers(
	struct offcpu_record *r, const struct user_regs *u, __u64 *ret_sp, __u64 *ret_arg)
{
#if defined(MPERF_x86_64)
	const __u64 regs[OFFCPU_REGS] = {u->ax, u->bx, u->cx, u->dx, u->si, u->di, u->bp, u->sp,
		u->ip, u->flags, u->cs, u->ss, u->r8, u->r9, u->r10, u->r11, u->r12, u->r13, u->r14,
		u->r15};
	__builtin_memcpy(r->regs, regs, sizeof(regs));
	r->head.syscall = (__s32)u->orig_ax; /* -1 after a fault or an interrupt */
	r->head.flags |= u->cs == 0x23 ? OFFCPU_32_BIT : 0;
	*ret_sp = u->sp;
	*ret_arg = u->di;
#elif defined(MPERF_arm64)
	__builtin_memcpy(r->regs, u->x, sizeof(u->x));
	r->regs[31] = u->sp;
	r->regs[32] = u->pc;
	r->head.syscall = u->syscall;
	r->head.flags |= u->pstate & 0x10 ? OFFCPU_32_BIT : 0;
	*ret_sp = u->sp;
	*ret_arg = u->orig_x0;
#elif defined(MPERF_riscv64)
	__builtin_memcpy(r->regs, u->x, sizeof(u->x));
	r->head.syscall = u->cause == 8 ? (__s32)u->x[17]
					: -1; /* a call from user mode; its number is in a7 */
	*ret_sp = u->x[2];
	*ret_arg = u->orig_a0;
#endif
}

static __always_inline __u32 number_of(struct pid *pid, unsigned int level)
{
	struct upid *at;
	int nr = 0;

	if (!pid || BPF_CORE_READ(pid, level) < level)
		return 0;
	at = (struct upid *)((char *)pid + bpf_core_field_offset(pid->numbers) +
			     level * bpf_core_type_size(struct upid));
	bpf_core_read(&nr, sizeof(nr), &at->nr);
	return (__u32)nr;
}

/* The number of the wait that the thread is in, or of its last one: it changes when a thread that runs goes to sleep. */
static __always_inline __u32 wait_of(struct task_struct *task)
{
	return (__u32)(task->nvcsw + task->nivcsw) << 1 | 1;
}
