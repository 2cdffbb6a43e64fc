/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

/* Records of the BPF iterator over threads (offcpu.bpf.c), one of each thread without a hart: the head of a struct
 * offcpu_record; unless that says OFFCPU_SAME, the rest of it, and then n_stack bytes of the thread's stack. Records of
 * those who end a wait (wakers.bpf.c) are a struct offcpu_waking, and then their stack. Included by both sides, so it
 * uses only the kernel's types. */

#include <linux/types.h>

#define OFFCPU_CHAIN_MAX 48u         /* addresses of the kernel's stack */
#define OFFCPU_STACK_MAX (16u << 10) /* bytes of the user's */
/* Bytes of stacks in one look: further threads come without theirs, and with it in a later look. */
#define OFFCPU_LOOK_STACKS_MAX (1u << 20)
/* A thread that is still waiting has a full record in one look of this many: tables and mappings may have come
 * meanwhile. A power of two. */
#define OFFCPU_TELL_AGAIN 128u

/* Registers in perf's order. Source: arch/ARCH/include/uapi/asm/perf_regs.h of Linux 6.12. */
#if defined(__x86_64__) || defined(MPERF_x86_64)
#define OFFCPU_REGS 20u
#elif defined(__aarch64__) || defined(MPERF_arm64)
#define OFFCPU_REGS 33u
#elif defined(__riscv) || defined(MPERF_riscv64)
#define OFFCPU_REGS 32u
#else
#define OFFCPU_REGS 1u
#endif

enum {
	OFFCPU_SAME = 1,     /* it has not run since the last look: only this head */
	OFFCPU_RUNNABLE = 2, /* it waits for a hart */
	OFFCPU_IN_DISK = 4,  /* the kernel accounts it as waiting for a block device */
	OFFCPU_IS_STOPPED = 8,
	OFFCPU_32_BIT = 16,
	OFFCPU_KERNEL_THREAD = 32,
	OFFCPU_NO_STACK = 64, /* not copied: too much in this look, or its memory was locked */
	OFFCPU_END = 128,     /* no thread: the last record of a look */
	OFFCPU_AGAIN = 256,   /* in full, though it has not run since the last look */
	/* of a waker alone */
	OFFCPU_WAKER = 512,      /* pid and tid woke the thread `wakee`, which ended its wait */
	OFFCPU_INTERRUPT = 1024, /* an interrupt did: pid, tid and stacks are 0 */
};

struct offcpu_head {
	__u32 pid, tid; /* in the pid namespace of the reader */
	__u32 hart;     /* where it ran last */
	__s32 syscall;  /* number; -1: it is in none */
	__u16 flags;    /* OFFCPU_* */
	__u8 file; /* if the call's first argument is a descriptor: its file's S_IFMT >> 12; else 0 */
	__u8 n_chain;
	__u32 n_stack; /* a multiple of 8 */
	/* the number of the wait, among those of that thread; 0: not known, since it ran while it was looked at */
	__u32 wait;
	__u32 wakee; /* of a waker: the thread that it woke; else 0 */
};
_Static_assert(sizeof(struct offcpu_head) == 32, "no holes");

struct offcpu_record {
	struct offcpu_head head;
	__u64 chain[OFFCPU_CHAIN_MAX]; /* of the kernel, innermost first; zeros behind n_chain */
	__u64 regs[OFFCPU_REGS];       /* user registers in perf's order; zeros if there are none */
};

/* Who ended a wait that a look had found. A waker's pid and tid are 0 if it is in no pid namespace that the reader
 * sees. */
struct offcpu_waking {
	__u64 time_ns; /* CLOCK_MONOTONIC */
	struct offcpu_record record;
};

/* Bytes of the ring with these: of wakes between two turns of its reader, some 1000 with stacks of 4 KiB. */
#define OFFCPU_WAKINGS_BYTES (4u << 20)
/* Records of one thread while a look has not reached it yet: the last may be of the wait that the look finds. */
#define OFFCPU_EARLY_MAX 4u

/* What is remembered of a thread. */
struct offcpu_told {
	__u64 key;      /* how often it was switched, and whether it could run */
	__u32 pid, tid; /* as in the head */
	__u32 lacks;    /* 1: the look had no room for its stack */
	__u32 open;     /* the wait that a look found; 0: it was woken since */
	__u32 woken;    /* the last wait whose end has a record */
	__u32 look;     /* the low half of the number of the look that reached it last */
	__u32 n_early;  /* records since then of waits that no look had found */
	__u32 reserved;
};

/* State of the look under way; its map's only value. */
struct offcpu_state {
	__u64 n_looks, stack_bytes;
	__u64 copying; /* whose stack: as a key of the processes that are barred from it; 0: nobody's */
	__u64 began_ns; /* that copy; CLOCK_MONOTONIC */
	/* threads whose stack was wanted, in this look, and in the one before: if there is no room for all, chance decides */
	__u64 n_wanted, n_wanted_before;
	__u64 n_lost; /* looks that did not arrive, as their reader counts: their records are sent again */
	__u32 is_looking;     /* a look is under way */
	__u32 level;          /* of the reader's pid namespace */
	__u64 n_wakings_lost; /* for which the ring had no room; of all harts, so some may be missing */
};
/* Such a key: of a user other than root this with the uid, of root's processes the pid (in the first namespace). */
#define OFFCPU_USER ((__u64)1 << 32)
