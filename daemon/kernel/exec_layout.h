/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

/* The record that the BPF program on execs (exec.bpf.c) writes into the ring, as PERF_SAMPLE_RAW: this, and
 * behind it n_copied bytes of arguments. Included by both sides, so it uses only the kernel's types. */

#include <linux/types.h>

#define EXEC_ARGS_BYTES_MAX 4096

enum {
	/* the process belongs entirely to `uid` (rights.h); else it belongs to nobody */
	EXEC_WHOLE = 1,
	/* the kernel's data do not show it: it has to be read from /proc */
	EXEC_UNJUDGED = 2,
	/* nor whether its caller may inspect it: if it is gone by then, it belongs to nobody */
	EXEC_MAY_HIDE = 4,
};

struct exec_head {
	__u32 uid, gid; /* real ones, in the first user namespace */
	__u32 flags;    /* EXEC_* */
	/* bytes of its arguments, with a NUL behind each, and how many of them follow: none if they were not in
	 * memory, or if the ring has no room for them */
	__u32 n_args, n_copied;
	__u32 reserved;
};
_Static_assert(sizeof(struct exec_head) == 24, "no holes");

struct exec_news {
	struct exec_head head;
	__u8 args[EXEC_ARGS_BYTES_MAX];
};
