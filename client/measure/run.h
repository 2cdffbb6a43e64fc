/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* A run: a measuring request and its end
 *
 *     held command ── Ready ──→ running ── its end, --for, Ctrl-C ──→ finishing ── Done ──→ over
 *
 * record and stat share it, and accept different answers.
 */

#include "client/measure/workload.h"
#include "client/options/options.h"
#include "client/wire/ask.h"

struct run {
	/* in */
	struct link *link;           /* borrowed */
	const struct target *target; /* borrowed */
	const char *instead;         /* advice if the events cannot be counted; or NULL */
	int signal_fd;               /* signals_block */
	int (*answer)(void *userdata, const Mperf__Answer *a); /* as struct ask's */
	void *userdata;
	bool again; /* a repetition: the daemon's first notes were printed before */

	/* out */
	struct workload workload; /* its times, if there was a command */
	uint64_t elapsed_ns;      /* from Ready to the end */
	bool interrupted;         /* a signal ended it */
	int exit_status;          /* mperfctl's exit status: the command's, or the reason why the
				   * command has none */

	/* inner */
	struct ask ask;
	int timer_fd;
	uint64_t ready_ns;
	bool ready, finishing, not_run;
	int n_signals;
};

/* Run the request; fills in its target. 0: there are results; RUN_FAILED: none, after an error
 * message (exit_status). Set the struct's inputs and zero the rest before. */
enum { RUN_FAILED = 1 };
int run_request(struct run *n, Mperf__Request *request, Mperf__Target **target);
