/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Ask: one request and the stream of its answers
 *
 * ask_run sends a request and hands every answer to the asker until Done or Failure. Meanwhile it
 * also watches descriptors for the asker: signals, the end of a command, a timer. A Failure is
 * said on stderr here, so that no command forgets to.
 */

#include <stdbool.h>
#include <stddef.h>

#include "client/connect.h"
#include "client/say.h"

#define ASK_WATCHES_MAX 4

enum {
	ASK_FAILED =
		1, /* the daemon said Failure, or went away; exit_status says with what to exit */
	ASK_CANCELLED, /* we asked for it */
};

struct ask_watch {
	int fd;                       /* -1: not now */
	int (*ready)(void *userdata); /* 0, or -errno: fatal */
};

struct ask {
	struct link *link; /* borrowed */
	/* Takes Ready, Columns, Rows, Bytes, Provenance; may be NULL. Non-zero stops: positive as
	 * ASK_FAILED (the callback has said why), negative as -errno. */
	int (*answer)(void *userdata, const Mperf__Answer *a);
	/* Something is about to be said on stderr; may be NULL. Who fills the screen gives it back.
	 */
	void (*before_say)(void *userdata);
	void *userdata; /* of all callbacks */
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

/* After -errno: say that `what` ("asking", "measuring") cannot go on, and what to do. */
void ask_say_broken(const char *what, int error);

/* From a callback: let the request end well, or now. The answers still come through ask_run. */
int ask_finish(struct ask *k);
int ask_cancel(struct ask *k);
