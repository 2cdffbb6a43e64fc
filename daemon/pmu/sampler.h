/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The sampler: the opened events and rings of one session
 *
 * plan → open → drain. System-wide, it holds for each online hart a side-band dummy event with a
 * ring, and that hart's sampling group writing into the same ring (PERF_EVENT_IOC_SET_OUTPUT).
 * Per task (who may not see the whole system), the same for each (thread, hart) with inherit, all
 * events of a hart sharing its ring. A member of a group that does not open never leaks its
 * fellows.
 *
 *      hart 0:  [dummy]──ring 0     [leader]─┐
 *                                   [cycles]─┤ PERF_SAMPLE_READ, all into ring 0
 *                                   [instr. ]┤
 *                                   [switch ]┘
 *                                   [output ]── what BPF reads at switches, into ring 0 too
 *               [exec ]──exec ring 0, which wakes at once
 *
 * The exec event is the tracepoint sched:sched_process_exec, or where that may not be had a dummy
 * that tells COMM (and tells FORK and EXIT too, unasked). It is an extra: every exec comes through
 * ring 0 too, a little later. So a hart on which it does not open has none, and a session per task,
 * which would need one for each thread, has none at all.
 *
 * Counts are cut at switches by the context-switches sibling, or where it does not open by a BPF
 * program (switch_bpf.h), which is loaded when the first group needs it. Where neither is to be had
 * the group counts on and its plan says CUT_NONE.
 */

#include "daemon/pmu/event.h"
#include "daemon/pmu/ladder.h"
#include "daemon/pmu/machine.h"
#include "daemon/pmu/ring.h"
#include "daemon/pmu/stream.h"

#define SAMPLER_HZ_DEFAULT 99u
#define SAMPLER_HZ_MAX 50000u /* beyond it the interrupt itself is what one measures */
#define SAMPLER_STACK_BYTES_DEFAULT 8192u
#define SAMPLER_STACK_BYTES_MAX                                                                    \
	65528u /* Source: man perf_event_open, sample_stack_user: < 64 KiB, multiple of 8 */
#define SAMPLER_TASKS_MAX 4096 /* threads opened one by one in a per-task session */

enum sampler_stacks {
	SAMPLER_STACKS_NONE,
	SAMPLER_STACKS_FP,
	SAMPLER_STACKS_DWARF,
};

/* What cuts counts at switches. */
enum sampler_switches {
	SAMPLER_SWITCHES_BEST,    /* the sibling, else BPF */
	SAMPLER_SWITCHES_SIBLING, /* or nothing */
	SAMPLER_SWITCHES_BPF,     /* or nothing */
	SAMPLER_SWITCHES_NONE,
	SAMPLER_SWITCHES_BOTH, /* side by side, to be compared (attribute/switch_check.h), not added
				  up */
};
/* The first four by name: "best", "sibling", "bpf", "none". 0, -EINVAL. */
int sampler_switches_parse(const char *name, enum sampler_switches *ret_switches);

struct sampler_options {
	uint32_t hz;      /* 1 … SAMPLER_HZ_MAX */
	uint32_t ring_hz; /* rate that rings have room for, which sampler_set_rate may go up to; 0:
			     hz */
	enum sampler_stacks stacks;
	uint32_t stack_bytes; /* per sample with SAMPLER_STACKS_DWARF */
	bool user_only;
	bool never_kernel; /* nor where an asked event cannot leave it out: with user_only */
	bool per_task;     /* open per task in pids (and what they start) */
	const pid_t *pids; /* processes; each one's threads are opened */
	size_t n_pids;
	const struct event_list *events; /* the user's own -e, or NULL: climb the ladder */
	const char *own_leader;          /* see struct ladder_options */
	enum sampler_switches switches;
	struct cores *cores; /* borrowed for as long as the sampler lives; NULL: nothing is known of
				cores */
};

/* What is kept of a hart from one look to the next. */
struct hart_watch {
	uint64_t lost_before; /* lost[][LOSS_RING] when its events were opened */
	uint64_t enabled_ns;  /* how long its side-band event had been enabled, */
	uint64_t looked_ns;   /* by this time at the latest */
	/* of what fires there and has hardware counters: for how long it was wanted and ran, in
	 * all, */
	uint64_t wanted_ns, ran_ns;
	uint64_t before_wanted_ns, before_ran_ns; /* and at the last look */
	unsigned n_starved; /* looks in a row at which it had not run at all */
	enum rung best;     /* that the hart ever had */
	uint64_t climb_ns; /* CLOCK_MONOTONIC before which not to climb the ladder anew; 0: any time
			    */
};

struct sampler {
	const struct kernel *kernel;
	struct machine machine;
	struct sampler_options options; /* copied; pids and events are not borrowed afterwards */
	struct plan *plan;              /* n_harts, by hart */
	struct event_list events;       /* what streams' `event` indexes: leaders and siblings */
	struct ring *ring;              /* n_rings ≤ n_harts */
	size_t n_rings;
	struct ring *exec_ring; /* n_exec_rings ≤ n_rings; a sample or a COMM for each exec */
	size_t n_exec_rings;
	struct stream_table streams;
	uint64_t (*lost)[N_LOSSES]; /* n_harts rows: what this station lost */
	uint64_t *lost_ahead;       /* n_harts: of LOSS_RING, what no LOST record reported yet */
	uint32_t hz;                /* the rate in force, after the kernel's limit */
	bool rate_lowered;          /* the kernel's limit cut what was asked */
	uint32_t hz_lowest; /* since it cuts: the least that the kernel's limit left; 0: it does not
			     */
	uint64_t unexcluded; /* bit i: event i was to leave the kernel out, which its PMU cannot */
	struct hart_set
		by_raw[EVENTS_MAX]; /* harts on which event i is counted by the core's own code */
	bool cgroups;               /* PERF_SAMPLE_CGROUP and CGROUP records are on */
	/* the rest is sampler*.c's */
	unsigned sideband;             /* SIDEBAND_* that this kernel knows */
	struct hart_watch *watch;      /* n_harts */
	struct hart_set seen;          /* online when last looked at */
	struct hart_set untried;       /* of them, those that want descriptors which were not there */
	struct event exec;             /* the tracepoint of execs, or a dummy */
	struct switch_bpf *switch_bpf; /* loaded when first needed */
	int switch_error; /* why BPF was not to be had, last: an errno; ENOTSUP: it is not built in
			   */
	bool events_told; /* others have counted the events: there will be no new ones */
	int short_of; /* EMFILE or ENFILE: the last tick wanted descriptors that were not there; 0 */
	bool started;
	bool no_inherited_reads; /* before Linux 6.13: no groups in a per-task session */
};

enum {
	SAMPLER_REFUSED =
		1,    /* perf_event_open said no for all harts; *ret_error explains and mends */
	SAMPLER_GONE, /* no target lives any more */
	SAMPLER_FULL, /* out of descriptors; the error names the limit */
};

/* Plan and open everything, disabled. *ret_sampler is the caller's. 0, SAMPLER_*, -errno. */
int sampler_new(const struct kernel *k, const struct sampler_options *o,
	struct sampler **ret_sampler, struct event_error *ret_error);

/* Enable all events. Idempotent. 0 or -errno. */
int sampler_start(struct sampler *s);
int sampler_stop(struct sampler *s);

/* Add to lost[][LOSS_RING] what found a ring full and was not reported by a record: the kernel
 * counts it at once, while a LOST record needs room in that ring, and never comes at the very end.
 * What is added is in lost_ahead too, until LOST records report it (sampler_hear_lost). Again is
 * harmless. Before Linux 6.0 the kernel does not say, and nothing is added. sampler_tick does it
 * once a second, but in a session per task, whose events are too many. */
void sampler_count_losses(struct sampler *s);

/* A LOST record of that hart reports n: how many of them were not counted before? They count in
 * LOSS_RING now. *ahead: the hart's lost_ahead. */
static inline uint64_t sampler_hear_lost(uint64_t *ahead, uint64_t n)
{
	uint64_t before = n < *ahead ? n : *ahead;
	*ahead -= before;
	return n - before;
}

/* Change the rate asked for. The kernel's limit still holds (hz, rate_lowered). Children that
 * inherited their event keep their rate. 0 or -errno. */
int sampler_set_rate(struct sampler *s, uint32_t hz);

/* Once a second: harts that came or went, the kernel's rate limit, counters that somebody else
 * took. Rings may be added or closed, so drain everything before. What fails without descriptors
 * is tried again by the next (short_of). 0, or -errno. */
int sampler_tick(struct sampler *s);

/* Should that hart bring samples all the while that it is busy? *ret_user: only while it runs
 * programs, and not the kernel. False where events fire by something else than time, where a hart's
 * time says nothing of the tasks that were asked for, and where nothing samples. */
bool sampler_is_steady(const struct sampler *s, int hart, bool *ret_user);

/* Close all that is open on that hart, with its ring, and open it again. Drain before; what
 * happened meanwhile is in no ring. 0, or -errno; where it does not open the plan says why. */
int sampler_reopen(struct sampler *s, int hart);

/* CUT_* of all harts: what cuts the counts of this session. */
unsigned sampler_cut(const struct sampler *s);
/* Of the time for which that hart's hardware counters were wanted, the part that they were had, 0
 * to 1; less than 1 if they are shared. 1 where there are none. As of the last tick. */
double sampler_counted_share(const struct sampler *s, int hart);

struct sampler *sampler_free(struct sampler *s);
