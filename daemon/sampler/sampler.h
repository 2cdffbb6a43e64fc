/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The sampler: the opened events and rings of one session
 *
 * plan → open → drain. System-wide, it holds for each online hart a side-band dummy event with a
 * ring, and that hart's sampling group writing into the same ring (PERF_EVENT_IOC_SET_OUTPUT). Per
 * task (without the right to see the whole system), the same for each (thread, hart) with inherit,
 * with one ring for all events of a hart. If a group member does not open, the others are not
 * leaked.
 *
 *      hart 0:  [dummy]──ring 0     [leader]─┐
 *                                   [cycles]─┤ PERF_SAMPLE_READ, all into ring 0
 *                                   [instr. ]┤
 *                                   [switch ]┘
 *                                   [output ]── the counts that BPF reads at switches, into ring 0 too
 *               [exec ]──exec ring 0
 *
 * A BPF program brings the arguments of each exec into the exec ring (exec_bpf.h), which is read at each drain. Where
 * it is not available, there is the exec event: the tracepoint sched:sched_process_exec, or else a dummy with COMM
 * records (which include FORK and EXIT). It is optional: every exec also comes through ring 0, a little later. So a
 * hart on which it does not open has none, and a session per task, which would need one for each thread, has none at
 * all.
 *
 * Counts are cut at switches by the context-switches sibling, or if it does not open by a BPF
 * program (switch_bpf.h), which is loaded when the first group needs it. Where it is found to cost
 * less, a BPF program sums up the counts of each task (sampler_prefer_sums). If none is available or
 * wanted, a sibling counts the switches, without a record for each (CUT_COUNT): counts are
 * then charged only where no switch came between two samples. Without that one too (CUT_NONE),
 * nothing is charged.
 */

#include "daemon/kernel/machine.h"
#include "daemon/kernel/ring.h"
#include "daemon/pmu/event/event.h"
#include "daemon/sampler/ladder.h"
#include "daemon/sampler/stream.h"

#define SAMPLER_HZ_DEFAULT 99u
#define SAMPLER_HZ_MAX 50000u /* beyond it the sampling interrupt dominates the profile */
/* Source: perf_copy_attr in kernel/events/core.c of Linux 6.12 */
#define SAMPLER_PERIOD_MAX ((uint64_t)INT64_MAX)
#define SAMPLER_STACK_BYTES_DEFAULT 8192u
/* Source: man perf_event_open, sample_stack_user: < 64 KiB, multiple of 8 */
#define SAMPLER_STACK_BYTES_MAX 65528u
#define SAMPLER_TASKS_MAX 4096 /* threads opened individually in a per-task session */

/* Raises: single tasks, and what they start, that are sampled faster than the system, into rings of their
 * own, so that their rate costs neither the time nor the samples of others. */
#define RAISES_MAX 8u /* at a time, numbered from 1 */
/* Rings of events of tasks that wait have this number. */
#define RAISE_OF_WAITS (RAISES_MAX + 1)
/* Events of one raise, over all harts: descriptors that no user is charged for. */
#define RAISE_EVENTS_MAX 1024u
/* The same of tasks that are watched where they wait, in a session of the service; and in one of its own. */
#define WAITS_EVENTS_MAX 1024u
#define WAITS_EVENTS_OWN_MAX 16384u

/* Things that threads without a hart wait for (kernel/offcpu.inc). */
#define SAMPLER_OFFCPU_MAX 12u

enum sampler_stacks {
	SAMPLER_STACKS_NONE,
	SAMPLER_STACKS_FP,
	SAMPLER_STACKS_DWARF,
};

/* The means by which counts are cut at switches. */
enum sampler_switches {
	SAMPLER_SWITCHES_BEST,    /* the sibling, else BPF */
	SAMPLER_SWITCHES_SIBLING, /* or nothing */
	SAMPLER_SWITCHES_BPF,     /* or nothing */
	SAMPLER_SWITCHES_NONE,    /* switches are only counted */
	/* BPF, as sums where the session takes all tasks; or nothing */
	SAMPLER_SWITCHES_SUMS,
	/* The same as BEST, but sums on harts where they are preferred. Only by request: the kernel
	 * drops samples that come while another BPF program runs on that hart, and no answer reports
	 * that. */
	SAMPLER_SWITCHES_CHEAPEST,
	SAMPLER_SWITCHES_BOTH, /* both, to be compared (doctor/switch_check.h), not added up */
};
/* All but the last by name: "best", "sibling", "bpf", "none", "sums", "cheapest". 0, -EINVAL. */
int sampler_switches_parse(const char *name, enum sampler_switches *ret_switches);

struct sampler_options {
	uint32_t hz; /* 1 … SAMPLER_HZ_MAX */
	/* with events: each fires once per this number of occurrences (for a clock: ns), regardless
	 * of hz; 0: by hz */
	uint64_t period;
	/* highest rate for sampler_set_rate, which the rings are sized for; 0: hz */
	uint32_t ring_hz;
	enum sampler_stacks stacks;
	/* copied of each stack with SAMPLER_STACKS_DWARF; with may_copy_more, a session copies more where its
	 * rings have room (effort.h) */
	uint32_t stack_bytes;
	bool may_copy_more;
	bool user_only;
	bool never_kernel; /* with user_only: even if a requested event cannot exclude the kernel */
	bool some_tasks;   /* only some of the sampled tasks are wanted: nothing is summed up */
	/* always-on sampling: no count may starve it (priority.c), and its side band has rings of
	 * its own, so as not to fill those of samples */
	bool always;
	bool per_task;     /* open events per task in pids (and their children) */
	const pid_t *pids; /* processes; each one's threads are opened */
	size_t n_pids;
	const struct event_list *events; /* the user's own -e, or NULL: climb the ladder */
	const char *own_leader;          /* see struct ladder_options */
	enum sampler_switches switches;
	/* borrowed while the sampler exists; NULL: nothing is known about cores */
	struct cores *cores;
};

/* Parts of its work that a session leaves out (effort.h). All 0: none. */
struct sampler_effort {
	bool no_cut;      /* counts are not cut at switches */
	bool no_counters; /* samples carry no hardware counters */
	bool clock_only;  /* samples come from cpu-clock, the last rung */
	bool no_callers;  /* samples have no callers */
	/* hart counts are not taken (metric/hart_counts.h); they are not the sampler's */
	bool no_groups;
	unsigned
		rate_part; /* the rate is divided by this; 0 and 1: it is not. The caller sets the rate */
	/* part of the rate that remains; a task with a higher rate is sampled at that rate */
	uint32_t hz;
};

/* --- what each file of the room keeps; no other touches it ------------------------------------ */

/* stream_open.c */
struct stream_book {
	/* harts on which the session's event i uses the core's own event code */
	struct hart_set by_raw[EVENTS_MAX];
	bool fixed;         /* others rely on the number of events: no new events */
	uint64_t closed_ns; /* the last time that streams were closed and kept */
};

/* switch.c */
struct switch_programs {
	/* by way, loaded when first needed */
	struct switch_bpf *program[N_SWITCH_WAYS];
	/* likewise, why BPF was not available, last: an errno; ENOTSUP: not built in */
	int error[N_SWITCH_WAYS];
};

/* group.c */
struct group_limits {
	uint64_t unexcluded;     /* bit i: event i should exclude the kernel, but its PMU cannot */
	bool no_inherited_reads; /* before Linux 6.13: no groups in a per-task session */
};

/* effort.c */
struct effort_state {
	struct sampler_effort in_force;
	enum sampler_switches switches; /* as requested, regardless of the effort */
	enum sampler_stacks stacks;     /* likewise */
	struct hart_set sums;           /* harts on which sums are preferred */
	struct hart_set unfit;          /* harts that do not follow the effort yet */
};

/* loss.c */
struct ring_losses {
	uint64_t before; /* lost[][LOSS_RING] when the hart's events were opened */
};

/* presence.c */
struct presence {
	uint64_t enabled_ns; /* time for which the hart's side-band event had been enabled, */
	uint64_t looked_ns;  /* at the latest by this time */
};

/* hart_share.c */
struct counter_share {
	/* total time enabled and running of the event that fires there and has hardware
	 * counters, */
	uint64_t wanted_ns, ran_ns;
	uint64_t before_wanted_ns, before_ran_ns; /* and at the last check */
	unsigned n_starved;  /* consecutive checks at which it had not run at all, */
	unsigned n_short;    /* and at which it had not run nearly all the time */
	uint64_t checked_ns; /* when its counters were last checked */
	bool yields;         /* its counters are left to others until climb_ns (priority.c) */
	enum rung best;      /* best rung that the hart ever had */
	/* CLOCK_MONOTONIC: do not climb the ladder again before; 0: any time */
	uint64_t climb_ns;
};

/* sideband.c */
struct sideband {
	unsigned features; /* SIDEBAND_* that this kernel knows */
};

/* exec.c */
struct exec_reports {
	struct event event;       /* the tracepoint, or a dummy */
	struct exec_bpf *program; /* loaded when first needed */
	int error;                /* why BPF is not available: an errno; ENOTSUP: not built in */
};

/* tick.c */
struct hotplug {
	/* number of harts that could not be opened for lack of descriptors */
	struct hart_set untried;
};

struct sampler {
	/* Others read this. Set by sampler.c, or by the named file. */
	const struct kernel *kernel;
	struct machine machine;         /* also rate.c, tick.c */
	struct sampler_options options; /* copied; pids and events are not borrowed afterwards */
	bool started;
	struct plan *plan;  /* n_harts, by hart; hart.c */
	struct plan *found; /* likewise, as the ladder found it, regardless of the effort */
	/* leaders and siblings, indexed by a stream's `event`; stream_open.c */
	struct event_list events;
	struct stream_table streams; /* stream_open.c */
	/* n_rings; of each hart one, or in a session that is `always` there one of samples and one of
	 * the side band; behind them, one for each raise; rings.c */
	struct ring *ring;
	size_t n_rings;
	/* harts whose exec ring has records of STREAM_EXEC_BPF; exec.c */
	struct hart_set exec_records;
	struct ring *exec_ring; /* n_exec_rings ≤ n_rings; a record for each exec */
	size_t n_exec_rings;
	uint64_t (*lost)[N_LOSSES]; /* n_harts rows: losses of this room */
	/* n_harts: the part of LOSS_RING that no LOST record has reported yet; loss.c */
	uint64_t *lost_ahead;
	uint64_t raised_lost[RAISES_MAX + 1]; /* by raise: records that found its ring full */
	uint32_t hz;       /* the current rate, which the kernel does not throttle; rate.c */
	bool rate_lowered; /* the kernel's limit reduced the requested rate; rate.c */
	/* lowest rate since the kernel's limit took effect; 0: it is not in effect; rate.c */
	uint32_t hz_lowest;
	/* number of times that periods were moved between ticks; 0: they follow hz; rate.c */
	uint32_t n_moves;
	uint32_t copy_bytes;  /* copied of each stack, options.stack_bytes or more; refit.c */
	bool cgroups;         /* PERF_SAMPLE_CGROUP and CGROUP records are on; sideband.c */
	bool reads_lost;      /* PERF_FORMAT_LOST is on; sideband.c */
	struct hart_set seen; /* online at the last check; tick.c */
	/* EMFILE or ENFILE: the last tick ran out of descriptors; else 0; tick.c, rate.c */
	int short_of;

	struct stream_book book;
	struct switch_programs programs;
	struct group_limits limits;
	struct effort_state effort;
	struct ring_losses *losses;  /* n_harts */
	struct presence *presence;   /* n_harts */
	struct counter_share *share; /* n_harts */
	struct sideband sideband;
	struct exec_reports execs;
	struct hotplug hotplug;
	/* by kind (decode/offcpu.h), if has_offcpu; offcpu.c */
	struct stream offcpu[SAMPLER_OFFCPU_MAX];
	bool has_offcpu;
	bool offcpu_of_some; /* only recordings of processes have samples of them */
};

enum {
	/* perf_event_open failed on all harts; *ret_error has the reason and remedy */
	SAMPLER_REFUSED = 1,
	SAMPLER_GONE, /* all targets have ended */
	SAMPLER_FULL, /* out of descriptors; the error names the limit */
};

/* Plan and open everything, disabled. The caller owns *ret_sampler. 0, SAMPLER_*, -errno. */
int sampler_new(const struct kernel *k, const struct sampler_options *o,
	struct sampler **ret_sampler, struct event_error *ret_error);

/* Give the session events of threads without a hart, once, before it starts. of_some: only recordings of processes will
 * have samples of them. False: it has events that somebody asked for. */
bool sampler_add_offcpu(struct sampler *s, bool of_some);

/* Enable all events. Idempotent. 0 or -errno. */
int sampler_start(struct sampler *s);
int sampler_stop(struct sampler *s);

/* Add to lost[][LOSS_RING] the records that found a ring full and were not reported by a LOST
 * record: the kernel counts them at once, while a LOST record needs room in that ring, and never
 * comes at the very end. They are also added to lost_ahead until LOST records report them
 * (sampler_hear_lost). Repeating it is harmless. Before Linux 6.0 the kernel does not give this
 * count, and nothing is added. sampler_tick does it once a second, except in a session per task,
 * which has too many events. */
void sampler_count_losses(struct sampler *s);
/* The records that could be those of execs and found their ring full, reported or not: of the side band, or of the
 * records of execs that are apart. 0 before Linux 6.0. */
uint64_t sampler_execs_lost(const struct sampler *s, bool apart);

/* Take n losses that a LOST record of that hart reports. Returns how many of them are not in
 * LOSS_RING yet, for the caller to add. *ahead: the hart's lost_ahead. */
static inline uint64_t sampler_hear_lost(uint64_t *ahead, uint64_t n)
{
	uint64_t before = n < *ahead ? n : *ahead;
	*ahead -= before;
	return n - before;
}

/* Sample that task, and all that it will start, hz times a second in addition to the session's samples, by the hart's
 * sampling event without a group; 1 ≤ raise ≤ RAISES_MAX. Its samples (STREAM_RAISED) have no counts. The rate is at
 * most the highest that the kernel does not throttle. 0: the task is sampled on all harts that sample; SAMPLER_GONE:
 * the task has ended, or no hart samples; SAMPLER_REFUSED: a hart refuses; -errno, also for lack of descriptors. No
 * event of the task stays open unless 0. */
int sampler_raise_task(struct sampler *s, unsigned raise, uint32_t hz, pid_t task);
/* Close the events of that task and of the tasks that it started; 0: of all tasks, and the rings of the raise. */
void sampler_lower_task(struct sampler *s, unsigned raise, pid_t task);

/* From now on report when that task, and all that it will start, leaves a hart, with its callers (samples of
 * STREAM_WAITS), and when it leaves and gets one (RECORD_SWITCH). Without BPF, they tell where it waits. 0, also if it is
 * watched; SAMPLER_GONE: the task has ended; SAMPLER_REFUSED; SAMPLER_FULL: too many tasks; -errno. No event of the task
 * stays open unless 0. */
int sampler_watch_waits(struct sampler *s, pid_t task);
/* No task is watched any more. */
void sampler_unwatch_waits(struct sampler *s);

/* All records of before that time (CLOCK_MONOTONIC) were taken from the rings: forget the events
 * that were closed before. */
void sampler_drained(struct sampler *s, uint64_t before_ns);

/* The rate of its samples by time; 0: no event fires by time. */
uint32_t sampler_rate(const struct sampler *s);

/* Change the requested rate. The rate in force is still at most the highest that the kernel does not throttle
 * (machine_rate_max; hz, rate_lowered). Children that inherited their event keep their rate. 0 or -errno. */
int sampler_set_rate(struct sampler *s, uint32_t hz);

/* Read the kernel's limit at once, since it throttled, and follow it. Drain before, so that samples of the
 * former rate are weighted by that rate. 0 or -errno. */
int sampler_follow_rate(struct sampler *s);

/* Once a second: handle hotplug, the kernel's rate limit, and counters taken by others. Rings may
 * be added or closed, so drain everything before. If something fails for lack of descriptors, the next
 * call tries it again (short_of). 0, or -errno. */
int sampler_tick(struct sampler *s);

/* Should that hart deliver samples whenever it is busy? *ret_user: only while it runs user code.
 * False if events do not fire by time, if a hart's busy time is unrelated to the requested tasks,
 * or if nothing samples. */
bool sampler_is_steady(const struct sampler *s, int hart, bool *ret_user);

/* Close everything on that hart, with its ring, and open it again. Drain before; events in between
 * are lost. 0, or -errno; if it does not open, the plan has the reason. */
int sampler_reopen(struct sampler *s, int hart);

/* From now on, sum up counts by BPF on that hart rather than cut them by the sibling; or no longer.
 * For a session that takes all tasks and has the choice (SAMPLER_SWITCHES_CHEAPEST); others are
 * unchanged. Drain before. 0 or -errno. */
int sampler_prefer_sums(struct sampler *s, int hart, bool prefer);
/* May the session sum up counts at all? False if another way was requested, or if the kernel
 * refused it before. */
bool sampler_may_sum(const struct sampler *s);

/* CUT_* of all harts: how the counts of this session are cut. */
unsigned sampler_cut(const struct sampler *s);
/* The same as text: cut_name, or that counts are summed up. Static. */
const char *sampler_cut_says(const struct sampler *s);
/* The harts on which each of its events uses the core's own event code, by event; and the events, as bits, that should
 * exclude the kernel, but their PMU cannot. */
const struct hart_set *sampler_by_raw(const struct sampler *s);
uint64_t sampler_unexcluded(const struct sampler *s);
/* The requested means to cut counts, and the requested stacks, regardless of the effort. */
enum sampler_switches sampler_switches_asked(const struct sampler *s);
enum sampler_stacks sampler_stacks_asked(const struct sampler *s);
/* Are sums preferred on that hart? */
bool sampler_prefers_sums(const struct sampler *s, int hart);
/* The BPF program for that way; NULL: not loaded. The last reason why it was not available: an
 * errno, or 0. */
struct switch_bpf *sampler_switch_program(const struct sampler *s, enum switch_way way);
int sampler_switch_error(const struct sampler *s, enum switch_way way);
/* Do execs come as samples with a copy of the new program's stack? */
bool sampler_samples_execs(const struct sampler *s);
/* The reason why no BPF program reports execs, an errno; 0: one does, or none was requested.
 * Exported for tests. */
int sampler_exec_error(const struct sampler *s);
/* Were hardware counters ever wanted on that hart? */
bool sampler_has_counters(const struct sampler *s, int hart);
/* The fraction (0 to 1) of the enabled time that the hart's hardware counters ran; less than 1 if
 * they are shared. 1 if there are none. As of the last tick. */
double sampler_counted_share(const struct sampler *s, int hart);

struct sampler *sampler_free(struct sampler *s);
