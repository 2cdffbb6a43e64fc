/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Shared by overhead.c, which measures and decides, and overhead_spent.c, which reports */

#include "daemon/budget/overhead.h"

#define NS_PER_S 1e9

/* Is this hart sampled? */
static inline bool is_open(const struct sampler *s, int hart)
{
	return hart_set_has(&s->seen, hart) && s->found[hart].rung != RUNG_NONE;
}

/* The number of sampled harts, at least 1, since shares are divided by it. */
static inline int n_open(const struct overhead *h, const struct sampler *s)
{
	int n = 0;
	for (int i = 0; i < h->n_harts; i++)
		n += is_open(s, i);
	return n ? n : 1;
}

/* Is each switch read there? */
static inline bool is_cut(const struct plan *p)
{
	return p->cut & (CUT_SIBLING | CUT_BPF);
}

static inline uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static inline uint64_t users_naming_ns_of(const struct walk *w)
{
	return w->namer ? namer_users_ns(w->namer) : 0;
}

/* CPU time so far that the daemon has spent for clients and programs, and its namer for programs of
 * users. It is charged to users, and a lower rate would not save it. */
static inline uint64_t clients_ns_of(const struct overhead *h, const struct walk *w)
{
	return h->clients_ns + (w->feed ? feed_spent_ns(w->feed) : 0) + users_naming_ns_of(w);
}

/* The price of one more record to our processes: the loop's CPU time for records in the last minute. Execs, names and
 * files cost the same at any rate. In a session of a client's own, the lowest so far. */
double overhead_record_ns(const struct overhead *h);
/* The first tick begins now. */
void overhead_begin_causes(struct overhead *h, const struct walk *w);
/* Divide the time of that tick by cause, with the namer's CPU time in it. */
void overhead_take_causes(
	struct overhead *h, const struct walk *w, struct overhead_own *own, uint64_t namer_ns);
/* Add the times of a tick. */
void overhead_add_own(struct overhead_own *sum, const struct overhead_own *own);
/* Sum of the ticks that count. Returns their number. */
unsigned overhead_counted(const struct overhead *h, struct overhead_own *ret_sum);
/* Let measures decide. True if they changed. */
bool overhead_measure(struct overhead *h, const struct governor_load *l, uint64_t now_ns);
/* Our processes' part of one hart's time, of the ticks that count; 0: too few do. */
double overhead_own_of_budget(const struct overhead *h);
/* Our processes' share of each hart's time that this number of records a second costs. */
double overhead_own_by_records(const struct overhead *h, double records);
/* The hart's load for the governor, as if nothing was given up. */
struct governor_hart overhead_load_of(const struct overhead *h, const struct sampler *s, int i);
