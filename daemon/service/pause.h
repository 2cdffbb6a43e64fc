/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* A pause: while a client measures roofs, always-on sampling is lowered to the minimum
 *
 * Sampling is lowered, not stopped: harts stay open, and the records of mappings, execs and exits
 * go on, so that later samples have their names. Only one client measures at a time, since two
 * would disturb each other more than we do. A pause ends after PAUSE_NS_MAX, whatever the client
 * does. So that no user can keep the machine unwatched, each second of pause is a debt, which ten
 * seconds without a pause pay off.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* mperf-roofs takes a minute at most, with what surrounds it. */
#define PAUSE_NS_MAX 70000000000u
/* Samples a second meanwhile, unless a client asks for more. */
#define PAUSE_HZ 1u
/* Seconds that pay off one second of pause. A pause may begin while up to PAUSE_OWED_NS_MAX is
 * owed, so that a measurement of all roofs may follow one with --quick. */
#define PAUSE_PAID_BY 10
#define PAUSE_OWED_NS_MAX PAUSE_NS_MAX

enum {
	PAUSE_BUSY = 1,  /* another measures */
	PAUSE_TOO_OFTEN, /* too much is owed */
};

/* All 0: there was none. Times are CLOCK_MONOTONIC, but for realtime_ns. */
struct pause {
	const void *who; /* the client that measures now; NULL: none */
	uid_t uid;       /* user of that client, or of the last one */
	uint64_t began_ns, until_ns;
	uint64_t owed_ns, owed_at_ns;

	/* of the last one, or the one now */
	int64_t realtime_ns; /* CLOCK_REALTIME when it began; 0: there was none */
	uint64_t took_ns;    /* once it is over */
	uint64_t n;          /* so far */

	bool changed;        /* it began or ended since pause_look */
	uint64_t counted_ns; /* LOSS_PAUSED has its seconds until then */
};

/* Begin, for `who`, any address that belongs to the caller. 0, PAUSE_BUSY, PAUSE_TOO_OFTEN. */
int pause_begin(struct pause *p, const void *who, uid_t uid, uint64_t now_ns);
/* When another may begin, after PAUSE_*. */
uint64_t pause_free_ns(const struct pause *p, uint64_t now_ns);
/* End the pause of `who`. True if it lasted until now. */
bool pause_end(struct pause *p, const void *who, uint64_t now_ns);

/* Call in each round: ends a pause that has lasted too long. True if one began or ended since the
 * last call. */
bool pause_look(struct pause *p, uint64_t now_ns);
/* Whole seconds of a pause since the last call, for LOSS_PAUSED. At the end of the pause, the
 * fraction that remains counts as one more. */
uint64_t pause_seconds(struct pause *p, uint64_t now_ns);
