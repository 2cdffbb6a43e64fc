/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* A keeper's internals */

#include "daemon/jobs/pinner.h"
#include "daemon/service/keeper.h"
#include "daemon/service/roller.h"
#include "daemon/store/account.h"

/* Segments waiting for names at the same time; one comes per hour and waits for seconds. */
#define ENDING_MAX 8

#define KEEPER_FRESH_NS 1000000000u /* queries make us write at most this often */

struct keeper {
	struct keeper_options o;
	struct store *store;
	char trouble[512]; /* reason why nothing is stored now; "": storing works */
	struct account *account;
	struct roller *roller;
	struct pinner *pinner;       /* with the store */
	uint64_t pin_flushed_ns;     /* when samples that a pin waits for were last written */
	struct recording *recording; /* NULL: nothing is stored now */
	char *path;                  /* of its segment */
	struct recording *ending[ENDING_MAX];
	struct tap tap;       /* counts samples that are not stored */
	int64_t period;       /* of the segment: realtime by tier_period_ns */
	struct shares shares; /* of the space for windows */
	uint64_t flush_ns;    /* 0: as mperf.conf says */
	int64_t offset_ns;    /* realtime - monotonic when it began */
	uint64_t next_look_ns, next_try_ns, flushed_ns;
	uint64_t n_stored, n_passed;    /* of recordings that are gone */
	uint64_t (*lost)[N_LOSSES];     /* per hart */
	uint64_t (*recorded)[N_LOSSES]; /* per hart: of all losses, those recorded in segments */
	int n_harts;
	struct hart_counts *counts;    /* NULL: none */
	char settled[CONF_TEXT_BYTES]; /* path of the store whose last run was examined */
	/* rotate: start a new segment as soon as there is a free slot */
	bool said_trouble, rotate;
};

/* --- keeper_state.c --------------------------------------------------------------------------- */

/* The length of windows. */
uint64_t keeper_window_ns(const struct keeper *k);
/* Write the samples that pins wait for, and let the pins continue. 0 or -errno. */
int keeper_tend_pins(struct keeper *k, uint64_t now_ns);
