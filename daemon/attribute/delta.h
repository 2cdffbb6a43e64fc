/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Deltas: the counts of a group since it was last read
 *
 * Samples and switches carry the running totals of their group; the difference from the last
 * reading belongs to the task in whose context the record was made.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/decode/record.h"
#include "proto/base/hash_table.h"

/* Groups whose last reading is kept: one per hart system-wide; otherwise one per task and hart,
 * shared by SAMPLER_TASKS_MAX threads and their children. */
#define DELTA_GROUPS_MAX 65536

enum {
	DELTA_FIRST = 1, /* nothing to compare with yet: nothing may be charged */
	DELTA_RESET, /* values went backwards or members changed: this reading is the new start */
	DELTA_TABLE_FULL, /* no room for another group */
};

struct delta {
	struct record_read_value read[RECORD_READ_VALUES_MAX]; /* by member id: what was counted */
	uint32_t n_reads;
	uint64_t enabled_ns, running_ns;
	/* set by charge_delta: switches without a record since the last reading; other tasks may
	 * have run then, or the hart was idle */
	uint64_t n_unrecorded;
	/* set by throttle_cut: the part of enabled_ns in which the group's leader was throttled.
	 * On kernels that throttle groups, switches in it were not counted */
	uint64_t throttled_ns;
	bool whole_group; /* with throttled_ns: the leader's siblings did not count either */
};

struct delta_key {
	uint64_t leader; /* stream id */
	int32_t hart;
	int32_t tid; /* 0: the group counts all tasks; else only this one */
};

struct delta_group;
struct delta_table {
	struct delta_group *groups; /* uthash by key */
};

/* Compare with the last reading, and store this one. A group that counts only one task started at
 * zero with it, so its first reading is a delta too. 0, DELTA_*, -ENOMEM; *ret_delta only on 0. */
int delta_take(struct delta_table *t, const struct delta_key *key, const struct record_sample *s,
	struct delta *ret_delta);

/* Records of this hart were lost: counts since then cannot be attributed. The next reading of
 * groups that count all tasks is a first one. */
void delta_forget_hart(struct delta_table *t, int hart);
/* The task is gone. O(groups). */
void delta_forget_task(struct delta_table *t, pid_t tid);
void delta_table_clear(struct delta_table *t);
