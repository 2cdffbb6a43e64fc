/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Kernel symbols: the text of the kernel itself, or of a module, in little memory
 *
 * A kernel has a hundred thousand functions, and they are wanted as long as the daemon lives. Each
 * costs 8 bytes and its name.
 */

#include <stddef.h>
#include <stdint.h>

struct kernel_symbol {
	uint32_t start; /* from the first symbol */
	uint32_t name;  /* where in text; 0: a hole, whatever it is */
};

struct kernel_symbols {
	struct kernel_symbol *symbol; /* by start */
	size_t n, size;
	char *text; /* names, each with its NUL; the first is empty */
	size_t n_text, text_size;
	uint64_t first; /* address of the first symbol */
	int last_rank;  /* of the last symbol, enum symbol_rank */
};

enum {
	KERNEL_SYMBOLS_FULL = 1, /* IMAGE_SYMBOLS_MAX, or 4 GB of names */
	KERNEL_SYMBOLS_UNSORTED, /* below the last one, or 4 GB above the first */
};

/* Append a symbol; name NULL ends the one before. At the address of the last one, the better name
 * stays. 0, KERNEL_SYMBOLS_*, -ENOMEM */
int kernel_symbols_add(struct kernel_symbols *k, uint64_t addr, const char *name, int rank);

/* All are in: give back spare memory. */
void kernel_symbols_seal(struct kernel_symbols *k);

/* The name over base + offset, of a function that does not begin below base; NULL: none. What no
 * function follows, reaches no further than last_bytes_max. O(log n). */
const char *kernel_symbols_find(const struct kernel_symbols *k, uint64_t base, uint64_t offset,
	uint64_t last_bytes_max);

void kernel_symbols_clear(struct kernel_symbols *k);
