/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The functions of an ELF file, by file offset
 *
 * From its symbols, and where it has none, from the call frame information of .eh_frame, which
 * stripped programs keep.
 */

#include <libelf.h>

#include "daemon/code/table.h"
#include "daemon/namer/elf_file.h"

#define CODE_FUNCTIONS_MAX (1u << 21)

enum { CODE_NO_ELF = 1, CODE_NO_ISA };

struct code_function {
	uint64_t offset, bytes;
};

struct code_file {
	struct elf_file file;
	enum isa isa;
	struct code_function *function; /* by offset */
	uint32_t n, size;
};

/* Takes nothing: fd may be closed. 0, CODE_NO_ELF, CODE_NO_ISA, -errno. */
int code_file_open(struct code_file *f, int fd);
/* The function that has this offset; NULL: none. */
const struct code_function *code_file_function(const struct code_file *f, uint64_t offset);
void code_file_close(struct code_file *f);
