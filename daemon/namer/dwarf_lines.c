/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* libdw reads DWARF; this file adds an index and bounds. .debug_aranges is optional and clang
 * leaves it out, so the ranges of all units are collected once, and the functions of a unit on its
 * first lookup. Both are spans: binary search, overlaps resolved.
 *
 *      address ─▶ unit ─▶ function ─▶ inlined call ─▶ inlined call …
 *               ranges   functions    walk down those children that hold the address
 *
 * The data that libdw keeps of each unit it read (abbreviations, line tables) takes several times the
 * size of its DWARF, and is freed when the file is closed. The ranges of units stay: they take 40 bytes
 * each, and to index again would read all units.
 *
 * Nothing recurses: nesting is limited, and offsets of entries must rise along the walk; otherwise
 * a forged DW_AT_sibling makes it visit each subtree twice per level. For C++ and Rust the linkage
 * names are used, so that they match those of the symbol table.
 *
 * A split unit has the ranges and lines of its skeleton in the program; functions and calls are found in
 * its other half, once its file was added.
 *
 * libdw opens files itself in two cases, which must not happen here. It opens a skeleton unit's
 * .dwo if asked for the split unit, so we don't ask (split_unit.c finds it). It opens the
 * supplementary file for a form that points into it unless one is set, so an empty one is set unless
 * the file is there.
 */

#include "daemon/namer/dwarf_lines.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/namer/die_ranges.h"
#include "daemon/namer/line_table.h"
#include "daemon/namer/names.h"
#include "daemon/namer/section_elf.h"
#include "daemon/namer/spans.h"
#include "daemon/namer/split_files.h"
#include "proto/base/memory.h"

#define UNITS_MAX 1000000      /* a debug Chromium has 50,000 */
#define FUNCTIONS_MAX 8000000  /* of one file, over all indexed units */
#define NESTING_MAX 256        /* lexical blocks and inlined calls; compilers stay far below */
#define INDEX_BYTES (1u << 20) /* of .debug_info, in one step */
#define SCOPES_MAX 64          /* namespaces, classes and functions around a function */

struct unit {
	Dwarf_Die die;
	struct spans functions; /* tag: index into `function` */
	Dwarf_Off *function;
	size_t n_functions, size;
	struct line_table *table; /* NULL: none, or libdw has to read it */

	bool skeleton;             /* its functions are in the other half, */
	struct split_unit *split;  /* NULL: which was not found */
	bool own_files;            /* … and has its own list of files: */
	struct line_table *files;  /* NULL: it cannot be read */
	uint32_t n_files_searched; /* number of the program's split files when it was searched */
};

struct dwarf_lines {
	/* while it is open */
	Dwarf *dwarf, *alt; /* alt: NULL or the supplementary file */
	Dwarf *no_alt;      /* … NULL or the empty one in its place */
	struct section_elf *no_alt_elf;
	struct split_files *split;
	struct line_sections sections;
	struct unit **unit; /* by index; NULL: not read yet */
	size_t n_functions; /* of all units that were read */
	struct names names;

	/* the index */
	Dwarf_Off *offset; /* of each unit's first entry */
	size_t n_units, size;
	struct spans ranges; /* tag: index of the unit */
	Dwarf_CU *last_unit; /* that is in it */
	bool indexed;
};

/* The minimum that libdw accepts. */
static bool lines_shut_alt(struct dwarf_lines *d)
{
	static const uint8_t zero[4];
	const struct named_bytes frame = {".debug_frame", {zero, sizeof(zero)}};

	if (section_elf_new(&frame, 1, &d->no_alt_elf))
		return false;
	d->no_alt = dwarf_begin_elf(section_elf_elf(d->no_alt_elf), DWARF_C_READ, NULL);
	if (!d->no_alt)
		return false;

	dwarf_setalt(d->dwarf, d->no_alt);
	return true;
}

int dwarf_lines_new(struct dwarf_lines **ret_lines)
{
	struct dwarf_lines *d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	*ret_lines = d;
	return 0;
}

static int lines_open(struct dwarf_lines *d, Elf *elf, Elf *alt)
{
	Dwarf_CU *first = NULL;

	d->dwarf = dwarf_begin_elf(elf, DWARF_C_READ, NULL);
	if (!d->dwarf || dwarf_get_units(d->dwarf, NULL, &first, NULL, NULL, NULL, NULL) != 0)
		return DWARF_LINES_NONE;
	d->alt = alt ? dwarf_begin_elf(alt, DWARF_C_READ, NULL) : NULL;
	if (d->alt)
		dwarf_setalt(d->dwarf, d->alt);
	else if (!lines_shut_alt(d))
		return -ENOMEM;
	d->sections = line_sections_of(elf);
	return 0;
}

int dwarf_lines_open(struct dwarf_lines *d, Elf *elf, Elf *alt, struct split_files *split)
{
	if (d->dwarf)
		return 0;
	d->split = split;
	int r = lines_open(d, elf, alt);
	if (r)
		dwarf_lines_close(d);
	return r;
}

bool dwarf_lines_is_open(const struct dwarf_lines *d)
{
	return d->dwarf;
}

bool dwarf_lines_has_index(const struct dwarf_lines *d)
{
	return d->indexed;
}

/* Add the ranges of an entry. Linkers set those of dropped functions to 0, 1 or the largest
 * addresses, where no code can be. 0, SPANS_FULL, -ENOMEM */
static int die_add_ranges(
	Dwarf_Die *die, const struct range_source *apart, uint32_t tag, struct spans *spans)
{
	struct die_ranges walk = die_ranges_of(die, apart);
	uint64_t start, end;

	for (size_t i = 0; i < SPANS_MAX && die_ranges_next(&walk, &start, &end); i++) {
		if (start <= 1)
			continue;
		int r = spans_add(spans, (struct span){.start = start, .end = end, .tag = tag});
		if (r)
			return r;
	}
	return 0;
}

static int lines_add_unit(struct dwarf_lines *d, Dwarf_Die *die)
{
	if (d->n_units == d->size) {
		size_t size = d->size ? d->size * 2 : 64;
		Dwarf_Off *grown = reallocarray(d->offset, size, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		d->offset = grown;
		d->size = size;
	}

	uint32_t tag = (uint32_t)d->n_units++;
	d->offset[tag] = dwarf_dieoffset(die);
	return die_add_ranges(die, NULL, tag, &d->ranges);
}

/* libdw keeps the abbreviations of each unit that it has read until the file is closed: 3 MB of a
 * C library. Without memory it stays closed. */
static void lines_reopen(struct dwarf_lines *d)
{
	Elf *elf = dwarf_getelf(d->dwarf), *alt = d->alt ? dwarf_getelf(d->alt) : NULL;

	dwarf_lines_close(d);
	(void)dwarf_lines_open(d, elf, alt, d->split);
}

/* After an error, the units found so far are used. */
void dwarf_lines_index_some(struct dwarf_lines *d)
{
	const Dwarf_Off begin = d->n_units ? d->offset[d->n_units - 1] : 0;
	Dwarf_CU *next;
	Dwarf_Half version;
	Dwarf_Die die;
	uint8_t type;

	while (d->n_units < UNITS_MAX &&
		dwarf_get_units(d->dwarf, d->last_unit, &next, &version, &type, &die, NULL) == 0) {
		d->last_unit = next;
		if (type != DW_UT_compile && type != DW_UT_skeleton)
			continue; /* types and shared parts have no code */
		if (lines_add_unit(d, &die))
			break;
		if (dwarf_dieoffset(&die) - begin >= INDEX_BYTES)
			return;
	}
	if (spans_seal(&d->ranges))
		spans_clear(&d->ranges);
	d->indexed = true;
	lines_reopen(d);
}

static bool tag_holds_functions(int tag)
{
	switch (tag) {
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_interface_type:
	case DW_TAG_enumeration_type:
	case DW_TAG_subprogram:
	case DW_TAG_lexical_block:
		return true;
	}
	return false;
}

/* sections to which its ranges refer; NULL: libdw knows */
static const struct range_source *unit_ranges(const struct unit *u)
{
	return u->split ? split_unit_ranges(u->split) : NULL;
}

static int unit_add_function(struct unit *u, Dwarf_Die *die)
{
	size_t had = u->functions.n;
	int r = die_add_ranges(die, unit_ranges(u), (uint32_t)u->n_functions, &u->functions);
	if (r || u->functions.n == had)
		return r;

	if (u->n_functions == u->size) {
		size_t size = u->size ? u->size * 2 : 32;
		Dwarf_Off *grown = reallocarray(u->function, size, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		u->function = grown;
		u->size = size;
	}
	u->function[u->n_functions++] = dwarf_dieoffset(die);
	return 0;
}

/* A walk over a tree of entries, in file order. */
struct die_walk {
	Dwarf_Die stack[SCOPES_MAX];
	size_t depth;
	Dwarf_Off reached;
};

/* Step to the next entry: to a child if `down`, else to a sibling or up. False at the end. */
static bool walk_next(struct die_walk *w, bool down)
{
	Dwarf_Die next;
	bool found =
		down && w->depth < SCOPES_MAX && dwarf_child(&w->stack[w->depth - 1], &next) == 0;

	if (found)
		w->depth++;
	/* Not at depth 1: the root's siblings are outside the walk. */
	while (!found && w->depth > 1) {
		found = dwarf_siblingof(&w->stack[w->depth - 1], &next) == 0;
		if (!found)
			w->depth--;
	}
	if (!found)
		return false;

	Dwarf_Off offset = dwarf_dieoffset(&next);
	if (offset <= w->reached)
		return false; /* forged */
	w->reached = offset;
	w->stack[w->depth - 1] = next;
	return true;
}

static void unit_index(struct dwarf_lines *d, struct unit *u)
{
	Dwarf_Die root = u->split ? *split_unit_die(u->split) : u->die;
	struct die_walk walk = {.stack = {root}, .depth = 1, .reached = dwarf_dieoffset(&root)};
	bool down = true;

	while (d->n_functions < FUNCTIONS_MAX && walk_next(&walk, down)) {
		Dwarf_Die *die = &walk.stack[walk.depth - 1];
		int tag = dwarf_tag(die);
		down = tag_holds_functions(tag);
		if (tag != DW_TAG_subprogram)
			continue;
		size_t had = u->n_functions;
		if (unit_add_function(u, die))
			break;
		d->n_functions += u->n_functions - had;
	}
	if (spans_seal(&u->functions))
		spans_clear(&u->functions);
}

static const char *die_string(Dwarf_Die *die, unsigned attribute)
{
	Dwarf_Attribute a;

	return dwarf_formstring(dwarf_attr_integrate(die, attribute, &a));
}

/* The directory that the unit itself names: for an attribute that a skeleton lacks, libdw would search
 * the other half. */
static const char *unit_directory(Dwarf_Die *unit)
{
	Dwarf_Attribute a;

	return dwarf_formstring(dwarf_attr(unit, DW_AT_comp_dir, &a));
}

static void unit_read_table(struct dwarf_lines *d, struct unit *u)
{
	Dwarf_Attribute a;
	Dwarf_Word offset;

	if (dwarf_formudata(dwarf_attr(&u->die, DW_AT_stmt_list, &a), &offset) == 0)
		(void)line_table_new(
			&d->sections, offset, unit_directory(&u->die), &d->names, &u->table);
}

/* Find the other half of a unit that is a skeleton. */
static void unit_find_split(struct dwarf_lines *d, struct unit *u)
{
	struct skeleton s;
	struct line_sections sections;

	u->skeleton = d->split && skeleton_read(&u->die, &s);
	if (!u->skeleton)
		return;
	u->n_files_searched = d->split->n_added;
	u->own_files = split_files_find(d->split, &s, dwarf_getelf(d->dwarf), &u->split) == 0 &&
		       split_unit_files(u->split, &sections);
	if (u->own_files)
		(void)line_table_new(&sections, 0, s.directory, &d->names, &u->files);
}

static struct unit *unit_free(struct unit *u)
{
	if (!u)
		return NULL;
	spans_clear(&u->functions);
	free(u->function);
	line_table_free(u->table);
	line_table_free(u->files);
	split_unit_free(u->split);
	free(u);
	return NULL;
}

/* May a file that has come since contain the unit's other half? */
static bool unit_is_old(const struct dwarf_lines *d, const struct unit *u)
{
	return u->skeleton && !u->split && u->n_files_searched != d->split->n_added;
}

/* The unit at that index, read and indexed. NULL: no memory, or the file has changed. */
static struct unit *lines_unit(struct dwarf_lines *d, uint32_t index)
{
	if (!d->unit)
		d->unit = calloc(d->n_units, sizeof(struct unit *));
	if (!d->unit)
		return NULL;
	if (d->unit[index] && !unit_is_old(d, d->unit[index]))
		return d->unit[index];

	if (d->unit[index])
		d->n_functions -= d->unit[index]->n_functions;
	d->unit[index] = unit_free(d->unit[index]);
	struct unit *u = calloc(1, sizeof(*u));
	if (!u || !dwarf_offdie(d->dwarf, d->offset[index], &u->die))
		return unit_free(u);
	unit_find_split(d, u);
	unit_index(d, u);
	unit_read_table(d, u);
	d->unit[index] = u;
	return u;
}

/* The inlined calls that contain an address, outermost first. */
struct chain {
	Dwarf_Die call[NESTING_MAX];
	size_t n;
};

static bool tag_holds_calls(int tag)
{
	return tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block ||
	       tag == DW_TAG_try_block || tag == DW_TAG_catch_block || tag == DW_TAG_with_stmt;
}

/* The child of `parent` that contains calls and the address. */
static bool child_over(const struct unit *u, Dwarf_Die *parent, uint64_t addr, Dwarf_Die *ret_child)
{
	Dwarf_Die child;

	for (int r = dwarf_child(parent, &child); r == 0; r = dwarf_siblingof(&child, &child)) {
		if (tag_holds_calls(dwarf_tag(&child)) &&
			die_covers(&child, unit_ranges(u), addr)) {
			*ret_child = child;
			return true;
		}
	}
	return false;
}

static void chain_find(
	const struct unit *u, struct chain *c, const Dwarf_Die *function, uint64_t addr)
{
	Dwarf_Die at = *function;

	c->n = 0;
	for (size_t depth = 0; depth < NESTING_MAX && child_over(u, &at, addr, &at); depth++)
		if (dwarf_tag(&at) == DW_TAG_inlined_subroutine)
			c->call[c->n++] = at;
}

static const char *die_function(Dwarf_Die *die, struct names *names)
{
	const char *name = die_string(die, DW_AT_linkage_name);
	if (!name)
		name = die_string(die, DW_AT_MIPS_linkage_name);
	if (!name)
		name = die_string(die, DW_AT_name);
	return name && *name ? names_symbol(names, name) : NULL;
}

/* libdw names the file 0 of DWARF 4 "???". Long paths are cut like names. */
static const char *source_name(Dwarf_Die *unit, const char *path, struct names *names)
{
	if (!path || !*path || strcmp(path, "???") == 0)
		return NULL;
	const char *folder = *path == '/' ? NULL : unit_directory(unit);
	const char *within = folder ? names_join(names, folder, "/") : NULL;
	if (within)
		return names_join(names, within, path);
	if (strnlen(path, IMAGE_NAME_BYTES_MAX + 1) > IMAGE_NAME_BYTES_MAX)
		return names_copy(names, path, SIZE_MAX);
	return path;
}

static uint32_t line_number(uint64_t line)
{
	return line <= UINT32_MAX ? (uint32_t)line : 0;
}

static void place_set_line(struct image_place *p, struct unit *unit, uint64_t addr, struct names *n)
{
	uint64_t row;
	int number;

	if (unit->table) {
		line_table_find(unit->table, addr, &p->source, &row);
		p->line = line_number(row);
		return;
	}
	Dwarf_Line *line = dwarf_getsrc_die(&unit->die, addr);
	if (!line || dwarf_lineno(line, &number) || number < 0)
		return;
	p->line = (uint32_t)number;
	p->source = source_name(&unit->die, dwarf_linesrc(line, NULL, NULL), n);
}

static void place_set_call(
	struct image_place *p, struct unit *unit, Dwarf_Die *call, struct names *n)
{
	Dwarf_Attribute a;
	Dwarf_Word value;
	Dwarf_Files *files;
	size_t n_files;

	if (dwarf_formudata(dwarf_attr(call, DW_AT_call_line, &a), &value) == 0)
		p->line = line_number(value);
	if (dwarf_formudata(dwarf_attr(call, DW_AT_call_file, &a), &value) != 0)
		return;
	struct line_table *table = unit->own_files ? unit->files : unit->table;
	if (unit->own_files && !table)
		return; /* its list of files cannot be read */
	if (table)
		p->source = line_table_source(table, value);
	else if (dwarf_getsrcfiles(&unit->die, &files, &n_files) == 0 && value < n_files)
		p->source = source_name(&unit->die, dwarf_filesrc(files, value, NULL, NULL), n);
}

static bool unit_entry(
	const struct dwarf_lines *d, const struct unit *u, Dwarf_Off offset, Dwarf_Die *ret_die)
{
	return u->split ? split_unit_entry(u->split, offset, ret_die)
			: dwarf_offdie(d->dwarf, offset, ret_die) != NULL;
}

uint32_t dwarf_lines_find(
	struct dwarf_lines *d, uint64_t addr, struct image_place ret_place[IMAGE_PLACES_MAX])
{
	struct chain chain = {.n = 0};
	struct names *names = &d->names;
	Dwarf_Die function;

	struct span range, span;
	bool covered = spans_find(&d->ranges, addr, &range);
	struct unit *unit = covered ? lines_unit(d, range.tag) : NULL;
	if (!unit)
		return 0;

	bool known = spans_find(&unit->functions, addr, &span) &&
		     unit_entry(d, unit, unit->function[span.tag], &function);
	if (known)
		chain_find(unit, &chain, &function, addr);

	/* Innermost first; the file and line of an inlined call are those of the place into which
	 * it was inlined. If there are too many, outer ones are dropped, but not the function
	 * itself. */
	uint32_t n = 0;
	struct image_place place = {0};
	place_set_line(&place, unit, addr, names);
	for (size_t i = chain.n; i > 0; i--) {
		Dwarf_Die *call = &chain.call[i - 1];
		place.function = die_function(call, names);
		place.inlined = true;
		if (n < IMAGE_PLACES_MAX - 1)
			ret_place[n++] = place;
		place = (struct image_place){0};
		place_set_call(&place, unit, call, names);
	}
	place.function = known ? die_function(&function, names) : NULL;
	place.split_missing = unit->skeleton && !unit->split && !dwarf_haschildren(&unit->die);
	ret_place[n++] = place;
	return n;
}

void dwarf_lines_close(struct dwarf_lines *d)
{
	for (size_t i = 0; d->unit && i < d->n_units; i++)
		unit_free(d->unit[i]);
	free(d->unit);
	d->unit = NULL;
	d->n_functions = 0;
	names_clear(&d->names);
	dwarf_end(d->dwarf);
	dwarf_end(d->alt);
	dwarf_end(d->no_alt);
	d->no_alt_elf = section_elf_free(d->no_alt_elf);
	d->dwarf = d->alt = d->no_alt = NULL;
}

struct dwarf_lines *dwarf_lines_free(struct dwarf_lines *d)
{
	if (!d)
		return NULL;

	dwarf_lines_close(d);
	free(d->offset);
	spans_clear(&d->ranges);
	free(d);
	return NULL;
}
