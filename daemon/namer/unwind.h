/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Unwinding by elfutils: callers from a copied stack, where a table (daemon/unwind/table.h) does not say all
 *
 * Runs in the parser process, and reads .eh_frame and .debug_frame of the mapped files.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/unwind/walk.h"

#define UNWIND_MAPS_MAX 4096 /* executable mappings sent with one process */

/* An executable mapping and the descriptor of its file (-1: none). */
struct unwind_map {
	uint64_t start, end, file_offset;
	uint32_t file; /* the daemon's file id, returned with each frame; 0: none */
	int fd;
	const char *path; /* for messages only */
};

struct unwinder; /* for one process's mappings */

/* Maps are copied; the caller keeps the descriptors. machine is an ELF e_machine that unwind_registers_of knows. 0 or
 * -errno. */
int unwinder_new(const struct unwind_map *maps, size_t n_maps, uint16_t machine,
	struct unwinder **ret_unwinder);

/* The sample's registers are those of the machine, and need not be set. The files of frames are the ids of their
 * maps. 0, UNWIND_FAILED (not even one caller), -errno. */
enum { UNWIND_FAILED = 1 };
int unwinder_unwind(
	struct unwinder *u, const struct unwind_sample *sample, struct unwound *ret_unwound);

struct unwinder *unwinder_free(struct unwinder *u);
