/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Copies: which of a process's copies of the runtime serves */

#include <stdbool.h>
#include <stdint.h>

struct mperf_choice;
struct mperf_object;
struct mperf_region;

/* The functions of one copy that compiled code calls. Copies of another ABI each serve
 * themselves. */
struct copy {
	uint32_t abi;   /* MPERF_ABI_VERSION */
	uint32_t bytes; /* of this struct; 0: an early one, which ends before choices_register */
	void (*start)(void);
	void (*object_register)(struct mperf_object *o);
	void (*object_unregister)(struct mperf_object *o);
	int64_t (*thread_enter)(struct mperf_object *o);
	uint64_t (*loop_begin)(uint64_t *words, uint32_t published);
	void (*loop_end)(uint64_t *words, uint64_t begin_ns);
	void (*region_begin)(const struct mperf_region *region);
	void (*region_end)(const char *name);
	void (*choices_register)(struct mperf_choice *first, struct mperf_choice *end);
	void (*choices_unregister)(struct mperf_choice *first, struct mperf_choice *end);
	uint32_t (*turn_draw)(uint64_t *words, int32_t one_in);
};

/* The ELF note by which copies find each other: its descriptor is the distance from itself to the
 * struct. */
#define MPERF_COPY_NOTE_TYPE 1u
#define MPERF_COPY_NOTE_NAME "mperf"

/* The copy that serves instead of this one; NULL: this one does, or has not started. */
extern const struct copy *mperf_elsewhere;

/* Is this copy never closed by dlclose? That is certain of the executable's. */
extern bool mperf_copy_stays;

/* Does that copy also serve functions with two bodies? An early version does not: then each copy
 * follows the environment only, not the daemon. */
static inline bool mperf_choices_elsewhere(void)
{
	return mperf_elsewhere && mperf_elsewhere->bytes >= sizeof(struct copy);
}

/* Find the serving copy, at the first call, and keep it loaded. here: this copy. Called before any
 * other function of this copy, from its constructor, so by one thread at a time. */
void mperf_copies_look(const struct copy *here);
