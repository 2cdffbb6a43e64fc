/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* An ELF file that consists of sections alone, for libdw: they may come from several files. */

#include <libelf.h>
#include <stddef.h>

#include "daemon/namer/byte_reader.h"

#define SECTION_ELF_MAX 10

struct named_bytes {
	const char *name; /* at most 31 bytes */
	struct section_bytes bytes;
};

struct section_elf;

/* An ELF file of those of the n sections that are not absent; their bytes are borrowed. 0 or -ENOMEM */
int section_elf_new(const struct named_bytes *section, size_t n, struct section_elf **ret_elf);
/* Borrowed. */
Elf *section_elf_elf(const struct section_elf *e);
struct section_elf *section_elf_free(struct section_elf *e);
