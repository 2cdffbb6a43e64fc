/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Ask: messages from the daemon to a program */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/abi.h"

struct state;

/* Messages read at a time, so that a flooding daemon cannot keep us busy. */
#define MPERF_ASKS_MAX 16u

struct ask {
	enum mperf_message type; /* MPERF_ASK, MPERF_GRANT, MPERF_SELECT or MPERF_WANT */
	uint32_t period_ms;      /* ASK; 0: unchanged */
	bool now;                /* ASK */
	uint32_t thread;         /* GRANT: the program's id of it */
	uint32_t n;              /* GRANT */
	uint32_t one_in;         /* SELECT, as are the next; globs point into the message */
	uint32_t globs_bytes;
	const char *globs;
	uint32_t object; /* WANT, as is the next */
	bool wanted;
};

/* Parse one message. 0; -EBADMSG: no daemon of this ABI sends it. Exported for tests. */
int mperf_ask_parse(const void *message, size_t bytes, struct ask *ret_ask);

/* Handle the daemon's messages so far; under the lock. True: start a round at once. */
bool mperf_ask_read(struct state *s);
