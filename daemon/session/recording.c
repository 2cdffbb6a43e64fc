/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The tap's two callbacks fill a window and store it. A store that fails ends the recording, but
 * not the walk: the samples of the current windows are counted as lost, by hart, and the recording's
 * owner decides what to do next. The ids of frames and tasks are the walk's. The call-site tree is the
 * recording's own, so that it is freed with the recording.
 */
#include "daemon/session/recording_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/session/raises.h"
#include "proto/base/clock.h"
#include "proto/base/memory.h"

/* For a recording of selected tasks: does the walk count losses of this cause also for other tasks?
 * Then the recording counts losses of its own tasks itself, or cannot separate them. */
static bool is_of_others(const struct recording *g, enum loss cause)
{
	bool some = g->shared && !targets_are_all(&g->targets);
	return some && (cause == LOSS_STACK_TRUNCATED || cause == LOSS_DEEP || cause == LOSS_ARGV ||
			       cause == LOSS_TASK || cause == LOSS_OUTSIDE);
}

void recording_sum_losses(struct recording *g)
{
	if (g->shared && g->finish_ns)
		return;
	if (g->shared)
		g->own[0][LOSS_RING] += raises_lost(g->walk, g->tap.raise_uid, &g->n_raised_lost);
	g->own[0][LOSS_STACK_TRUNCATED] += g->stacks.n_refused - g->n_stacks_refused;
	g->n_stacks_refused = g->stacks.n_refused;
	for (int hart = 0; hart < g->n_harts; hart++)
		for (int cause = 0; cause < N_LOSSES; cause++)
			g->lost[hart][cause] =
				(is_of_others(g, (enum loss)cause)
						? 0
						: recording_part_lost(g->part, hart,
							  (enum loss)cause,
							  g->walk->sampler->lost[hart][cause])) +
				g->own[hart][cause];
}

uint32_t recording_rate(const struct recording *g)
{
	uint32_t raised = g->shared ? raises_rate(g->walk, g->tap.raise_uid) : 0;
	uint32_t hz = sampler_rate(g->walk->sampler);
	if (raised > hz)
		hz = raised;
	return g->hz && g->hz < hz ? g->hz : hz;
}

/* For a flush of a window, or an update outside flushes (with the current window). */
static struct segment_flush segment_view(struct recording *g, struct window *window)
{
	recording_sum_losses(g);
	return (struct segment_flush){
		.window = window,
		.stacks = &g->stacks,
		.tasks = &g->walk->tasks,
		.files = &g->walk->files,
		.lost = g->lost,
		.n_harts = g->n_harts,
		.realtime_ns = window->start_ns + g->walk->realtime_offset_ns,
		.hz = recording_rate(g),
		.hz_lowest = g->walk->sampler->hz_lowest,
		.cut = sampler_cut(g->walk->sampler),
		.note = g->note,
		.note_harts = &g->walk->sampler->seen,
		.only_uid = g->targets.only_uid,
		.uid = g->targets.uid,
		.gid = g->targets.gid,
		.shares = recording_share_all(g->share),
	};
}

static void lose_window(struct recording *g, struct window *window)
{
	for (const struct window_row *row = window->rows; row; row = row->hh.next)
		if (row->key.hart >= 0 && row->key.hart < g->n_harts)
			g->own[row->key.hart][LOSS_STORE] += row->is_offcpu ? 0 : row->count;
	g->own[0][LOSS_LOOPS] += window->loops.n_rows; /* of no hart */
	window_clear(window);
}

/* The current windows could not be written: count their samples as lost. */
static void lose_windows(struct recording *g)
{
	lose_window(g, &g->writing);
	lose_window(g, &g->window);
	g->is_writing = false;
}

/* The segment has recorded all these losses. */
static void note_told(struct recording *g, uint64_t (*lost)[N_LOSSES])
{
	if (g->recorded)
		memcpy(g->recorded, lost, (size_t)g->n_harts * sizeof(*g->recorded));
}

/* Add the counts of skipped samples to the window. 0 or -ENOMEM. */
static int add_rest(struct recording *g)
{
	struct attribution rest;
	int r = 0;
	while (r == 0 && downsample_remaining(g->downsample, &rest))
		r = window_add(&g->window, &g->stacks, &rest);
	return r < 0 ? r : 0; /* if the window is full, only these counts are missing */
}

/* Continue writing the window: about n_rows rows, 0: to its end. 0, also if there is more;
 * SEGMENT_NO_SPACE and the like, -errno. */
static int write_on(struct recording *g, uint64_t n_rows)
{
	if (!g->is_writing)
		return 0;
	int r = segment_flush_step(g->segment, &g->flush, n_rows);
	if (r == SEGMENT_MORE)
		return 0;
	if (r != 0)
		return r;
	note_told(g, g->lost_then);
	g->n_stored += g->writing.n_samples;
	g->n_flushed++;
	recording_share_refill(g->share, g->writing.end_ns);
	window_clear(&g->writing);
	g->is_writing = false;
	return 0;
}

/* End the window at end_ns, begin the next, and write the first rows. Returns as write_on does. */
static int begin_flush(struct recording *g, uint64_t end_ns)
{
	int r = write_on(g, 0);
	if (r == 0)
		r = add_rest(g);
	if (r == 0)
		r = thread_times_give(g->times, &g->window);
	if (r != 0)
		return r;
	g->window.end_ns = end_ns;
	walk_check_owners(g->walk);
	g->flush = segment_view(g, &g->window);
	memcpy(g->lost_then, g->lost, (size_t)g->n_harts * sizeof(*g->lost));
	g->flush.lost = g->lost_then;
	g->flush.counted = recording_take_counts(g);
	r = segment_flush_begin(g->segment, &g->flush);
	if (r != 0)
		return r;
	g->writing = g->window;
	g->flush.window = &g->writing;
	g->window = recording_window(g, end_ns);
	g->is_writing = true;
	return write_on(g, RECORDING_STEP_ROWS);
}

/* Store the whole window, and begin the next one at end_ns. Returns as write_on does. */
static int flush(struct recording *g, uint64_t end_ns)
{
	int r = begin_flush(g, end_ns);
	return r == 0 ? write_on(g, 0) : r;
}

/* Store names and the like, without a window. Returns as flush does. */
static int update(struct recording *g)
{
	int r = write_on(g, 0);
	if (r != 0)
		return r;
	struct segment_flush view = segment_view(g, &g->window);
	r = segment_update(g->segment, &view);
	if (r == 0 && g->n_flushed > 0)
		note_told(g, g->lost);
	return r;
}

/* End the recording because the disc refused a write for any reason. This is not an error of the
 * daemon. */
static int store_failed(struct recording *g, int r)
{
	g->outcome = r;
	g->trouble = r == -ENOMEM ? r : RECORDING_LOST_STORE;
	return g->trouble;
}

/* Take the result r of a flush: if it failed, the samples of the current windows are lost. */
static int stored_or_lost(struct recording *g, int r)
{
	if (r == 0)
		return 0;
	lose_windows(g);
	return store_failed(g, r);
}

static int flush_or_lose(struct recording *g, uint64_t end_ns)
{
	return stored_or_lost(g, flush(g, end_ns));
}

static int add_whole(struct recording *g, const struct attribution *a)
{
	int r = window_add(&g->window, &g->stacks, a);
	if (r != WINDOW_FULL)
		return r;
	/* of two copied stacks the later one may be of the earlier sample */
	r = flush_or_lose(g, a->time_ns > g->window.start_ns ? a->time_ns : g->window.start_ns);
	return r == 0 ? window_add(&g->window, &g->stacks, a) : r;
}

/* Add an attribution with as much detail as its user's share of the store has room for. */
static int add(struct recording *g, struct attribution *a)
{
	if (!g->share)
		return add_whole(g, a);
	uid_t uid = task_account(a->task);
	uint32_t n_nodes = g->stacks.n_nodes, n_rows = g->window.n_rows;
	uint64_t n_before = attribution_samples(a);
	bool cut = false;
	int r = recording_share_cut(g->share, a, &cut);
	if (r == 0)
		r = add_whole(g, a);
	if (cut)
		recording_lose(g, a->hart, LOSS_SHARE, n_before);
	if (r == 0 && g->window.n_rows >= n_rows) /* otherwise it was flushed in between */
		recording_share_charge(g->share, uid, g->stacks.n_nodes - n_nodes,
			g->window.n_rows - n_rows, a->n_reads);
	return r;
}

static void take(void *userdata, const struct attribution *a)
{
	struct recording *g = userdata;
	if (recording_is_outside(g, a->time_ns) || !targets_want(&g->targets, a->task))
		return;
	struct attribution seen = *a;
	int r = 0;
	if (!a->is_offcpu) {
		if (!a->raise && !g->finish_ns)
			recording_part_take(g->part, a->hart, a->count);
		thread_times_sample(g->times, a);
		r = downsample_take(g->downsample, g->walk->sampler->hz, &seen);
		if (r == DOWNSAMPLE_PASSED)
			return;
		g->n_samples += a->count;
		if (g->taken)
			g->taken[a->hart] += a->count;
	}
	if (g->no_callers)
		seen.truncated = false; /* the rest is not needed */
	/* what the walk counts after our end belongs to the next recording */
	if (seen.truncated && !a->is_offcpu &&
		((g->shared && g->finish_ns) || is_of_others(g, LOSS_STACK_TRUNCATED))) {
		recording_lose(g, a->hart, LOSS_STACK_TRUNCATED, a->count);
		recording_lose(g, a->hart, LOSS_DEEP, a->is_deep ? a->count : 0);
	}
	struct frame *frame[STACK_FRAMES_MAX];
	recording_choose_frames(g, &seen, frame);
	if (r == 0)
		r = g->trouble ? g->trouble : add(g, &seen);
	if (r == 0)
		return;
	recording_lose(g, a->hart, r == RECORDING_LOST_STORE ? LOSS_STORE : LOSS_MEMORY,
		attribution_samples(a));
	g->trouble = r;
}

/* A user who has spent the loop's time gets longer windows. */
static uint64_t next_cut_ns(const struct recording *g, uint64_t began_ns)
{
	uint64_t next_ns = g->window.start_ns + g->window_ns, ready_ns = 0;
	if (g->spent)
		ready_ns = g->spent(g->owner, clock_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns);
	return ready_ns > next_ns ? ready_ns : next_ns;
}

void recording_set_window(struct recording *g, uint64_t window_ns)
{
	g->window_ns = window_ns;
}

static int cut(void *userdata, uint64_t cut_ns)
{
	struct recording *g = userdata;
	if (g->trouble)
		return 0; /* its owner hears of it at the next dispatch */
	uint64_t began_ns = g->spent ? clock_ns(CLOCK_THREAD_CPUTIME_ID) : 0;
	if (cut_ns > g->window.start_ns) /* otherwise it was flushed early */
		(void)stored_or_lost(g, begin_flush(g, cut_ns));
	if (g->trouble == 0)
		g->tap.cut_ns = next_cut_ns(g, began_ns);
	return 0;
}

/* Mark for a sweep: ids that the segment uses stay reserved; the current window's tasks and the frames of
 * the call-site tree are kept. */
static void mark(void *userdata, struct sweep *s)
{
	struct recording *g = userdata;
	/* tasks written by the transaction may be freed now */
	if (g->segment && !g->trouble)
		(void)stored_or_lost(g, write_on(g, 0));
	window_keep(&g->window, s);
	loop_window_keep(&g->window.loops, s);
	thread_times_mark(g->times, s);
	for (uint32_t i = 0; i < g->stacks.n_nodes; i++)
		sweep_keep_frame(s, g->stacks.node[i]->frame);
	sweep_keep_frame(s, g->hidden);
	recording_share_mark(g->share, s);
	recording_wakers_mark(&g->wakers, s);
	downsample_mark(g->downsample, s);
	if (!g->segment || g->trouble)
		return;
	(void)update(g); /* tasks that ended are stored before they are freed */
	segment_reserve(g->segment, s);
}

static int add_loops(struct recording *g, struct task *task, const struct loop_counts *c)
{
	if (!recording_share_has_room(g->share, task_account(task)))
		return LOOP_WINDOW_USER_FULL;
	int r = loop_window_add(&g->window.loops, &g->walk->sites, task, c);
	if (r != LOOP_WINDOW_FULL)
		return r;
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
	r = flush_or_lose(g, now_ns > g->window.start_ns ? now_ns : g->window.start_ns);
	return r == 0 ? loop_window_add(&g->window.loops, &g->walk->sites, task, c) : r;
}

static int take_loops(void *userdata, struct task *task, const struct loop_counts *c)
{
	struct recording *g = userdata;
	bool wanted = task ? targets_want(&g->targets, task) : targets_are_all(&g->targets);
	if ((g->shared && g->finish_ns) || !wanted)
		return 0;
	int r = g->trouble ? g->trouble : add_loops(g, task, c);
	if (r == 0)
		return 0;
	g->own[0][LOSS_LOOPS]++;
	if (r != LOOP_WINDOW_USER_FULL)
		g->trouble = r; /* its owner hears of it at the next dispatch */
	return 0;
}

struct tap recording_tap(struct recording *g)
{
	return (struct tap){.userdata = g,
		.take = take,
		.cut = cut,
		.take_loops = take_loops,
		.mark = mark,
		.end = recording_take_end,
		.look = recording_look};
}

size_t recording_fds(const struct recording *g, struct pollfd *fds, size_t n)
{
	size_t filled = 0;
	for (size_t i = 0; i < g->n_pidfds && filled < n && g->finish_ns == 0; i++)
		if (g->pidfd[i] >= 0)
			fds[filled++] = (struct pollfd){.fd = g->pidfd[i], .events = POLLIN};
	return filled;
}

uint64_t recording_deadline_ns(const struct recording *g)
{
	if (g->trouble || g->sealed || recording_is_writing(g))
		return 0;
	if (!g->finish_ns)
		return UINT64_MAX;
	/* the last name may have come while a window was written, and no other event will wake us
	 * */
	if (namer_idle(g->walk->namer))
		return 0;
	uint64_t end_ns =
		g->has_callers || g->finish_ns < g->callers_ns ? g->finish_ns : g->callers_ns;
	return g->stalled_ns < end_ns ? g->stalled_ns : end_ns;
}

/* Write the names that came and the end, and seal. */
static int begin_seal(struct recording *g)
{
	walk_remove(g->walk, &g->tap);
	if (g->trouble)
		return g->trouble;
	int r = update(g);
	if (r == 0) {
		r = segment_seal_begin(g->segment, g->end_ns);
		if (r != 0)
			g->segment = NULL;
	}
	if (r != 0)
		return store_failed(g, r);
	g->is_sealing = true;
	return 0;
}

/* 0: there is more to do. */
static int seal(struct recording *g)
{
	int r = g->is_sealing ? 0 : begin_seal(g);
	if (r != 0)
		return r;
	r = segment_seal_step(g->segment, RECORDING_STEP_BYTES);
	if (r == SEGMENT_MORE)
		return 0;
	g->segment = NULL;
	g->is_sealing = false;
	if (r != 0)
		return store_failed(g, r);
	g->sealed = true;
	return RECORDING_SEALED;
}

static bool all_named(struct recording *g)
{
	if (namer_idle(g->walk->namer))
		return true;
	if (!g->shared)
		return false;
	/* the queue also has other users' names: do we have all of ours? */
	return update(g) == 0 && segment_unnamed(g->segment) == 0;
}

/* Did any names come since the last check? Our frames share one queue with those of others. */
static bool names_come(struct recording *g)
{
	struct namer_status status;
	namer_status(g->walk->namer, &status);
	uint64_t n_named = status.n_named + status.n_placed + status.n_unwound;
	size_t n_unnamed = g->shared ? segment_unnamed(g->segment) : namer_waiting(g->walk->namer);
	bool come = n_named != g->n_named || n_unnamed < g->n_unnamed;
	g->n_named = n_named;
	g->n_unnamed = n_unnamed;
	return come;
}

/* Wait on for names and callers? */
static bool waits(struct recording *g, uint64_t now_ns)
{
	if (now_ns >= g->finish_ns)
		return false;
	if (names_come(g))
		g->stalled_ns = now_ns + g->stall_ns;
	return now_ns < g->stalled_ns;
}

/* Begin to write the last window. Samples whose callers have not come by now have only their leaf. */
static void end_last_window(struct recording *g)
{
	recording_take_leaves(g);
	g->has_callers = true;
	if (g->trouble == 0)
		(void)stored_or_lost(g, begin_flush(g, g->end_ns)); /* the next dispatch says so */
}

static bool waits_for_names(struct recording *g, uint64_t now_ns)
{
	return !all_named(g) && waits(g, now_ns);
}

/* Returns 0 or an outcome of recording_dispatch. The time is charged to the recording's user. */
static int write_a_step(struct recording *g)
{
	uint64_t began_ns = g->spent ? clock_ns(CLOCK_THREAD_CPUTIME_ID) : 0;
	int r = stored_or_lost(g, write_on(g, RECORDING_STEP_ROWS));
	if (r == 0 && g->tap.cut_ns != UINT64_MAX) {
		uint64_t next_ns = next_cut_ns(g, began_ns);
		g->tap.cut_ns = next_ns > g->tap.cut_ns ? next_ns : g->tap.cut_ns;
	}
	return r;
}

int recording_dispatch(struct recording *g, uint64_t now_ns)
{
	if (g->sealed)
		return RECORDING_SEALED;
	if (g->trouble)
		return g->trouble;
	if (g->is_writing)
		return write_a_step(g);
	if (g->finish_ns == 0)
		return 0;
	if (!g->has_callers) {
		if (now_ns >= g->callers_ns || !recording_awaits_callers(g) || !waits(g, now_ns))
			end_last_window(g);
		return g->trouble;
	}
	return !g->is_sealing && waits_for_names(g, now_ns) ? 0 : seal(g);
}

int recording_finish(struct recording *g, uint64_t now_ns)
{
	if (g->finish_ns)
		return 0;
	int r = g->shared ? walk_catch_up(g->walk, now_ns) : walk_stop(g->walk, now_ns);
	thread_times_look_at_all(g->times, now_ns);
	g->end_ns = now_ns > g->window.start_ns ? now_ns : g->window.start_ns;
	recording_expect_callers(g);
	recording_note_lost_wakes(g);
	recording_sum_losses(g);
	recording_end_counts(g);
	g->finish_ns = now_ns + g->names_ns;
	g->stalled_ns = now_ns + g->stall_ns;
	g->callers_ns = now_ns + RECORDING_CALLERS_NS;
	g->tap.cut_ns = UINT64_MAX;
	g->tap.is_patient = false; /* the segment waits for its names */
	if (r == 0 && !recording_awaits_callers(g))
		end_last_window(g);
	return r;
}

int recording_flush(struct recording *g, uint64_t now_ns)
{
	int r = walk_catch_up(g->walk, now_ns);
	if (r == 0 && g->trouble == 0 && g->finish_ns == 0 && now_ns > g->window.start_ns) {
		(void)stored_or_lost(g, begin_flush(g, now_ns));
		g->tap.cut_ns = g->window.start_ns + g->window_ns;
	}
	return r;
}

void recording_count_no_more(struct recording *g)
{
	g->counts = NULL;
}

void recording_note(struct recording *g, const char *text)
{
	snprintf(g->note, sizeof(g->note), "%s", text);
}

bool recording_is_writing(const struct recording *g)
{
	return g->is_writing || g->is_sealing;
}

void recording_state(const struct recording *g, struct recording_state *ret_state)
{
	*ret_state = (struct recording_state){
		.n_samples = g->n_samples,
		.n_stored = g->n_stored,
		.n_in_hand = g->window.n_samples + g->writing.n_samples,
		.n_passed = downsample_passed(g->downsample),
		.waiting = namer_waiting(g->walk->namer),
		.path = g->path,
		.bytes = g->segment ? segment_bytes(g->segment) : 0,
		.n_stack_nodes = g->stacks.n_nodes,
		.end_ns = g->end_ns,
		.outcome = g->outcome,
	};
}

struct recording *recording_free(struct recording *g)
{
	if (!g)
		return NULL;
	walk_remove(g->walk, &g->tap);
	for (size_t i = 0; i < g->n_pidfds; i++)
		if (g->pidfd[i] >= 0)
			close(g->pidfd[i]);
	if (g->segment)
		segment_abandon(g->segment, !g->live);
	if (g->own)
		lose_windows(g);
	window_clear(&g->writing);
	window_clear(&g->window);
	stack_tree_clear(&g->stacks);
	free((struct hart_count *)g->last_counts.row);
	recording_share_free(g->share);
	recording_wakers_clear(&g->wakers);
	thread_times_free(g->times);
	recording_part_free(g->part);
	downsample_free(g->downsample);
	free(g->mine);
	free(g->lost);
	free(g->lost_then);
	free(g->path);
	free(g);
	return NULL;
}
