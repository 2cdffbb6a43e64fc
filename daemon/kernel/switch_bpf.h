/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* BPF programs on sched_switch: other ways to cut counts at switches
 *
 * Counts belong to the task that ran. Where the context-switches sibling of a group does not open or
 * costs more, a program reads the group's counters at each switch. It either writes them into the
 * hart's ring as a record of STREAM_SWITCH_BPF (switch.bpf.c), or adds them to a sum of the task,
 * which comes as a record of STREAM_SWITCH_SUMS before the task's next sample and at its end
 * (switch_sums.bpf.c). It is loaded through libbpf, once for each session that needs it, and unloaded
 * with the session. Called only through struct kernel: absent if built without BPF (make BPF=no).
 */

#include <linux/types.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/kernel/switch_layout.h"

struct switch_bpf;

enum switch_way {
	SWITCH_RECORDS, /* a record at each switch */
	SWITCH_SUMS,    /* sums by task; needs the kernel's BTF */
	N_SWITCH_WAYS,
};

/* An open event group on a hart. */
struct switch_group {
	int hart;
	/* PERF_COUNT_SW_BPF_OUTPUT, whose records go into the hart's ring; -1: no records are wanted,
	 * only what the program costs */
	int output_fd;
	int n_members; /* 1 … SWITCH_MEMBERS_MAX, leader first */
	int fd[SWITCH_MEMBERS_MAX];
	uint64_t id[SWITCH_MEMBERS_MAX];
	int event[SWITCH_MEMBERS_MAX]; /* of the session: sums of equal groups are added up */
};

enum {
	/* the kernel has no BPF, or we lack the right to use it: *ret_error */
	SWITCH_BPF_REFUSED = 1,
	/* the hart already has SWITCH_GROUPS_MAX groups, or the group is too large */
	SWITCH_BPF_FULL,
};

/* Load the program of that way in a child, with no groups to read yet. 0; SWITCH_BPF_REFUSED with *ret_error, a positive errno; -ENOMEM, -EMFILE,
 * -ENFILE. */
int switch_bpf_new(enum switch_way way, int n_harts, struct switch_bpf **ret_bpf, int *ret_error);

/* Read that group at each switch from now on. The program is attached with the first group.
 * Descriptors are borrowed for the call; the program keeps the events alive until switch_bpf_forget.
 * With SWITCH_SUMS the leader's samples bring the sums from now on, as long as it is open. 0;
 * SWITCH_BPF_FULL; -errno, with nothing watched. */
int switch_bpf_watch(struct switch_bpf *b, const struct switch_group *g);

/* The number of groups of that hart that are read. */
int switch_bpf_watched(const struct switch_bpf *b, int hart);

/* Stop reading groups of that hart, except the first n_kept. The program is detached with the last
 * group of all harts. */
void switch_bpf_forget(struct switch_bpf *b, int hart, int n_kept);

struct switch_bpf *switch_bpf_free(struct switch_bpf *b);
