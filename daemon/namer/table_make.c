/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "daemon/namer/table_make.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/namer/cfi.h"
#include "daemon/namer/sort.h"
#include "daemon/namer/table_rows.h"
#include "proto/base/array.h"

/* A table while it is made. */
struct making {
	struct table_rows rows;
	struct cfi cfi;
	struct cfi_range *range;
	uint32_t n_ranges, ranges_size;
	size_t n_bytes_max;
	uint64_t end; /* rows up to here are final */
};

static int on_row(void *userdata, uint64_t addr, const struct unwind_rule *rule)
{
	struct making *m = userdata;
	uint16_t number;

	if (addr < m->end)
		addr = m->end; /* two descriptions overlap: the one that begins first holds */
	int r = table_rows_number(&m->rows, rule, &number);
	return r < 0 ? r : table_rows_add(&m->rows, addr, number);
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
		int r = range->start > m->end ? table_rows_add(&m->rows, m->end, UNWIND_NO_RULE)
					      : 0;
		if (r < 0)
			return r;
		if (range->start > m->end)
			m->end = range->start;
		r = cfi_run(&m->cfi, range, on_row, m);
		if (r < 0)
			return r;
		m->end = end;
	}
	return table_rows_add(&m->rows, m->end, UNWIND_NO_RULE);
}

static int make(struct making *m)
{
	int r = cfi_ranges(&m->cfi, on_range, m);

	if (r < 0)
		return r;
	sort_items(m->range, m->n_ranges, sizeof(*m->range), compare_ranges);
	if (m->n_ranges == 0)
		return 0;
	m->end = m->range[0].start;
	r = table_rows_from(&m->rows, m->end);
	return r < 0 ? r : add_ranges(m);
}

int unwind_table_make(const struct unwind_section *section, size_t n_sections,
	const struct unwind_segment *segment, size_t n_segments, const uint8_t *e_ident,
	uint16_t machine, size_t n_bytes_max, struct unwind_table **ret_table)
{
	struct making m = {.n_bytes_max = n_bytes_max};
	int r = cfi_begin(&m.cfi, section, n_sections, e_ident, machine);

	if (r == 0)
		r = table_rows_begin(&m.rows, n_bytes_max);
	if (r == 0)
		r = make(&m);
	free(m.range); /* before the table is made */
	if (r == 0)
		r = table_rows_pack(&m.rows, segment, n_segments, ret_table);
	table_rows_clear(&m.rows);
	return r;
}
