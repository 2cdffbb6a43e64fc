/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* One hart of a sampler: planned, opened, closed
 *
 * Private to the pmu station; sampler.c opens all harts with it, sampler_tick.c those that come.
 */

#include "daemon/pmu/sampler.h"

enum {
	HART_REFUSED = 1, /* the kernel said no; the opening's error is a sentence */
	HART_GONE,        /* every task is gone, or the hart is offline */
};

/* What opening learnt, over all harts. */
struct opening {
	struct sampler *sampler;
	const pid_t *tasks; /* threads to open, or one -1 for the whole system */
	size_t n_tasks;
	struct event_error error; /* of the first refusal; empty: none */
	uint64_t asked_opened; /* bit i: the session's event i, asked by name, opened somewhere */
	struct event_error asked_error[EVENTS_MAX]; /* why event i did not */
};
_Static_assert(EVENTS_MAX <= 64, "asked_opened has a bit per event");

/* Keep a sentence; the first one stays, since it is the one that tells. */
__attribute__((format(printf, 2, 3))) void opening_explain(
	struct event_error *e, const char *format, ...);

/* The same with refusal_explain's words. Returns HART_REFUSED. */
int opening_refuse(
	const struct opening *o, const struct event *e, int error, struct event_error *to);

/* Errors after which nothing more can be opened, whatever it is. */
bool opening_exhausted(int r);

/* Open one event on stream->hart and enter the stream, its fd and id set. It writes into the hart's
 * ring if that is open by now. 0 or -errno with nothing left open. */
int stream_open(struct sampler *s, const struct perf_event_attr *attr, pid_t pid, int group_fd,
	struct stream *stream);

/* Open the groups of a hart for one target: the plan's, or the asked ones. Missing siblings are
 * counted for the first target. 0, HART_REFUSED, or -errno, with part of it perhaps open. */
int plan_open(struct opening *o, int hart, pid_t pid, bool first);
int asked_open(struct opening *o, int hart, pid_t pid, bool first);

/* May the context-switches sibling be used? */
static inline bool sampler_wants_sibling(const struct sampler *s)
{
	return s->options.switches != SAMPLER_SWITCHES_BPF &&
	       s->options.switches != SAMPLER_SWITCHES_NONE;
}

/* Let BPF read the group of that leader at each switch, if it is to be had. 0; HART_REFUSED: it is
 * not; -errno of what is exhausted. */
int switch_bpf_open(struct sampler *s, const struct stream *leader);

/* Find e in the session's list, or add it. NULL if the list is full, or told to others. */
struct event *event_enter(struct sampler *s, const struct event *e);

/* Once all harts are open: enter what harts may come to sample by later, and let the list of events
 * stay as it is, since others begin to count by it. */
void plan_reserve(struct sampler *s);

/* Find out which side-band features this kernel has, on that hart. 0, HART_*, -errno. */
int sideband_learn(struct opening *o, int hart);

/* Plan (where the ladder is climbed) and open everything on that hart, disabled. On anything but 0
 * nothing of that hart stays open. Raises the soft descriptor limit once if it is in the way. */
int hart_open(struct opening *o, int hart);
void hart_close(struct sampler *s, int hart);
/* Close what samples on that hart, plan it, and open that, disabled. Its side band and ring stay as
 * they are, so that nothing of what happens is missed. System-wide sessions only. As hart_open. */
int hart_replan(struct opening *o, int hart);

/* Enable or disable all that was opened on that hart; -1: on every hart. 0 or -errno. */
int hart_enable(struct sampler *s, int hart, bool enable);

/* What a read of an event says. 0 or -errno. */
struct reading {
	uint64_t enabled_ns; /* 0: not asked for */
	uint64_t running_ns; /* the same */
	uint64_t n_lost;     /* records that found the ring full, of the whole group */
};
int stream_read(const struct sampler *s, const struct stream *stream, struct reading *ret_reading);

/* sampler_count_losses for one hart. */
void hart_count_losses(struct sampler *s, int hart);
/* Some of its events were closed: what they lost is told by now. */
void hart_forget_losses(struct sampler *s, int hart);

/* Look how long that hart's counters ran since the last look. True: they did not for so long, or
 * had not and may now, that the ladder is to be climbed anew. */
bool hart_share_look(struct sampler *s, int hart);

/* The open ring of that hart, or NULL. */
struct ring *hart_ring(struct sampler *s, int hart);

/* Read the kernel's rate limit again and bring all open events under it. Positive: rate changed. */
int rate_follow(struct sampler *s);

/* The threads of the session's processes, or one -1. The caller frees. 0, HART_GONE, -errno. */
int targets_read(const struct sampler *s, pid_t **ret_tasks, size_t *ret_n_tasks);
