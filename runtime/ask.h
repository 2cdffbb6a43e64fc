/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Ask: what the daemon says to a program */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/abi.h"

struct state;

/* Read at a time, so that a daemon which floods is not listened to for ever. */
#define MPERF_ASKS_MAX 16u

struct ask {
	enum mperf_message type; /* MPERF_ASK, MPERF_GRANT or MPERF_SELECT */
	uint32_t period_ms;      /* ASK; 0: as before */
	bool now;                /* ASK */
	uint32_t thread;         /* GRANT: the program's id of it */
	uint32_t n;              /* GRANT */
	uint32_t one_in;         /* SELECT, as are the next; globs are the message's */
	uint32_t globs_bytes;
	const char *globs;
};

/* Read one message. 0; -EBADMSG: it is none that a daemon of this ABI sends. */
int mperf_ask_parse(const void *message, size_t bytes, struct ask *ret_ask);

/* Do what the daemon has asked so far; under the lock. True: a round at once. */
bool mperf_ask_read(struct state *s);
