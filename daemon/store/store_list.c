/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* The list of a store's files, in order */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/pin.h"
#include "daemon/store/store_private.h"
#include "proto/base/array.h"

static int order(const struct store_file *a, const struct store_file *b)
{
	if (a->corrupt != b->corrupt)
		return a->corrupt ? -1 : 1;
	if (a->tier != b->tier && !a->corrupt)
		return a->tier < b->tier ? -1 : 1;
	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	return strcmp(a->name, b->name);
}

int store_enter(struct store *s, const struct store_file *f, size_t *ret_at)
{
	int r = array_grow_long(&s->file, &s->size, s->n_files + 1, sizeof(*s->file));
	if (r < 0)
		return r;
	size_t from = 0, to = s->n_files;
	while (from < to) {
		size_t middle = from + (to - from) / 2;
		if (order(&s->file[middle], f) < 0)
			from = middle + 1;
		else
			to = middle;
	}
	memmove(&s->file[from + 1], &s->file[from], (s->n_files - from) * sizeof(*f));
	s->file[from] = *f;
	s->n_files++;
	*ret_at = from;
	return 0;
}

void store_drop(struct store *s, size_t at)
{
	s->n_files--;
	memmove(&s->file[at], &s->file[at + 1], (s->n_files - at) * sizeof(*s->file));
}

size_t store_find(const struct store *s, const char *name)
{
	size_t at = 0;
	while (at < s->n_files && strcmp(s->file[at].name, name) != 0)
		at++;
	return at;
}

uint64_t store_pins_bytes(const struct store *s)
{
	uint64_t bytes = 0;
	for (size_t i = 0; i < s->n_pins; i++)
		bytes += s->pin[i].bytes;
	return bytes;
}

void store_sum(struct store *s)
{
	s->bytes = 0;
	for (size_t i = 0; i < s->n_files; i++)
		s->bytes += s->file[i].bytes;
	s->bytes += store_pins_bytes(s);
}

uint64_t store_tier_bytes(const struct store *s, enum tier tier)
{
	uint64_t bytes = 0;
	for (size_t i = 0; i < s->n_files; i++)
		if (s->file[i].tier == tier && !s->file[i].corrupt)
			bytes += s->file[i].bytes;
	return bytes;
}
