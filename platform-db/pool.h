/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Memory that is freed all at once, and growing arrays
 *
 * A database is read once and freed as a whole, so its texts and tables are in a pool. Arrays that
 * grow while a file is read are lists.
 */

#include <stddef.h>

#include "proto/base/memory.h"

struct pool;

struct pool *pool_new(void); /* NULL without memory */
struct pool *pool_free(struct pool *pool);
DEFINE_CLEANUP(struct pool *, pool_free)

/* n zeroed bytes, aligned for any type. NULL without memory. */
void *pool_take(struct pool *pool, size_t n);
/* A copy. NULL without memory. */
char *pool_text(struct pool *pool, const char *text);
void *pool_copy(struct pool *pool, const void *from, size_t n);

/* An array of things of one size. Zeroed and with `each` set, it is empty. */
struct list {
	void *items;
	size_t n, size, each;
};

/* Append a zeroed item and return it; NULL without memory. Items may move. */
void *list_add(struct list *l);
/* Append copies of n items. 0 or -ENOMEM. */
int list_append(struct list *l, const void *items, size_t n);
void list_clear(struct list *l);

#define LIST_OF(type) {.each = sizeof(type)}
