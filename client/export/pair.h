/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Dense numbers for pairs of numbers: formats number (task, stack), (function, module), … */

#include <stdint.h>

/* Each takes 32 bytes with its slots; more would exhaust the memory of many machines. */
#define PAIRS_MAX (1u << 25)

enum { PAIR_FULL = 1 };

struct pair {
	uint32_t a, b;
};

struct pair_table {
	struct pair *pair; /* by number, from 0 */
	uint32_t *slot;    /* number + 1, open addressing; n_slots is a power of two */
	uint32_t n, size, n_slots;
};

/* The pair's number; a new pair is added. 0, PAIR_FULL, -ENOMEM. */
int pair_get(struct pair_table *t, uint32_t a, uint32_t b, uint32_t *ret_number);
void pair_clear(struct pair_table *t);
