/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Place: a parallel region, or a loop, barrier or lock in one, by its return address
 *
 * One table per process, which only grows. A thread claims a slot by its key in one step, so threads that
 * come to a place at the same time need no lock; it then fills the slot, and only the sender waits for
 * that.
 */

#include <stdbool.h>
#include <stdint.h>

#include "runtime/abi.h"

struct state;

/* Slots, and how many of them are used: a program of 100,000 lines has some hundred. Beyond that,
 * regions are counted together, and other places only as part of their region. Ids must fit into a
 * key. */
#define PLACES_SLOTS 4095u
#define PLACES_MAX 3072u
/* Executables and libraries with places; places in further ones have no file. */
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
	uint32_t ready;  /* atomic: all members except the key are filled in */
};

/* The place of that kind (enum mperf_place_kind) and return address (NULL: not known) in a region (NULL:
 * outside all). If the table is full: place_other() for a region, NULL for anything else. Any thread. */
struct place *place_get(uint32_t kind, const void *address, struct place *parent);

/* The place that represents all further regions. It contains no places. */
struct place *place_other(void);

/* Its id in messages, from 1. */
uint32_t place_id(const struct place *p);

/* Announce it to the sink, after the regions around it, unless that is done. 0; MPERF_SINK_LATER: it is
 * being filled in; another outcome of the sink. Under the lock (state.h). */
int place_announce(struct state *s, struct place *p);
