/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Blocks in a chain; each gives out its bytes in order. Data larger than a block gets one of its
 * own. All memory is freed at once.
 */
#include "platform-db/pool.h"

#include <errno.h>
#include <stdalign.h>
#include <stdint.h>
#include <string.h>

#define BLOCK_BYTES (64u << 10) /* the built-in data fills a dozen; the last is half empty */
#define LIST_FIRST 16u

struct block {
	struct block *next;
	size_t n, size;
	alignas(max_align_t) unsigned char bytes[];
};

struct pool {
	struct block *block;
};

struct pool *pool_new(void)
{
	return calloc(1, sizeof(struct pool));
}

struct pool *pool_free(struct pool *pool)
{
	while (pool && pool->block) {
		struct block *next = pool->block->next;
		free(pool->block);
		pool->block = next;
	}
	free(pool);
	return NULL;
}

void *pool_take(struct pool *pool, size_t n)
{
	const size_t align = alignof(max_align_t);
	if (n > SIZE_MAX / 2)
		return NULL;
	n = (n + align - 1) / align * align;

	struct block *b = pool->block;
	if (!b || b->size - b->n < n) {
		size_t size = n > BLOCK_BYTES ? n : BLOCK_BYTES;
		b = calloc(1, sizeof(*b) + size);
		if (!b)
			return NULL;
		b->size = size;
		b->next = pool->block;
		pool->block = b;
	}
	void *at = b->bytes + b->n;
	b->n += n;
	return at;
}

void *pool_copy(struct pool *pool, const void *from, size_t n)
{
	void *to = pool_take(pool, n);
	if (to && n > 0)
		memcpy(to, from, n);
	return to;
}

char *pool_text(struct pool *pool, const char *text)
{
	return pool_copy(pool, text, strlen(text) + 1);
}

static int list_room(struct list *l, size_t n)
{
	if (l->size - l->n >= n)
		return 0;
	size_t size = l->size ? l->size * 2 : LIST_FIRST;
	if (size < l->n + n)
		size = l->n + n;
	void *items = reallocarray(l->items, size, l->each);
	if (!items)
		return -ENOMEM;
	l->items = items;
	l->size = size;
	return 0;
}

void *list_add(struct list *l)
{
	if (list_room(l, 1) < 0)
		return NULL;
	void *item = (unsigned char *)l->items + l->n++ * l->each;
	return memset(item, 0, l->each);
}

int list_append(struct list *l, const void *items, size_t n)
{
	if (n == 0)
		return 0;
	int r = list_room(l, n);
	if (r < 0)
		return r;
	memcpy((unsigned char *)l->items + l->n * l->each, items, n * l->each);
	l->n += n;
	return 0;
}

void list_clear(struct list *l)
{
	free(l->items);
	l->items = NULL;
	l->n = l->size = 0;
}
