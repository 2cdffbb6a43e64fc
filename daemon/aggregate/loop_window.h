/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Counts of loops in a window: sums per (task, loop, region) */

#include "daemon/attribute/sweep.h"
#include "daemon/loops/program.h"

/* Rows of one window, 600 bytes each: 40 MB. Beyond it the window must be flushed early. */
#define LOOP_WINDOW_ROWS_MAX 65536u
/* Rows of one user: 2,000 loops and functions on eight threads. A row takes about 300 bytes of the
 * store, so a program that sends false counts fills at most 5 MB of it per window. */
#define LOOP_WINDOW_ROWS_PER_USER_MAX 16384u

struct loop_row {
	struct task *who;              /* NULL: not known */
	struct loop_site *site;        /* one of its users is the row */
	struct loop_site *region;      /* the same; NULL: in none */
	uint64_t value[N_LOOP_VALUES]; /* at most INT64_MAX */
	uint8_t was_granted;           /* as in struct loop_counts */
	struct loop_row *next;         /* in order of arrival */
	struct loop_row *chain;
};

/* How many rows a user has. */
struct loop_user {
	uid_t uid;
	uint32_t n_rows;
	struct loop_user *next;
};

struct loop_window {
	struct loop_row *rows;
	uint32_t n_rows;
	/* the rest is loop_window.c's */
	struct loop_row *last;
	struct loop_row **slot; /* n_slots, a power of two */
	uint32_t n_slots;
	struct loop_user *users; /* few: only users who run instrumented programs */
	struct loop_sites *sites;
	const struct loop_granted *granted; /* names, borrowed from the feed; NULL: none */
};

/* Add the counts. 0; LOOP_WINDOW_FULL (flush and call again); LOOP_WINDOW_USER_FULL (not counted:
 * the user has LOOP_WINDOW_ROWS_PER_USER_MAX rows); -ENOMEM. */
enum { LOOP_WINDOW_FULL = 1, LOOP_WINDOW_USER_FULL };
int loop_window_add(struct loop_window *w, struct loop_sites *sites, struct task *who,
	const struct loop_counts *c);

/* The tasks of all rows, and the frames of places. */
void loop_window_keep(const struct loop_window *w, struct sweep *s);

void loop_window_clear(struct loop_window *w);
