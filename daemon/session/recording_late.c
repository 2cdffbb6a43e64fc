/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The end of a recording. Samples whose callers are not known yet come after it, and the last window waits for them;
 * those that come too late are taken with only their leaf. Other taps of the walk are not concerned. A live
 * recording does not wait, since another follows it and takes them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/session/recording_private.h"
#include "proto/base/clock.h"

bool recording_is_outside(const struct recording *g, uint64_t time_ns)
{
	if (g->live)
		return g->finish_ns;
	return g->has_callers || (g->shared && (time_ns < g->targets.since_ns ||
						       (g->finish_ns && time_ns >= g->end_ns)));
}

void recording_lose(struct recording *g, int hart, enum loss cause, uint64_t n)
{
	g->own[hart][cause] += n;
	if (g->shared && g->finish_ns && g->own == g->mine)
		g->lost[hart][cause] += n; /* summed no more */
}

static bool is_wanted(const struct recording *g, const struct attribution *a)
{
	return !recording_is_outside(g, a->time_ns) && targets_want(&g->targets, a->task);
}

static bool each_waiting(
	struct recording *g, bool (*see)(void *userdata, const struct attribution *a))
{
	uint64_t before_ns = g->shared ? g->end_ns : UINT64_MAX;

	return attribute_each_waiting(g->walk->attribute, before_ns, see, g);
}

/* The shares of losses follow from the samples by the end, whether they have arrived or not. */
static bool expect(void *userdata, const struct attribution *a)
{
	struct recording *g = userdata;

	if (!a->raise && !a->is_offcpu && is_wanted(g, a))
		recording_part_take(g->part, a->hart, a->count);
	return true;
}

void recording_expect_callers(struct recording *g)
{
	if (g->part)
		(void)each_waiting(g, expect);
}

static bool is_unwanted(void *userdata, const struct attribution *a)
{
	return !is_wanted(userdata, a);
}

bool recording_awaits_callers(struct recording *g)
{
	return !g->live && (!each_waiting(g, is_unwanted) ||
				   (!g->shared && walk_awaits_callers_of_waits(g->walk)) ||
				   (g->tap.wants_waits && walk_awaits_kinds(g->walk)));
}

static bool take_leaf(void *userdata, const struct attribution *a)
{
	struct recording *g = userdata;

	if (is_wanted(g, a)) {
		recording_lose(g, a->hart, LOSS_UNWIND, attribution_samples(a));
		walk_give(g->walk, &g->tap, a);
	}
	return true;
}

void recording_take_leaves(struct recording *g)
{
	(void)each_waiting(g, take_leaf);
	if (g->tap.wants_waits)
		walk_settle_kinds(g->walk);
	if (!g->shared)
		walk_give_up_callers_of_waits(g->walk);
}

void recording_note_lost_wakes(struct recording *g)
{
	const uint64_t n = walk_wakes_lost(g->walk);
	if (n > 0 && !*g->note)
		snprintf(g->note, sizeof(g->note),
			"%llu waits have no waker: too many threads were woken at once",
			(unsigned long long)n);
}

struct hart_count_rows recording_take_counts(struct recording *g)
{
	if (g->counts)
		return hart_counts_take(g->counts);
	struct hart_count_rows rows = g->last_counts;
	g->last_counts.n = 0;
	return rows;
}

void recording_end_counts(struct recording *g)
{
	if (!g->counts)
		return;
	struct hart_count_rows rows = hart_counts_take(g->counts);
	struct hart_count *row = rows.n ? calloc(rows.n, sizeof(*row)) : NULL;
	if (row) /* without memory the last window has none */
		memcpy(row, rows.row, rows.n * sizeof(*row));
	g->last_counts = (struct hart_count_rows){rows.serial, row, row ? rows.n : 0};
	g->counts = NULL;
}

void recording_take_end(void *userdata, struct task *task, uint64_t time_ns)
{
	struct recording *g = userdata;
	if (recording_is_outside(g, time_ns))
		return;
	thread_times_end(g->times, task, time_ns);
	/* a job's report needs all of its processes (query/processes); others are kept if they have samples */
	if (g->times || g->trouble || task->process != task || !task->labels ||
		task->kernel_thread || !targets_want(&g->targets, task))
		return;
	task->used = true;
	if (window_add_ended(&g->window, task) < 0)
		recording_lose(g, 0, LOSS_MEMORY, 1);
}

void recording_look(void *userdata, uint64_t now_ns)
{
	struct recording *g = userdata;
	if (g->finish_ns || !g->times)
		return;
	const uint64_t began_ns = g->spent ? clock_ns(CLOCK_THREAD_CPUTIME_ID) : 0;
	thread_times_look(g->times, now_ns);
	if (g->spent)
		(void)g->spent(g->owner, clock_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns);
}

void recording_take_ready(void *userdata, const struct task *task, uint64_t ready_ns)
{
	struct recording *g = userdata;
	walk_take_ready(g->walk, task, ready_ns);
}

void recording_take_wait(void *userdata, struct task *task, const struct thread_wait *wait,
	uint64_t now_ns, uint64_t weight_ns)
{
	struct recording *g = userdata;
	struct frame *frame = NULL;
	if (*wait->function && walk_function(g->walk, wait->function, &frame) != 0)
		frame = NULL;
	struct attribution a = thread_wait_sample(
		&g->walk->tasks, task, &g->walk->sampler->offcpu[wait->kind], &frame);
	a.time_ns = now_ns;
	a.weight_ns = weight_ns;
	attribute_counted(g->walk->attribute, task);
	g->tap.take(g, &a);
}
