/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Hart groups: the counting groups that are open on harts, each once for all users of its events
 *
 *      {cycles, instructions, r3} on hart 0     three descriptors, counted together
 *         ├ a counter with all three, which opened them
 *         └ a counter with cycles and instructions: their counts since it started
 *
 * A counter whose events are in an open group reads that group. Members without readers are closed;
 * the leader is closed last, since others are counted with it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/kernel/kernel.h"
#include "daemon/kernel/machine.h"

/* The count of one descriptor. */
struct group_count {
	uint64_t value, enabled_ns, running_ns;
};
_Static_assert(sizeof(struct group_count) == 24, "read_format of two times, without a group");
/* Read the count since the descriptor was opened. 0 or -errno. */
int group_count_read(const struct kernel *k, int fd, struct group_count *ret_count);

/* An event as we ask the kernel for it. Two events on a hart are the same if all of this is equal. */
struct hart_event {
	struct perf_event_attr
		attr; /* size 0: this core has no such event; its member is never open */
	/* of a generic event that the kernel may not map: the core's own code, as the data has it now */
	uint64_t own_code, own_config1;
	bool may_take_kernel_in; /* may count the kernel if the PMU cannot exclude it */
};

struct hart_member {
	struct hart_group *group;
	struct hart_event event;
	int fd;         /* -1: refused, not tried yet, or closed: */
	bool is_closed; /* nobody reads it any more */
	bool is_alone;  /* it did not open in the group, so it is counted separately */
	bool by_raw;    /* opened by the core's own code instead of the kernel's generic one */
	bool takes_kernel_in; /* it should exclude the kernel, but its PMU cannot */
	unsigned n_users;     /* counters that read it */
};

struct hart_group {
	struct hart_groups *groups; /* that it is in once it is started */
	const struct kernel *kernel;
	int hart;
	unsigned n_users; /* counters that have joined */
	bool is_started;  /* so that others may join */
	bool has_ended;   /* its hart was offline: it counts no more */
	double part;      /* of the time in which it was counted, as of the last look; 1 at first */
	struct group_count seen;
	struct hart_group *next, **place; /* in the list of its hart; place points to it */
	size_t n_members;
	struct hart_member member[];
};

/* All groups of a machine. */
struct hart_groups;
struct hart_groups *hart_groups_new(void); /* NULL: out of memory */
struct hart_groups *hart_groups_free(struct hart_groups *groups);

/* Find the members of a started group that count these n events on the hart, in their order; members that the
 * kernel refused there have no fd. False: no group has all of them, or it has ended, or gets no counters any
 * more. In the group, events that should be counted together are counted together, and events that need no
 * counter do not wait for one. Reads at most GROUPS_LOOK_MAX groups. */
bool hart_groups_find(struct hart_groups *groups, int hart, const struct hart_event *event,
	size_t n, struct hart_member **ret_member);
/* Is there such a group, with all of them open? Reads nothing, so the group may have ended. */
bool hart_groups_have(
	const struct hart_groups *groups, int hart, const struct hart_event *event, size_t n);

/* A group of these events with no member open and no user. NULL: out of memory. */
struct hart_group *hart_group_new(struct hart_groups *groups, const struct kernel *k, int hart,
	const struct hart_event *event, size_t n);
/* A counter joins, and leaves: the last one frees it. It has dropped its members before. */
void hart_group_join(struct hart_group *g);
void hart_group_leave(struct hart_group *g);
/* Its members are enabled: other counters may join. */
void hart_group_start(struct hart_group *g);
/* The member that the others are counted with; NULL: none is open. */
struct hart_member *hart_group_leader(struct hart_group *g);
size_t hart_group_n_open(const struct hart_group *g);

/* Note that the member was opened, outside its group if `alone`, and is used. */
void hart_member_open(struct hart_member *m, int fd, bool alone, bool by_raw, bool takes_kernel_in);
/* A counter begins to read an open member; a counter no longer reads it. */
void hart_member_use(struct hart_member *m);
void hart_member_drop(struct hart_member *m);
/* Take a reading of the member: remember the share of the time in which the group has counters. */
void hart_member_saw(struct hart_member *m, const struct group_count *count);
