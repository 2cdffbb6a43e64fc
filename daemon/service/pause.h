/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* A pause: while somebody measures roofs, always-on sampling is lowered to the least
 *
 * Lowered and not stopped: harts stay open, and the records of mappings, execs and exits go on, so
 * that what is sampled later has its names. One at a time, since two that measure disturb each other
 * more than we do; for PAUSE_NS_MAX at most, whatever the client does; and no user keeps the machine
 * unwatched: a pause is owed, and paid off by ten times as long.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* mperf-roofs takes a minute at most, with what surrounds it. */
#define PAUSE_NS_MAX 70000000000u
/* Samples a second meanwhile, unless a client asks for more. */
#define PAUSE_HZ 1u
/* The time that pays a pause off, in times of its own; more may be owed than one pause, so that one of
 * all roofs may follow upon --quick. */
#define PAUSE_PAID_BY 10
#define PAUSE_OWED_NS_MAX PAUSE_NS_MAX

enum {
	PAUSE_BUSY = 1,  /* another measures */
	PAUSE_TOO_OFTEN, /* too much is owed */
};

/* All 0: there was none. Times are CLOCK_MONOTONIC, but for realtime_ns. */
struct pause {
	const void *who; /* measures now; NULL: nobody */
	uid_t uid;       /* whose that is, or was */
	uint64_t began_ns, until_ns;
	uint64_t owed_ns, owed_at_ns;

	/* of the last one, or the one now */
	int64_t realtime_ns; /* CLOCK_REALTIME when it began; 0: there was none */
	uint64_t took_ns;    /* once it is over */
	uint64_t n;          /* so far */

	bool changed;        /* it began or ended since pause_look */
	uint64_t counted_ns; /* until when LOSS_PAUSED has it */
};

/* Begin, for `who`, any address that belongs to the caller. 0, PAUSE_BUSY, PAUSE_TOO_OFTEN. */
int pause_begin(struct pause *p, const void *who, uid_t uid, uint64_t now_ns);
/* When another may begin, after PAUSE_*. */
uint64_t pause_free_ns(const struct pause *p, uint64_t now_ns);
/* End that of `who`. True if it lasted until now. */
bool pause_end(struct pause *p, const void *who, uint64_t now_ns);

/* In each round: end what has lasted too long. True if a pause began or ended since the last call. */
bool pause_look(struct pause *p, uint64_t now_ns);
/* Seconds of a pause since the last call, for LOSS_PAUSED: whole ones, and at its end the rest as
 * another. */
uint64_t pause_seconds(struct pause *p, uint64_t now_ns);
