/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Gathering wishes of a trickle
 *
 * Names are wanted in a trickle as long as programs run. Each request costs the parser a wake-up, and one with more
 * frames of a file costs little more than one with few. So for a patient caller (namer_be_patient) the wishes of a second
 * are gathered, and then served. A backlog, a file that is new or goes on (queue_put_first), and generated code do not
 * wait.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* More than this is a backlog. */
#define GATHER_FILES_MAX 8u
#define GATHER_FRAMES_MAX 256u
#define GATHER_NS 1000000000u /* about as long as who asks for the first time may miss a name */

struct gathering {
	uint64_t until_ns; /* 0: nothing is gathered */
	size_t n;          /* wishes to be served now, as they come */
};

struct namer;

/* Are few wishes queued, all of files that the parser has loaded, and none to be read on before the next drain? */
bool gather_is_trickle(const struct namer *n);
/* Must the wishes that are queued wait? */
bool gather_waits(struct namer *n);
/* Note that frames of a wish were asked for. */
void gather_note_served(struct namer *n);
