/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Split units: DWARF that the compiler has put into separate files (-gsplit-dwarf)
 *
 * The program keeps a skeleton of the unit, with its addresses and lines. Functions and inlined calls
 * are in a file next to the object, .dwo, or, for all units of a program, in one package, .dwp.
 */

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/namer/byte_reader.h"
#include "daemon/namer/die_ranges.h"
#include "daemon/namer/line_table.h"

/* A skeleton, and the place of its other half. Strings are borrowed from its file; NULL: unknown. */
struct skeleton {
	uint64_t id;
	const char *name, *directory;
	uint64_t low_pc, addr_base, ranges_base;
	uint16_t version;
	uint8_t address_bytes;
};

enum {
	SPLIT_UNIT_NONE = 1, /* the file does not have it, or is malformed */
};

/* The entry of a unit is borrowed for the call. False: it is no skeleton. */
bool skeleton_read(Dwarf_Die *unit, struct skeleton *ret_skeleton);

struct split_unit;

/* Find the other half of a skeleton of `program` in a .dwo or .dwp. The Elfs are borrowed until it is
 * freed, must have no descriptor, and their sections be unpacked. 0, SPLIT_UNIT_NONE, -ENOMEM */
int split_unit_new(const struct skeleton *s, Elf *program, Elf *file, struct split_unit **ret_unit);
/* The unit's first entry, and the sections to which its ranges refer. Borrowed. */
const Dwarf_Die *split_unit_die(const struct split_unit *u);
const struct range_source *split_unit_ranges(const struct split_unit *u);
/* The entry at an offset in the unit. False: none. */
bool split_unit_entry(const struct split_unit *u, Dwarf_Off offset, Dwarf_Die *ret_die);
/* The unit's own table of source files. False: it uses the files of the skeleton's table. */
bool split_unit_files(const struct split_unit *u, struct line_sections *ret_sections);
struct split_unit *split_unit_free(struct split_unit *u);
