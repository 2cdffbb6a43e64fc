/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "daemon/namer/table_rows.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/array.h"
#include "proto/base/hash_table.h"

struct known_rule {
	struct unwind_rule rule;
	uint16_t number;
	UT_hash_handle hh;
};

int table_rows_begin(struct table_rows *t, size_t n_bytes_max)
{
	*t = (struct table_rows){.n_bytes_max = n_bytes_max};
	if (array_grow(&t->rule, &t->rules_size, 1, sizeof(*t->rule)) < 0)
		return -ENOMEM;
	t->rule[0] = (struct unwind_rule){};
	t->n_rules = 1; /* UNWIND_NO_RULE */
	return 0;
}

int table_rows_number(struct table_rows *t, const struct unwind_rule *rule, uint16_t *ret_number)
{
	struct known_rule *known;

	HASH_FIND(hh, t->known, rule, sizeof(*rule), known);
	if (known) {
		*ret_number = known->number;
		return 0;
	}
	if (t->n_rules == UNWIND_RULES_MAX)
		return -E2BIG;
	if (array_grow(&t->rule, &t->rules_size, t->n_rules + 1, sizeof(*t->rule)) < 0)
		return -ENOMEM;
	known = calloc(1, sizeof(*known));
	if (!known)
		return -ENOMEM;
	known->rule = *rule;
	known->number = (uint16_t)t->n_rules;
	HASH_ADD(hh, t->known, rule, sizeof(known->rule), known);
	if (!known->hh.tbl) {
		free(known);
		return -ENOMEM;
	}
	t->rule[t->n_rules++] = *rule;
	*ret_number = known->number;
	return 0;
}

static int append(struct table_rows *t, uint16_t low, uint16_t rule)
{
	if (t->n_rows > t->page[t->n_pages - 1] && t->row[t->n_rows - 1].low == low) {
		t->row[t->n_rows - 1].rule = rule; /* of no instruction */
		return 0;
	}
	if (t->n_rows * sizeof(*t->row) >= t->n_bytes_max)
		return -E2BIG;
	if (array_grow(&t->row, &t->rows_size, t->n_rows + 1, sizeof(*t->row)) < 0)
		return -ENOMEM;
	t->row[t->n_rows++] = (struct unwind_row){.low = low, .rule = rule};
	return 0;
}

/* Begin pages up to that of the address, each with the rule that holds at its beginning. */
static int reach(struct table_rows *t, uint64_t addr)
{
	const uint64_t wanted = (addr - t->base) >> UNWIND_PAGE_SHIFT;

	if (wanted >= UNWIND_PAGES_MAX)
		return -E2BIG;
	while (t->n_pages <= wanted) {
		if (array_grow(&t->page, &t->pages_size, t->n_pages + 2, sizeof(*t->page)) < 0)
			return -ENOMEM;
		t->page[t->n_pages++] = t->n_rows;
		int r = append(t, 0, t->last);
		if (r < 0)
			return r;
	}
	return 0;
}

int table_rows_add(struct table_rows *t, uint64_t addr, uint16_t rule)
{
	if (rule == t->last)
		return 0;
	int r = reach(t, addr);
	if (r < 0)
		return r;
	t->last = rule;
	return append(t, (uint16_t)(addr - t->base), rule);
}

int table_rows_from(struct table_rows *t, uint64_t addr)
{
	t->base = addr >> UNWIND_PAGE_SHIFT << UNWIND_PAGE_SHIFT;
	return reach(t, addr);
}

/* The rows are most of it, so the table takes their memory: two copies of a large program's are megabytes. */
int table_rows_pack(struct table_rows *t, const struct unwind_segment *segment, size_t n_segments,
	struct unwind_table **ret_table)
{
	const struct unwind_table counts = {.base = t->base,
		.n_segments = (uint32_t)n_segments,
		.n_rules = t->n_rules,
		.n_pages = t->n_pages,
		.n_rows = t->n_rows};
	const size_t n_bytes = unwind_table_bytes(&counts);
	const size_t n_row_bytes = t->n_rows * sizeof(*t->row);

	if (n_bytes > t->n_bytes_max)
		return -E2BIG;
	struct unwind_table *table = realloc(t->row, n_bytes);
	if (!table)
		return -ENOMEM;
	t->row = NULL;
	t->n_rows = t->rows_size = 0;
	memmove((char *)table + n_bytes - n_row_bytes, table, n_row_bytes);
	*table = counts;
	assert((char *)unwind_table_rows(table) + n_row_bytes == (char *)table + n_bytes);
	if (n_segments)
		memcpy(unwind_table_segments(table), segment, n_segments * sizeof(*segment));
	memcpy(unwind_table_rules(table), t->rule, t->n_rules * sizeof(*t->rule));
	if (t->n_pages)
		memcpy(unwind_table_pages(table), t->page, t->n_pages * sizeof(*t->page));
	unwind_table_pages(table)[t->n_pages] = counts.n_rows;
	*ret_table = table;
	return 0;
}

void table_rows_clear(struct table_rows *t)
{
	struct known_rule *known, *next;

	HASH_ITER (hh, t->known, known, next) {
		HASH_DEL(t->known, known);
		free(known);
	}
	free(t->page);
	free(t->row);
	free(t->rule);
}
