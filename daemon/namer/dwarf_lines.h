/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* DWARF lines: file, line and inlined callers of an address */

#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/namer/image.h"

struct dwarf_lines;
struct split_files;

enum {
	DWARF_LINES_NONE = 1, /* no .debug_info, or libdw rejects it */
};

int dwarf_lines_new(struct dwarf_lines **ret_lines);

/* Open the DWARF of an Elf, and of the supplementary file that dwz split off (NULL: it is not
 * there). Both are borrowed until dwarf_lines_close and must have no descriptor (elf_memory), so
 * that libdw has no path from which to search for other files. Split units are looked for in `split`,
 * which is borrowed as long; NULL: they are not. 0, DWARF_LINES_NONE, -ENOMEM */
int dwarf_lines_open(struct dwarf_lines *d, Elf *elf, Elf *alt, struct split_files *split);
bool dwarf_lines_is_open(const struct dwarf_lines *d);
/* Is the index of units whole? It stays when the file is closed. */
bool dwarf_lines_has_index(const struct dwarf_lines *d);
/* Index the units of the next megabyte of an open file: between the steps, pages of the file that were read
 * may be released. The file may not be closed before the index is whole. */
void dwarf_lines_index_some(struct dwarf_lines *d);

/* Fill in the places of a virtual address, innermost first; the last is the function itself, whose
 * name may be NULL. Strings are valid until dwarf_lines_close. Returns the number of places, 0 if
 * DWARF does not cover the address. The index must be whole. The first call into a unit indexes its
 * functions; then O(log n) plus the inlined calls along the path. */
uint32_t dwarf_lines_find(
	struct dwarf_lines *d, uint64_t addr, struct image_place ret_place[IMAGE_PLACES_MAX]);

/* Free everything but the index of units, so that opening the same file again is cheap. */
void dwarf_lines_close(struct dwarf_lines *d);
struct dwarf_lines *dwarf_lines_free(struct dwarf_lines *d);
