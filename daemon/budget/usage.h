/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Usage: the cost of the daemon itself, with all its processes
 *
 * mperfd, the namer's two workers, the children that currently answer queries or roll up, and, as
 * one sum, the children that have ended. It keeps a history of one minute, so that recent cost can
 * be distinguished from the total.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/naming/namer.h"

#define USAGE_PROCESSES_MAX 64     /* ourselves, two workers, the maximum number of queries */
#define USAGE_TICK_NS 10000000000u /* call usage_tick this often */
#define USAGE_TICKS 7              /* so that the oldest is 60 to 70 seconds old */

struct usage_process {
	pid_t pid;        /* 0: the children that have ended */
	const char *what; /* static: "daemon", "opener", "parser", "looks", "query", "ended" */
	uint64_t cpu_ns;  /* since its start */
	uint64_t rss_bytes, peak_bytes; /* 0: not known */
	/* of one CPU over the last minute; negative: not known */
	double minute_share;
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

/* Record the current usage. namer may be NULL. looks: the process of offcpu_looks.h, which is no child; 0: none. */
void usage_tick(struct usage *u, const struct namer *namer, pid_t looks, uint64_t now_ns);

/* The usage of each process now; at most USAGE_PROCESSES_MAX. If u is NULL or has no tick yet, the
 * last minute is not known. Returns how many. */
size_t usage_read(const struct usage *u, const struct namer *namer, pid_t looks, uint64_t now_ns,
	struct usage_process ret_process[USAGE_PROCESSES_MAX]);

/* CPU time so far, without the memory that usage_read reads. */
struct usage_cpu {
	uint64_t own_ns;    /* the daemon and its namer's workers, without looks */
	uint64_t namer_ns;  /* of it, these workers */
	uint64_t others_ns; /* children that answer queries and roll up, and all that ended */
};
void usage_cpu(const struct namer *namer, struct usage_cpu *ret_cpu);

/* The value of a line "Key:  123 kB" of a text like /proc/PID/status, in bytes; 0 if there is no
 * such line. Exported for tests. */
uint64_t usage_kilobytes(const char *text, const char *key);
