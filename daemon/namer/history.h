/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* History: code that a compiler put at addresses, one after the other
 *
 * Unlike in spans (spans.h), ranges stay when a later range covers them: you can ask for the name that
 * an address had when only the first `order` ranges were known. So a file that grows can be read on, and
 * earlier names are still found. Ranges are numbered from 1 in the order in which they were added.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Ranges of a file: more than the lines that are read of it. */
#define HISTORY_MAX 4000000u

struct names;

struct generated {
	uint64_t start, end; /* [start, end) */
	const char *name;    /* NULL: nameless */
	uint64_t from_ns;    /* CLOCK_MONOTONIC, from the file; 0: not in the file */
	uint32_t tag;        /* the adder's */
	bool covers;         /* other code was there before; set by history_add */
};

struct history {
	struct generated *code;
	uint32_t n, size;
	struct history_part *part; /* sorted, the oldest first */
	uint32_t n_parts, n_sorted;
};

/* Add code that is valid from now on. Code that is valid already, under the same name, is not added again, but gets
 * the new tag. The name is copied into `names`; NULL: borrowed. O(log² n), amortised, unless one address has many
 * names; the parser's deadline ends those of a hostile file. 0, HISTORY_FULL (or no room for the name), -ENOMEM */
enum { HISTORY_FULL = 1 };
int history_add(struct history *h, struct generated code, struct names *names);

/* The code at addr after the first `order` ranges; if there was none, the first later code. NULL:
 * there never was code. */
const struct generated *history_find(const struct history *h, uint64_t addr, uint32_t order);

/* Take back the last range, if that is still possible, since only the beginning of its line was read. */
void history_drop_last(struct history *h);

void history_clear(struct history *h);
