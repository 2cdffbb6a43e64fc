/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Region: a path of markers, shared by all threads that took it */

#include <stdint.h>

#include "runtime/mperf.h"

struct state;

/* Distinct paths; further ones are not entered. Each costs a page, and a block in each live
 * thread. */
#define MPERF_REGIONS_MAX 1024u

struct region {
	struct region *next; /* never changes */
	struct region *parent;
	uint32_t id; /* from 1 */
	uint32_t line;
	uint32_t serial;       /* used by the round: connection to which it was announced */
	uint32_t name_bytes;   /* including the NUL */
	uint32_t source_bytes; /* including the NUL */
	char text[2 * MPERF_REGION_TEXT_MAX]; /* name, source */
};

/* Find or make the region of a marker inside another region (NULL: none). NULL: no memory, or too
 * many. Linear in regions. Any thread, signals blocked. */
struct region *mperf_region_get(
	struct state *s, struct region *parent, const struct mperf_region *site);

/* Let this copy's markers use the fast path, if the copy is the executable's. Call before any
 * marker. */
void mperf_marker_start(void);
