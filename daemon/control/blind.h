/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Blind harts: busy by what the kernel says of their time, and without a sample
 *
 * Whatever the reason (a ring that stands full, an event that died), such a hart looks like an idle
 * one in all figures that come from samples. So each hart is compared with /proc/stat; a blind one
 * is named as trouble and opened again until it brings samples.
 */

#include "daemon/control/hart_time.h"
#include "daemon/pmu/sampler.h"

/* Between two checks. On a machine of a hundred harts /proc/stat takes the kernel a millisecond. */
#define BLIND_LOOK_NS 5000000000u

/* Samples that a hart owes before it is called blind: what /proc/stat says is itself sampled, by
 * ticks, and one sample in this many may come late. */
#define BLIND_SAMPLES_MIN 100u

/* Until a blind hart is opened once more, at first; doubled each time, so that an event that cannot
 * be mended costs less and less. */
#define BLIND_MEND_NS 10000000000u
#define BLIND_MEND_NS_MAX 600000000000u

/* Harts opened again after one look: each may take some 100 ms of the loop, for what is tried first
 * is what did not sample (ladder.h), and all harts of a guest may go blind at once. */
#define BLIND_MENDS_MAX 2

struct blind_hart {
	uint64_t n_samples;        /* that its ring brought, ever */
	uint64_t n_seen;           /* as of the last look */
	struct hart_time time;     /* likewise */
	uint64_t owed_ns;          /* for which it was busy since its last sample */
	uint64_t told_s;           /* of that, what was counted as LOSS_BLIND */
	uint64_t mend_ns, wait_ns; /* CLOCK_MONOTONIC of the next mending; and for how long then */
	unsigned n_mends;          /* since its last sample */
	bool blind;
};

struct blind {
	struct blind_hart *hart; /* n_harts */
	int n_harts;
	int first_mend;        /* whose turn it is to be opened again */
	uint64_t next_look_ns; /* CLOCK_MONOTONIC */
	char trouble[256];     /* a sentence on the harts that are blind; "": none is */
};

int blind_init(struct blind *b, int n_harts);
void blind_clear(struct blind *b);

/* A sample came out of that hart's ring. */
static inline void blind_sample(struct blind *b, int hart)
{
	b->hart[hart].n_samples++;
}

/* Judge all harts by what they did until now (CLOCK_MONOTONIC), every BLIND_LOOK_NS and after a
 * drain. Counts LOSS_BLIND. *ret_mend: the harts to open again now, whose rings were drained;
 * BLIND_MENDS_MAX at most, others after the next looks. */
void blind_look(struct blind *b, struct sampler *s, const struct hart_time *time, uint64_t now_ns,
	struct hart_set *ret_mend);
