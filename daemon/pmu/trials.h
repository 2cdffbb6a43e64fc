/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Trials: the results of trying events on harts, remembered for a while
 *
 * Trying an event keeps a hart and the daemon's loop busy, for up to tenths of a second if it is
 * silent, and clients cause it. So a result is valid for TRIALS_KEEP_NS.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TRIALS_KEEP_NS 60000000000u
#define TRIALS_MAX 64

enum trial_kind {
	TRIAL_FIRES,  /* does it interrupt? */
	TRIAL_COUNTS, /* does its value move? */
};

struct trial_key {
	enum trial_kind kind;
	int hart;      /* -1: any */
	uint32_t type; /* as in perf_event_attr, as are the next two */
	uint64_t config;
	bool exclude_kernel;
};

struct trials {
	struct {
		struct trial_key key;
		bool works;
		uint64_t until_ns; /* 0: free */
	} trial[TRIALS_MAX];
	size_t next; /* to be replaced */
};

/* Was it tried less than TRIALS_KEEP_NS before now? t may be NULL: nothing is remembered. */
bool trials_find(
	const struct trials *t, const struct trial_key *key, uint64_t now_ns, bool *ret_works);
void trials_keep(struct trials *t, const struct trial_key *key, uint64_t now_ns, bool works);
