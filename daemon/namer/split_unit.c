/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* libdw joins a skeleton and its other half only if it opened both by their paths, and does not read
 * packages before version 0.191. So it gets a file that we make of the sections that it needs: those of
 * the .dwo, or the unit's piece of each section of the package, and the addresses of the skeleton.
 *
 *      program  .debug_addr ──┐ from the skeleton's base on
 *      .dwo     .debug_*.dwo ─┴▶ one Elf ──▶ libdw
 *      .dwp     .debug_*.dwo, cut to the row of .debug_cu_index
 *
 * Source: DWARF 5, section 7.3; "DebugFissionDWP" of GCC's wiki for packages before it.
 */

#include "daemon/namer/split_unit.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/namer/debug_sections.h"
#include "daemon/namer/section_elf.h"
#include "proto/base/memory.h"

#define UNITS_MAX 100000 /* of a .dwo: usually a compile unit and some type units */
#define COLUMNS_MAX 16   /* of an index; there are eight kinds of sections */

enum { INFO, ABBREV, LINE, STR_OFFSETS, RNGLISTS, STR, TYPES, INDEX, N_SECTIONS };
static const char *const section_name[N_SECTIONS] = {".debug_info.dwo", ".debug_abbrev.dwo",
	".debug_line.dwo", ".debug_str_offsets.dwo", ".debug_rnglists.dwo", ".debug_str.dwo",
	".debug_types.dwo", ".debug_cu_index"};

struct split_unit {
	struct section_elf *elf;
	Dwarf *dwarf;
	Dwarf_Die die;
	struct range_source ranges;
	struct line_sections files;
};

DEFINE_CLEANUP(struct split_unit *, split_unit_free)

/* --- skeletons -------------------------------------------------------------------------------- */

static uint64_t number_of(Dwarf_Die *die, unsigned attribute, unsigned before_5)
{
	Dwarf_Attribute a;
	Dwarf_Word value;

	if (dwarf_formudata(dwarf_attr(die, attribute, &a), &value) == 0 ||
		dwarf_formudata(dwarf_attr(die, before_5, &a), &value) == 0)
		return value;
	return 0;
}

static const char *string_of(Dwarf_Die *die, unsigned attribute)
{
	Dwarf_Attribute a;

	return dwarf_formstring(dwarf_attr(die, attribute, &a));
}

bool skeleton_read(Dwarf_Die *unit, struct skeleton *ret_skeleton)
{
	struct skeleton s = {.id = 0};
	Dwarf_Addr low_pc;
	uint8_t type;

	if (dwarf_cu_info(unit->cu, &s.version, &type, NULL, NULL, &s.id, &s.address_bytes, NULL) ||
		type != DW_UT_skeleton || (s.address_bytes != 4 && s.address_bytes != 8))
		return false;
	s.name = string_of(unit, DW_AT_dwo_name);
	if (!s.name)
		s.name = string_of(unit, DW_AT_GNU_dwo_name);
	s.directory = string_of(unit, DW_AT_comp_dir);
	s.low_pc = dwarf_lowpc(unit, &low_pc) == 0 ? low_pc : 0;
	s.addr_base = number_of(unit, DW_AT_addr_base, DW_AT_GNU_addr_base);
	s.ranges_base =
		s.version < 5 ? number_of(unit, DW_AT_GNU_ranges_base, DW_AT_GNU_ranges_base) : 0;
	*ret_skeleton = s;
	return true;
}

/* --- packages --------------------------------------------------------------------------------- */

struct index_table {
	uint64_t version, n_columns, n_units, n_slots;
	uint64_t rows, columns, offsets, sizes; /* offsets at which these begin */
};

static bool index_read(struct section_bytes s, struct index_table *ret_index)
{
	struct byte_reader r = bytes_from(s, 0);
	uint64_t first = read_number(&r, 2), second = read_number(&r, 2);
	/* the version has two bytes or four */
	struct index_table x = {.version = first ? first : second};

	x.n_columns = read_number(&r, 4);
	x.n_units = read_number(&r, 4);
	x.n_slots = read_number(&r, 4);
	if (r.bad || (x.version != 2 && x.version != 5) || x.n_columns > COLUMNS_MAX)
		return false;
	x.rows = 16 + x.n_slots * 8;
	x.columns = x.rows + x.n_slots * 4;
	x.offsets = x.columns + x.n_columns * 4;
	x.sizes = x.offsets + x.n_units * x.n_columns * 4;
	if (x.sizes + x.n_units * x.n_columns * 4 > s.n)
		return false;
	*ret_index = x;
	return true;
}

static uint64_t number_at(struct section_bytes s, uint64_t offset, size_t n)
{
	struct byte_reader r = bytes_from(s, offset);
	return read_number(&r, n);
}

/* The row of a unit, from 1 on; 0: it is not in the package. */
static uint64_t row_of(struct section_bytes s, const struct index_table *x, uint64_t id)
{
	for (uint64_t i = 0; i < x->n_slots; i++) {
		uint64_t row = number_at(s, x->rows + i * 4, 4);
		if (row && row <= x->n_units && number_at(s, 16 + i * 8, 8) == id)
			return row;
	}
	return 0;
}

/* The section that a column describes; N_SECTIONS: none that is needed. */
static int section_of(uint64_t kind, uint64_t version)
{
	switch (kind) {
	case 1:
		return INFO;
	case 3:
		return ABBREV;
	case 4:
		return LINE;
	case 6:
		return STR_OFFSETS;
	case 8:
		return version == 5 ? RNGLISTS : N_SECTIONS;
	}
	return N_SECTIONS;
}

/* Cut the sections of a package to the pieces of a unit; all units share the strings. */
static bool cut_to_unit(struct section_bytes section[N_SECTIONS], uint64_t id)
{
	struct section_bytes cut[N_SECTIONS] = {[STR] = section[STR]}, index = section[INDEX];
	struct index_table x;

	uint64_t row = index_read(index, &x) ? row_of(index, &x, id) : 0;
	if (!row)
		return false;
	for (uint64_t i = 0; i < x.n_columns; i++) {
		int of = section_of(number_at(index, x.columns + i * 4, 4), x.version);
		uint64_t at = ((row - 1) * x.n_columns + i) * 4;
		if (of != N_SECTIONS)
			cut[of] = bytes_part(section[of], number_at(index, x.offsets + at, 4),
				number_at(index, x.sizes + at, 4));
	}
	memcpy(section, cut, sizeof(cut));
	return true;
}

/* --- units ------------------------------------------------------------------------------------ */

static struct section_bytes from(struct section_bytes s, uint64_t offset)
{
	return offset <= s.n ? bytes_part(s, offset, s.n - offset) : (struct section_bytes){0};
}

static bool find_unit(struct split_unit *u, uint64_t id)
{
	Dwarf_CU *unit = NULL, *next;
	Dwarf_Half version;
	uint8_t type;

	for (size_t i = 0; i < UNITS_MAX && dwarf_get_units(u->dwarf, unit, &next, &version, &type,
						    &u->die, NULL) == 0;
		i++) {
		uint64_t is;
		unit = next;
		if (type == DW_UT_split_compile && version == u->ranges.version &&
			dwarf_cu_info(unit, NULL, NULL, NULL, NULL, &is, NULL, NULL) == 0 &&
			is == id)
			return true;
	}
	return false;
}

/* The sections of both files that the unit consists of. */
static int make_elf(struct split_unit *u, const struct section_bytes section[N_SECTIONS],
	struct section_bytes old_ranges)
{
	struct named_bytes named[INDEX + 2];

	for (size_t i = 0; i < INDEX; i++)
		named[i] = (struct named_bytes){section_name[i], section[i]};
	named[INDEX] = (struct named_bytes){".debug_addr.dwo", u->ranges.addresses};
	named[INDEX + 1] = (struct named_bytes){".debug_ranges.dwo", old_ranges};
	return section_elf_new(named, INDEX + 2, &u->elf);
}

int split_unit_new(const struct skeleton *s, Elf *program, Elf *file, struct split_unit **ret_unit)
{
	static const char *const own_name[] = {".debug_addr", ".debug_ranges"};
	struct section_bytes own[2], section[N_SECTIONS];

	debug_sections_find(program, own_name, 2, own);
	debug_sections_find(file, section_name, N_SECTIONS, section);
	if (section[INDEX].at && !cut_to_unit(section, s->id))
		return SPLIT_UNIT_NONE;

	_cleanup_(split_unit_freep) struct split_unit *u = calloc(1, sizeof(*u));
	if (!u)
		return -ENOMEM;
	struct section_bytes old_ranges =
		s->version < 5 ? from(own[1], s->ranges_base) : (struct section_bytes){0};
	u->ranges = (struct range_source){.addresses = from(own[0], s->addr_base),
		.lists = s->version < 5 ? old_ranges : section[RNGLISTS],
		.base = s->low_pc,
		.version = s->version,
		.address_bytes = s->address_bytes};
	u->files = (struct line_sections){.line = section[LINE], .str = section[STR]};
	int r = make_elf(u, section, old_ranges);
	if (r)
		return r;
	u->dwarf = dwarf_begin_elf(section_elf_elf(u->elf), DWARF_C_READ, NULL);
	if (!u->dwarf || !find_unit(u, s->id))
		return SPLIT_UNIT_NONE;
	*ret_unit = TAKE_PTR(u);
	return 0;
}

const Dwarf_Die *split_unit_die(const struct split_unit *u)
{
	return &u->die;
}

const struct range_source *split_unit_ranges(const struct split_unit *u)
{
	return &u->ranges;
}

bool split_unit_entry(const struct split_unit *u, Dwarf_Off offset, Dwarf_Die *ret_die)
{
	return dwarf_offdie(u->dwarf, offset, ret_die) != NULL;
}

bool split_unit_files(const struct split_unit *u, struct line_sections *ret_sections)
{
	*ret_sections = u->files;
	return u->files.line.at != NULL;
}

struct split_unit *split_unit_free(struct split_unit *u)
{
	if (!u)
		return NULL;
	dwarf_end(u->dwarf);
	section_elf_free(u->elf);
	free(u);
	return NULL;
}
