/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Caches by documents: what the daemon's platform database says, for kernels that state no sizes */

#include "client/roofs/machine.h"

/* Caches as one text for mperf-roofs, "0-3:32768/1,2097152/4": harts, then for each level, L1
 * first, bytes and the number of harts that share them (0: all of these). Kinds of harts are joined
 * by ';'. */
#define CACHES_TEXT_BYTES 1024

/* Ask the service, or else a daemon of our own; "" if neither knows. 0, -ENOMEM. */
int caches_find(char ret_text[static CACHES_TEXT_BYTES]);

/* The caches of a hart in such a text; no levels if it does not list the hart, or is malformed. */
struct machine_caches caches_of(const char *text, uint32_t hart);

/* Are all sizes there? */
bool caches_are_stated(const struct machine_caches *caches);
