/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Ask: one request and the stream of its answers
 *
 * ask_run sends a request and passes every answer to the caller until Done or Failure. Meanwhile it
 * also watches descriptors for the caller: signals, the end of a command, a timer. It prints a
 * Failure on stderr, so that no command forgets to.
 */

#include <stdbool.h>
#include <stddef.h>

#include "client/show/say.h"
#include "client/wire/connect.h"

#define ASK_WATCHES_MAX 4

enum {
	/* The daemon sent Failure, or went away; exit_status has the exit status. */
	ASK_FAILED = 1,
	ASK_CANCELLED, /* by ask_cancel */
};

struct ask_watch {
	int fd;                       /* -1: inactive */
	int (*ready)(void *userdata); /* 0, or -errno: fatal */
};

struct ask {
	struct link *link; /* borrowed */
	/* Takes Ready, Columns, Rows, Bytes, Provenance; may be NULL. Non-zero stops: positive as
	 * ASK_FAILED (the callback has printed why), negative as -errno. */
	int (*answer)(void *userdata, const Mperf__Answer *a);
	/* Takes a Failure that may be expected, in place of printing it; may be NULL. */
	void (*failed)(void *userdata, const Mperf__Failure *f);
	/* Called before a message on stderr; may be NULL. A full-screen program restores the
	 * terminal. */
	void (*before_say)(void *userdata);
	void *userdata; /* for all callbacks */
	struct ask_watch watch[ASK_WATCHES_MAX];
	struct say_progress progress;

	/* out */
	int status;      /* of Done */
	int exit_status; /* after ASK_FAILED: EXIT_FAILED or EXIT_USAGE */

	/* inner */
	uint32_t id;
	bool cancelled;
};

/* Run the request (its id is set here). 0 at Done, ASK_FAILED, ASK_CANCELLED, -errno. */
int ask_run(struct ask *k, Mperf__Request *request);

/* After -errno: say that `what` ("asking", "measuring") cannot continue, and what to do. */
void ask_say_broken(const char *what, int error);

/* From a callback: end the request with its results, or now. Answers still arrive through
 * ask_run. */
int ask_finish(struct ask *k);
int ask_cancel(struct ask *k);
