/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Open addressing with linear probing. Slots follow from a keyed hash of the name's hash, so that
 * no program can choose names that all collide.
 */
#include "daemon/loops/name_set.h"

#include <errno.h>
#include <stdlib.h>

#include "proto/base/hash.h"
#include "proto/base/memory.h"

#define SLOTS_FIRST 16u

static uint64_t nonzero(uint64_t hash)
{
	return hash ? hash : 1;
}

/* Slot of the hash, or the free slot where it belongs. */
static uint32_t place(const uint64_t *slot, uint32_t n_slots, uint64_t hash)
{
	uint32_t i = (uint32_t)hash_words(0, hash) & (n_slots - 1);
	while (slot[i] && slot[i] != hash)
		i = (i + 1) & (n_slots - 1);
	return i;
}

static uint32_t slots_for(const struct name_set *s, uint32_t n)
{
	uint64_t wanted = 2 * ((uint64_t)s->n + n), n_slots = s->n_slots ? s->n_slots : SLOTS_FIRST;
	if (wanted == 0)
		return s->n_slots;
	while (n_slots < wanted)
		n_slots *= 2;
	return n_slots > UINT32_MAX / 2 ? 0 : (uint32_t)n_slots;
}

size_t name_set_bytes(const struct name_set *s, uint32_t n)
{
	return (size_t)slots_for(s, n) * sizeof(*s->slot);
}

static int grow(struct name_set *s, uint32_t n)
{
	uint32_t n_slots = slots_for(s, n);
	if (n_slots == s->n_slots)
		return 0;
	uint64_t *slot = n_slots ? calloc(n_slots, sizeof(*slot)) : NULL;
	if (!slot)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->n_slots; i++)
		if (s->slot[i])
			slot[place(slot, n_slots, s->slot[i])] = s->slot[i];
	free(s->slot);
	s->slot = slot;
	s->n_slots = n_slots;
	return 0;
}

int name_set_add(struct name_set *s, const uint64_t *hash, uint32_t n)
{
	int r = grow(s, n);
	for (uint32_t i = 0; i < n && r == 0; i++) {
		uint64_t *slot = &s->slot[place(s->slot, s->n_slots, nonzero(hash[i]))];
		s->n += *slot == 0;
		*slot = nonzero(hash[i]);
	}
	return r;
}

bool name_set_has(const struct name_set *s, uint64_t hash)
{
	return s->n > 0 && s->slot[place(s->slot, s->n_slots, nonzero(hash))] != 0;
}

void name_set_clear(struct name_set *s)
{
	free(s->slot);
	*s = (struct name_set){0};
}
