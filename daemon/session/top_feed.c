/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Two slices alternate: one gathers while clients look at the other. Each has its own call tree, so
 * that a tree can be dropped together with the window whose rows point into it.
 *
 * A walk drains four times a second, which is often enough for a store. This tap is prompt: the walk
 * drains for its cuts, so that frames come at even intervals and the first one soon.
 */
#include "daemon/session/top_feed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/aggregate/window.h"
#include "daemon/decode/merge.h"
#include "daemon/session/raises.h"
#include "proto/base/clock.h"

static void take(void *userdata, const struct attribution *a)
{
	struct top_feed *f = userdata;
	struct top_slice *s = &f->now;
	if (a->time_ns < s->window.start_ns)
		return; /* records from before the first frame */
	if (f->uid != (uid_t)-1 && (!a->task || a->task->process->uid != f->uid))
		return;
	struct attribution seen = *a;
	const bool is_deep = a->n_frames > 1 && s->stacks.n_nodes >= TOP_NODES_MAX;
	if (is_deep) {
		seen.n_frames = 1;
		seen.truncated = true;
	}
	int r = s->window.n_rows < TOP_ROWS_MAX ? window_add(&s->window, &s->stacks, &seen)
						: WINDOW_FULL;
	if (a->hart < 0 || a->hart >= f->n_harts)
		return;
	s->lost[a->hart][LOSS_STACK_TRUNCATED] += is_deep ? attribution_samples(a) : 0;
	s->lost[a->hart][LOSS_MEMORY] += r != 0 ? attribution_samples(a) : 0;
}

static void slice_begin(struct top_feed *f, uint64_t start_ns)
{
	struct top_slice *s = &f->now;
	window_clear(&s->window);
	if (s->stacks.n_nodes >= TOP_NODES_MAX)
		stack_tree_clear(&s->stacks);
	memset(s->lost, 0, (size_t)f->n_harts * sizeof(*s->lost));
	s->window.start_ns = start_ns;
}

/* End the slice with the walk's losses and the harts' times between the last cut and this one. Without
 * /proc/stat the times are unknown. */
static void slice_end(struct top_feed *f, uint64_t end_ns)
{
	struct top_slice *s = &f->now;
	s->window.end_ns = end_ns;
	struct hart_time *before = f->time;
	f->time = s->time;
	s->time = before;
	(void)hart_time_read(f->time, f->n_harts);
	for (int hart = 0; hart < f->n_harts; hart++) {
		const uint64_t *lost = f->walk->sampler->lost[hart];
		for (int cause = 0; cause < N_LOSSES; cause++) {
			s->lost[hart][cause] += lost[cause] - f->lost[hart][cause];
			f->lost[hart][cause] = lost[cause];
		}
		s->time[hart] = hart_time_since(&f->time[hart], &before[hart]);
	}
	s->lost[0][LOSS_RING] += raises_lost(f->walk, f->uid, &f->n_raised_lost);
}

static int cut(void *userdata, uint64_t cut_ns)
{
	struct top_feed *f = userdata;
	slice_end(f, cut_ns);
	walk_check_owners(f->walk);
	struct top_slice gathered = f->now;
	f->now = f->last;
	f->last = gathered;
	f->n_cuts++;
	slice_begin(f, cut_ns);
	/* after a stall, make one long slice, not many that would never be shown */
	uint64_t next_ns = cut_ns + f->interval_ns, now_ns = clock_ns(CLOCK_MONOTONIC);
	f->tap.cut_ns = next_ns > now_ns ? next_ns : now_ns;
	return 0;
}

static void mark(void *userdata, struct sweep *s)
{
	const struct top_feed *f = userdata;
	window_keep(&f->now.window, s);
	window_keep(&f->last.window, s);
	stack_tree_keep(&f->now.stacks, s);
	stack_tree_keep(&f->last.stacks, s);
}

static int slice_new(struct top_slice *s, const struct top_feed_options *o, int n_harts)
{
	s->window.pool = s->stacks.pool = o->pool;
	s->window.pool_uid = s->stacks.pool_uid = o->pool_uid;
	s->lost = calloc((size_t)n_harts, sizeof(*s->lost));
	s->time = calloc((size_t)n_harts, sizeof(*s->time));
	return s->lost && s->time ? 0 : -ENOMEM;
}

static void slice_clear(struct top_slice *s)
{
	window_clear(&s->window);
	stack_tree_clear(&s->stacks);
	free(s->lost);
	free(s->time);
}

static struct top_feed *top_feed_free(struct top_feed *f)
{
	slice_clear(&f->now);
	slice_clear(&f->last);
	free(f->lost);
	free(f->time);
	free(f);
	return NULL;
}

static int top_feed_new(const struct top_feed_options *o, struct top_feed **ret_feed)
{
	struct walk *walk = o->walk;
	const uint64_t interval_ns = o->interval_ns;
	struct top_feed *f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	f->walk = walk;
	f->uid = o->uid;
	f->interval_ns = interval_ns;
	f->n_harts = walk->sampler->machine.n_harts;
	f->lost = calloc((size_t)f->n_harts, sizeof(*f->lost));
	f->time = calloc((size_t)f->n_harts, sizeof(*f->time));
	if (!f->lost || !f->time || slice_new(&f->now, o, f->n_harts) < 0 ||
		slice_new(&f->last, o, f->n_harts) < 0) {
		top_feed_free(f);
		return -ENOMEM;
	}
	memcpy(f->lost, walk->sampler->lost, (size_t)f->n_harts * sizeof(*f->lost));
	(void)hart_time_read(f->time, f->n_harts);
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
	uint64_t first_ns = interval_ns / 4 < TOP_FIRST_NS ? interval_ns / 4 : TOP_FIRST_NS;
	f->tap = (struct tap){.userdata = f,
		.take = take,
		.cut = cut,
		.mark = mark,
		.cut_ns = now_ns + first_ns,
		.prompt = true,
		.raise_uid = o->uid};
	(void)raises_lost(walk, o->uid, &f->n_raised_lost);
	slice_begin(f, now_ns);
	*ret_feed = f;
	return 0;
}

int top_feed_get(
	struct top_feed **list, const struct top_feed_options *o, struct top_feed **ret_feed)
{
	struct top_feed *f = *list;
	while (f && (f->walk != o->walk || f->interval_ns != o->interval_ns || f->uid != o->uid))
		f = f->next;
	if (!f) {
		int r = top_feed_new(o, &f);
		if (r < 0)
			return r;
		f->list = list;
		f->next = *list;
		*list = f;
		walk_add(o->walk, &f->tap);
	}
	f->n_users++;
	*ret_feed = f;
	return 0;
}

struct top_feed *top_feed_put(struct top_feed *f)
{
	if (!f || --f->n_users > 0)
		return NULL;
	walk_remove(f->walk, &f->tap);
	struct top_feed **at = f->list;
	while (*at != f)
		at = &(*at)->next;
	*at = f->next;
	return top_feed_free(f);
}

uint64_t top_feed_deadline_ns(const struct top_feed *f)
{
	return f->tap.cut_ns == UINT64_MAX ? UINT64_MAX : f->tap.cut_ns + MERGE_SLACK_NS;
}

uint32_t top_feed_rate(const struct top_feed *f)
{
	uint32_t raised = raises_rate(f->walk, f->uid), hz = f->walk->sampler->hz;
	return raised > hz ? raised : hz;
}

double top_feed_unnamed(const struct top_feed *f)
{
	const struct top_slice *s = &f->last;
	uint64_t n = 0, unnamed = 0;
	for (const struct window_row *row = s->window.rows; row; row = row->hh.next) {
		if (row->key.stack == 0 || row->count == 0)
			continue;
		n += row->count;
		unnamed += frame_is_awaited(s->stacks.node[row->key.stack - 1]->frame) ? row->count
										       : 0;
	}
	return n ? (double)unnamed / (double)n : 0;
}
