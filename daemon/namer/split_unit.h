/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Split units: DWARF that the compiler has put apart (-gsplit-dwarf)
 *
 * The program keeps a skeleton of the unit, with its addresses and lines. Functions and inlined calls
 * are in a file beside the object, .dwo, or, of all units of a program, in one package, .dwp.
 */

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/namer/byte_reader.h"
#include "daemon/namer/die_ranges.h"
#include "daemon/namer/line_table.h"

/* A skeleton, and where its compiler put the rest. Strings are borrowed from its file; NULL:
 * unknown. */
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
/* Its first entry, and what its ranges refer to. Borrowed. */
const Dwarf_Die *split_unit_die(const struct split_unit *u);
const struct range_source *split_unit_ranges(const struct split_unit *u);
/* The entry at an offset of its own. False: none. */
bool split_unit_entry(const struct split_unit *u, Dwarf_Off offset, Dwarf_Die *ret_die);
/* The table with the source files of its own. False: those of the skeleton's table are its. */
bool split_unit_files(const struct split_unit *u, struct line_sections *ret_sections);
struct split_unit *split_unit_free(struct split_unit *u);
