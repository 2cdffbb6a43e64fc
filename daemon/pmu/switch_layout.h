/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

/* Data shared by the BPF program of switch.bpf.c and the daemon
 *
 * Included by both, so it uses only the kernel's types. A slot is one group of one hart: slot
 * number hart * SWITCH_GROUPS_MAX + group, and member i of it is the perf event at slot *
 * SWITCH_MEMBERS_MAX + i.
 */

#define SWITCH_GROUPS_MAX 4 /* per hart; the ladder uses one, and each costs time at every switch */
#define SWITCH_MEMBERS_MAX 16 /* EVENT_GROUP_MAX */

/* Value of the map of groups to read. */
struct switch_slot {
	__u32 n_members; /* 0: no such group, and none after it */
	__u32 n_missed;  /* switches without values since the last record; set by the program */
	__u64 id[SWITCH_MEMBERS_MAX];
};

/* The record that the program writes into the ring at a switch, as PERF_SAMPLE_RAW. From n_members
 * on it has the format of a group read. Source: man perf_event_open, "Reading results". */
struct switch_values {
	__u32 pid,
		tid; /* who leaves, as the kernel's first pid namespace numbers it; 0: not known */
	__u64 n_missed; /* earlier switches without a record */
	__u64 n_members;
	__u64 enabled_ns, running_ns;
	struct {
		__u64 value, id;
	} member[SWITCH_MEMBERS_MAX];
};
#define SWITCH_VALUES_BYTES(n_members) (40 + 16 * (n_members))
_Static_assert(sizeof(struct switch_values) == SWITCH_VALUES_BYTES(SWITCH_MEMBERS_MAX), "no holes");
