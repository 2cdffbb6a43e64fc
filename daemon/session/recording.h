/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* A recording: the data that one tap of a walk keeps, in one segment
 *
 *      walk ─▶ tap ─▶ window ─▶ segment
 *
 * A window is flushed when its time is over. After recording_finish, a recording waits for callers and names
 * while any still come, then seals the segment; its answers report frames without a name. It either owns a
 * walk, which it stops then, or shares one.
 */

#include "daemon/aggregate/window.h"
#include "daemon/session/targets.h"
#include "daemon/session/walk.h"
#include "daemon/store/segment/segment.h"

#define RECORDING_WINDOW_NS 1000000000u
/* The longest wait for names after the end, even if some still come: the user is waiting. A slow
 * hart reads the kernel's symbols in half a minute, and the debug information of a big program in
 * as long. */
#define RECORDING_NAMES_NS 120000000000u
/* The longest wait for callers: samples whose callers have not come by then keep their leaf. */
#define RECORDING_CALLERS_NS 20000000000u
/* The longest wait without a single new name. The namer gives up on a file before that: its limit
 * is CPU time, which takes longer if others run. */
#define RECORDING_STALL_NS                                                                         \
	(NAMER_OPEN_TIMEOUT_NS + NAMER_WALL_TIMES * NAMER_PARSE_TIMEOUT_NS + 3000000000u)

/* Rows of a window that one iteration of the loop writes to the store, at about 2 µs each; later
 * iterations write the rest. */
#define RECORDING_STEP_ROWS 4000
/* Bytes of a file being sealed that one iteration reads: about 5 ms. */
#define RECORDING_STEP_BYTES (32u << 20)

struct recording_options {
	struct walk *walk;      /* borrowed; outlives the recording */
	bool shared;            /* others use the walk too, so it continues */
	struct targets targets; /* copied */
	bool hide_kernel;       /* if a shared walk sees it */
	bool no_callers;        /* keep only the innermost frames, without callers */
	/* CLOCK_MONOTONIC, up to which the walk has been drained; 0: now */
	uint64_t start_ns;
	uint64_t window_ns;          /* 0: RECORDING_WINDOW_NS */
	uint64_t names_ns, stall_ns; /* 0: as above */
	const char *command;         /* for meta */
	const char *labels;          /* as in segment_meta */
	uid_t labels_uid;
	const char *path; /* of the segment to create */
	bool live;        /* other processes read it while it is written */
	/* The loop's thread has spent ns on a window; returns the earliest time to store the next,
	 * CLOCK_MONOTONIC. NULL: not accounted. */
	uint64_t (*spent)(void *owner, uint64_t ns);
	void *owner;
	/* per hart, owned by the caller: the recording adds its own losses; NULL: kept inside */
	uint64_t (*lost)[N_LOSSES];
	/* per hart, owned by the caller: losses that earlier segments have recorded, kept up to
	 * date; later ones go into the first window. NULL: earlier losses are not ours */
	uint64_t (*recorded)[N_LOSSES];
	/* keep about this many samples per second and hart if the walk delivers more
	 * (downsample.h); 0: all */
	uint32_t hz;
	uint64_t *taken; /* per hart, owned by the caller: accepted samples are added; or NULL */
	/* borrowed; how much each user may write: beyond it samples lose detail, LOSS_SHARE. NULL:
	 * no limits */
	struct shares *shares;
	/* borrowed; memory that recordings share (naming/quota.h), of which this one's belongs to
	 * pool_uid; NULL: only the tree's own limit */
	struct quota *pool;
	uid_t pool_uid;
	uid_t raise_uid; /* as in struct tap */
	/* borrowed; continuous counts of harts, written into each window. NULL: none */
	struct hart_counts *counts;
};

struct recording;

enum {
	RECORDING_GONE = 1,   /* a named target does not exist: *ret_error names it */
	RECORDING_FULL,       /* disc: *ret_error */
	RECORDING_UNWRITABLE, /* read-only, say: *ret_error */
};

/* Start: keep what the walk delivers from now on. 0, RECORDING_*, -errno. */
int recording_new(const struct recording_options *o, struct recording **ret_recording,
	struct event_error *ret_error);

/* Descriptors that report when a target exits. Those of the walk belong to its owner. */
size_t recording_fds(const struct recording *g, struct pollfd *fds, size_t n);
/* When to dispatch next. 0: at once, to continue writing or sealing; UINT64_MAX until
 * recording_finish; then the end of the wait for names. */
uint64_t recording_deadline_ns(const struct recording *g);

/* After the walk's dispatch: seal if that is due. 0; RECORDING_SEALED once the segment is complete
 * (after recording_finish); RECORDING_LOST_STORE when nothing more can be stored (then only free
 * the recording); -ENOMEM. */
enum { RECORDING_SEALED = 8, RECORDING_LOST_STORE };
int recording_dispatch(struct recording *g, uint64_t now_ns);

/* Store later windows with that sentence, which answers quote: the steps taken to limit overhead.
 * "": none. It is cut off after RECORDING_NOTE_BYTES. */
#define RECORDING_NOTE_BYTES 256
void recording_note(struct recording *g, const char *text);

/* The recording's hart counts are about to be freed: later windows have none. */
void recording_count_no_more(struct recording *g);

/* Take only samples from before now_ns; sealing follows in recording_dispatch. A walk that is not
 * shared is stopped. */
int recording_finish(struct recording *g, uint64_t now_ns);

/* Store the current window early, as much as one iteration can; dispatches continue. 0 or -errno.
 * */
int recording_flush(struct recording *g, uint64_t now_ns);
/* The length of its windows, after the current one. */
void recording_set_window(struct recording *g, uint64_t window_ns);
/* Is there more to write or to seal? Until that is done, a reader sees the earlier state. */
bool recording_is_writing(const struct recording *g);

/* True when every target has exited (never if none was named). */
bool recording_targets_gone(struct recording *g);

struct recording_state {
	uint64_t n_samples; /* accepted: stored, in memory, or lost with the store */
	uint64_t n_stored, n_in_hand;
	uint64_t n_passed; /* skipped for a lower rate: not part of the above */
	size_t waiting;    /* names and stacks still to come */
	const char *path;
	int64_t bytes; /* of the segment by now */
	uint32_t n_stack_nodes;
	uint64_t end_ns; /* 0: still running */
	/* after RECORDING_LOST_STORE: the segment's outcome, SEGMENT_* or -errno */
	int outcome;
};
void recording_state(const struct recording *g, struct recording_state *ret_state);

/* Free the recording. Samples in memory are counted as lost. An unsealed segment is removed, unless it is
 * live: then it is left unsealed. */
struct recording *recording_free(struct recording *g);
