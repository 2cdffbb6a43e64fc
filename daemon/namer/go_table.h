/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Go's table of functions and lines, .gopclntab
 *
 * Every Go program has it, stripped ones too, since its runtime prints stacks by it. It has the name
 * of each function and the file and line of each instruction, but not which calls were inlined.
 */

#include <libelf.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/namer/byte_reader.h"
#include "daemon/namer/symbols.h"

/* Borrowed parts of the section. */
struct go_table {
	enum go_version { GO_NONE, GO_1_2, GO_1_16, GO_1_18 } version; /* the first Go with it */
	uint8_t quantum;       /* instructions begin at multiples of it */
	uint8_t pointer_bytes; /* 4 or 8 */
	uint64_t text;         /* from GO_1_18 on: addresses are relative to it */
	uint64_t n_functions;
	struct section_bytes names, units, files, steps;
	struct section_bytes functions; /* the index of functions, then what it points to */
};

/* Read the header of a table. False: it is none, or of a later Go. ret_table->text is the header's value, or
 * 0: a linker may have left that to the loader. O(1). Exported for tests. */
bool go_table_read(struct section_bytes section, struct go_table *ret_table);

/* Find and read the table of a program, and where its text begins. The section's bytes are borrowed
 * from those behind the Elf. False: there is no table, or the addresses of its functions are not
 * known. */
bool go_table_of(Elf *elf, struct go_table *ret_table);

/* Add its functions, with names borrowed from the table. 0, SYMBOLS_FULL, -ENOMEM */
int go_table_collect(const struct go_table *t, struct symbols *symbols);

/* The file, which is borrowed from the table, and line of an address; NULL and 0: not known.
 * O(log n + steps of its function). */
void go_table_find(
	const struct go_table *t, uint64_t addr, const char **ret_source, uint32_t *ret_line);
