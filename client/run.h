/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* A run: a request that measures, and what ends it
 *
 *     held command ── Ready ──→ running ── its end, --for, Ctrl-C ──→ finishing ── Done ──→ over
 *
 * record and stat share it; they differ in the answers that they take.
 */

#include "client/ask.h"
#include "client/options.h"
#include "client/workload.h"

struct run {
	/* in */
	struct link *link;             /* borrowed */
	const struct options *options; /* borrowed: whom, and for how long */
	int signal_fd;                 /* signals_block */
	int (*answer)(void *userdata, const Mperf__Answer *a); /* as struct ask's */
	void *userdata;

	/* out */
	struct workload workload; /* its times, if there was a command */
	uint64_t elapsed_ns;      /* from Ready to the end */
	bool interrupted;         /* a signal ended it */
	int exit_status;          /* of mperfctl: the command's, or why there is none */

	/* inner */
	struct ask ask;
	int timer_fd;
	uint64_t ready_ns;
	bool ready, finishing, not_run;
	int n_signals;
};

/* Run the request: its target is filled in by this. 0: there are results; RUN_FAILED: there are
 * none, and that has been said (exit_status). The struct's inputs are set, the rest is zero. */
enum { RUN_FAILED = 1 };
int run_request(struct run *n, Mperf__Request *request, Mperf__Target **target);
