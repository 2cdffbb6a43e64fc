/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The keeper: the service's own recording, one segment after another
 *
 *      recording ── an hour is over ──▶ waits for names, sealed ──▶ rolled up, in a child
 *          │                                                         minute/, hour/
 *          └── no space ──▶ nothing is stored, all is counted ── 30 s ──▶ tried again
 *
 * It owns the store, keeps its budget, and hides from the rest whether there is one.
 */

#include "daemon/conf.h"
#include "daemon/control/recording.h"
#include "daemon/control/service.h"
#include "daemon/store/store.h"

struct keeper_options {
	const struct conf *conf;         /* borrowed */
	struct walk *walk;               /* borrowed */
	struct service *service;         /* whose store and store_trouble are set */
	void (*say)(void *userdata, int syslog_level, const char *text);
	void *userdata;
};

struct keeper;

/* Begin; a store that cannot be had is no error. 0 or -errno. */
int keeper_new(const struct keeper_options *o, struct keeper **ret_keeper);
size_t keeper_fds(const struct keeper *k, struct pollfd *fds, size_t n);
uint64_t keeper_deadline_ns(const struct keeper *k);
/* After the walk's dispatch. 0 or -errno. */
int keeper_dispatch(struct keeper *k, uint64_t now_ns);
/* Take over what changed in the configuration. 0 or -errno. */
int keeper_reload(struct keeper *k);
/* Store what is in hand, wait a second for names, seal. */
void keeper_stop(struct keeper *k);

/* As service_select. */
int keeper_select(struct keeper *k, int64_t since_ns, int64_t until_ns, enum tier coarsest,
	struct store_part **ret_part, size_t *ret_n_parts);
/* When a selection next writes what is in hand, so that it is in the answer: CLOCK_MONOTONIC. */
uint64_t keeper_fresh_ns(const struct keeper *k);
/* Samples since the start: stored, in hand, and passed over since others had the rate raised. */
struct keeper_samples {
	uint64_t stored, in_hand, passed;
};
void keeper_account(const struct keeper *k, struct keeper_samples *ret_samples);
/* What each user may write. Borrowed. */
const struct shares *keeper_shares(const struct keeper *k);
/* What it lost, per hart. Borrowed. */
uint64_t (*keeper_lost(struct keeper *k))[N_LOSSES];

struct keeper *keeper_free(struct keeper *k);
