/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "daemon/namer/table_make.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/namer/cfi.h"
#include "daemon/namer/sort.h"
#include "proto/base/array.h"
#include "proto/base/hash_table.h"
#include "proto/base/memory.h"

struct known_rule {
	struct unwind_rule rule;
	uint16_t number;
	UT_hash_handle hh;
};

/* A table while it is made. */
struct making {
	uint64_t base;
	uint32_t *page; /* the number of its first row */
	uint32_t n_pages, pages_size;
	struct unwind_row *row;
	uint32_t n_rows, rows_size;
	struct unwind_rule *rule;
	uint32_t n_rules, rules_size;

	struct cfi cfi;
	struct cfi_range *range;
	uint32_t n_ranges, ranges_size;
	struct known_rule *known;
	size_t n_bytes_max;
	uint64_t end;  /* rows up to here are final */
	uint16_t last; /* the rule that holds from the last row on */
};

/* --- adding rows ------------------------------------------------------------------------------ */

static int number_of_rule(struct making *m, const struct unwind_rule *rule, uint16_t *ret_number)
{
	struct known_rule *known;

	HASH_FIND(hh, m->known, rule, sizeof(*rule), known);
	if (known) {
		*ret_number = known->number;
		return 0;
	}
	if (m->n_rules == UNWIND_RULES_MAX)
		return -E2BIG;
	if (array_grow(&m->rule, &m->rules_size, m->n_rules + 1, sizeof(*m->rule)) < 0)
		return -ENOMEM;
	known = calloc(1, sizeof(*known));
	if (!known)
		return -ENOMEM;
	known->rule = *rule;
	known->number = (uint16_t)m->n_rules;
	HASH_ADD(hh, m->known, rule, sizeof(known->rule), known);
	if (!known->hh.tbl) {
		free(known);
		return -ENOMEM;
	}
	m->rule[m->n_rules++] = *rule;
	*ret_number = known->number;
	return 0;
}

static int append(struct making *m, uint16_t low, uint16_t rule)
{
	if (m->n_rows > m->page[m->n_pages - 1] && m->row[m->n_rows - 1].low == low) {
		m->row[m->n_rows - 1].rule = rule; /* of no instruction */
		return 0;
	}
	if (m->n_rows * sizeof(*m->row) >= m->n_bytes_max)
		return -E2BIG;
	if (array_grow(&m->row, &m->rows_size, m->n_rows + 1, sizeof(*m->row)) < 0)
		return -ENOMEM;
	m->row[m->n_rows++] = (struct unwind_row){.low = low, .rule = rule};
	return 0;
}

/* Begin pages up to that of the address, each with the rule that holds at its beginning. */
static int reach(struct making *m, uint64_t addr)
{
	const uint64_t wanted = (addr - m->base) >> UNWIND_PAGE_SHIFT;

	if (wanted >= UNWIND_PAGES_MAX)
		return -E2BIG;
	while (m->n_pages <= wanted) {
		if (array_grow(&m->page, &m->pages_size, m->n_pages + 2, sizeof(*m->page)) < 0)
			return -ENOMEM;
		m->page[m->n_pages++] = m->n_rows;
		int r = append(m, 0, m->last);
		if (r < 0)
			return r;
	}
	return 0;
}

static int add_row(struct making *m, uint64_t addr, uint16_t rule)
{
	if (rule == m->last)
		return 0;
	int r = reach(m, addr);
	if (r < 0)
		return r;
	m->last = rule;
	return append(m, (uint16_t)(addr - m->base), rule);
}

static int on_row(void *userdata, uint64_t addr, const struct unwind_rule *rule)
{
	struct making *m = userdata;
	uint16_t number;

	if (addr < m->end)
		addr = m->end; /* two descriptions overlap: the one that begins first holds */
	int r = number_of_rule(m, rule, &number);
	return r < 0 ? r : add_row(m, addr, number);
}

/* --- making ----------------------------------------------------------------------------------- */

static int on_range(void *userdata, const struct cfi_range *range)
{
	struct making *m = userdata;

	if (m->n_ranges * sizeof(*range) >= 8 * m->n_bytes_max)
		return -E2BIG;
	if (array_grow(&m->range, &m->ranges_size, m->n_ranges + 1, sizeof(*range)) < 0)
		return -ENOMEM;
	m->range[m->n_ranges++] = *range;
	return 0;
}

static int compare_ranges(const void *a, const void *b)
{
	const struct cfi_range *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->section != y->section)
		return x->section < y->section ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static int add_ranges(struct making *m)
{
	for (uint32_t i = 0; i < m->n_ranges; i++) {
		const struct cfi_range *range = &m->range[i];

		const uint64_t end = range->start + range->n;

		if (end <= m->end)
			continue;
		int r = range->start > m->end ? add_row(m, m->end, UNWIND_NO_RULE) : 0;
		if (r < 0)
			return r;
		if (range->start > m->end)
			m->end = range->start;
		r = cfi_run(&m->cfi, range, on_row, m);
		if (r < 0)
			return r;
		m->end = end;
	}
	return add_row(m, m->end, UNWIND_NO_RULE);
}

static int make(struct making *m)
{
	int r = cfi_ranges(&m->cfi, on_range, m);

	if (r < 0)
		return r;
	sort_items(m->range, m->n_ranges, sizeof(*m->range), compare_ranges);
	if (array_grow(&m->rule, &m->rules_size, 1, sizeof(*m->rule)) < 0)
		return -ENOMEM;
	m->n_rules = 1; /* UNWIND_NO_RULE */
	if (m->n_ranges == 0)
		return 0;
	m->base = m->range[0].start >> UNWIND_PAGE_SHIFT << UNWIND_PAGE_SHIFT;
	m->end = m->range[0].start;
	r = reach(m, m->end);
	return r < 0 ? r : add_ranges(m);
}

static void clear(struct making *m)
{
	struct known_rule *known, *next;

	HASH_ITER (hh, m->known, known, next) {
		HASH_DEL(m->known, known);
		free(known);
	}
	free(m->range);
	free(m->page);
	free(m->row);
	free(m->rule);
}

static int pack(const struct making *m, const struct unwind_segment *segment, size_t n_segments,
	struct unwind_table **ret_table)
{
	const struct unwind_table counts = {.base = m->base,
		.n_segments = (uint32_t)n_segments,
		.n_rules = m->n_rules,
		.n_pages = m->n_pages,
		.n_rows = m->n_rows};

	if (unwind_table_bytes(&counts) > m->n_bytes_max)
		return -E2BIG;
	struct unwind_table *t = unwind_table_new(&counts);
	if (!t)
		return -ENOMEM;
	if (n_segments)
		memcpy(unwind_table_segments(t), segment, n_segments * sizeof(*segment));
	memcpy(unwind_table_rules(t), m->rule, m->n_rules * sizeof(*m->rule));
	if (m->n_pages)
		memcpy(unwind_table_pages(t), m->page, m->n_pages * sizeof(*m->page));
	unwind_table_pages(t)[m->n_pages] = m->n_rows;
	if (m->n_rows)
		memcpy(unwind_table_rows(t), m->row, m->n_rows * sizeof(*m->row));
	*ret_table = t;
	return 0;
}

int unwind_table_make(const struct unwind_section *section, size_t n_sections,
	const struct unwind_segment *segment, size_t n_segments, const uint8_t *e_ident,
	uint16_t machine, size_t n_bytes_max, struct unwind_table **ret_table)
{
	struct making m = {.n_bytes_max = n_bytes_max};
	int r = cfi_begin(&m.cfi, section, n_sections, e_ident, machine);

	if (r == 0)
		r = make(&m);
	if (r == 0)
		r = pack(&m, segment, n_segments, ret_table);
	clear(&m);
	return r;
}
