/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* A symbol table has aliases, nested symbols, and symbols without a size. Sizes are authoritative
 * if present: an address beyond the end of a sized symbol has no name. Assembly without .size
 * directives (crt files, hand-written libc parts) has no sizes; there a symbol extends to the next
 * one, as in perf.
 */

#include "daemon/namer/symbols.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/namer/image.h"
#include "daemon/namer/sort.h"

int symbols_add(struct symbols *s, const struct symbol *symbol)
{
	if (s->n >= IMAGE_SYMBOLS_MAX)
		return SYMBOLS_FULL;

	if (s->n == s->size) {
		size_t size = s->size ? s->size * 2 : 256;
		struct symbol *grown = reallocarray(s->symbol, size, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		s->symbol = grown;
		s->size = size;
	}

	s->symbol[s->n++] = *symbol;
	return 0;
}

/* Positive: a is the better name. */
static int name_compare(const char *a, const char *b)
{
	if (!a || !b)
		return !!a - !!b;

	size_t a_underscores = strspn(a, "_"), b_underscores = strspn(b, "_");
	if (a_underscores != b_underscores)
		return a_underscores < b_underscores ? 1 : -1;

	size_t a_length = strlen(a), b_length = strlen(b);
	if (a_length != b_length)
		return a_length < b_length ? 1 : -1;
	return -strcmp(a, b);
}

int symbol_compare(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (!x->name != !y->name)
		return x->name ? 1 : -1;
	if (x->sized != y->sized)
		return x->sized ? 1 : -1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return name_compare(x->name, y->name);
}

/* The end of a symbol; `next`: the first that starts after it, or NULL. */
static uint64_t symbol_end(const struct symbol *s, const struct symbol *next)
{
	bool cut = !s->sized && next && next->start < s->end;

	return cut ? next->start : s->end;
}

/* Add the symbols [i, next), which have one start. */
static int add_aliases(
	const struct symbols *s, size_t i, size_t next, uint64_t covered, struct spans *to)
{
	const struct symbol *behind = next < s->n ? &s->symbol[next] : NULL;
	const struct symbol *last = &s->symbol[next - 1];

	for (; i < next; i++) {
		const struct symbol *symbol = &s->symbol[i];
		uint64_t end = symbol_end(symbol, behind);
		/* the last one covers completely any that ends no later */
		bool hidden = symbol != last && end <= symbol_end(last, behind);
		if (hidden || (!symbol->sized && symbol->start < covered))
			continue;
		int r = spans_add(to,
			(struct span){.start = symbol->start, .end = end, .name = symbol->name});
		if (r)
			return r == SPANS_FULL ? SYMBOLS_FULL : r;
	}
	return 0;
}

int symbols_resolve(struct symbols *s, struct spans *to)
{
	_Static_assert(sizeof(*s->symbol) <= SORT_ITEM_BYTES_MAX, "fits");
	sort_items(s->symbol, s->n, sizeof(*s->symbol), symbol_compare);

	uint64_t covered = 0; /* the furthest end of a sized symbol so far */
	for (size_t i = 0, next; i < s->n; i = next) {
		uint64_t start = s->symbol[i].start;
		for (next = i; next < s->n && s->symbol[next].start == start; next++)
			if (s->symbol[next].sized && s->symbol[next].end > covered)
				covered = s->symbol[next].end;
		int r = add_aliases(s, i, next, covered, to);
		if (r)
			return r;
	}
	symbols_clear(s); /* sealing takes as much again */
	return spans_seal(to);
}

void symbols_clear(struct symbols *s)
{
	free(s->symbol);
	*s = (struct symbols){0};
}
