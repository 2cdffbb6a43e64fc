/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* The kernel lists its own symbols sorted, so they can be stored as they come, without a temporary
 * list of three times the size. On every architecture its text is within 4 GB, since calls must
 * reach, and so is a module's.
 */

#include "daemon/namer/kernel_symbols.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/namer/image.h"
#include "daemon/namer/name_cut.h"
#include "daemon/namer/names.h"
#include "daemon/namer/symbols.h"

static int grow(void *items, size_t *size, size_t wanted, size_t item_bytes)
{
	void **at = items;
	size_t more = *size ? *size : 4096;
	while (more < wanted)
		more *= 2;
	if (more == *size)
		return 0;
	void *grown = reallocarray(*at, more, item_bytes);
	if (!grown)
		return -ENOMEM;
	*at = grown;
	*size = more;
	return 0;
}

static int text_add(struct kernel_symbols *k, const char *name, uint32_t *ret_at)
{
	char cut[IMAGE_NAME_BYTES_MAX + 1];
	size_t n = name_cut(name, strnlen(name, NAME_TEXT_MAX), cut);
	if (k->n_text > INT32_MAX - (n + 2))
		return KERNEL_SYMBOLS_FULL;
	int r = grow(&k->text, &k->text_size, k->n_text + n + 2, 1);
	if (r < 0)
		return r;
	if (k->n_text == 0)
		k->text[k->n_text++] = '\0';
	char *at = k->text + k->n_text;
	memcpy(at, cut, n + 1);
	*ret_at = (uint32_t)k->n_text;
	k->n_text += n + 1;
	return 0;
}

/* Handle an alias of the last symbol. */
static int add_alias(struct kernel_symbols *k, const char *name, int rank)
{
	struct kernel_symbol *last = &k->symbol[k->n - 1];
	if (!name)
		return 0;
	if (last->name) {
		const struct symbol was = {.name = k->text + last->name, .rank = k->last_rank};
		const struct symbol is = {.name = name, .rank = rank};
		if (symbol_compare(&was, &is) >= 0)
			return 0;
		k->n_text = last->name; /* nothing was added after it */
	}
	k->last_rank = rank;
	uint32_t at = 0;
	int r = text_add(k, name, &at);
	last->name = at & INT32_MAX;
	return r;
}

int kernel_symbols_add(struct kernel_symbols *k, uint64_t addr, const char *name, int rank)
{
	if (k->n == 0)
		k->first = addr;
	uint64_t last = k->n ? k->first + k->symbol[k->n - 1].start : addr;
	if (addr < last || addr - k->first > UINT32_MAX)
		return KERNEL_SYMBOLS_UNSORTED;
	if (k->n && addr == last)
		return add_alias(k, name, rank);

	if (k->n >= IMAGE_SYMBOLS_MAX)
		return KERNEL_SYMBOLS_FULL;
	int r = grow(&k->symbol, &k->size, k->n + 1, sizeof(*k->symbol));
	uint32_t at = 0;
	if (r == 0 && name)
		r = text_add(k, name, &at);
	if (r)
		return r;
	k->symbol[k->n++] = (struct kernel_symbol){
		.start = (uint32_t)(addr - k->first), .name = at & INT32_MAX};
	k->last_rank = rank;
	return 0;
}

/* Is it the padding before the next symbol? */
static bool is_padding(const struct kernel_symbols *k, size_t i)
{
	const struct kernel_symbol *s = &k->symbol[i];
	const size_t n = sizeof(KERNEL_PADDING) - 1;

	return i + 1 < k->n && s[1].name && !(i > 0 && s[-1].padding) &&
	       strncmp(k->text + s->name, KERNEL_PADDING, n) == 0 &&
	       strcmp(k->text + s->name + n, k->text + s[1].name) == 0;
}

/* Names are in the order of symbols: those that stay move down. */
static void share_names(struct kernel_symbols *k)
{
	size_t n = k->n_text ? 1 : 0;

	for (size_t i = 0; i < k->n; i++) {
		struct kernel_symbol *s = &k->symbol[i];
		if (!s->name)
			continue;
		const char *name = k->text + s->name;
		s->padding = is_padding(k, i);
		s->name = n & INT32_MAX; /* of padding: where the next name will be */
		if (s->padding)
			continue;
		size_t n_name = strlen(name) + 1;
		memmove(k->text + n, name, n_name);
		n += n_name;
	}
	k->n_text = n;
}

void kernel_symbols_seal(struct kernel_symbols *k)
{
	share_names(k);
	/* failing to shrink is harmless */
	void *symbol = reallocarray(k->symbol, k->n ? k->n : 1, sizeof(*k->symbol));
	k->symbol = symbol ? symbol : k->symbol;
	k->size = symbol ? k->n : k->size;
	void *text = realloc(k->text, k->n_text ? k->n_text : 1);
	k->text = text ? text : k->text;
	k->text_size = text ? k->n_text : k->text_size;
}

bool kernel_symbols_find(const struct kernel_symbols *k, uint64_t base, uint64_t offset,
	uint64_t last_bytes_max, struct kernel_function *ret_function)
{
	uint64_t addr;
	if (__builtin_add_overflow(base, offset, &addr) || addr < k->first)
		return false;
	uint64_t at = addr - k->first;
	size_t low = 0, high = k->n; /* the first that begins after addr */
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (k->symbol[middle].start <= at)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 || !k->symbol[low - 1].name || k->first + k->symbol[low - 1].start < base)
		return false;
	const struct kernel_symbol *s = &k->symbol[low - 1];
	bool last = low == k->n || !k->symbol[low].name;
	if (last && at - s->start >= last_bytes_max)
		return false;
	const uint64_t start = k->first + s->start - base;
	uint64_t end = low < k->n ? k->first + k->symbol[low].start - base : UINT64_MAX;
	if (last && end - start > last_bytes_max)
		end = start + last_bytes_max;
	*ret_function = (struct kernel_function){k->text + s->name, s->padding, start, end};
	return true;
}

void kernel_symbols_clear(struct kernel_symbols *k)
{
	free(k->symbol);
	free(k->text);
	*k = (struct kernel_symbols){0};
}
