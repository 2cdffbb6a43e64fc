/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Kernel symbols: the functions of the kernel or of a module, in compact form
 *
 * A kernel has a hundred thousand functions, which are needed as long as the daemon runs. Each
 * takes 8 bytes and its name. Kernels with padding before functions list it as a symbol of its own,
 * which has the function's name behind a prefix: half of all names, stored once.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kernel_symbol {
	uint32_t start;     /* from the first symbol */
	uint32_t name : 31; /* offset in text; 0: a hole */
	bool padding : 1;   /* KERNEL_PADDING and that name */
};

/* Source: scripts/kallsyms.c and FUNCTION_PADDING, Linux 6.2. */
#define KERNEL_PADDING "__pfx_"

struct kernel_symbols {
	struct kernel_symbol *symbol; /* by start */
	size_t n, size;
	char *text; /* NUL-terminated names; the first is empty */
	size_t n_text, text_size;
	uint64_t first; /* address of the first symbol */
	int last_rank;  /* of the last symbol, enum symbol_rank */
};

enum {
	KERNEL_SYMBOLS_FULL = 1, /* IMAGE_SYMBOLS_MAX, or 2 GB of names */
	KERNEL_SYMBOLS_UNSORTED, /* below the last one, or 4 GB above the first */
};

/* Append a symbol; name NULL ends the previous one. Of two at the same address, the better name is
 * kept. 0, KERNEL_SYMBOLS_*, -ENOMEM */
int kernel_symbols_add(struct kernel_symbols *k, uint64_t addr, const char *name, int rank);

/* All symbols are added: release spare memory. Once. */
void kernel_symbols_seal(struct kernel_symbols *k);

/* A function at the offsets [start, end) from a base. */
struct kernel_function {
	const char *name;
	bool padding; /* it is the padding before that function: its name begins with KERNEL_PADDING */
	uint64_t start, end;
};

/* The function at base + offset that does not begin below base. A function without a successor is at most last_bytes_max
 * long. False: none. O(log n). */
bool kernel_symbols_find(const struct kernel_symbols *k, uint64_t base, uint64_t offset,
	uint64_t last_bytes_max, struct kernel_function *ret_function);

void kernel_symbols_clear(struct kernel_symbols *k);
