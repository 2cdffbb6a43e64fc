/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Symbols: what a symbol table says, before it is decided who owns which address
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/namer/spans.h"

enum {
	SYMBOLS_FULL = 1, /* IMAGE_SYMBOLS_MAX */
};

/* Among aliases the greater one gives the name. */
enum symbol_rank {
	SYMBOL_PLT, /* made up by us */
	SYMBOL_LOCAL,
	SYMBOL_WEAK,
	SYMBOL_GLOBAL,
};

struct symbol {
	uint64_t start;
	uint64_t end;     /* sized: start + size; else where it ends at the latest (its section) */
	const char *name; /* borrowed; NULL: not code, only ends what stands before it */
	enum symbol_rank rank;
	bool sized;
};

/* Two struct symbol, as qsort wants it: by start; at the same start the one that shall win last. */
int symbol_compare(const void *a, const void *b);

struct symbols {
	struct symbol *symbol;
	size_t n, size;
};

/* 0, SYMBOLS_FULL, -ENOMEM */
int symbols_add(struct symbols *s, const struct symbol *symbol);

/* Decide, and add the results to `to` (which is then sealed). A symbol with a size owns its range,
 * inner ones win over outer ones. One without a size (assembly) owns what lies between it and the
 * next symbol, but nothing that lies in a symbol with a size. 0, SYMBOLS_FULL, -ENOMEM */
int symbols_resolve(struct symbols *s, struct spans *to);

void symbols_clear(struct symbols *s);
