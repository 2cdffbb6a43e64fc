/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Lines of JIT code, from a jitdump, and the place up to which it was read */

#include <stdbool.h>
#include <stdint.h>

#include "daemon/namer/image.h"
#include "proto/base/hash_table.h"

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

/* The newest code with an index, which a MOVE refers to. */
struct moved {
	uint64_t index;
	uint32_t code;
	UT_hash_handle hh;
};

struct jitdump {
	int fd;
	bool swapped;
	bool closed, timed;
	struct image *image; /* whose dump it is */
	struct moved *by_index;
	/* Lines for the next code loaded at that address. */
	uint64_t lines_start;
	uint32_t first_line, n_lines;
	/* The part of the file that is in memory. */
	uint64_t window_offset;
	size_t window_filled;
	uint8_t *window; /* while it is read */
};

/* Forget the indices: those to come are of another run. */
void jitdump_forget(struct jitdump *d);
struct jitdump *jitdump_free(struct jitdump *d);
