/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* DWARF lines: file, line and inlined callers of an address
 */

#include <libelf.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/namer/image.h"
#include "daemon/namer/names.h"

struct dwarf_lines;

enum {
	DWARF_LINES_NONE = 1, /* no .debug_info, or nothing in it that libdw accepts */
};

/* The Elf is borrowed and must be without a descriptor (elf_memory), so that libdw finds no path
 * from which to search for other files. 0, DWARF_LINES_NONE, -ENOMEM */
int dwarf_lines_new(Elf *elf, struct dwarf_lines **ret_lines);

/* The supplementary file that dwz split off. The Elf is borrowed. 0, DWARF_LINES_NONE */
int dwarf_lines_set_alt(struct dwarf_lines *d, Elf *alt);

/* What .gnu_debugaltlink asks for. Returns the build id's length, 0 if there is no link. Both
 * results are borrowed. */
size_t dwarf_lines_alt_link(struct dwarf_lines *d, const char **ret_path, const uint8_t **ret_id);

/* Fill in the places of a virtual address, innermost first; the last is the function itself, whose
 * name may be NULL. Returns how many, 0 if DWARF knows nothing of the address. The first call
 * indexes all units, the first into a unit its functions; then O(log n) plus the inlined calls
 * beside the path. */
uint32_t dwarf_lines_find(struct dwarf_lines *d, uint64_t addr, struct names *names,
	struct image_place ret_place[IMAGE_PLACES_MAX]);

struct dwarf_lines *dwarf_lines_free(struct dwarf_lines *d);
