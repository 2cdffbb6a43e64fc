/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Unwinding: callers from a copied stack, by call frame information
 *
 * Runs in the parser process, by the tables of the mapped files (unwind_tables.h). Where a table does not say how
 * to go on, elfutils reads .eh_frame and .debug_frame itself.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UNWIND_FRAMES_MAX 256
#define UNWIND_MAPS_MAX 4096 /* executable mappings sent with one process */

/* An executable mapping and the descriptor of its file (-1: none). */
struct unwind_map {
	uint64_t start, end, file_offset;
	uint32_t file; /* the daemon's file id, returned with each frame */
	int fd;
	const char *path; /* for messages only */
};

struct unwinder; /* for one process's mappings */
struct unwind_tables;

/* Maps are copied; the caller keeps the descriptors and the tables, which must stay. machine is an ELF
 * e_machine (EM_X86_64, EM_RISCV, EM_AARCH64; EM_386, EM_ARM of 32-bit programs on the first and the last).
 * 0 or -errno. */
int unwinder_new(const struct unwind_map *maps, size_t n_maps, uint16_t machine,
	struct unwind_tables *tables, struct unwinder **ret_unwinder);

struct unwound {
	/* leaf first; file 0: none, offset is the address */
	struct {
		uint32_t file;
		uint64_t offset;
	} frame[UNWIND_FRAMES_MAX];
	size_t n_frames;
	bool truncated; /* ended before the outermost frame */
};

/* Registers in perf's order for that machine (bits of regs_mask, ascending). Source:
 * arch/ARCH/include/uapi/asm/perf_regs.h. 0, UNWIND_FAILED (not even one caller), -errno. */
enum { UNWIND_FAILED = 1 };
int unwinder_unwind(struct unwinder *u, const uint64_t *regs, uint64_t regs_mask,
	const uint8_t *stack, size_t n_stack, struct unwound *ret_unwound);

struct unwinder *unwinder_free(struct unwinder *u);
