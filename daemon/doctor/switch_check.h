/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Do the two ways to cut counts at switches agree?
 *
 * Takes the records of a session with SAMPLER_SWITCHES_BOTH, in which each switch is reported
 * twice, and adds up for each task what either way charges to it. Pure, except for memory.
 */

#include <stdbool.h>
#include <stdint.h>

#include "daemon/decode/record.h"

/* Sums to keep, one per task and event; any more are counted but not compared. */
#define SWITCH_CHECK_SUMS_MAX 4096
/* Groups of all harts: a session has one per hart, or the few that were requested. */
#define SWITCH_CHECK_GROUPS_MAX 4096

/* How far apart the sums of one task may be. One reading is taken shortly before the other, and one
 * way charges what the kernel does in between to the first task, the other way to the next. So we
 * allow a difference of 1 % of the count, and for hardware counters also, for each switch, the
 * count between the two readings. Measured in instructions, between the readings of a group of
 * three: 4,716 to 4,764 on RISC-V, 3,148 to 3,222 on Arm (Linux 6.12 of Debian 13, in QEMU 10.0.2
 * with icount; this is so regular that sums differed by 0.24 % at most). For events that the kernel
 * itself counts, we allow 2 in all. If a clock is read with them, we also allow what a hardware
 * counter counts at the task's own rate in the time between them. */
#define SWITCH_CHECK_SHARE 0.01
#define SWITCH_CHECK_HARDWARE_EACH 5000
#define SWITCH_CHECK_SOFTWARE 2
/* The most time between the two readings of a switch that are compared. */
#define SWITCH_CHECK_GAP_NS 200000u

struct switch_sum {
	uint32_t tid;
	int event; /* index into the session's events */
	uint64_t n_switches;
	uint64_t by_sibling, by_bpf;
};

struct switch_verdict {
	uint64_t n_switches; /* reported by both, and compared */
	/* reported by only one, between two that both reported (the ways do not begin and end at the
	 * same time); without those next to which the kernel throttled the group, which silences the
	 * sibling */
	uint64_t n_unpaired;
	uint64_t n_left_out; /* beyond SWITCH_CHECK_SUMS_MAX */
	/* reported by both but not compared: at one end the readings are more than
	 * SWITCH_CHECK_GAP_NS apart, since the machine stood still or did something else */
	uint64_t n_apart_too_long;
	unsigned n_sums;  /* compared */
	unsigned n_apart; /* further apart than allowed above */
	/* the largest share of difference among those with n_apart, else of all */
	struct switch_sum worst;
	double worst_share;
};

struct switch_check;

/* Streams and events are borrowed. 0 or -ENOMEM. */
int switch_check_new(const struct stream_table *streams, const struct event_list *events,
	struct switch_check **ret_check);

/* Take the next record of that hart's ring; records that are not of a switch are skipped. 0,
 * -ENOMEM. */
int switch_check_record(struct switch_check *c, const struct record *r, int hart);

/* The result so far. Clocks are not compared: a virtual hart may stand still for long between two
 * readings of a clock. O(sums). */
void switch_check_judge(const struct switch_check *c, struct switch_verdict *ret_verdict);

struct switch_check *switch_check_free(struct switch_check *c);
