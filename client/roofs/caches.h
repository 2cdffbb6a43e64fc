/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Caches by documents: what the daemon's platform database says, for kernels that state no sizes */

#include "client/roofs/machine.h"

/* As one text, that mperf-roofs takes: "0-3:32768/1,2097152/4", harts, then of each level, L1 first, bytes and how
 * many harts share them (0: all of these); of several kinds of harts joined by ';'. */
#define CACHES_TEXT_BYTES 1024

/* Ask the service, or else a daemon of our own; "" if neither knows. 0, -ENOMEM. */
int caches_find(char ret_text[static CACHES_TEXT_BYTES]);

/* Caches of a hart as such a text has them; no levels if it has none of that hart, or is not such a text. */
struct machine_caches caches_of(const char *text, uint32_t hart);

/* Are all sizes there? */
bool caches_are_stated(const struct machine_caches *caches);
