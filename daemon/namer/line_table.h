/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Line tables: file and line of an address, from .debug_line of one unit
 *
 * Unlike libdw's, a table in memory takes only a few bytes for each 4 KB of the section.
 */

#include <libelf.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/namer/byte_reader.h"
#include "daemon/namer/names.h"

struct line_table;

/* The sections of a file that line tables are made of, borrowed from its Elf. */
struct line_sections {
	struct section_bytes line, line_str, str;
};

enum {
	LINE_TABLE_UNKNOWN = 1, /* malformed, or of a form not read here: libdw may know it */
};

/* The sections, unpacked; none of a file in the other byte order. */
struct line_sections line_sections_of(Elf *elf);

/* Read the table at that offset of .debug_line. The sections and the directory of the compilation
 * (NULL: unknown) are borrowed; paths of source files are made in `names`, which must outlive it.
 * O(table). 0, LINE_TABLE_UNKNOWN, -ENOMEM */
int line_table_new(const struct line_sections *sections, uint64_t offset, const char *directory,
	struct names *names, struct line_table **ret_table);

/* The row of an address. *ret_line 0: it has none. O(log n). */
void line_table_find(
	struct line_table *t, uint64_t addr, const char **ret_source, uint64_t *ret_line);

/* The path of a file, by the number that DWARF has for it. NULL: there is none. */
const char *line_table_source(struct line_table *t, uint64_t file);

struct line_table *line_table_free(struct line_table *t);
