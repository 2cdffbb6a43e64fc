/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Do the two ways to cut counts at switches agree?
 *
 * Takes the records of a session with SAMPLER_SWITCHES_BOTH, in which each switch is told twice,
 * and adds up for each task what either way charges it with. Pure but for memory.
 */

#include <stdbool.h>
#include <stdint.h>

#include "daemon/decode/record.h"

/* Sums that are kept, one per task and event; what comes beyond is counted and not compared. */
#define SWITCH_CHECK_SUMS_MAX 4096
/* Groups of all harts: a session has one a hart, or the few that were asked for. */
#define SWITCH_CHECK_GROUPS_MAX 4096

/* How far the sums of one task may lie apart. The one reading is taken a little before the other,
 * and what the kernel does between them is charged to the one task by the one way and to the next
 * by the other: 1 % of the count, and of a hardware counter besides all that lies between, for each
 * switch. That was counted, in instructions, between the readings of a group of three: 4,716 to
 * 4,764 on RISC-V, 3,148 to 3,222 on Arm (Linux 6.12 of Debian 13, in QEMU 10.0.2 with icount; it is
 * so even that sums lay 0.24 % apart at most). Of what the kernel itself counts, 2 in all. */
#define SWITCH_CHECK_SHARE 0.01
#define SWITCH_CHECK_HARDWARE_EACH 5000
#define SWITCH_CHECK_SOFTWARE 2

struct switch_sum {
	uint32_t tid;
	int event; /* index into the session's events */
	uint64_t n_switches;
	uint64_t by_sibling, by_bpf;
};

struct switch_verdict {
	uint64_t n_switches; /* told by both, and compared */
	uint64_t n_unpaired; /* told by one alone, of those between two that both have told: the
				ways begin and end one after the other; without those next to which
				the kernel throttled the group, and so silenced the sibling */
	uint64_t n_left_out; /* beyond SWITCH_CHECK_SUMS_MAX */
	unsigned n_sums;     /* compared */
	unsigned n_apart;    /* further apart than the above */
	struct switch_sum
		worst; /* the largest share of difference among those with n_apart, else of all */
	double worst_share;
};

struct switch_check;

/* Streams and events are borrowed. 0 or -ENOMEM. */
int switch_check_new(const struct stream_table *streams, const struct event_list *events,
	struct switch_check **ret_check);

/* Take the next record of that hart's ring; those that tell of no switch are stepped over. 0,
 * -ENOMEM. */
int switch_check_record(struct switch_check *c, const struct record *r, int hart);

/* What has been seen so far. Clocks are not judged: between two readings of a clock a virtual hart
 * may stand still for long. O(sums). */
void switch_check_judge(const struct switch_check *c, struct switch_verdict *ret_verdict);

struct switch_check *switch_check_free(struct switch_check *c);
