/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Area: memory for one block of counters, and the part already sent of each
 *
 *      [struct area][counters, n][sent, n]
 *
 * Areas are mapped, never unmapped, and reused: code that still runs when its object is closed or
 * its thread is forgotten writes into valid memory. Both functions are async-signal-safe and take
 * no lock.
 */

#include <stddef.h>
#include <stdint.h>

/* Limit for all areas of a process. Untouched pages cost nothing, so it bounds addresses rather
 * than memory: 200 threads in a program of 30,000 counters take a tenth of it. Beyond it threads
 * are lost, and counted as lost. */
#define MPERF_AREA_BYTES_MAX (UINT64_C(1) << 30)

struct area {
	struct area *next; /* set before others see it, then constant */
	size_t bytes;
	uint32_t taken; /* atomic */
	_Alignas(64) uint64_t counters[];
};

struct area_pool {
	struct area *first; /* atomic */
	uint64_t bytes;     /* atomic; of all */
	uint64_t bytes_max; /* MPERF_AREA_BYTES_MAX; less in tests */
	uint32_t n_free;    /* atomic */
	uintptr_t next;     /* atomic; where the next one should be; 0: anywhere */
};

/* Take an area of n_counters zeros, twice. NULL: no memory, or bytes_max is reached. Linear in
 * areas if one is free, else constant. */
struct area *mperf_area_take(struct area_pool *pool, size_t n_counters);

/* From now on place areas above this address, as far as there is room. */
void mperf_area_above(struct area_pool *pool, const void *address);

/* Give it back; later writes to it are lost. */
void mperf_area_give(struct area_pool *pool, struct area *a);

/* Make all zero again. */
void mperf_area_clear(struct area *a);

/* The sent values of an area for n counters. */
static inline uint64_t *mperf_area_sent(struct area *a, size_t n_counters)
{
	return a->counters + ((n_counters + 7) & ~(size_t)7);
}
