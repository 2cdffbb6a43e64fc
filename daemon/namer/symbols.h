/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Symbols: the contents of a symbol table, before overlaps are resolved */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/namer/spans.h"

enum {
	SYMBOLS_FULL = 1, /* IMAGE_SYMBOLS_MAX */
};

/* Among aliases the greater rank gives the name. */
enum symbol_rank {
	SYMBOL_PLT, /* synthesized here */
	SYMBOL_LOCAL,
	SYMBOL_WEAK,
	SYMBOL_GLOBAL,
};

struct symbol {
	uint64_t start;
	uint64_t end;     /* sized: start + size; else the latest possible end (its section) */
	const char *name; /* borrowed; NULL: not code, only ends the previous symbol */
	enum symbol_rank rank;
	bool sized;
};

/* Compare two struct symbol, for qsort: by start; at the same start the winner is last. */
int symbol_compare(const void *a, const void *b);

struct symbols {
	struct symbol *symbol;
	size_t n, size;
};

/* 0, SYMBOLS_FULL, -ENOMEM */
int symbols_add(struct symbols *s, const struct symbol *symbol);

/* Resolve overlaps and add the results to `to` (which is then sealed). A symbol with a size owns
 * its range; inner ones win over outer ones. A symbol without a size (assembly) owns the range up
 * to the next symbol, except parts that belong to a symbol with a size. On success s is cleared. 0,
 * SYMBOLS_FULL, -ENOMEM */
int symbols_resolve(struct symbols *s, struct spans *to);

void symbols_clear(struct symbols *s);
