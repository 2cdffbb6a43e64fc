/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Debug sections: compressed debug information, unpacked without wasting memory
 *
 * When libdw opens a file, it unpacks every section that it knows. Lines and inlined calls need half of
 * them, and the compressed bytes stay in memory too. Only elfutils 0.191 and later could unpack sections
 * that zstd compressed.
 */

#include <libelf.h>
#include <stddef.h>

#include "daemon/namer/byte_reader.h"

/* The most that zstd sections of one file may unpack to; more does not fit in memory together with the
 * parser's tables, and a bomb of a few kilobytes unpacks to anything. A section beyond it is hidden. */
#define UNPACKED_BYTES_MAX ((size_t)1 << 30)
#define UNPACKED_SECTIONS_MAX 32 /* DWARF has half as many */

/* The memory of sections that are not the Elf's own. */
struct unpacked {
	void *section[UNPACKED_SECTIONS_MAX];
	size_t n, n_bytes;
};

/* Unpack the compressed debug sections needed for names, release the pages of their compressed
 * form, and hide the sections that only debuggers read (locations of variables, macros, indices)
 * from libdw. `bytes`, n: the private mapping behind the Elf. A section that cannot be unpacked
 * stays as it is. *unpacked is empty at first, and to be freed after the Elf. */
void debug_sections_unpack(Elf *elf, void *bytes, size_t n, struct unpacked *unpacked);
/* The bytes that unpacking takes, as the file claims. */
size_t debug_sections_packed(Elf *elf);
void unpacked_free(struct unpacked *u);

/* Let a section have these bytes, which are borrowed: they need not be in the file. */
void section_set_bytes(Elf_Scn *section, struct section_bytes bytes);

/* Find the sections of these n names. A section is absent if the file does not have it, if it is
 * compressed, or if the file has the other byte order. */
void debug_sections_find(
	Elf *elf, const char *const name[], size_t n, struct section_bytes ret_found[]);
