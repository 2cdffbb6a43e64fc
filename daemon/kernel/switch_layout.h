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
		tid; /* the task that leaves, numbered by the kernel's first pid namespace; 0: not known */
	__u64 n_missed; /* earlier switches without a record */
	__u64 n_members;
	__u64 enabled_ns, running_ns;
	struct {
		__u64 value, id;
	} member[SWITCH_MEMBERS_MAX];
};
#define SWITCH_VALUES_BYTES(n_members) (40 + 16 * (n_members))
_Static_assert(sizeof(struct switch_values) == SWITCH_VALUES_BYTES(SWITCH_MEMBERS_MAX), "no holes");

/* --- sums: switch_sums.bpf.c -------------------------------------------------------------------- */

/* Tasks that have sums at a time, one for each group of a hart that they ran on. Further tasks bring a
 * record at each switch: nothing is lost, but they cost more. An entry takes some 200 bytes of the
 * kernel's memory, allocated when the program is loaded. */
#define SWITCH_TASKS_MAX 8192
/* Limit for each user, so that one user alone cannot make the tasks of all others cost more. */
#define SWITCH_USER_TASKS_MAX (SWITCH_TASKS_MAX / 4)
/* Users with such tasks at a time; tasks of further ones bring a record at each switch. */
#define SWITCH_USERS_MAX 1024

/* Counts of one group's events for a task, since the task's last record. */
struct task_sum {
	__u64 kind; /* of the group: the same events in the same order, on whichever hart */
	__u32 slot; /* that began it */
	__u32 uid;  /* whose share of SWITCH_TASKS_MAX it takes */
	__u64 enabled_ns, running_ns;
	__u64 value[SWITCH_MEMBERS_MAX];
};

/* The record that the program writes into the ring before a sample, or when a task ends, as
 * PERF_SAMPLE_RAW: this, and a sum and an id for each member. Except for ran_ns it has the form of struct
 * switch_values. */
struct switch_sums_head {
	__u32 pid, tid; /* as in struct switch_values: of the task whose sums they are */
	__u64 n_missed;
	__u64 ran_ns;    /* time that any task ran on this hart since the hart's last record */
	__u64 n_members; /* 0: only ran_ns is given */
	__u64 enabled_ns, running_ns; /* of the sums */
};
struct switch_sums {
	struct switch_sums_head head;
	struct {
		__u64 sum, id;
	} member[SWITCH_MEMBERS_MAX];
};
#define SWITCH_SUMS_BYTES(n_members) (48 + 16 * (n_members))
_Static_assert(sizeof(struct switch_sums) == SWITCH_SUMS_BYTES(SWITCH_MEMBERS_MAX), "no holes");

/* Value of the map of groups to sum up. */
struct switch_sums_slot {
	__u32 n_members; /* 0: no such group, and none after it */
	__u32 reserved;
	__u64 kind;
	__u64 id[SWITCH_MEMBERS_MAX];
	/* the fields below are the program's own; 0 at first */
	__u32 in_use; /* the program is changing it: an NMI must not */
	__u32 known;  /* there is a last reading */
	__u64 n_missed;
	__u64 ran_ns;
	__u64 enabled_ns, running_ns; /* the last reading */
	__u64 last[SWITCH_MEMBERS_MAX];
	struct task_sum spare;     /* of a task that has no entry */
	struct switch_sums record; /* too large for the program's stack */
};
