/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Internals of an image, for its constructors */

#include "daemon/namer/image.h"
#include "daemon/namer/kallsyms.h"
#include "daemon/namer/names.h"
#include "daemon/namer/spans.h"
#include "proto/memory.h"

/* Size of one file, so that a sparse file cannot take hours to read. Equals the daemon's limit
 * NAMER_FILE_BYTES_MAX; larger is IMAGE_OVERSIZE. */
#define IMAGE_FILE_BYTES_MAX (4ull << 30)

/* The last function of the kernel or of a module has no near successor that bounds it. The kernel's
 * largest functions take tens of kilobytes. */
#define KERNEL_LAST_BYTES_MAX (64u << 10)

struct elf_image;
struct jit_lines;

struct image {
	uint32_t n_others;    /* users besides the first */
	struct spans symbols; /* by offset, of ELF by virtual address */
	struct names names;
	struct kallsyms *kallsyms;           /* NULL: neither the kernel nor a module */
	const struct kernel_symbols *kernel; /* in kallsyms, used instead of symbols; NULL: none */
	uint64_t kernel_base;
	struct elf_image *elf; /* NULL: not ELF */
	struct jit_lines *jit; /* NULL: not jitdump */
};

/* NULL: out of memory. */
struct image *image_new(void);

DEFINE_CLEANUP(struct image *, image_free)
