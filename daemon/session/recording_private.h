/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* A recording's internals */

#include "daemon/session/downsample.h"
#include "daemon/session/recording.h"
#include "daemon/session/recording_part.h"
#include "daemon/session/recording_share.h"
#include "daemon/session/recording_wakers.h"
#include "daemon/session/thread_times.h"

struct recording {
	struct walk *walk;
	struct tap tap;
	struct targets targets;
	bool shared, hide_kernel, no_callers, live;
	struct frame *hidden; /* represents the whole kernel; NULL: not hidden */
	struct stack_tree stacks;
	struct window window;
	struct window writing; /* the previous one, while is_writing */
	bool is_writing;
	struct segment_flush flush; /* of it */
	struct segment *segment;
	char *path;
	uint64_t window_ns, names_ns, stall_ns;
	uint64_t (*spent)(void *owner, uint64_t ns);
	void *owner;
	uint64_t finish_ns; /* 0: running; otherwise the end of the wait for names */
	/* after recording_finish: names received and missing at the last check, and the end of the
	 * wait if that does not change */
	uint64_t n_named, stalled_ns;
	size_t n_unnamed;
	uint64_t end_ns;
	uint64_t n_samples, n_stored, n_flushed;
	int pidfd[TARGETS_MAX];
	size_t n_pidfds;
	uint64_t (*own)[N_LOSSES]; /* per hart: our own losses; the caller's array, or `mine` */
	uint64_t (*mine)[N_LOSSES];
	uint64_t (*lost)[N_LOSSES]; /* per hart: the walk's and our own, computed for each flush */
	uint64_t (*lost_then)[N_LOSSES]; /* the same, as it was when `writing` ended */
	uint64_t (
		*recorded)[N_LOSSES]; /* the caller's: what segments have recorded of it; or NULL */
	int n_harts;
	uint64_t n_raised_lost;    /* likewise, of the raise */
	uint64_t n_stacks_refused; /* of the tree, as far as already counted as losses */
	/* first error in the tap, which cannot return it: -ENOMEM, or RECORDING_LOST_STORE */
	int trouble;
	int outcome; /* of the store then: SEGMENT_* or -errno */
	bool is_sealing, sealed;
	struct recording_part *part;        /* of lost samples; NULL: all are ours */
	struct downsample *downsample;      /* NULL: all samples are kept */
	uint32_t hz;                        /* of thin; 0: all */
	uint64_t *taken;                    /* the caller's; or NULL */
	struct recording_share *share;      /* NULL: no limits */
	struct hart_counts *counts;         /* NULL: none */
	struct hart_count_rows last_counts; /* taken at the end, for the last window */
	struct thread_times *times; /* of the targets; NULL: of all, whose times are not read */
	uint64_t callers_ns;        /* the end of the wait for callers */
	bool has_callers; /* after the end: the last window is closed, and later samples are dropped */
	struct recording_wakers wakers;
	char note[RECORDING_NOTE_BYTES]; /* of the windows that end now; "": none */
};

/* Bring g->lost up to date. If the walk goes on, its losses after our end belong to the next
 * recording. */
void recording_sum_losses(struct recording *g);

/* Samples per second and hart that it takes now, at most. */
uint32_t recording_rate(const struct recording *g);

/* An empty window. The service's have no moments, but seconds. */
static inline struct window recording_window(const struct recording *g, uint64_t start_ns)
{
	return (struct window){
		.start_ns = start_ns, .keeps_moments = !g->live, .seconds.are_kept = g->live};
}

/* Its tap on the walk. */
struct tap recording_tap(struct recording *g);

/* --- recording_frames.c ----------------------------------------------------------------------- */

/* Give the sample the frames that its recording keeps, in room (STACK_FRAMES_MAX) unless they are its own: with those of
 * a waker, without those of a hidden kernel. */
void recording_choose_frames(struct recording *g, struct attribution *a, struct frame **room);

/* --- recording_late.c ------------------------------------------------------------------------- */

/* Add to the losses of the recording itself. */
void recording_lose(struct recording *g, int hart, enum loss cause, uint64_t n);
/* Is a sample of that time another recording's, or nobody's? */
bool recording_is_outside(const struct recording *g, uint64_t time_ns);
/* The recording ended: say how many waits have no waker, unless there is a more important note. */
void recording_note_lost_wakes(struct recording *g);
/* The recording ended: note what will come later. */
void recording_expect_callers(struct recording *g);
/* Do samples from before the end wait for their callers? */
bool recording_awaits_callers(struct recording *g);
/* Take those that still wait, with only their leaf. */
void recording_take_leaves(struct recording *g);
/* Counts of harts for the window that ends. Borrowed until the next call. */
struct hart_count_rows recording_take_counts(struct recording *g);
/* Take them now, for the last window; from now on they belong to the next recording. */
void recording_end_counts(struct recording *g);
/* A thread ended; time to look at threads, unless the recording has ended. userdata is the recording. */
void recording_take_end(void *userdata, struct task *task, uint64_t time_ns);
void recording_look(void *userdata, uint64_t now_ns);
/* As thread_times_ready, and thread_times_waits: a thread waits, by /proc. */
void recording_take_ready(void *userdata, const struct task *task, uint64_t ready_ns);
void recording_take_wait(void *userdata, struct task *task, const struct thread_wait *wait,
	uint64_t now_ns, uint64_t weight_ns);
