/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Content keys: the contents of entries as small dense numbers
 *
 * A text_table keeps every text once and numbers them from 1; 0 is "no text". A key_table does the
 * same for tuples of four numbers, from 0. Both only grow, and live as long as one query or
 * roll-up.
 */

#include <stddef.h>
#include <stdint.h>

#include "proto/base/array.h"
#include "proto/base/memory.h"

/* For all names; a million C++ names of 200 bytes take 0.2 GB. */
#define TEXT_TABLE_BYTES_MAX (1u << 30)
/* 32 bytes each: 2 GB; more distinct stacks than one segment can hold. */
#define KEY_TABLE_MAX (1u << 26)

enum { KEY_TABLE_FULL = 1 };

struct key {
	uint64_t part[4];
};

struct key_table {
	struct key *key; /* by index */
	uint32_t n_keys, size;
	uint32_t *slot; /* index + 1, open addressing; n_slots is a power of two */
	uint32_t n_slots;
};

/* The key's index; a new key is added. 0, KEY_TABLE_FULL, -ENOMEM. */
int key_get(struct key_table *t, const struct key *key, uint32_t *ret_index);
/* The key's index, or KEY_NONE. */
#define KEY_NONE UINT32_MAX
uint32_t key_find(const struct key_table *t, const struct key *key);
void key_table_clear(struct key_table *t);

struct text_table {
	char *bytes; /* texts, each ended by NUL */
	size_t n_bytes, size_bytes;
	uint32_t *offset;       /* by id */
	uint32_t n_texts, size; /* ids are 1 … n_texts */
	uint32_t *slot;         /* id, open addressing */
	uint32_t n_slots;
};

/* The text's id; 0 for NULL. 0, KEY_TABLE_FULL, -ENOMEM. */
int text_get(struct text_table *t, const char *text, uint32_t *ret_id);
/* Borrowed until the next text_get; NULL for id 0. */
const char *text_of(const struct text_table *t, uint32_t id);
void text_table_clear(struct text_table *t);
