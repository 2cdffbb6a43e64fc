/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Any bytes as the file of a split unit or a package, for the ids that it says to have; all ranges of
 * its entries are walked. The first two bytes say what its skeleton is like. */

#include <elfutils/libdw.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/namer/elf_file.h"
#include "daemon/namer/section_elf.h"
#include "daemon/namer/split_unit.h"

#define ENTRIES_MAX 2000
#define DEPTH_MAX 32
#define IDS_MAX 8

static uint64_t visit(const struct split_unit *u, Dwarf_Die *die)
{
	struct die_ranges ranges = die_ranges_of(die, split_unit_ranges(u));
	uint64_t start, end, sum = 0;

	for (unsigned n = 0; n < 1000 && die_ranges_next(&ranges, &start, &end); n++)
		sum += end - start;
	return sum + die_covers(die, split_unit_ranges(u), sum);
}

/* In a forged tree there may be circles. */
static uint64_t walk(const struct split_unit *u)
{
	Dwarf_Die stack[DEPTH_MAX] = {*split_unit_die(u)}, next;
	uint64_t sum = 0;
	size_t depth = 1;

	for (unsigned i = 0; i < ENTRIES_MAX && depth > 0; i++) {
		sum += visit(u, &stack[depth - 1]);
		if (depth < DEPTH_MAX && dwarf_child(&stack[depth - 1], &next) == 0) {
			stack[depth++] = next;
			continue;
		}
		while (depth > 0 && dwarf_siblingof(&stack[depth - 1], &next) != 0)
			depth--;
		if (depth > 0)
			stack[depth - 1] = next;
	}
	return sum;
}

/* The ids of the units of a .dwo. */
static size_t ids_of_units(Elf *file, uint64_t id[IDS_MAX])
{
	Dwarf *dwarf = dwarf_begin_elf(file, DWARF_C_READ, NULL);
	Dwarf_CU *unit = NULL, *next;
	size_t n = 0;

	while (n < IDS_MAX && dwarf &&
		dwarf_get_units(dwarf, unit, &next, NULL, NULL, NULL, NULL) == 0) {
		unit = next;
		n += dwarf_cu_info(unit, NULL, NULL, NULL, NULL, &id[n], NULL, NULL) == 0;
	}
	dwarf_end(dwarf);
	return n;
}

/* … and of those that the index of a package has first. */
static size_t ids_of_index(Elf *file, uint64_t id[IDS_MAX])
{
	static const char *const name[] = {".debug_cu_index"};
	struct section_bytes index;
	size_t n = 0;

	debug_sections_find(file, name, 1, &index);
	while (n < IDS_MAX && index.n >= 16 + (n + 1) * 8) {
		memcpy(&id[n], index.at + 16 + n * 8, sizeof(*id));
		n++;
	}
	return n;
}

static void try_all(struct skeleton *s, Elf *program, Elf *file)
{
	uint64_t id[IDS_MAX];
	size_t n = ids_of_index(file, id);

	if (n == 0)
		n = ids_of_units(file, id);
	for (size_t i = 0; i < n; i++) {
		struct split_unit *u = NULL;
		s->id = id[i];
		if (split_unit_new(s, program, file, &u) == 0)
			__asm__ volatile("" : : "r"(walk(u)));
		split_unit_free(u);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2)
		return 0;
	struct skeleton s = {.version = data[0] & 1 ? 5 : 4,
		.address_bytes = data[0] & 2 ? 4 : 8,
		.low_pc = 0x401000,
		.addr_base = data[1] & 15,
		.ranges_base = data[1] >> 4};
	data += 2;
	size -= 2;

	const struct named_bytes own[] = {
		{".debug_addr", {data, size}}, {".debug_ranges", {data, size}}};
	struct section_elf *program = NULL;
	struct elf_file file = {0};
	uint8_t *bytes = malloc(size ? size : 1);
	if (!bytes)
		return 0;
	memcpy(bytes, data, size);
	elf_version(EV_CURRENT);
	if (section_elf_new(own, 2, &program) == 0 && elf_file_take(&file, bytes, size) == 0) {
		elf_file_unpack(&file);
		try_all(&s, section_elf_elf(program), file.elf);
	} else if (!program) {
		free(bytes);
	}
	elf_file_close(&file);
	section_elf_free(program);
	return 0;
}
