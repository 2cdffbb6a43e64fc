/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* A stream is one opened perf event, identified in records by its id
 *
 * Every record carries the id of the event that made it. The stream with that id gives the record's
 * layout and meaning: hart, session event, role. Streams are plain data: a recorded ring is stored
 * with its streams (tests/records).
 */

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/pmu/event/event.h"

enum stream_role {
	STREAM_SIDEBAND, /* dummy event: MMAP2, COMM, FORK, EXIT, CGROUP, … */
	STREAM_SAMPLER,  /* fires samples; the leader where there is a group */
	STREAM_SIBLING,  /* counts in a group; appears only inside read values */
	STREAM_SWITCH,   /* context-switches sibling, period 1: delivers the group at each switch */
	/* fires at each exec, or delivers COMM, into a ring of its own that wakes us at once */
	STREAM_EXEC,
	STREAM_SWITCH_BPF, /* the same as STREAM_SWITCH, read by the BPF program of switch_bpf.h */
	/* context-switches sibling that only counts: a stretch in which it does not move belongs to
	 * one task */
	STREAM_SWITCH_COUNT,
	/* counts of tasks, summed up by the BPF program, before a sample and when a task ends */
	STREAM_SWITCH_SUMS,
	/* dummy event without records of its own, through which a ring of samples is mapped: the side band has
	 * another */
	STREAM_RING,
	STREAM_RAISED, /* samples one task, and what it starts, faster (sampler_raise_task) */
	/* arguments and owner at each exec, by the BPF program of exec_bpf.h, into a ring of its own */
	STREAM_EXEC_BPF,
	/* fires when one task, and what it starts, leaves a hart, with callers; and SWITCH records (sampler_watch_waits) */
	STREAM_WAITS,
	STREAM_OFFCPU, /* a thread without a hart, found by a look (session/offcpu.h): of no ring */
};

/* The means by which the counts of a group are cut at context switches, as bits: of one hart, or of
 * all harts of a session. Stored: do not renumber. */
enum {
	CUT_SIBLING = 1, /* STREAM_SWITCH */
	CUT_BPF = 2,     /* STREAM_SWITCH_BPF or STREAM_SWITCH_SUMS */
	/* neither cut nor counted: nothing is charged. Before version 4 of segments, counts were
	 * charged to any task */
	CUT_NONE = 4,
	/* STREAM_SWITCH_COUNT: not cut; only stretches without a switch are charged */
	CUT_COUNT = 8,
	CUTS = 16, /* combinations */
};
/* "sibling", "bpf", "counted", "none", several joined by ", ", "" if there is nothing to cut.
 * Static. */
const char *cut_name(unsigned cut);

/* The ladder. Stored: do not renumber. */
enum rung {
	RUNG_NONE = 0,
	RUNG_CYCLES = 1, /* a: hardware cycles that interrupt on overflow */
	/* b: the core's own sampling-capable event leads cycles and instructions */
	RUNG_LEADER = 2,
	RUNG_CLOCK_LEADER = 3, /* c: cpu-clock leads hardware counters */
	RUNG_CLOCK = 4,        /* d: cpu-clock alone */
	RUNG_ASKED = 5,        /* the user's own -e */
	/* No source of samples: in a segment, rows of hart counts (hart_counts.h) have this value plus the
	 * pass, from 0, as rung. */
	RUNG_COUNTED = 16,
	RUNG_COUNTED_LAST = 255,
};
/* "d", and "cpu-clock alone". Static. */
const char *rung_letter(enum rung rung);
const char *rung_says(enum rung rung);

struct stream {
	uint64_t id;     /* PERF_EVENT_IOC_ID; key */
	uint64_t leader; /* id of the group's leader, its own where alone */
	enum stream_role role;
	enum rung rung;
	int hart;
	int event; /* index into the session's event list; -1 for sideband and switch */
	uint64_t sample_type, read_format, regs_user;
	uint64_t period; /* fixed period (ns for cpu-clock), 0 in frequency mode */
	/* time that one sample represents at this rate: 1e9 / rate; 0: not known, it fires by occurrences */
	uint64_t weight_ns;
	/* a leader whose readings at switches and samples give the time that tasks ran, which its
	 * samples represent */
	bool timed;
	/* a leader whose group counts all tasks and is not cut at switches: counts are charged only
	 * where its STREAM_SWITCH_COUNT shows that one task ran */
	bool uncut;
	/* a leader whose group is summed up by task (STREAM_SWITCH_SUMS): the values that its samples
	 * carry are not used */
	bool summed;
	/* a software event of the kernel, not a clock: its samples may carry another session's id
	 * (decode/sample_stream.c) */
	bool software;
	bool build_ids; /* its MMAP2 records may have build ids (attr.build_id) */
	bool closed;    /* its event is closed; records of it may still be in a ring */
	/* STREAM_RAISED and its STREAM_RING: of that raise, from 1; STREAM_WAITS with rings of their own: RAISE_OF_WAITS; else 0 */
	uint8_t raise;
	int task; /* STREAM_RAISED, STREAM_WAITS: the task that it was opened for */
	int fd;   /* -1 in a recording, and once closed */
};

/* The trailer of all our records except samples, since sample_id_all is always set: TID, TIME, CPU,
 * IDENTIFIER. Source: man perf_event_open, "sample_id". */
#define STREAM_SAMPLE_ID                                                                           \
	(PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER)

/* Streams sorted by id. */
struct stream_table {
	struct stream *stream;
	size_t n_streams, size;
	/* NULL, or streams that are closed, for their records that are still in a ring */
	struct stream_table *closed;
};

/* Add a copy, keeping the order. -ENOMEM, -EEXIST. */
int stream_table_add(struct stream_table *t, const struct stream *s);
void stream_table_remove(struct stream_table *t, uint64_t id);
/* Mark the stream of that id, which exists, as `timed`. */
void stream_table_set_timed(struct stream_table *t, uint64_t id);
/* The same as `uncut`. */
void stream_table_set_uncut(struct stream_table *t, uint64_t id);
/* The same as `summed`. */
void stream_table_set_summed(struct stream_table *t, uint64_t id);
/* The event of s, which the caller takes out of `stream`, is closed: let s be found until
 * stream_table_forget. s may point into the table. -ENOMEM: it is not found. */
int stream_table_keep(struct stream_table *t, const struct stream *s);
/* Forget closed streams: no record of a closed event is left. */
void stream_table_forget(struct stream_table *t);
/* Open or closed; NULL if the id is not known. O(log n). Borrowed until the table changes. */
const struct stream *stream_table_find(const struct stream_table *t, uint64_t id);
void stream_table_clear(struct stream_table *t);

/* Losses of the pipeline by cause, counted where they happen and stored per hart. `samples`: each
 * loss is a sample missing from the figures. */
enum loss {
	/* the ring was full: PERF_FORMAT_LOST once a second, PERF_RECORD_LOST between */
	LOSS_RING,
	LOSS_RING_SAMPLES, /* PERF_RECORD_LOST_SAMPLES */
	LOSS_THROTTLE,     /* PERF_RECORD_THROTTLE: times, not samples */
	LOSS_RECORD,       /* a record that does not decode */
	LOSS_STREAM,       /* a record of an unknown event (closed meanwhile) */
	LOSS_LATE,         /* arrived after later records: stored, order uncertain */
	LOSS_TASK,         /* sample of an unknown task: stored without a name */
	/* stored, but the stack ends early (copied stack too small, max_stack) */
	LOSS_STACK_TRUNCATED,
	LOSS_DEEP, /* of these, stacks that are deeper than the copy of them */
	/* stored with only the leaf: the unwinder was behind, gone, or refused */
	LOSS_UNWIND,
	/* frames left unnamed because their file killed the namer */
	LOSS_NAMER,
	LOSS_MEMORY, /* a sample that exceeded one of our memory limits */
	/* no room for a mapping, task, cgroup, frame or count: the sample is stored without it */
	LOSS_ROOM,
	LOSS_STORE,   /* could not be written */
	LOSS_HOTPLUG, /* times a hart went offline or came online */
	LOSS_SIBLING, /* siblings that failed to open: their counts are missing */
	LOSS_ARGV,    /* execs whose process was gone before its arguments could be read */
	LOSS_KILLED,  /* not yet stored when the daemon was killed; found at its next start */
	/* switches whose counts could not be read: the outgoing task gets none; or switches without
	 * a record: the next task gets the counts */
	LOSS_SWITCH,
	LOSS_LOOPS, /* counts of loops from programs that could not be stored */
	LOSS_BLIND, /* whole seconds in which a hart was busy without a sample */
	/* stored with less detail: the user exceeded their share of the store */
	LOSS_SHARE,
	/* whole seconds in which a hart was busy and delivered less than a tenth of its samples */
	LOSS_SPARSE,
	LOSS_TABLE, /* tables of programs above our limits: their loops are missing */
	/* not a loss: µs that mperf cost that hart, with its share of our own CPU time */
	LOSS_COST,
	/* whole seconds with always-on sampling lowered, while somebody measured roofs */
	LOSS_PAUSED,
	LOSS_SIDEBAND, /* records of the side band, where that has a ring of its own: no samples */
	/* times a process was asked for its arguments, owner or mappings, and did not answer in time */
	LOSS_SILENT,
	LOSS_OUTSIDE, /* samples of tasks outside our pid namespace: the kernel does not say which */
	/* records of switches that found their ring full, and waits whose end is not known for lack of one: their time is
	 * missing among the waits */
	LOSS_WAITS,
	N_LOSSES,
};
struct loss_kind {
	const char *name; /* stored and shown: "ring overrun" */
	bool samples;     /* counts samples that are missing from the figures */
};
extern const struct loss_kind loss_kinds[N_LOSSES];
