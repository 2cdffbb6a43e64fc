/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* A capture: one recording, from the daemon into a file */

#include "client/options.h"
#include "client/outfile.h"
#include "client/run.h"

struct capture {
	struct run run;
	struct outfile *out;   /* borrowed */
	char *provenance_line; /* owned; NULL until it arrived */
	uint64_t samples, total_bytes;
};

/* Record what the options say into out, which is open and stays so. feed: of a daemon of our own,
 * where it is to make a socket for CMD to tell what it counts; NULL: nowhere. 0; RUN_FAILED with
 * run.exit_status, and what was wrong has been said. */
int capture_run(struct capture *c, struct link *l, const struct options *o, int signal_fd,
	struct outfile *out, const char *feed);
void capture_clear(struct capture *c);

/* Where a query reads from: -i, ./mperf.mprf, what the service keeps, or a recording made for it
 * that is removed by source_clear. */
struct source {
	struct link link;
	struct outfile temporary; /* fd -1 and no name unless recorded */
	char *path;               /* absolute; empty: what the service keeps */
	bool kept;                /* that is it */
	char *feed_folder;        /* of the socket that CMD tells what it counts; or NULL */
	int signal_fd;            /* -1 unless recorded */
	int exit_status;          /* of CMD */
};

/* 0; RUN_FAILED with *ret_exit, and what was wrong has been said. */
int source_open(struct source *s, const struct options *o, int *ret_exit);

/* Ask the query of its path; answers go to `answer`. Returns the exit status; 0: answered. */
int source_ask(struct source *s, Mperf__Request *request,
	int (*answer)(void *userdata, const Mperf__Answer *a), void *userdata);

/* The options' filter in the protocol's form; borrows from the options. Of what the service keeps,
 * it is the last hour unless they say more. */
void source_filter(const struct source *s, const struct options *o, Mperf__Filter *ret_filter);

void source_clear(struct source *s);

#define SOURCE_DEFAULT "mperf.mprf"
