/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "daemon/unwind/table.h"

#include <errno.h>
#include <stdlib.h>

_Static_assert(sizeof(struct unwind_rule) == 24 && sizeof(struct unwind_row) == 4 &&
		       sizeof(struct unwind_segment) == 24,
	"tables are sent as they are, without gaps");

size_t unwind_table_memory_bytes(const struct unwind_table *counts)
{
	return counts->n_segments * sizeof(struct unwind_segment) +
	       counts->n_rules * sizeof(struct unwind_rule) +
	       (counts->n_pages + (size_t)1) * sizeof(uint32_t) +
	       counts->n_rows * sizeof(struct unwind_row);
}

size_t unwind_table_bytes(const struct unwind_table *counts)
{
	return sizeof(*counts) + unwind_table_memory_bytes(counts);
}

struct unwind_table *unwind_table_new(const struct unwind_table *counts)
{
	struct unwind_table *t = calloc(1, unwind_table_bytes(counts));

	if (t)
		*t = (struct unwind_table){.base = counts->base,
			.n_segments = counts->n_segments,
			.n_rules = counts->n_rules,
			.n_pages = counts->n_pages,
			.n_rows = counts->n_rows};
	return t;
}

struct unwind_segment *unwind_table_segments(struct unwind_table *t)
{
	return (struct unwind_segment *)t->memory;
}

struct unwind_rule *unwind_table_rules(struct unwind_table *t)
{
	return (struct unwind_rule *)(unwind_table_segments(t) + t->n_segments);
}

uint32_t *unwind_table_pages(struct unwind_table *t)
{
	return (uint32_t *)(unwind_table_rules(t) + t->n_rules);
}

struct unwind_row *unwind_table_rows(struct unwind_table *t)
{
	return (struct unwind_row *)(unwind_table_pages(t) + t->n_pages + 1);
}

/* --- what arrived ----------------------------------------------------------------------------- */

int unwind_table_check_counts(const struct unwind_table *counts)
{
	return counts->n_segments <= UNWIND_SEGMENTS_MAX && counts->n_rules > 0 &&
			       counts->n_rules <= UNWIND_RULES_MAX &&
			       counts->n_pages <= UNWIND_PAGES_MAX &&
			       counts->n_rows <= UNWIND_ROWS_MAX
		       ? 0
		       : -EBADMSG;
}

/* A page has a row at its beginning, and rows in rising order. */
static bool is_page(const struct unwind_row *row, uint32_t n, uint32_t n_rules)
{
	if (n == 0 || row[0].low != 0)
		return false;
	for (uint32_t i = 0; i < n; i++)
		if (row[i].rule >= n_rules || (i > 0 && row[i].low <= row[i - 1].low))
			return false;
	return true;
}

static bool is_rule(const struct unwind_rule *r)
{
	return r->cfa <= UNWIND_NONE && r->ra <= UNWIND_NONE && r->fp <= UNWIND_NONE &&
	       r->base <= UNWIND_NONE;
}

int unwind_table_check(const struct unwind_table *table)
{
	struct unwind_table *t = (struct unwind_table *)table; /* which is only read */
	const struct unwind_rule *rule = unwind_table_rules(t);
	const uint32_t *page = unwind_table_pages(t);
	const struct unwind_row *row = unwind_table_rows(t);

	if (page[0] != 0 || page[t->n_pages] != t->n_rows)
		return -EBADMSG;
	for (uint32_t i = 0; i < t->n_rules; i++)
		if (!is_rule(&rule[i]))
			return -EBADMSG;
	for (uint32_t i = 0; i < t->n_pages; i++)
		if (page[i + 1] < page[i] || page[i + 1] > t->n_rows ||
			!is_page(row + page[i], page[i + 1] - page[i], t->n_rules))
			return -EBADMSG;
	return 0;
}

/* --- use -------------------------------------------------------------------------------------- */

const struct unwind_rule *unwind_table_find(const struct unwind_table *table, uint64_t addr)
{
	struct unwind_table *t = (struct unwind_table *)table; /* which is only read */
	const uint64_t page = (addr - t->base) >> UNWIND_PAGE_SHIFT;

	if (addr < t->base || page >= t->n_pages)
		return NULL;
	const struct unwind_row *row = unwind_table_rows(t);
	uint32_t low = unwind_table_pages(t)[page], high = unwind_table_pages(t)[page + 1];
	const uint16_t wanted = (uint16_t)(addr - t->base);
	while (high - low > 1) { /* row[low].low <= wanted, for the first one is 0 */
		uint32_t middle = low + (high - low) / 2;
		if (row[middle].low <= wanted)
			low = middle;
		else
			high = middle;
	}
	return row[low].rule == UNWIND_NO_RULE ? NULL : &unwind_table_rules(t)[row[low].rule];
}

const struct unwind_rule *unwind_table_at(const struct unwind_table *t, uint64_t offset)
{
	const struct unwind_segment *s = unwind_table_segments((struct unwind_table *)t);

	for (uint32_t i = 0; i < t->n_segments; i++)
		if (offset >= s[i].offset && offset - s[i].offset < s[i].n)
			return unwind_table_find(t, s[i].addr + (offset - s[i].offset));
	return NULL;
}
