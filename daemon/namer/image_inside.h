/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The inside of an image, for those who make one
 */

#include "daemon/namer/image.h"
#include "daemon/namer/kallsyms.h"
#include "daemon/namer/names.h"
#include "daemon/namer/spans.h"
#include "proto/memory.h"

/* Of one file, so that a sparse one cannot keep us reading for hours. Equals the daemon's limit
 * NAMER_FILE_BYTES_MAX; larger is IMAGE_OVERSIZE. */
#define IMAGE_FILE_BYTES_MAX (4ull << 30)

/* The last function of the kernel, or of a module, has no successor but, far away, something else.
 * The kernel's largest functions have some ten kilobytes. */
#define KERNEL_LAST_BYTES_MAX (64u << 10)

struct elf_image;
struct jit_lines;

struct image {
	struct spans symbols; /* by offset, of ELF by virtual address */
	struct names names;
	struct kallsyms *kallsyms; /* NULL: neither the kernel nor a module */
	const struct kernel_symbols *kernel; /* in it, in place of symbols; NULL: has none */
	uint64_t kernel_base;
	struct elf_image *elf; /* NULL: not ELF */
	struct jit_lines *jit; /* NULL: not jitdump */
};

/* NULL: no memory. */
struct image *image_new(void);

DEFINE_CLEANUP(struct image *, image_free)
