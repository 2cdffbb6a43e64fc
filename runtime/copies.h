/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Copies: which of a process's copies of the runtime serves */

#include <stdint.h>

struct mperf_object;
struct mperf_region;

/* What compiled code calls, of one copy. Copies of another ABI each serve themselves. */
struct copy {
	uint32_t abi; /* MPERF_ABI_VERSION */
	uint32_t reserved;
	void (*start)(void);
	void (*object_register)(struct mperf_object *o);
	void (*object_unregister)(struct mperf_object *o);
	int64_t (*thread_enter)(struct mperf_object *o);
	uint64_t (*nest_begin)(uint64_t *words, uint32_t published);
	void (*nest_end)(uint64_t *words, uint64_t begin_ns);
	void (*region_begin)(const struct mperf_region *region);
	void (*region_end)(const char *name);
};

/* The copy that serves in place of this one; NULL: this one does, or has not started. */
extern const struct copy *mperf_elsewhere;

/* Look, the first time it is called, which copy serves, and keep it loaded. Called before anything
 * else of this copy, from its constructor, so by one thread at a time. */
void mperf_copies_look(void);
