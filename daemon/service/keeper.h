/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The keeper: the service's own recording, one segment after another
 *
 *      recording ── an hour is over ──▶ waits for names, sealed ──▶ rolled up, in a child
 *          │                                                         minute/, hour/
 *          └── no space ──▶ nothing is stored, all is counted ── 30 s ──▶ tried again
 *
 * It owns the store, keeps to its budget, and hides from other code whether a store exists.
 */

#include "daemon/conf/conf.h"
#include "daemon/session/recording.h"
#include "daemon/session/walk.h"
#include "daemon/store/store.h"

struct pinner;

struct keeper_options {
	const struct conf *conf; /* borrowed */
	struct walk *walk;       /* borrowed */
	/* The store has changed (NULL: none), or the reason why we cannot store ("": none). */
	void (*report)(void *owner, struct store *store, const char *trouble);
	void *owner;
	void (*say)(void *userdata, int syslog_level, const char *text);
	void *userdata;
};

struct keeper;

/* Start; an unavailable store is no error. 0 or -errno. */
int keeper_new(const struct keeper_options *o, struct keeper **ret_keeper);
size_t keeper_fds(const struct keeper *k, struct pollfd *fds, size_t n);
/* Should the next iteration of the loop come at once, since a window or a seal is only partly
 * written? */
bool keeper_has_more(const struct keeper *k);
/* After the walk's dispatch. 0 or -errno. */
int keeper_dispatch(struct keeper *k, uint64_t now_ns);
/* Apply changes of the configuration. 0 or -errno. */
int keeper_reload(struct keeper *k);
/* Samples are taken in a different way from now on: begin a new segment soon. NULL: no note. */
void keeper_renew(struct keeper *k);
/* Write samples this often from now on, but no more often than mperf.conf says. */
void keeper_flush_every(struct keeper *k, uint64_t flush_ns);
/* Does a segment that has ended wait for names, or to be sealed? */
bool keeper_any_ending(const struct keeper *k);
/* Does a job that is to be pinned wait for what is not written yet? */
bool keeper_awaits_pin(const struct keeper *k);
/* Add the counts of these harts to each window from now on; NULL: no counts. The segment that is
 * being written gets no more counts: call keeper_renew. Borrowed. */
void keeper_count(struct keeper *k, struct hart_counts *counts);
/* Store what is in memory, wait a second for names, seal. */
void keeper_stop(struct keeper *k);

/* Choose files; see service_select. */
int keeper_select(struct keeper *k, int64_t since_ns, int64_t until_ns, enum tier coarsest,
	struct store_part **ret_part, size_t *ret_n_parts);
/* Are samples in memory still being written, over several iterations of the loop? Until that is
 * done, a reader sees only the earlier state. */
bool keeper_is_writing(const struct keeper *k);
/* The next time (CLOCK_MONOTONIC) at which a selection writes the samples in memory, so that the
 * answer includes them. */
uint64_t keeper_fresh_ns(const struct keeper *k);
/* Samples since the start: stored, in memory, and skipped because clients had raised the rate. */
struct keeper_samples {
	uint64_t stored, in_hand, passed;
};
void keeper_account(const struct keeper *k, struct keeper_samples *ret_samples);
/* The pinner; NULL: there is no store. Borrowed until the next dispatch. */
struct pinner *keeper_pinner(const struct keeper *k);
/* The users' shares of what may be written. Borrowed. */
const struct shares *keeper_shares(const struct keeper *k);
/* The keeper's losses, per hart. Borrowed. */
uint64_t (*keeper_lost(struct keeper *k))[N_LOSSES];

struct keeper *keeper_free(struct keeper *k);
