/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Top's feed: what a walk delivered in the last interval
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
 * unless it has grown beyond this: 7 MB each for two trees. */
#define TOP_NODES_MAX 65536
/* Rows of one slice; samples beyond it are counted as LOSS_MEMORY: 20 MB. */
#define TOP_ROWS_MAX 100000

struct top_slice {
	struct window window;
	struct stack_tree stacks;
	uint64_t (*lost)[N_LOSSES]; /* per hart, in this slice */
	struct hart_time *time;     /* per hart, in this slice */
};

struct top_feed {
	struct walk *walk; /* borrowed */
	struct tap tap;
	uint64_t interval_ns;
	struct top_slice now, last;
	uint64_t n_cuts; /* 0: no slice in `last` yet; else its number */

	/* inner */
	uint64_t (*lost)[N_LOSSES]; /* of the walk, as of the last cut */
	struct hart_time *time;     /* likewise */
	int n_harts;
	uint32_t n_users;
	struct top_feed **list, *next;
};

/* The feed of that walk and interval in *list, or a new one that is added there, with one more
 * user. *list must not move. 0 or -ENOMEM. */
int top_feed_get(struct top_feed **list, struct walk *walk, uint64_t interval_ns,
	struct top_feed **ret_feed);
/* One user less; the last one frees it. Call before the walk is freed. Returns NULL. */
struct top_feed *top_feed_put(struct top_feed *f);

/* When top_feed_catch_up has something to do. */
uint64_t top_feed_deadline_ns(const struct top_feed *f);
/* Cut what is due without waiting for the walk's next drain. 0 or -errno. */
int top_feed_catch_up(struct top_feed *f, uint64_t now_ns);

/* The share of the last slice's samples whose leaf has no name yet, but may get one. */
double top_feed_unnamed(const struct top_feed *f);
