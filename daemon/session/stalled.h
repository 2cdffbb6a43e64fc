/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Stalled harts: busy according to the kernel, but without samples, or with very few
 *
 * Whatever the reason (a ring that stays full, an event that died), such a hart looks idle in all
 * figures made from samples. So each hart is compared with /proc/stat; a stalled one is reported as
 * trouble and reopened until it delivers samples.
 */

#include "daemon/sampler/sampler.h"
#include "daemon/session/hart_time.h"

/* Between two checks. On a machine of a hundred harts /proc/stat takes the kernel a millisecond. */
#define STALLED_LOOK_NS 5000000000u

/* Samples that a hart must owe before we call it stalled: /proc/stat is itself sampled, by ticks, and
 * one sample in this many may come late. */
#define STALLED_SAMPLES_MIN 100u

/* A hart is reported too (LOSS_SPARSE) if it delivers less than one in this many of the samples that its
 * rate promises for its busy time. */
#define STALLED_FEW 10u

/* Time until a stalled hart is reopened; doubled each time, so that an event that cannot be repaired
 * costs less and less. */
#define STALLED_MEND_NS 10000000000u
#define STALLED_MEND_NS_MAX 600000000000u

/* Harts reopened after one look: each may take about 100 ms of the loop, since the source that did
 * not sample is tried first (ladder.h), and all harts of a guest may stall at once. */
#define STALLED_MENDS_MAX 2

struct stalled_hart {
	uint64_t n_samples;    /* from its ring, since the start */
	uint64_t n_seen;       /* as of the last look */
	struct hart_time time; /* likewise */
	/* busy time, samples, and the lowest rate since their ratio was last checked */
	uint64_t few_ns, few_samples;
	uint32_t few_hz;
	uint64_t owed_ns;   /* busy time since its last sample */
	uint64_t counted_s; /* of that, the seconds counted as LOSS_BLIND */
	/* CLOCK_MONOTONIC of the next reopening; and the wait after it */
	uint64_t mend_ns, wait_ns;
	unsigned n_mends; /* since its last sample */
	bool stalled;
};

struct stalled {
	struct stalled_hart *hart; /* n_harts */
	int n_harts;
	int first_mend;        /* the next to be reopened */
	uint32_t hz;           /* at the last look */
	uint64_t next_look_ns; /* CLOCK_MONOTONIC */
	char trouble[256];     /* a sentence on the stalled harts; "": there are none */
};

int stalled_init(struct stalled *b, int n_harts);
void stalled_clear(struct stalled *b);

/* A sample came out of that hart's ring. */
static inline void stalled_sample(struct stalled *b, int hart)
{
	b->hart[hart].n_samples++;
}

/* Judge all harts by their time up to now_ns (CLOCK_MONOTONIC); call every STALLED_LOOK_NS, after a
 * drain. Counts LOSS_BLIND and LOSS_SPARSE. *ret_mend: the harts to reopen now, whose rings have been drained; at
 * most STALLED_MENDS_MAX, the others after later looks. Exported for tests. */
void stalled_look(struct stalled *b, struct sampler *s, const struct hart_time *time,
	uint64_t now_ns, struct hart_set *ret_mend);
/* The same by what /proc/stat says now. 0 or -ENOMEM. */
int stalled_read(struct stalled *b, struct sampler *s, uint64_t now_ns, struct hart_set *ret_mend);
