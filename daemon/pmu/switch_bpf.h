/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The second way to cut counts at switches: a BPF program on sched_switch
 *
 * DESIGN.md decision 3: counts belong to who ran. Where the context-switches sibling of a group
 * does not open, this program reads the group's counters at each switch, and puts them into the
 * hart's ring as a record of STREAM_SWITCH_BPF. It is loaded through libbpf, once for each session
 * that needs it, and is gone with it. Reached through struct kernel alone: built without BPF (make
 * BPF=no) there is none of this.
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
	SWITCH_BPF_REFUSED = 1, /* the kernel has no BPF, or no right to it is held: *ret_error */
	SWITCH_BPF_FULL, /* that hart has SWITCH_GROUPS_MAX groups already, or the group is too
			    large */
};

/* Load the program and attach it, with nothing to read yet. Takes some megabytes while it looks at
 * the kernel's types. 0; SWITCH_BPF_REFUSED with *ret_error, a positive errno; -ENOMEM, -EMFILE,
 * -ENFILE. */
int switch_bpf_new(int n_harts, struct switch_bpf **ret_bpf, int *ret_error);

/* Read that group at each switch from now on. Descriptors are borrowed for the call; the program
 * keeps the events alive until switch_bpf_forget. 0; SWITCH_BPF_FULL; -errno, with nothing watched.
 */
int switch_bpf_watch(struct switch_bpf *b, const struct switch_group *g);

/* Read nothing on that hart any more. */
void switch_bpf_forget(struct switch_bpf *b, int hart);

struct switch_bpf *switch_bpf_free(struct switch_bpf *b);
