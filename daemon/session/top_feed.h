/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Top's feed: the samples of a walk in the last interval
 *
 *      walk ─▶ tap ─▶ [ now ] ─ cut ─▶ [ last ] ─▶ frames of all tops that look at it
 *
 * A top shows whole intervals, as if sampling had started with each: it shows what is running. Tops
 * with the same interval share one feed, so each sample is counted once for all of them.
 */

#include "daemon/aggregate/window.h"
#include "daemon/session/hart_time.h"
#include "daemon/session/walk.h"

/* The first slice is cut after this, or after a quarter of the interval, so that something appears
 * on the screen soon; at 999 Hz a busy hart has 250 samples by then. */
#define TOP_FIRST_NS 250000000u
/* A slice's call tree is reused for the next slice but one, which will have mostly the same stacks,
 * unless it has grown to this: 2.5 MB each for two trees. Beyond that, stacks are cut to their leaf
 * and counted as LOSS_STACK_TRUNCATED, since a frame is made from the tree in one iteration of the
 * loop. */
#define TOP_NODES_MAX 32768
/* Rows of one slice; samples beyond it are counted as LOSS_MEMORY: 4 MB. */
#define TOP_ROWS_MAX 20000

struct top_slice {
	struct window window;
	struct stack_tree stacks;
	uint64_t (*lost)[N_LOSSES]; /* per hart, in this slice */
	struct hart_time *time;     /* per hart, in this slice */
};

struct top_feed_options {
	struct walk *walk; /* borrowed */
	uint64_t interval_ns;
	uid_t uid; /* it collects only that user's tasks, with the samples of their raise; -1: all
		    * */
	/* borrowed; memory that feeds share (naming/quota.h), of which this one's belongs to pool_uid; NULL:
	 * it is not limited */
	struct quota *pool;
	uid_t pool_uid;
};

struct top_feed {
	struct walk *walk; /* borrowed */
	uid_t uid;
	struct tap tap;
	uint64_t interval_ns;
	struct top_slice now, last;
	uint64_t n_cuts; /* 0: no slice in `last` yet; else its number */

	/* inner */
	uint64_t (*lost)[N_LOSSES]; /* of the walk, as of the last cut */
	struct hart_time *time;     /* likewise */
	int n_harts;
	uint64_t n_raised_lost;
	uint32_t n_users;
	struct top_feed **list, *next;
};

/* The feed of that walk, interval and uid in *list, or a new one that is added there, with one more
 * user. *list must not move. 0 or -ENOMEM. */
int top_feed_get(
	struct top_feed **list, const struct top_feed_options *o, struct top_feed **ret_feed);
/* Give up the feed; its last user frees it. Call before the walk is freed. Returns NULL. */
struct top_feed *top_feed_put(struct top_feed *f);

/* The time at which its walk cuts it next. */
uint64_t top_feed_deadline_ns(const struct top_feed *f);
/* The rate of its samples. */
uint32_t top_feed_rate(const struct top_feed *f);

/* The share of the last slice's samples whose leaf has no name yet, but may get one. */
double top_feed_unnamed(const struct top_feed *f);
