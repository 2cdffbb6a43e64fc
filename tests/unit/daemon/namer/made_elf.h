/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* ELF files made by hand, for tests of what reads them
 *
 *      0      64       176    0x200       0x600     …
 *      │ ELF  │ 2 PT_LOAD │   │ .text     │ .symtab │ .strtab │ .shstrtab │ extra │ headers
 */

#include <elf.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/namer/image.h"

#define BASE 0x400000ull
#define TEXT 0x200u
#define TEXT_BYTES 0x400u

enum { S_NULL, S_TEXT, S_SYMTAB, S_STRTAB, S_SHSTRTAB, S_EXTRA, S_DATA, N_SECTIONS };

struct symbol_line {
	const char *name;
	uint32_t at, size; /* from the start of .text */
	uint8_t bind, type;
	uint16_t section;
};

struct made_elf {
	uint8_t bytes[16384];
	size_t n;
	Elf64_Ehdr *file;
	Elf64_Phdr *segment;
	Elf64_Shdr *section;
	Elf64_Sym *symbol;
};
/* A file with these symbols, and n bytes in a section .gnu_debugdata. */
void made_elf_fill(struct made_elf *e, const struct symbol_line *lines, size_t n_lines,
	const void *extra, size_t n_extra);
/* Open the bytes as an image. 0 or IMAGE_*, -errno. */
int made_elf_open(const void *bytes, size_t n, struct image **ret_image);
/* The outermost name at an offset of .text; "(out)", "(none)". Borrowed until the next call. */
const char *made_elf_symbol(struct image *i, uint32_t at);
/* Whatever becomes of these bytes, nothing crashes, and every offset has an answer. */
void made_elf_survives(const void *bytes, size_t n);

#define COUNT(a) (sizeof(a) / sizeof(*(a)))
#define FUNCTION(name, at, size) {name, at, size, STB_GLOBAL, STT_FUNC, S_TEXT}
#define LOCAL(name, at, size) {name, at, size, STB_LOCAL, STT_FUNC, S_TEXT}
#define LABEL(name, at) {name, at, 0, STB_LOCAL, STT_NOTYPE, S_TEXT}
