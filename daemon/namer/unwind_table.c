/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "daemon/namer/unwind_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/namer/cfi.h"
#include "daemon/namer/sort.h"
#include "proto/base/array.h"
#include "proto/base/hash_table.h"
#include "proto/base/memory.h"

#define PAGE_SHIFT 16
#define PAGES_MAX (1u << 16) /* 4 GiB of text */
#define RULES_MAX 0xffffu
#define NO_RULE 0 /* the first rule: no call frame information */

struct row {
	uint16_t low; /* of the address, in its page */
	uint16_t rule;
};

struct known_rule {
	struct unwind_rule rule;
	uint16_t number;
	UT_hash_handle hh;
};

struct unwind_table {
	uint64_t base; /* address of the first page */
	uint32_t *
		page; /* the number of its first row, which is at its beginning; one more ends the last */
	uint32_t n_pages, pages_size;
	struct row *row;
	uint32_t n_rows, rows_size;
	struct unwind_rule *rule;
	uint32_t n_rules, rules_size;
};

/* What is needed while it is made. */
struct making {
	struct unwind_table *t;
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
	struct unwind_table *t = m->t;
	struct known_rule *known;

	HASH_FIND(hh, m->known, rule, sizeof(*rule), known);
	if (known) {
		*ret_number = known->number;
		return 0;
	}
	if (t->n_rules == RULES_MAX)
		return -E2BIG;
	if (array_grow(&t->rule, &t->rules_size, t->n_rules + 1, sizeof(*t->rule)) < 0)
		return -ENOMEM;
	known = calloc(1, sizeof(*known));
	if (!known)
		return -ENOMEM;
	known->rule = *rule;
	known->number = (uint16_t)t->n_rules;
	HASH_ADD(hh, m->known, rule, sizeof(known->rule), known);
	if (!known->hh.tbl) {
		free(known);
		return -ENOMEM;
	}
	t->rule[t->n_rules++] = *rule;
	*ret_number = known->number;
	return 0;
}

static int append(struct making *m, uint16_t low, uint16_t rule)
{
	struct unwind_table *t = m->t;

	if (t->n_rows > t->page[t->n_pages - 1] && t->row[t->n_rows - 1].low == low) {
		t->row[t->n_rows - 1].rule = rule; /* of no instruction */
		return 0;
	}
	if (t->n_rows * sizeof(*t->row) >= m->n_bytes_max)
		return -E2BIG;
	if (array_grow(&t->row, &t->rows_size, t->n_rows + 1, sizeof(*t->row)) < 0)
		return -ENOMEM;
	t->row[t->n_rows++] = (struct row){.low = low, .rule = rule};
	return 0;
}

/* Begin pages up to that of the address, each with the rule that holds at its beginning. */
static int reach(struct making *m, uint64_t addr)
{
	struct unwind_table *t = m->t;
	const uint64_t wanted = (addr - t->base) >> PAGE_SHIFT;

	if (wanted >= PAGES_MAX)
		return -E2BIG;
	while (t->n_pages <= wanted) {
		if (array_grow(&t->page, &t->pages_size, t->n_pages + 2, sizeof(*t->page)) < 0)
			return -ENOMEM;
		t->page[t->n_pages++] = t->n_rows;
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
	return append(m, (uint16_t)(addr - m->t->base), rule);
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
		int r = range->start > m->end ? add_row(m, m->end, NO_RULE) : 0;
		if (r < 0)
			return r;
		if (range->start > m->end)
			m->end = range->start;
		r = cfi_run(&m->cfi, range, on_row, m);
		if (r < 0)
			return r;
		m->end = end;
	}
	return add_row(m, m->end, NO_RULE);
}

static int make(struct making *m)
{
	int r = cfi_ranges(&m->cfi, on_range, m);

	if (r < 0)
		return r;
	sort_items(m->range, m->n_ranges, sizeof(*m->range), compare_ranges);
	if (array_grow(&m->t->rule, &m->t->rules_size, 1, sizeof(*m->t->rule)) < 0)
		return -ENOMEM;
	m->t->n_rules = 1; /* NO_RULE */
	if (m->n_ranges == 0)
		return 0;
	m->t->base = m->range[0].start >> PAGE_SHIFT << PAGE_SHIFT;
	m->end = m->range[0].start;
	r = reach(m, m->end);
	return r < 0 ? r : add_ranges(m);
}

/* Give back what arrays have in reserve. */
static void trim(void *array, uint32_t *size, uint32_t n, size_t element_bytes)
{
	void **p = array;
	void *shorter = n ? reallocarray(*p, n, element_bytes) : NULL;

	if (shorter) {
		*p = shorter;
		*size = n;
	}
}

static void forget_known(struct making *m)
{
	struct known_rule *known, *next;

	HASH_ITER (hh, m->known, known, next) {
		HASH_DEL(m->known, known);
		free(known);
	}
}

DEFINE_CLEANUP(struct unwind_table *, unwind_table_free)

int unwind_table_make(const struct unwind_section *section, size_t n_sections,
	const uint8_t *e_ident, uint16_t machine, size_t n_bytes_max,
	struct unwind_table **ret_table)
{
	_cleanup_(unwind_table_freep) struct unwind_table *t = calloc(1, sizeof(*t));
	struct making m = {.t = t, .n_bytes_max = n_bytes_max};

	if (!t)
		return -ENOMEM;
	int r = cfi_begin(&m.cfi, section, n_sections, e_ident, machine);
	if (r == 0)
		r = make(&m);
	forget_known(&m);
	free(m.range);
	if (r < 0)
		return r;
	if (t->n_pages)
		t->page[t->n_pages] = t->n_rows;
	trim(&t->row, &t->rows_size, t->n_rows, sizeof(*t->row));
	trim(&t->page, &t->pages_size, t->n_pages + 1, sizeof(*t->page));
	trim(&t->rule, &t->rules_size, t->n_rules, sizeof(*t->rule));
	*ret_table = TAKE_PTR(t);
	return 0;
}

/* --- use -------------------------------------------------------------------------------------- */

const struct unwind_rule *unwind_table_find(const struct unwind_table *t, uint64_t addr)
{
	const uint64_t page = (addr - t->base) >> PAGE_SHIFT;

	if (addr < t->base || page >= t->n_pages)
		return NULL;
	uint32_t low = t->page[page], high = t->page[page + 1];
	const uint16_t wanted = (uint16_t)(addr - t->base);
	while (high - low > 1) { /* row[low].low <= wanted, for the first one is 0 */
		uint32_t middle = low + (high - low) / 2;
		if (t->row[middle].low <= wanted)
			low = middle;
		else
			high = middle;
	}
	return t->row[low].rule == NO_RULE ? NULL : &t->rule[t->row[low].rule];
}

size_t unwind_table_bytes(const struct unwind_table *t)
{
	return sizeof(*t) + t->rows_size * sizeof(*t->row) + t->pages_size * sizeof(*t->page) +
	       t->rules_size * sizeof(*t->rule);
}

void unwind_table_counts(const struct unwind_table *t, size_t *ret_n_rows, size_t *ret_n_rules)
{
	*ret_n_rows = t->n_rows;
	*ret_n_rules = t->n_rules;
}

struct unwind_table *unwind_table_free(struct unwind_table *t)
{
	if (!t)
		return NULL;
	free(t->row);
	free(t->page);
	free(t->rule);
	free(t);
	return NULL;
}
