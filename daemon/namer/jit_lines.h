/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Lines of JIT code, from a jitdump */

#include <stdint.h>

#include "daemon/namer/image.h"

struct jit_line {
	uint64_t offset; /* from the start of the code */
	const char *source;
	uint32_t line;
};

struct jit_code {
	uint64_t start, index;
	const char *name;
	uint32_t first_line, n_lines;
};

struct jit_lines {
	struct jit_code *code;
	struct jit_line *line;
	size_t n_code, code_size, n_lines, line_size;
};

/* Set file and line of an address in the code with the span tag `code`, if known. */
void jit_lines_find(
	const struct jit_lines *j, uint32_t code, uint64_t addr, struct image_place *place);

struct jit_lines *jit_lines_free(struct jit_lines *j);
