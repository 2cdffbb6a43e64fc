/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Threads without a hart, from the bytes of a look (kernel/offcpu_layout.h)
 *
 * Pure, as record.h. What a thread waits for follows from the state that the kernel accounts it in, and from its system
 * call: names of kernel functions are not needed.
 */

#include "daemon/decode/record.h"
#include "daemon/kernel/offcpu_layout.h"

#define OFFCPU_WAKING_BYTES_MAX (sizeof(struct offcpu_waking) + OFFCPU_STACK_MAX)
#define OFFCPU_THREAD_BYTES_MAX (sizeof(struct offcpu_record) + OFFCPU_STACK_MAX)

/* Stored as config of an event. */
enum offcpu_kind {
#define X(kind, name, says) kind,
#include "daemon/kernel/offcpu.inc"
#undef X
	N_OFFCPU_KINDS
};

struct offcpu_thread {
	enum offcpu_kind kind;
	bool same;     /* as in the last look: the record has only pid, tid and cpu */
	bool again;    /* it has not run since the last look */
	bool restarts; /* a call that was interrupted goes on: the kind is that of the call before */
	uint32_t wait; /* its number among the thread's waits; of a waker, the wait that it ended */
	pid_t wakee;   /* of a waker, whose pid and tid may be 0: of no task that is seen here */
	bool is_interrupt; /* and no task */
	/* A sample, but for stream and time. Borrows the bytes, and: */
	struct record record;
	uint64_t chain[OFFCPU_CHAIN_MAX + 1]; /* marker, and the kernel's addresses */
};

/* Decode the first thread of n bytes. 0, and *ret_used bytes are taken; RECORD_TRUNCATED; RECORD_HOSTILE; OFFCPU_ENDS:
 * the look is complete. */
enum { OFFCPU_ENDS = 8 };
int offcpu_decode(
	const uint8_t *bytes, size_t n, struct offcpu_thread *ret_thread, size_t *ret_used);
/* The same of a waker, a struct offcpu_waking of n bytes with its stack. 0, RECORD_TRUNCATED, RECORD_HOSTILE. */
int offcpu_decode_waking(const uint8_t *bytes, size_t n, struct offcpu_thread *ret_thread);
