/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Usage: what the daemon itself costs, all of its processes together
 *
 * mperfd, the namer's two workers, whatever child answers a query or rolls up at the moment, and,
 * as one sum, the children that have ended. The history of a minute is kept, so that "now" can be
 * told from "ever".
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/attribute/namer.h"

#define USAGE_PROCESSES_MAX 64     /* ourselves, two workers, as many queries as anybody allows */
#define USAGE_TICK_NS 10000000000u /* call usage_tick this often */
#define USAGE_TICKS 7              /* so that the oldest is 60 to 70 seconds ago */

struct usage_process {
	pid_t pid;                      /* 0: the children that have ended */
	const char *what;               /* static: "daemon", "opener", "parser", "query", "ended" */
	uint64_t cpu_ns;                /* since it began */
	uint64_t rss_bytes, peak_bytes; /* 0: not known */
	double minute_share;            /* of one CPU, over the last minute; negative: not known */
};

struct usage_moment {
	uint64_t at_ns; /* CLOCK_MONOTONIC; 0: not filled yet */
	struct {
		pid_t pid;
		uint64_t cpu_ns;
	} process[USAGE_PROCESSES_MAX];
	size_t n;
};

struct usage {
	struct usage_moment past[USAGE_TICKS]; /* oldest first */
};

/* Remember this moment. namer may be NULL. */
void usage_tick(struct usage *u, const struct namer *namer, uint64_t now_ns);

/* What each costs now; at most USAGE_PROCESSES_MAX. u NULL, or of less than one tick: without a
 * minute. Returns how many. */
size_t usage_read(const struct usage *u, const struct namer *namer, uint64_t now_ns,
	struct usage_process ret_process[USAGE_PROCESSES_MAX]);

/* The value of a line "Key:  123 kB" of a text like /proc/PID/status, in bytes; 0 where it has
 * none. */
uint64_t usage_kilobytes(const char *text, const char *key);
