/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Two simple hash tables: open addressing, at most half full, without removal. Entries are dense in
 * separate arrays, and the slots hold their numbers. So a million entries cost their own bytes plus
 * eight each, and counts per entry are an array.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/hash.h"

#include "daemon/store/key.h"

static uint64_t key_hash(const struct key *key)
{
	return hash_words(
		hash_words(key->part[0], key->part[1]), hash_words(key->part[2], key->part[3]));
}

static int key_slots_grow(struct key_table *t)
{
	uint32_t n = t->n_slots ? t->n_slots * 2 : 256;
	uint32_t *slot = calloc(n, sizeof(*slot));
	if (!slot)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->n_keys; i++) {
		uint64_t h = key_hash(&t->key[i]);
		while (slot[h & (n - 1)])
			h++;
		slot[h & (n - 1)] = i + 1;
	}
	free(t->slot);
	t->slot = slot;
	t->n_slots = n;
	return 0;
}

/* Slot of the key, or the free slot where it belongs. */
static uint32_t *key_slot(const struct key_table *t, const struct key *key)
{
	uint64_t h = key_hash(key);
	uint32_t *slot;
	for (; *(slot = &t->slot[h & (t->n_slots - 1)]); h++)
		if (memcmp(&t->key[*slot - 1], key, sizeof(*key)) == 0)
			break;
	return slot;
}

uint32_t key_find(const struct key_table *t, const struct key *key)
{
	uint32_t slot = t->n_slots ? *key_slot(t, key) : 0;
	return slot ? slot - 1 : KEY_NONE;
}

int key_get(struct key_table *t, const struct key *key, uint32_t *ret_index)
{
	if (t->n_keys >= t->n_slots / 2) {
		int r = key_slots_grow(t);
		if (r < 0)
			return r;
	}
	uint32_t *slot = key_slot(t, key);
	if (*slot) {
		*ret_index = *slot - 1;
		return 0;
	}
	if (t->n_keys >= KEY_TABLE_MAX)
		return KEY_TABLE_FULL;
	int r = array_grow(&t->key, &t->size, t->n_keys + 1, sizeof(*t->key));
	if (r < 0)
		return r;
	t->key[t->n_keys] = *key;
	*ret_index = t->n_keys++;
	*slot = t->n_keys;
	return 0;
}

void key_table_clear(struct key_table *t)
{
	free(t->key);
	free(t->slot);
	*t = (struct key_table){0};
}

const char *text_of(const struct text_table *t, uint32_t id)
{
	return id == 0 || id > t->n_texts ? NULL : t->bytes + t->offset[id];
}

static int text_slots_grow(struct text_table *t)
{
	uint32_t n = t->n_slots ? t->n_slots * 2 : 256;
	uint32_t *slot = calloc(n, sizeof(*slot));
	if (!slot)
		return -ENOMEM;
	for (uint32_t id = 1; id <= t->n_texts; id++) {
		const char *text = text_of(t, id);
		uint64_t h = hash_bytes(text, strlen(text));
		while (slot[h & (n - 1)])
			h++;
		slot[h & (n - 1)] = id;
	}
	free(t->slot);
	t->slot = slot;
	t->n_slots = n;
	return 0;
}

static int text_add(struct text_table *t, const char *text, size_t n)
{
	if (t->n_bytes + n + 1 > TEXT_TABLE_BYTES_MAX)
		return KEY_TABLE_FULL;
	int r = array_grow(&t->offset, &t->size, t->n_texts + 2, sizeof(*t->offset));
	if (r < 0)
		return r;
	if (t->n_bytes + n + 1 > t->size_bytes) {
		size_t wanted = (t->n_bytes + n + 1) * 2 + 4096;
		char *grown = realloc(t->bytes, wanted);
		if (!grown)
			return -ENOMEM;
		t->bytes = grown;
		t->size_bytes = wanted;
	}
	t->offset[++t->n_texts] = (uint32_t)t->n_bytes;
	memcpy(t->bytes + t->n_bytes, text, n + 1);
	t->n_bytes += n + 1;
	return 0;
}

int text_get(struct text_table *t, const char *text, uint32_t *ret_id)
{
	if (!text) {
		*ret_id = 0;
		return 0;
	}
	if (t->n_texts >= t->n_slots / 2) {
		int r = text_slots_grow(t);
		if (r < 0)
			return r;
	}
	size_t n = strlen(text);
	uint64_t h = hash_bytes(text, n);
	uint32_t *slot;
	for (; *(slot = &t->slot[h & (t->n_slots - 1)]); h++)
		if (strcmp(text_of(t, *slot), text) == 0) {
			*ret_id = *slot;
			return 0;
		}
	int r = text_add(t, text, n);
	if (r != 0)
		return r;
	*slot = *ret_id = t->n_texts;
	return 0;
}

void text_table_clear(struct text_table *t)
{
	free(t->bytes);
	free(t->offset);
	free(t->slot);
	*t = (struct text_table){0};
}
