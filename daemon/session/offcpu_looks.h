/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Looks at the threads without a hart, in a process of its own
 *
 * Time is divided into intervals, and each has one look, at a random moment in it. So whatever a thread does, and
 * however long or short its waits are, a look finds it waiting with the share of the interval for which it waits: a
 * thread that is found stands for the whole interval. The next interval is as long as a look's cost demands, which no
 * single thread decides.
 *
 * A look copies stacks, so it may wait for a page of a file, for as long as that file's server likes. A process that
 * waits there cannot be killed. It is left alone, and another one goes on without that user's stacks.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The shortest interval, that of looks that are put off, and the longest. */
#define OFFCPU_EVERY_NS 100000000u
#define OFFCPU_SELDOM_NS 2000000000u
#define OFFCPU_MOST_NS 60000000000u
/* Parts of a hart, in millionths: looks of a session that lasts minutes; and always, a fifth of the budget that mperf
 * has by default. */
#define OFFCPU_PPM 10000u
#define OFFCPU_ALWAYS_PPM 2000u
#define OFFCPU_ALWAYS_NS 500000000u /* and its shortest interval */

struct offcpu_look {
	uint64_t time_ns; /* CLOCK_MONOTONIC, at its end */
	uint64_t
		weight_ns; /* the time that it stands for: its interval, and those before it without a look */
	size_t n_bytes;
	uint8_t bytes[]; /* as in kernel/offcpu_layout.h; the last threads may be missing */
};

struct offcpu_bpf;
struct offcpu_looks;

/* Load the program, and begin to look. Looks take at most that part (in millionths) of a hart's time, unless that would
 * be less than one each OFFCPU_MOST_NS. 0; OFFCPU_LOOKS_REFUSED: *ret_error, an errno, says why there are none;
 * -errno. */
enum { OFFCPU_LOOKS_REFUSED = 1 };
int offcpu_looks_new(uint32_t part_ppm, struct offcpu_looks **ret_looks, int *ret_error);

/* The moment of the first look that was not taken; UINT64_MAX: there is none. */
uint64_t offcpu_looks_next_ns(struct offcpu_looks *l);
/* Take it; NULL: there is none. The caller has it freed, which clears it, since stacks hold secrets. */
struct offcpu_look *offcpu_looks_take(struct offcpu_looks *l);
void offcpu_look_free(struct offcpu_look *look);

struct offcpu_looks_state {
	pid_t pid; /* of the process */
	uint64_t n_looks;
	/* CPU time that they cost: all; of it, what the caller said (offcpu_looks_cost) */
	uint64_t cpu_ns, caller_ns;
	uint64_t interval_ns; /* as it is now */
	/* looks that were given up: a stack could not be copied in time, or the process died */
	uint64_t n_broken;
	uint64_t n_cut; /* looks without the last threads, since there were too many */
	bool has_ended; /* too many were given up one after the other: there are none any more */
};
struct offcpu_looks_state offcpu_looks_state(const struct offcpu_looks *l);

/* The program that looks, borrowed. */
const struct offcpu_bpf *offcpu_looks_bpf(const struct offcpu_looks *l);

/* The loop's turn: give up a look that hangs. */
void offcpu_looks_dispatch(struct offcpu_looks *l, uint64_t now_ns);

/* Taking looks has cost the caller that much CPU time more, which counts into what they may cost. */
void offcpu_looks_cost(struct offcpu_looks *l, uint64_t cpu_ns);
/* Another shortest interval and part, from the next interval on. */
void offcpu_looks_pace(struct offcpu_looks *l, uint64_t every_ns, uint32_t part_ppm);
/* true: lengthen intervals to OFFCPU_SELDOM_NS over the next few; false: return to normal. */
void offcpu_looks_put_off(struct offcpu_looks *l, bool put_off);

struct offcpu_looks *offcpu_looks_free(struct offcpu_looks *l);
