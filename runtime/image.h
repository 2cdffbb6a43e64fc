/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Image: what the runtime knows of an object, from its registration until it is closed */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/abi.h"

struct area;
struct state;

struct image {
	struct image *next; /* never changes */
	bool open;
	uint32_t id;
	const struct mperf_object *object;
	uint64_t *counters; /* the object's, which count nothing themselves */
	uint32_t n_counters;
	uint32_t n_modules; /* of our ABI */
	bool has_segment;   /* its code counts through %gs */
	struct area *lost;  /* what threads without memory count in */

	/* the round's */
	uint8_t *uses;     /* enum mperf_counter_use of each counter; NULL: not looked at yet */
	uint32_t serial;   /* of the connection to which it was announced */
	uint32_t n_tables; /* that were sent whole */
	uint32_t offset;   /* in the next */
};

/* The module of that number, among those of our ABI; n below n_modules. */
const struct mperf_module *mperf_image_module(const struct image *image, uint32_t n);

/* How each counter is used, found out at the first call. NULL: no memory. Under the lock. */
const uint8_t *mperf_image_uses(struct image *image);

/* The build id out of an object's ELF header and notes in memory: its bytes, at most
 * MPERF_BUILD_ID_BYTES_MAX, into id. 0: it has none. */
size_t mperf_image_build_id(const void *elf, uint8_t id[MPERF_BUILD_ID_BYTES_MAX]);
