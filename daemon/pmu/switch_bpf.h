/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* A BPF program on sched_switch: the second way to cut counts at switches
 *
 * Counts belong to the task that ran. If the context-switches sibling of a
 * group does not open, this program reads the group's counters at each switch, and writes them into
 * the hart's ring as a record of STREAM_SWITCH_BPF. It is loaded through libbpf, once for each
 * session that needs it, and unloaded with the session. Called only through struct kernel: absent
 * if built without BPF (make BPF=no).
 */

#include <linux/types.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/pmu/switch_layout.h"

struct switch_bpf;

/* One group of a hart, opened. */
struct switch_group {
	int hart;
	int output_fd; /* PERF_COUNT_SW_BPF_OUTPUT, whose records go into the hart's ring */
	int n_members; /* 1 … SWITCH_MEMBERS_MAX, leader first */
	int fd[SWITCH_MEMBERS_MAX];
	uint64_t id[SWITCH_MEMBERS_MAX];
};

enum {
	/* the kernel has no BPF, or we lack the right to use it: *ret_error */
	SWITCH_BPF_REFUSED = 1,
	/* the hart already has SWITCH_GROUPS_MAX groups, or the group is too large */
	SWITCH_BPF_FULL,
};

/* Load the program and attach it, with nothing to read yet. Needs a few megabytes while it reads
 * the kernel's BTF. 0; SWITCH_BPF_REFUSED with *ret_error, a positive errno; -ENOMEM, -EMFILE,
 * -ENFILE. */
int switch_bpf_new(int n_harts, struct switch_bpf **ret_bpf, int *ret_error);

/* Read that group at each switch from now on. Descriptors are borrowed for the call; the
 * program keeps the events alive until switch_bpf_forget. 0; SWITCH_BPF_FULL; -errno,
 * with nothing watched. */
int switch_bpf_watch(struct switch_bpf *b, const struct switch_group *g);

/* Stop reading groups of that hart. */
void switch_bpf_forget(struct switch_bpf *b, int hart);

struct switch_bpf *switch_bpf_free(struct switch_bpf *b);
