/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The ranges of addresses of an entry in DWARF */

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/namer/byte_reader.h"

/* Sections to which the ranges of a split unit refer; some of them are in the program. */
struct range_source {
	struct section_bytes addresses; /* addresses of its skeleton, in .debug_addr */
	struct section_bytes lists;     /* .debug_rnglists.dwo; before DWARF 5, .debug_ranges */
	uint64_t base;                  /* of its skeleton */
	uint16_t version;
	uint8_t address_bytes; /* 4 or 8 */
};

struct die_ranges {
	Dwarf_Die *die;
	ptrdiff_t at; /* libdw's position in the ranges, if there is no list to read here */
	const struct range_source *apart; /* NULL: as above */
	struct byte_reader list;
	uint64_t base;
};

/* apart NULL: the entry is not of a split unit. Both are borrowed. */
struct die_ranges die_ranges_of(Dwarf_Die *die, const struct range_source *apart);
/* False: there are no more ranges. O(1). */
bool die_ranges_next(struct die_ranges *w, uint64_t *ret_start, uint64_t *ret_end);
/* Does one of the ranges contain the address? */
bool die_covers(Dwarf_Die *die, const struct range_source *apart, uint64_t addr);
