/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * perf puts call frame information behind the code, at the next multiple of eight. Compilers write its relative addresses
 * for that place. Rows are kept by their distance from the start of the code, since code may move.
 *
 * Pieces of code may be far apart. A table has a page for each 64 KiB between them, so they are put into segments that
 * follow each other: the table's offsets are addresses, its addresses mean nothing.
 *
 * Source: jit_add_eh_frame_info(), tools/perf/util/genelf.c of Linux 6.12; EhFrameWriter::Finish(),
 * src/diagnostics/eh-frame.cc of V8; elf_init_ehframe(), Python/perf_jit_trampoline.c of CPython 3.13.
 */
#include "daemon/namer/jit_table.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/namer/cfi.h"
#include "proto/base/array.h"

#define ROWS_MAX 1000000u /* of a file; 8 MB. Code after them is not described */
/* Pieces that are further apart are in segments of their own, unless these are too many. */
#define GAP_BYTES (UINT64_C(1) << 20)
#define GAP_BYTES_MAX (UINT64_C(1) << 32)

static const uint8_t e_ident[EI_NIDENT] = {
	ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT};

/* --- rows ------------------------------------------------------------------------------------- */

struct taking {
	struct jit_rows *rows;
	struct cfi *cfi;
	uint64_t start, end; /* of the code */
	uint64_t at;         /* rows up to here are final */
	uint32_t first;
};

static int put(struct taking *t, uint64_t addr, uint16_t rule)
{
	struct jit_rows *j = t->rows;
	const uint32_t offset = (uint32_t)(addr - t->start);

	if (j->n_rows > t->first && j->row[j->n_rows - 1].offset == offset)
		j->n_rows--; /* of no instruction */
	if (j->n_rows == ROWS_MAX)
		return -E2BIG;
	if (array_grow(&j->row, &j->rows_size, j->n_rows + 1, sizeof(*j->row)) < 0)
		return -ENOMEM;
	j->row[j->n_rows++] = (struct jit_row){.offset = offset, .rule = rule};
	return 0;
}

/* A frame that only elfutils could leave has nothing better than its frame pointer here. */
static int on_row(void *userdata, uint64_t addr, const struct unwind_rule *rule)
{
	struct taking *t = userdata;
	uint16_t number = UNWIND_NO_RULE;
	int r = rule->cfa == UNWIND_UNKNOWN ? 0 : table_rows_number(&t->rows->rules, rule, &number);

	if (r < 0 || addr >= t->end)
		return r;
	return put(t, addr > t->at ? addr : t->at, number);
}

static int on_range(void *userdata, const struct cfi_range *range)
{
	struct taking *t = userdata;
	const uint64_t end = range->start + range->n;

	if (range->start >= t->end || end <= t->at || range->start < t->at)
		return 0;
	t->at = range->start;
	int r = cfi_run(t->cfi, range, on_row, t);
	t->at = end < t->end ? end : t->end;
	return r < 0 || end >= t->end ? r : put(t, end, UNWIND_NO_RULE);
}

/* Code of one kind has the same rows each time. */
static bool is_as_last(const struct jit_rows *j, const struct jit_span *span)
{
	if (span->n != j->last.n)
		return false;
	for (uint32_t i = 0; i < span->n; i++) {
		const struct jit_row *a = &j->row[span->first + i], *b = &j->row[j->last.first + i];
		if (a->offset != b->offset || a->rule != b->rule)
			return false;
	}
	return true;
}

int jit_rows_take(struct jit_rows *j, uint16_t machine, const uint8_t *eh_frame, size_t n,
	uint64_t start, uint64_t n_code, struct jit_span *ret_span)
{
	Elf_Data data = {.d_buf = (void *)eh_frame,
		.d_size = n,
		.d_type = ELF_T_BYTE,
		.d_version = EV_CURRENT};
	const struct unwind_section section = {
		.data = &data, .addr = start + ((n_code + 7) & ~UINT64_C(7)), .is_eh = true};
	struct cfi cfi;
	struct taking t = {.rows = j,
		.cfi = &cfi,
		.start = start,
		.end = start + n_code,
		.at = start,
		.first = j->n_rows};

	*ret_span = (struct jit_span){};
	if (n == 0 || n > JIT_UNWINDING_BYTES_MAX || n_code > UINT32_MAX ||
		cfi_begin(&cfi, &section, 1, e_ident, machine) < 0)
		return 0;
	int r = j->rules.n_rules ? 0 : table_rows_begin(&j->rules, 0);
	if (r == 0)
		r = cfi_ranges(&cfi, on_range, &t);
	struct jit_span span = {t.first, j->n_rows - t.first};
	if (r < 0 || is_as_last(j, &span))
		j->n_rows = t.first;
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	if (is_as_last(j, &span))
		span = j->last;
	*ret_span = j->last = span;
	return 0;
}

/* --- table ------------------------------------------------------------------------------------ */

struct segments {
	struct unwind_segment segment[UNWIND_SEGMENTS_MAX];
	size_t n;
};

/* Segments of pieces that have rows, with gaps of at most that. False: they are too many. */
static bool divide(
	const struct jit_piece *piece, size_t n_pieces, uint64_t gap, struct segments *ret_segments)
{
	const uint64_t page = UINT64_C(1) << UNWIND_PAGE_SHIFT;
	struct unwind_segment *last = NULL;
	size_t n = 0;

	for (size_t i = 0; i < n_pieces; i++) {
		const struct jit_piece *p = &piece[i];
		if (p->span.n == 0)
			continue;
		if (!last || p->start - (last->offset + last->n) > gap) {
			const uint64_t addr =
				last ? (last->addr + last->n + page - 1) & ~(page - 1) : 0;
			if (n == UNWIND_SEGMENTS_MAX)
				return false;
			last = &ret_segments->segment[n++];
			*last = (struct unwind_segment){.offset = p->start, .addr = addr};
		}
		last->n = p->end - last->offset;
	}
	ret_segments->n = n;
	return true;
}

static int add_piece(struct table_rows *t, const struct jit_rows *j, const struct jit_piece *p,
	const struct unwind_segment *s)
{
	const struct jit_row *row = j->row + p->span.first;
	const uint64_t from = p->start - p->origin, to = p->end - p->origin;
	const uint64_t to_addr = s->addr - s->offset;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < p->span.n; i++) {
		const uint64_t offset =
			row[i].offset; /* the code may have moved to the last addresses */
		uint16_t number = UNWIND_NO_RULE;
		if (i + 1 < p->span.n && row[i + 1].offset <= from)
			continue;
		if (offset >= to)
			break;
		if (row[i].rule != UNWIND_NO_RULE)
			r = table_rows_number(t, &j->rules.rule[row[i].rule], &number);
		if (r == 0)
			r = table_rows_add(t,
				p->start + (offset > from ? offset - from : 0) + to_addr, number);
	}
	return r < 0 ? r : table_rows_add(t, p->end + to_addr, UNWIND_NO_RULE);
}

static int add_pieces(struct table_rows *t, const struct jit_rows *j, const struct jit_piece *piece,
	size_t n_pieces, const struct segments *segments)
{
	const struct unwind_segment *s = segments->segment;
	int r = table_rows_from(t, 0);

	for (size_t i = 0; r == 0 && i < n_pieces; i++) {
		if (piece[i].span.n == 0)
			continue;
		while (piece[i].start - s->offset >= s->n)
			s++;
		r = add_piece(t, j, &piece[i], s);
	}
	return r;
}

int jit_rows_table(const struct jit_rows *j, const struct jit_piece *piece, size_t n_pieces,
	size_t n_bytes_max, struct unwind_table **ret_table)
{
	struct segments segments;
	struct table_rows rows;
	uint64_t gap = GAP_BYTES;

	while (!divide(piece, n_pieces, gap, &segments)) {
		if (gap == GAP_BYTES_MAX)
			return -E2BIG;
		gap *= 4;
	}
	if (segments.n == 0)
		return -EBADMSG;
	int r = table_rows_begin(&rows, n_bytes_max);
	if (r == 0)
		r = add_pieces(&rows, j, piece, n_pieces, &segments);
	if (r == 0)
		r = table_rows_pack(&rows, segments.segment, segments.n, ret_table);
	table_rows_clear(&rows);
	return r;
}

void jit_rows_clear(struct jit_rows *j)
{
	table_rows_clear(&j->rules);
	free(j->row);
	*j = (struct jit_rows){};
}
