/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Shared by the files of a sampler. Each calls only those before it:
 *
 *      stream_open ← rate, switch, loss ← rings ← group ← sideband ← exec ← hart ← refit, raise, waits ← tick
 *           presence, hart_share, priority ← effort ←                ← tasks, reserve ← sampler
 *
 * The structs that a file owns stand in sampler.h; no other file touches their members.
 */

#include "daemon/sampler/sampler.h"

enum {
	HART_REFUSED = 1, /* the kernel refused; the opening's error is a sentence */
	HART_GONE,        /* all tasks are gone, or the hart is offline */
};

/* The results of opening, over all harts. */
struct opening {
	struct sampler *sampler;
	/* Threads to open, or one -1 for the whole system. 0: the thread has ended, or hangs in an exec, for
	 * which the kernel waits 2 ms each time: we do not try it again on each hart. */
	pid_t *tasks;
	size_t n_tasks;
	struct event_error error; /* of the first refusal; empty: none */
	/* bit i: the session's event i, requested by name, opened somewhere */
	uint64_t asked_opened;
	struct event_error asked_error[EVENTS_MAX]; /* why event i did not open */
};
_Static_assert(EVENTS_MAX <= 64, "asked_opened has a bit per event");

/* Set the sentence if there is none yet: the first error is the relevant one. */
__attribute__((format(printf, 2, 3))) void opening_explain(
	struct event_error *e, const char *format, ...);

/* The same with refusal_explain's words. Returns HART_REFUSED. */
int opening_refuse(
	const struct opening *o, const struct event *e, int error, struct event_error *to);

/* Errors after which no further event can be opened. */
bool opening_exhausted(int r);

/* Open one event on stream->hart and enter the stream with its fd and id. It writes into the hart's
 * ring if that is already open. 0 or -errno with nothing left open. */
int stream_open(struct sampler *s, const struct perf_event_attr *attr, pid_t pid, int group_fd,
	struct stream *stream);

/* Streams to close: what `is` compares. */
struct closing {
	int hart;
	unsigned raise;
	pid_t task; /* 0: any */
	/* their records are still in a ring: keep them findable until sampler_drained */
	bool keep;
};
/* Close those streams. */
void streams_close(struct sampler *s, bool (*is)(const struct stream *t, const struct closing *c),
	const struct closing *c);
/* Close one that was just opened. */
void stream_close(struct sampler *s, const struct stream *stream);

/* Open the groups of a hart for one target: the plan's, or the requested ones. Missing siblings are
 * counted for the first target. 0, HART_REFUSED, or -errno, possibly with some events open. */
int plan_open(struct opening *o, int hart, pid_t pid, bool first);
int asked_open(struct opening *o, int hart, pid_t pid, bool first);

/* May the context-switches sibling be used? */
static inline bool sampler_wants_sibling(const struct sampler *s)
{
	return s->options.switches != SAMPLER_SWITCHES_BPF &&
	       s->options.switches != SAMPLER_SWITCHES_SUMS &&
	       s->options.switches != SAMPLER_SWITCHES_NONE;
}

/* Let BPF read the group of that leader at each switch. 0; HART_REFUSED: BPF is not available;
 * -errno of an exhausted resource. */
int switch_bpf_open(struct sampler *s, const struct stream *leader, enum switch_way way);
/* Load that program, if it is not yet. Results as of switch_bpf_open. */
int switch_bpf_load(struct sampler *s, enum switch_way way);
/* Remove the groups of that hart from all BPF programs. */
void switch_bpf_close(struct sampler *s, int hart);
void switch_programs_free(struct sampler *s);

/* Find e in the session's list, or add it. NULL if the list is full or fixed. */
struct event *event_enter(struct sampler *s, const struct event *e);
/* From now on others rely on the number of events: enter no new ones. */
void events_fix(struct sampler *s);

/* Call once all harts are open: enter the events that harts may sample by later, then fix the list
 * of events, since others begin to rely on it. */
void plan_reserve(struct sampler *s);

/* Find out on that hart which side-band features this kernel has. 0, HART_*, -errno. */
int sideband_learn(struct opening *o, int hart);

/* Open the side band of that hart for one target, and the rings that are not mapped yet. 0, HART_REFUSED, -errno. */
int sideband_open(struct opening *o, int hart, pid_t pid);
/* Explain why the side band was refused. The user did not request its event, so the message names no
 * event. Returns HART_REFUSED. */
int sideband_refuse(struct opening *o, int error);
/* Report execs on that hart, if possible (exec.c). Call after its side band is open. */
void exec_begin(struct sampler *s);
void exec_open(struct sampler *s, int hart);
/* Let no program report execs on that hart. */
void exec_close(struct sampler *s, int hart);
void exec_end(struct sampler *s);
/* Raise our soft limit of descriptors. False: it was as high as it can be. */
bool raise_descriptor_limit(void);

/* Plan (where the ladder is climbed) and open everything on that hart, disabled. If not 0, nothing
 * of that hart stays open. Raises the soft descriptor limit once if needed. */
int hart_open(struct opening *o, int hart);
void hart_close(struct sampler *s, int hart);
/* Close the sampling events of that hart, plan again, and open the new ones, disabled. Its side
 * band and ring stay open, so that no side-band record is missed. System-wide sessions only.
 * Results as of hart_open. */
int hart_replan(struct opening *o, int hart);

/* The same without climbing the ladder: by what it found before, and the effort in force. */
int hart_refit(struct opening *o, int hart);
/* The same for a running session, enabled; what fails for lack of descriptors is tried again at the next
 * tick. 0 or -ENOMEM. */
int sampler_refit(struct sampler *s, int hart);
/* The effort of a session that begins. */
void effort_begin(struct effort_state *f, const struct sampler_options *o);
/* Set another effort. True: it needs other events, so that the harts have to follow. */
bool effort_set(struct sampler *s, const struct sampler_effort *effort);
void effort_prefer_sums(struct sampler *s, int hart, bool prefer);
/* Note that the hart has to follow. Did it have to, until now? */
void effort_is_due(struct sampler *s, int hart);
bool effort_take_due(struct sampler *s, int hart);
/* Remove from a hart's plan of the ladder the work that the effort in force leaves out, and the counters that
 * are left to others. */
void effort_reduce(const struct sampler *s, int hart, struct plan *p);
/* Decide whether the group of that plan is pinned. */
void plan_pin(const struct sampler *s, int hart, struct plan *p);
/* Could other programs still count each of the group's events if the group held its counters
 * permanently? */
bool plan_leaves_room(const struct sampler *s, int hart, const struct plan *p);
/* Bring some of the harts that do not follow the effort yet to it. 0 or -errno. */
int effort_follow(struct sampler *s);

/* Choose how much of each stack a new session copies. Sessions other than always-on sampling begin with as much as
 * their rings have room for. */
void copies_begin(struct sampler *s);

/* Enable or disable all events on that hart; -1: on all harts. 0 or -errno. */
int hart_enable(struct sampler *s, int hart, bool enable);

/* Read an event. 0; STREAM_DISPLACED: it is pinned, found no counter, and counts nothing until it is
 * enabled again; -errno. */
enum { STREAM_DISPLACED = 1 };
struct reading {
	uint64_t enabled_ns; /* 0: not in read_format */
	uint64_t running_ns; /* the same */
	uint64_t n_lost;     /* records of the whole group that found the ring full */
};
int stream_read(const struct sampler *s, const struct stream *stream, struct reading *ret_reading);

/* Count losses of the hart from now on: its events are opened. */
void hart_begin_losses(struct sampler *s, int hart);
/* sampler_count_losses for one hart. */
void hart_count_losses(struct sampler *s, int hart);
/* Note that some of the hart's events were closed: their losses are reported by now. */
void hart_forget_losses(struct sampler *s, int hart);

/* Check how long that hart's counters ran since the last check. SHARE_CLIMB: climb the ladder again,
 * since they have not run for too long, or may run again. SHARE_REFIT: open its group again, since its
 * counters are left to others now, or no longer. */
enum share { SHARE_KEPT, SHARE_CLIMB, SHARE_REFIT };
enum share hart_share_look(struct sampler *s, int hart);
/* Take over the total times of the counters, the best rung, and when to climb: the hart's events
 * are opened. */
void share_begin(struct sampler *s, int hart);
/* Its sampling events are opened again. */
void share_begin_again(struct sampler *s, int hart);
/* Are the hart's counters left to others? Take the counters back. */
bool share_yields(const struct sampler *s, int hart);
void share_take_back(struct sampler *s, int hart);

/* Find the harts that were offline since the last call. A task's event is enabled while the task runs, and outlives
 * the hart's absence, so a session per task does not know. */
struct hart_set harts_away(struct sampler *s);
/* Its events are opened; they are enabled or disabled now. */
void presence_begin(struct sampler *s, int hart);
void presence_note(struct sampler *s, int hart);

/* The open ring of that hart and raise (0: the session's own samples), or NULL. */
struct ring *hart_ring(struct sampler *s, int hart, unsigned raise);
/* Map a ring of n bytes, or what is left of locked memory, through fd. 0, HART_REFUSED with *error, -errno. */
int hart_map_ring(struct sampler *s, const struct ring *of, size_t n, struct event_error *error);
/* Map a ring of execs. 0 or -errno. */
int exec_ring_map(struct sampler *s, const struct ring *of, size_t n);
/* Bytes of the largest copies for which a ring of that size has room at the rate; at least `least`. */
uint32_t ring_copy_most(size_t ring_bytes, uint32_t least, uint32_t hz);
/* The rate in Hz to ask ring_copy_most() for a session's first copies: a recording's is higher than its own, so that
 * its rings hold more than a quarter of a second. */
uint32_t ring_begin_hz(const struct sampler *s);
/* Bytes of the smallest ring of samples, but those of raises; 0: there is none. */
size_t rings_least(const struct sampler *s);
/* Unmap the rings of that hart (-1: of all) and raise. */
#define RINGS_OF_ALL (RAISES_MAX + 2) /* of all uses */
void rings_close(struct sampler *s, int hart, unsigned raise);

/* Is r a lack of descriptors? Then the session remembers it (short_of). */
bool sampler_is_short(struct sampler *s, int r);

/* The rate of a session that begins. */
void rate_begin(struct sampler *s);
/* Read the kernel's rate limit again and apply it to all open events. Positive: the rate
 * changed. */
int rate_follow(struct sampler *s);

/* The threads of the session's processes, or one -1. The caller frees. 0, HART_GONE, -errno. */
int tasks_read(const struct sampler *s, pid_t **ret_tasks, size_t *ret_n_tasks);
