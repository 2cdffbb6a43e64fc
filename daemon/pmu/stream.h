/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* A stream is one opened perf event as its records name it
 *
 * Every record carries the id of the event that made it. The station's streams say, by id, how the
 * record is laid out and what it means: which hart, which of the session's events, which role.
 * Streams are plain data: a recorded ring is stored with its streams (tests/records).
 */

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/pmu/event.h"

enum stream_role {
	STREAM_SIDEBAND, /* dummy event: MMAP2, COMM, FORK, EXIT, CGROUP, … */
	STREAM_SAMPLER,  /* fires samples; the leader where there is a group */
	STREAM_SIBLING,  /* counts in a group; appears only inside read values */
	STREAM_SWITCH,   /* context-switches sibling, period 1: delivers the group at each switch */
	STREAM_EXEC,     /* fires at each exec, or tells COMM, into a ring of its own that wakes at once */
	STREAM_SWITCH_BPF, /* the same as STREAM_SWITCH, read by the BPF program of switch_bpf.h */
};

/* How the counts of a group are cut where one task gives way to another, as bits: what was taken on
 * a hart, or on all harts of a session. */
enum {
	CUT_SIBLING = 1, /* STREAM_SWITCH */
	CUT_BPF = 2,     /* STREAM_SWITCH_BPF */
	CUT_NONE = 4,    /* a group that is not cut: counts may be charged to who ran next */
	CUTS = 8,        /* combinations */
};
/* "sibling", "bpf", "none", several joined by ", ", "" where there is nothing to cut. Static. */
const char *cut_name(unsigned cut);

/* The ladder (DESIGN.md decision 2). Stored: do not renumber. */
enum rung {
	RUNG_NONE = 0,
	RUNG_CYCLES = 1,       /* a: hardware cycles that interrupt on overflow */
	RUNG_LEADER = 2,       /* b: the core's own sampling-capable event leads cycles and instructions */
	RUNG_CLOCK_LEADER = 3, /* c: cpu-clock leads hardware counters */
	RUNG_CLOCK = 4,        /* d: cpu-clock alone */
	RUNG_ASKED = 5,        /* the user's own -e */
};
/* "d", and "cpu-clock alone". Static. */
const char *rung_letter(enum rung rung);
const char *rung_says(enum rung rung);

struct stream {
	uint64_t id;         /* PERF_EVENT_IOC_ID; key */
	uint64_t leader;     /* id of the group's leader, its own where alone */
	enum stream_role role;
	enum rung rung;
	int hart;
	int event;           /* index into the session's event list; -1 for sideband and switch */
	uint64_t sample_type, read_format, regs_user;
	uint64_t period;     /* fixed period (ns for cpu-clock), 0 in frequency mode */
	uint64_t weight_ns;  /* time that one sample stands for by the rate: 1e9 / rate */
	bool timed;          /* a leader whose readings at switches and samples say how long somebody
	                        ran, which is what its samples really stand for */
	bool software;       /* fires as the kernel runs, not by a clock: its samples may bear the id of
	                        another session's (decode/owner.c) */
	bool build_ids;      /* its MMAP2 records may bring build ids (attr.build_id) */
	int fd;              /* -1 in a recording */
};

/* What every record of ours ends with, samples excepted, since sample_id_all is always set:
 * TID, TIME, CPU, IDENTIFIER. Source: man perf_event_open, "sample_id". */
#define STREAM_SAMPLE_ID                                                                           \
	(PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER)

/* Streams sorted by id. */
struct stream_table {
	struct stream *stream;
	size_t n_streams, size;
};

/* Add a copy, keeping the order. -ENOMEM, -EEXIST. */
int stream_table_add(struct stream_table *t, const struct stream *s);
void stream_table_remove(struct stream_table *t, uint64_t id);
/* The stream of that id, which is there, is `timed` from now on. */
void stream_table_set_timed(struct stream_table *t, uint64_t id);
/* NULL if the id is not known. O(log n). Borrowed until the table changes. */
const struct stream *stream_table_find(const struct stream_table *t, uint64_t id);
void stream_table_clear(struct stream_table *t);

/* What the pipeline lost or could not do, by cause, counted where it happens and stored per hart.
 * `samples` says whether one of it is one sample that is missing from the figures. */
enum loss {
	LOSS_RING,           /* the ring was full: PERF_FORMAT_LOST once a second, PERF_RECORD_LOST between */
	LOSS_RING_SAMPLES,   /* PERF_RECORD_LOST_SAMPLES */
	LOSS_THROTTLE,       /* PERF_RECORD_THROTTLE: times, not samples */
	LOSS_RECORD,         /* a record that does not decode */
	LOSS_STREAM,         /* a record of an event that we do not know (closed meanwhile) */
	LOSS_LATE,           /* arrived behind records of a later time: stored, order unsure */
	LOSS_TASK,           /* sample of a task that we never heard of: stored without a name */
	LOSS_STACK_TRUNCATED,/* stored, but the stack ends early (copied stack too small, max_stack) */
	LOSS_UNWIND,         /* stored with the leaf alone: the unwinder was behind, gone, or refused */
	LOSS_NAMER,          /* frames that stay unnamed since the namer was killed over their file */
	LOSS_MEMORY,         /* a sample that found no room under a cap of ours */
	LOSS_ROOM,           /* a mapping, task, cgroup, frame or count that found none: the sample is stored
	                        without it */
	LOSS_STORE,          /* could not be written */
	LOSS_HOTPLUG,        /* times a hart went away or came while we ran */
	LOSS_SIBLING,        /* siblings that failed to open, so that their counts are missing */
	LOSS_ARGV,           /* execs whose process was gone before its arguments could be read */
	LOSS_KILLED,         /* were in hand when the daemon was killed; found at its next start */
	LOSS_SWITCH,         /* switches whose counts could not be read: what ran until then gets none;
	                        or that no record told of: who is read next gets them */
	LOSS_LOOPS,          /* counts of loops that programs told of, which could not be written */
	LOSS_BLIND,          /* whole seconds for which a hart was busy and brought no sample */
	LOSS_SHARE,          /* stored with less detail: their user wrote more than a share of the store */
	N_LOSSES,
};
struct loss_kind {
	const char *name;    /* stored and shown: "ring overrun" */
	bool samples;        /* counts samples that are missing from the figures */
};
extern const struct loss_kind loss_kinds[N_LOSSES];
