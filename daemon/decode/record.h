/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Records: the kernel's bytes as structs, and nothing else
 *
 * Pure: no state, no allocation, no system call. A record borrows the bytes it was decoded from.
 * Records shorter than they announce, counts that exceed the record and unknown types are outcomes,
 * not errors. Source of every layout: man perf_event_open, "MMAP layout";
 * include/uapi/linux/perf_event.h of Linux 6.12.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/sampler/stream.h"

/* Group members whose values one sample carries, including the context-switches sibling. */
#define RECORD_READ_VALUES_MAX (EVENT_GROUP_MAX + 1)
#define RECORD_BUILD_ID_BYTES 20
/* The tid of a task that was reaped before it ran for the last time. Source: perf_event_pid_type in
 * kernel/events/core.c of Linux 6.12, which gives -1. */
#define RECORD_TID_GONE UINT32_MAX

enum record_kind {
	RECORD_SAMPLE,
	RECORD_MMAP, /* MMAP and MMAP2 */
	RECORD_COMM,
	RECORD_FORK,
	RECORD_EXIT,
	RECORD_CGROUP,
	RECORD_KSYMBOL,
	RECORD_LOST,
	RECORD_LOST_SAMPLES,
	RECORD_THROTTLE,
	RECORD_UNTHROTTLE,
	RECORD_DEFERRED, /* of Linux 6.19, if asked for; not used here */
	RECORD_EXEC,     /* of STREAM_EXEC_BPF */
	RECORD_SWITCH,   /* of STREAM_WAITS: the task leaves its hart, or gets one */
	RECORD_OTHER,    /* known to the kernel, not used here */
};

struct record_read_value {
	uint64_t id; /* of the group member */
	uint64_t value;
};

struct record_sample {
	uint64_t ip;
	uint64_t period;
	uint64_t cgroup; /* 0: not in the record */
	/* with PERF_CONTEXT_* markers, leaf first; may be unaligned: use record_chain_at */
	const uint64_t *callchain;
	uint64_t n_callchain;
	uint32_t n_read;
	uint64_t enabled_ns, running_ns;
	/* of STREAM_SWITCH_BPF and STREAM_SWITCH_SUMS: earlier switches without values */
	uint64_t n_missed;
	/* with STREAM_SWITCH_SUMS, whose `read` has the task's own counts since its last record:
	 * time for which tasks ran on the hart since the hart's last record */
	uint64_t ran_ns;
	uint64_t regs_abi;    /* PERF_SAMPLE_REGS_ABI_*; 0: no user registers */
	const uint64_t *regs; /* popcount(regs_user) values; use record_reg */
	const uint8_t *stack; /* copied user stack from the stack pointer up */
	uint64_t n_stack;     /* bytes actually copied (dyn_size) */
	bool stack_fills;     /* all of the room for it: there may be more of the stack */
	bool kernel;          /* taken in kernel mode */
	/* last member: entries from n_read on are not set */
	struct record_read_value read[RECORD_READ_VALUES_MAX];
};

struct record_mmap {
	uint64_t start, bytes, file_offset;
	uint32_t major, minor;
	uint64_t inode, generation;
	uint8_t build_id[RECORD_BUILD_ID_BYTES];
	uint8_t n_build_id;      /* 0: not in the record; then major, minor, inode are */
	bool executable, shared; /* PROT_EXEC, MAP_SHARED */
	const char *path;        /* checked: its NUL is inside the record */
};

/* Numbers that older headers lack. Source: include/uapi/linux/perf_event.h of Linux 6.19. */
#define RECORD_TYPE_CALLCHAIN_DEFERRED 22u
/* In a chain: the user part comes in a RECORD_DEFERRED with the cookie that is the next entry. */
#define RECORD_CONTEXT_USER_DEFERRED ((uint64_t)-640)

/* The user part of earlier samples' chains, found when the task went back to user mode. */
struct record_deferred {
	uint64_t cookie;
	const uint64_t *callchain; /* as of a sample; may be unaligned */
	uint64_t n_callchain;
};

/* A new program, as the BPF program of kernel/exec_bpf.h saw it. */
struct record_exec {
	uint32_t uid, gid; /* real ones, in our user namespace */
	bool whole;        /* it belongs entirely to that user (attribute/rights.h) */
	bool unjudged;     /* whether it does must be read from /proc */
	bool may_hide;     /* likewise, whether its caller may inspect it */
	bool cut;          /* there are more arguments than these */
	const char *args;  /* n_args bytes, with a NUL behind each but perhaps the last */
	uint32_t n_args;
};

struct record {
	enum record_kind kind;
	uint16_t misc;
	const struct stream *stream; /* of the event that made it; NULL if unknown */
	uint64_t id;
	uint64_t time_ns;  /* CLOCK_MONOTONIC */
	uint32_t pid, tid; /* the task; for FORK and EXIT, the one that starts or ends */
	uint32_t cpu;
	union {
		struct record_sample sample;
		struct record_mmap mmap;
		struct {
			const char *name;
			bool exec;
		} comm;
		struct {
			uint32_t parent_pid, parent_tid;
		} fork; /* FORK and EXIT */
		struct {
			uint64_t id;
			const char *path;
		} cgroup;
		struct {
			uint64_t addr;
			uint32_t bytes;
			bool unregister;
			const char *name;
		} ksymbol;
		struct record_deferred deferred;
		struct record_exec exec;
		struct {
			bool out;
			bool preempted; /* with out: it could run on, and waits for a hart */
		} switched;
		struct {
			uint64_t n;
		} lost; /* LOST and LOST_SAMPLES */
	};
};

_Static_assert(sizeof(struct record_mmap) <= offsetof(struct record_sample, read),
	"what every kind has is set");

enum {
	RECORD_SKIPPED = 1, /* unknown type: skip it by its size */
	RECORD_TRUNCATED,   /* shorter than what it announces */
	RECORD_HOSTILE,     /* counts or lengths that contradict each other */
	/* its id is in no stream: the event was closed, or owner.h cannot identify it */
	RECORD_STRANGER,
	/* of record_time: the sample_id names another hart, so its time is not trusted; the body
	 * may be valid */
	RECORD_UNTIMED,
};

/* Decode one whole record of n bytes. 0 or RECORD_*; *ret_record is set only on 0. */
int record_decode(const uint8_t *bytes, size_t n, const struct stream_table *streams,
	struct record *ret_record);

/* Decode only the time of a record (cheap; for merging). 0 or RECORD_*; *ret_time_ns is set only on
 * 0. */
int record_time(
	const uint8_t *bytes, size_t n, const struct stream_table *streams, uint64_t *ret_time_ns);

static inline uint64_t record_chain_at(const struct record_sample *s, uint64_t i)
{
	uint64_t v;
	__builtin_memcpy(&v, (const uint8_t *)s->callchain + i * 8, 8);
	return v;
}

/* The i-th of the registers that regs_user asks for. */
static inline uint64_t record_reg(const struct record_sample *s, unsigned int i)
{
	uint64_t v;
	__builtin_memcpy(&v, (const uint8_t *)s->regs + (size_t)i * 8, 8);
	return v;
}
