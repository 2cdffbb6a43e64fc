/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* What loops counted in a window: sums per (task, loop, region)
 */

#include "daemon/attribute/sweep.h"
#include "daemon/loops/program.h"

/* Of one window, 600 bytes each: 40 MB. Beyond it the window must be flushed early. */
#define LOOP_WINDOW_ROWS_MAX 65536u

struct loop_row {
	struct task *who;              /* NULL: not known */
	struct loop_site *site;        /* one of its users is the row */
	struct loop_site *region;      /* the same; NULL: in none */
	uint64_t value[N_LOOP_VALUES]; /* at most INT64_MAX */
	struct loop_row *next;         /* in the order in which they came */
	struct loop_row *chain;
};

struct loop_window {
	struct loop_row *rows;
	uint32_t n_rows;
	/* the rest is loop_window.c's */
	struct loop_row *last;
	struct loop_row **slot; /* n_slots, a power of two */
	uint32_t n_slots;
	struct loop_sites *sites;
};

/* Count. 0, LOOP_WINDOW_FULL (flush and call again), -ENOMEM. */
enum { LOOP_WINDOW_FULL = 1 };
int loop_window_add(struct loop_window *w, struct loop_sites *sites, struct task *who,
	const struct loop_counts *c);

/* The tasks of all rows. */
void loop_window_keep(const struct loop_window *w, struct sweep *s);

void loop_window_clear(struct loop_window *w);
