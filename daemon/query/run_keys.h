/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Index of runs by key: the position of each run in an array, which moves when it grows */

#include <stdint.h>

#include "proto/base/hash_table.h"

struct run_key {
	char *key; /* the key that identifies a run */
	uint32_t index;
	UT_hash_handle hh;
};

/* NULL: none. Borrowed. */
struct run_key *run_keys_find(struct run_key *table, const char *key);
/* Add a new key, which it takes over. 0 or -ENOMEM. */
int run_keys_add(struct run_key **table, char *key, uint32_t index);
void run_keys_clear(struct run_key **table);
