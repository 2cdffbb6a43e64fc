/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Place: a parallel region, or a loop, barrier or lock in one, by its return address
 *
 * One table per process, which only grows. A slot is claimed by its key in one step, so threads that
 * come to a place at the same time need no lock; whoever claimed it fills it, and only the sender
 * waits for that.
 */

#include <stdbool.h>
#include <stdint.h>

#include "runtime/abi.h"

struct state;

/* Slots, and how many of them are used: a program of 100,000 lines has some hundred. Regions beyond are
 * counted together; what else comes beyond, only as part of its region. Ids have to fit a key. */
#define PLACES_SLOTS 4095u
#define PLACES_MAX 3072u
/* Executables and libraries with places; those of further ones have no name. */
#define PLACES_FILES_MAX 64u
#define PLACES_PATH_BYTES 256u /* longer paths keep their end */

struct place_file {
	uint64_t start; /* atomic; where it is mapped; 0: free */
	uint8_t build_id[MPERF_BUILD_ID_BYTES_MAX];
	uint32_t build_id_bytes;
	char path[PLACES_PATH_BYTES];
	uint32_t ready; /* atomic */
};

struct place {
	uint64_t key; /* atomic; 0: free */
	uint64_t address;
	uint64_t offset;
	const struct place_file *file; /* NULL: not known */
	struct place *parent;          /* the region around it, or NULL */
	uint32_t kind;                 /* enum mperf_place_kind */
	uint32_t serial; /* the sender's: of the connection to which it was announced */
	uint32_t ready;  /* atomic: all but the key is filled in */
};

/* The place of that kind and address in a region (NULL: outside all). Without room: of a region, the one
 * that stands for all further ones, in which are no places; of anything else NULL. */
struct place *place_get(uint32_t kind, const void *address, struct place *parent);

/* That one. */
struct place *place_other(void);

/* From 1. */
uint32_t place_id(const struct place *p);

/* Announce it, after the regions around it. 0; MPERF_SINK_LATER: it is being filled in; an outcome of
 * the sink. */
int place_announce(struct state *s, struct place *p);
