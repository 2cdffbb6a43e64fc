/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Answers of the parser that hold for a range of offsets in a file, usually a function
 *
 * Code is sampled at ever new addresses of the same functions, and a request to the parser costs two processes some 100 µs;
 * so what it said of one address names the others. Pure.
 */

#include <stdbool.h>
#include <stdint.h>

/* Answers that are kept, of a file and in all: 24 bytes each, so 1.5 MB. A large program runs some thousand functions. */
#define ANSWERS_OF_FILE_MAX 4096u
#define ANSWERS_MAX 65536u

struct naming_answer {
	uint64_t from;
	uint32_t n_bytes;
	bool is_placed;       /* FRAME_PLACED, else FRAME_NAMED */
	const char *function; /* borrowed */
};
struct naming_answers {
	struct naming_answer *answer; /* by offset; disjoint */
	uint32_t n, size;
};

/* The answer for that offset; NULL: none was added. */
const struct naming_answer *answers_find(const struct naming_answers *a, uint64_t offset);
/* False: it overlaps with others, there are too many, or there is no memory for it. */
bool answers_add(struct naming_answers *a, const struct naming_answer *new);
/* Free the memory; empty and usable afterwards. */
void answers_clear(struct naming_answers *a);
