/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* A recording: what one tap of a walk keeps, in one segment
 *
 *      walk ─▶ tap ─▶ window ─▶ segment
 *
 * A window is flushed when its time is over. Once told to finish, a recording waits for names as long
 * as some come, and seals; what is not named then, its answers say. It either has a walk of its own,
 * which it then stops, or shares one.
 */

#include "daemon/aggregate/window.h"
#include "daemon/control/targets.h"
#include "daemon/control/walk.h"
#include "daemon/store/segment.h"

#define RECORDING_WINDOW_NS 1000000000u
/* Names that have not come this long after the end will not be waited for, though others still come:
 * whoever waits has the rest of his day before him. A slow hart reads the kernel's symbols in half a
 * minute, and debug information of a big program in as much. */
#define RECORDING_NAMES_NS 120000000000u
/* Nor are any after so long without a single one. The namer gives up on a file before that: its limit is
 * one of CPU time, which takes longer where others run. */
#define RECORDING_STALL_NS                                                                         \
	(NAMER_OPEN_TIMEOUT_NS + NAMER_WALL_TIMES * NAMER_PARSE_TIMEOUT_NS + 3000000000u)

struct recording_options {
	struct walk *walk;               /* borrowed; outlives the recording */
	bool shared;                     /* others listen to the walk too: it goes on */
	struct targets targets;          /* copied */
	bool hide_kernel;                /* of a shared walk that sees it */
	uint64_t start_ns;               /* CLOCK_MONOTONIC, up to which the walk has been caught up with;
	                                    0: now */
	uint64_t window_ns;              /* 0: RECORDING_WINDOW_NS */
	uint64_t names_ns, stall_ns;     /* 0: as above */
	const char *command;             /* for meta */
	const char *path;                /* of the segment to make */
	bool live;                       /* others read it while it is written */
	/* The loop's thread has spent that time on a window; returns the earliest time to store the
	 * next, CLOCK_MONOTONIC. NULL: nobody counts it. */
	uint64_t (*spent)(void *owner, uint64_t ns);
	void *owner;
	uint64_t (*lost)[N_LOSSES];      /* per hart, of the caller's: what the recording itself loses is
	                                    added; NULL: its own */
	uint64_t (*told)[N_LOSSES];      /* per hart, of the caller's: losses that segments before this
	                                    one have told of, kept up to date; what came since is in the
	                                    first window. NULL: what came before is not ours */
	uint32_t hz;           /* keep about that many samples a second and hart where the walk
				  brings more (recording_thin.h); 0: all */
	uint64_t *taken;       /* per hart, of the caller's: samples taken in are added; or NULL */
	struct shares *shares; /* borrowed; what each user may write: beyond it samples lose
				  detail, LOSS_SHARE. NULL: nobody has a limit */
};

struct recording;

enum {
	RECORDING_GONE = 1,  /* a target that was named does not live: *ret_error names it */
	RECORDING_FULL,      /* disc: *ret_error */
	RECORDING_UNWRITABLE,/* read-only, say: *ret_error */
};

/* Begin: what the walk brings from now on is kept. 0, RECORDING_*, -errno. */
int recording_new(const struct recording_options *o, struct recording **ret_recording,
	struct event_error *ret_error);

/* Descriptors that tell when a target exits. The walk's are the walk's owner's. */
size_t recording_fds(const struct recording *g, struct pollfd *fds, size_t n);
/* UINT64_MAX until recording_finish. */
uint64_t recording_deadline_ns(const struct recording *g);

/* After the walk's dispatch: seal if that is due. 0; RECORDING_SEALED once the segment is complete
 * (after recording_finish); RECORDING_LOST_STORE when nothing more can be stored (then the recording
 * can only be freed); -ENOMEM. */
enum { RECORDING_SEALED = 8, RECORDING_LOST_STORE };
int recording_dispatch(struct recording *g, uint64_t now_ns);

/* Take what was sampled before now, and nothing more; sealing follows in recording_dispatch. A walk
 * that is not shared is stopped. */
int recording_finish(struct recording *g, uint64_t now_ns);

/* Store what is in hand before its time. 0 or -errno. */
int recording_flush(struct recording *g, uint64_t now_ns);

/* True when every target has exited (never without named ones). */
bool recording_targets_gone(struct recording *g);

struct recording_state {
	uint64_t n_samples;          /* taken in: stored, in hand, or lost with the store */
	uint64_t n_stored, n_in_hand;
	uint64_t n_passed;           /* that a lower rate passed over: of nothing above */
	size_t waiting;              /* names and stacks that are still to come */
	const char *path;
	int64_t bytes;               /* of the segment by now */
	uint32_t n_stack_nodes;
	uint64_t end_ns;             /* 0: runs */
	int outcome;                 /* after RECORDING_LOST_STORE: what the segment said, SEGMENT_* or
	                                -errno */
};
void recording_state(const struct recording *g, struct recording_state *ret_state);

/* What is in hand is counted lost. A segment that is not sealed goes with it, unless it is live: that
 * is left as it is. */
struct recording *recording_free(struct recording *g);
