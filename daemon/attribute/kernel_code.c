/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* A sorted array: programs are loaded a few times a second at most, and looked up for each sample of the
 * kernel that is in none of its modules.
 */

#include "daemon/attribute/kernel_code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Index of the first piece that ends behind addr. */
static size_t piece_behind(const struct kernel_code *c, uint64_t addr)
{
	size_t low = 0, high = c->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (c->piece[middle].end <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static uint64_t end_of(uint64_t start, uint64_t bytes)
{
	return bytes > UINT64_MAX - start ? UINT64_MAX : start + bytes;
}

void kernel_code_drop(struct kernel_code *c, uint64_t start, uint64_t bytes)
{
	const size_t first = piece_behind(c, start);
	size_t last = first;

	while (last < c->n && c->piece[last].start < end_of(start, bytes))
		free(c->piece[last++].name);
	if (last > first)
		memmove(&c->piece[first], &c->piece[last], (c->n - last) * sizeof(*c->piece));
	c->n -= last - first;
}

int kernel_code_add(struct kernel_code *c, uint64_t start, uint64_t bytes, const char *name)
{
	if (bytes == 0 || !*name)
		return 0;
	kernel_code_drop(c, start, bytes);
	if (c->n == KERNEL_CODE_MAX)
		return KERNEL_CODE_FULL;
	if (c->n == c->size) {
		size_t size = c->size ? 2 * c->size : 32;
		struct kernel_code_piece *piece = reallocarray(c->piece, size, sizeof(*piece));
		if (!piece)
			return -ENOMEM;
		c->piece = piece;
		c->size = size;
	}
	char *copy = strndup(name, KERNEL_CODE_NAME_BYTES - 1);
	if (!copy)
		return -ENOMEM;
	const size_t at = piece_behind(c, start);
	memmove(&c->piece[at + 1], &c->piece[at], (c->n - at) * sizeof(*c->piece));
	c->piece[at] = (struct kernel_code_piece){start, end_of(start, bytes), copy};
	c->n++;
	return 0;
}

const struct kernel_code_piece *kernel_code_find(const struct kernel_code *c, uint64_t addr)
{
	const size_t i = piece_behind(c, addr);

	return i < c->n && c->piece[i].start <= addr ? &c->piece[i] : NULL;
}

void kernel_code_clear(struct kernel_code *c)
{
	for (size_t i = 0; i < c->n; i++)
		free(c->piece[i].name);
	free(c->piece);
	*c = (struct kernel_code){0};
}
