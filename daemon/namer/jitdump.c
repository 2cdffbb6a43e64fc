/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* A jitdump is a log: code loaded, code moved, lines of the code that is loaded next. It is read
 * from start to end. The end may be inside a record, since its writer may still run; complete records
 * count, and reading continues behind them. As in a perf map, the last record over an address names it,
 * from its time on. The code itself, which is most of the file, is skipped. No record reports that code
 * is gone; after a CLOSE there are no records.
 *
 *      header │ DEBUG_INFO, UNWINDING_INFO of a │ LOAD a, code │ LOAD b, code │ MOVE a │ …
 *
 * Source: Linux tools/perf/Documentation/jitdump-specification.txt, version 2, and
 * tools/perf/util/jitdump.h (a file name of one byte 0xff: the same as before).
 */

#include "daemon/namer/growing.h"

#include <byteswap.h>
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/namer/jit_table.h"
#include "daemon/namer/sort.h"
#include "proto/base/hash_table.h"
#include "proto/base/memory.h"

#define JITDUMP_MAGIC 0x4A695444u /* "JiTD" */
#define JITDUMP_VERSION 1u

#define HEADER_BYTES 40u
#define PREFIX_BYTES 16u
#define LOAD_BYTES 56u /* including the prefix, without name and code */
#define MOVE_BYTES 64u
#define DEBUG_BYTES 32u      /* including the prefix, without entries */
#define UNWINDING_BYTES 40u  /* including the prefix, without .eh_frame and .eh_frame_hdr */
#define ENTRY_BYTES 16u      /* without the file name */
#define TEXT_BYTES_MAX 8192u /* of a function or file name, before it is cut */
#define WINDOW_BYTES (64u << 10)
/* Times are the processor's own, which others cannot convert. */
#define FLAG_ARCH_TIMESTAMP 1u

/* The machine of a dump whose writer leaves it 0, as CPython 3.13 does: this one. */
#if defined(__x86_64__)
#define OWN_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define OWN_MACHINE EM_AARCH64
#else
#define OWN_MACHINE EM_RISCV
#endif

enum record_type {
	RECORD_LOAD = 0,
	RECORD_MOVE = 1,
	RECORD_DEBUG = 2,
	RECORD_CLOSE = 3,
	RECORD_UNWINDING = 4,
};

struct jit_line {
	uint64_t offset; /* from the start of the code */
	const char *source;
	uint32_t line;
};

struct jit_code {
	uint64_t start, index;
	const char *name;
	uint32_t first_line, n_lines;
	struct jit_span rows;
};

struct jit_lines {
	struct jit_code *code;
	struct jit_line *line;
	size_t n_code, code_size, n_lines, line_size;
};

/* The newest code with an index, which a MOVE refers to. */
struct moved {
	uint64_t index;
	uint32_t code;
	UT_hash_handle hh;
};

struct jitdump {
	int fd;
	bool swapped;
	bool closed, timed;
	struct growing *growing; /* the dump that is read */
	struct jit_lines lines;
	struct moved *by_index;
	/* Lines for the next code loaded at that address. */
	uint64_t lines_start;
	uint32_t first_line, n_lines;
	/* The .eh_frame of the next code loaded. */
	uint8_t *unwinding;
	size_t n_unwinding;
	uint16_t machine; /* 0: some writers do not say */
	struct jit_rows rows;
	/* The part of the file that is in memory. */
	uint64_t window_offset;
	size_t window_filled;
	uint8_t *window; /* while it is read */
};

/* Bytes [offset, offset + n) of the file, n up to WINDOW_BYTES. NULL: the file is shorter. */
static const uint8_t *dump_at(struct jitdump *d, uint64_t offset, size_t n)
{
	if (n > WINDOW_BYTES || offset > IMAGE_FILE_BYTES_MAX)
		return NULL;

	if (offset < d->window_offset || offset - d->window_offset > d->window_filled ||
		d->window_filled - (offset - d->window_offset) < n) {
		d->window_offset = offset;
		d->window_filled = 0;
		while (d->window_filled < WINDOW_BYTES) {
			ssize_t got = pread(d->fd, d->window + d->window_filled,
				WINDOW_BYTES - d->window_filled,
				(off_t)(offset + d->window_filled));
			if (got < 0 && errno == EINTR)
				continue;
			if (got <= 0)
				break;
			d->window_filled += (size_t)got;
		}
		if (d->window_filled < n)
			return NULL;
	}
	return d->window + (offset - d->window_offset);
}

static uint32_t dump_u32(const struct jitdump *d, const uint8_t *p)
{
	uint32_t value;
	memcpy(&value, p, sizeof(value));
	return d->swapped ? bswap_32(value) : value;
}

static uint64_t dump_u64(const struct jitdump *d, const uint8_t *p)
{
	uint64_t value;
	memcpy(&value, p, sizeof(value));
	return d->swapped ? bswap_64(value) : value;
}

/* A NUL-terminated text before `end`, up to TEXT_BYTES_MAX long. */
static const char *dump_text(struct jitdump *d, uint64_t offset, uint64_t end, size_t *ret_length)
{
	if (offset >= end)
		return NULL;

	size_t room = end - offset < TEXT_BYTES_MAX ? (size_t)(end - offset) : TEXT_BYTES_MAX;
	const uint8_t *text = dump_at(d, offset, room);
	const uint8_t *nul = text ? memchr(text, '\0', room) : NULL;
	if (!nul)
		return NULL;

	*ret_length = (size_t)(nul - text);
	return (const char *)text;
}

static int array_grow(void **array, size_t n, size_t *size, size_t bytes)
{
	if (n >= IMAGE_MAP_LINES_MAX)
		return IMAGE_OVERSIZE;
	if (n < *size)
		return 0;

	size_t more = *size ? *size * 2 : 64;
	void *grown = reallocarray(*array, more, bytes);
	if (!grown)
		return -ENOMEM;
	*array = grown;
	*size = more;
	return 0;
}

/* Code is at [code.start, code.start + size) from then on. */
static int dump_add_code(
	struct jitdump *d, const struct jit_code *code, uint64_t size, uint64_t from_ns)
{
	struct jit_lines *j = &d->lines;
	uint64_t end;

	if (!size || __builtin_add_overflow(code->start, size, &end))
		return 0;

	void *array = j->code;
	int r = array_grow(&array, j->n_code, &j->code_size, sizeof(*j->code));
	j->code = array;
	if (r)
		return r;
	uint32_t tag = (uint32_t)j->n_code;
	j->code[j->n_code++] = *code;

	struct moved *moved;
	HASH_FIND(hh, d->by_index, &code->index, sizeof(code->index), moved);
	if (!moved) {
		moved = calloc(1, sizeof(*moved));
		if (!moved)
			return -ENOMEM;
		moved->index = code->index;
		HASH_ADD(hh, d->by_index, index, sizeof(moved->index), moved);
		if (!moved->hh.tbl) {
			free(moved);
			return -ENOMEM;
		}
	}
	moved->code = tag;

	r = history_add(&d->growing->history,
		(struct generated){.start = code->start,
			.end = end,
			.name = code->name,
			.from_ns = from_ns,
			.tag = tag},
		NULL);
	return r == HISTORY_FULL ? IMAGE_OVERSIZE : r;
}

static uint64_t record_time_ns(const struct jitdump *d, const uint8_t *record)
{
	return d->timed ? dump_u64(d, record + 8) : 0;
}

static int line_compare(const void *a, const void *b)
{
	const struct jit_line *x = a, *y = b;

	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static void drop_unwinding(struct jitdump *d)
{
	free(d->unwinding);
	d->unwinding = NULL;
	d->n_unwinding = 0;
}

/* The unwinding record that was read last describes this code. */
static int take_unwinding(struct jitdump *d, struct jit_code *code, uint64_t size)
{
	uint64_t end;

	if (!d->n_unwinding || __builtin_add_overflow(code->start, size, &end))
		return 0;
	return jit_rows_take(&d->rows, d->machine ? d->machine : OWN_MACHINE, d->unwinding,
		d->n_unwinding, code->start, size, &code->rows);
}

static int dump_load(struct jitdump *d, uint64_t at, uint64_t end)
{
	const uint8_t *p = end - at >= LOAD_BYTES ? dump_at(d, at, LOAD_BYTES) : NULL;
	if (!p)
		return 0;

	struct jit_code code = {.start = dump_u64(d, p + 32), .index = dump_u64(d, p + 48)};
	uint64_t size = dump_u64(d, p + 40), from_ns = record_time_ns(d, p);
	size_t length;
	const char *name = dump_text(d, at + LOAD_BYTES, end, &length);
	if (!name)
		return 0;
	code.name = length ? names_copy(&d->growing->names, name, length) : NULL;
	if (length && !code.name)
		return IMAGE_OVERSIZE;

	if (d->n_lines && d->lines_start == code.start) {
		code.first_line = d->first_line;
		code.n_lines = d->n_lines;
		d->n_lines = 0;
	}
	int r = take_unwinding(d, &code, size);
	return r < 0 ? r : dump_add_code(d, &code, size, from_ns);
}

static int dump_move(struct jitdump *d, uint64_t at, uint64_t end)
{
	const uint8_t *p = end - at >= MOVE_BYTES ? dump_at(d, at, MOVE_BYTES) : NULL;
	if (!p)
		return 0;

	uint64_t index = dump_u64(d, p + 56);
	struct moved *moved;
	HASH_FIND(hh, d->by_index, &index, sizeof(index), moved);
	if (!moved)
		return 0;

	struct jit_code code = d->lines.code[moved->code];
	code.start = dump_u64(d, p + 40);
	return dump_add_code(d, &code, dump_u64(d, p + 48), record_time_ns(d, p));
}

/* The source file name of an entry; `previous` if it is the same. */
static const char *entry_source(
	struct jitdump *d, const char *name, size_t length, const char *previous)
{
	if (length == 1 && name[0] == '\xff')
		return previous;
	if (previous && strlen(previous) == length && memcmp(previous, name, length) == 0)
		return previous;
	return names_copy(&d->growing->names, name, length);
}

static int dump_debug(struct jitdump *d, uint64_t at, uint64_t end)
{
	struct jit_lines *j = &d->lines;
	const uint8_t *p = end - at >= DEBUG_BYTES ? dump_at(d, at, DEBUG_BYTES) : NULL;
	if (!p)
		return 0;

	d->lines_start = dump_u64(d, p + 16);
	d->first_line = (uint32_t)j->n_lines;
	d->n_lines = 0;
	uint64_t n = dump_u64(d, p + 24);
	const char *source = NULL;

	at += DEBUG_BYTES;
	for (uint64_t i = 0; i < n && end - at > ENTRY_BYTES; i++) {
		p = dump_at(d, at, ENTRY_BYTES);
		if (!p)
			break;
		uint64_t addr = dump_u64(d, p);
		uint32_t number = dump_u32(d, p + 8);

		size_t length;
		const char *name = dump_text(d, at + ENTRY_BYTES, end, &length);
		if (!name)
			break;
		at += ENTRY_BYTES + length + 1;
		source = entry_source(d, name, length, source);
		if (addr < d->lines_start)
			continue;

		void *array = j->line;
		int r = array_grow(&array, j->n_lines, &j->line_size, sizeof(*j->line));
		j->line = array;
		if (r)
			return r;
		j->line[j->n_lines++] = (struct jit_line){addr - d->lines_start, source, number};
		d->n_lines++;
	}
	if (d->n_lines)
		qsort(j->line + d->first_line, d->n_lines, sizeof(*j->line), line_compare);
	return 0;
}

/* .eh_frame, then .eh_frame_hdr, which only repeats where its entries are. */
static int dump_unwinding(struct jitdump *d, uint64_t at, uint64_t end)
{
	drop_unwinding(d);
	const uint8_t *p = end - at >= UNWINDING_BYTES ? dump_at(d, at, UNWINDING_BYTES) : NULL;
	if (!p || d->swapped)
		return 0;

	uint64_t n = dump_u64(d, p + 16), n_head = dump_u64(d, p + 24);
	if (n > end - at - UNWINDING_BYTES || n_head >= n || n - n_head > JIT_UNWINDING_BYTES_MAX)
		return 0;
	p = dump_at(d, at + UNWINDING_BYTES, (size_t)(n - n_head));
	if (!p)
		return 0;
	d->unwinding = malloc((size_t)(n - n_head));
	if (!d->unwinding)
		return -ENOMEM;
	d->n_unwinding = (size_t)(n - n_head);
	memcpy(d->unwinding, p, d->n_unwinding);
	return 0;
}

static int dump_header(struct jitdump *d, uint64_t *ret_end)
{
	const uint8_t *p = dump_at(d, 0, HEADER_BYTES);
	if (!p)
		return IMAGE_MALFORMED;

	d->swapped = false;
	if (dump_u32(d, p) != JITDUMP_MAGIC)
		d->swapped = true;
	uint32_t size = dump_u32(d, p + 8);
	if (dump_u32(d, p) != JITDUMP_MAGIC || dump_u32(d, p + 4) != JITDUMP_VERSION ||
		size < HEADER_BYTES)
		return IMAGE_MALFORMED;

	d->machine = (uint16_t)dump_u32(d, p + 12);
	d->timed = !(dump_u64(d, p + 32) & FLAG_ARCH_TIMESTAMP);
	*ret_end = size;
	return 0;
}

static int dump_record(struct jitdump *d, uint32_t type, uint64_t at, uint64_t end)
{
	int r;

	switch (type) {
	case RECORD_LOAD:
		r = dump_load(d, at, end);
		drop_unwinding(d); /* also if its code has no place or no name */
		return r;
	case RECORD_MOVE:
		return dump_move(d, at, end);
	case RECORD_DEBUG:
		return dump_debug(d, at, end);
	case RECORD_UNWINDING:
		return dump_unwinding(d, at, end);
	}
	return 0; /* future types */
}

/* Up to the last complete record. */
static int dump_read(struct jitdump *d, uint64_t *at)
{
	int r = *at ? 0 : dump_header(d, at);

	for (size_t n = 0; r == 0 && !d->closed; n++) {
		const uint8_t *p = dump_at(d, *at, PREFIX_BYTES);
		if (!p)
			return 0;
		uint32_t type = dump_u32(d, p), size = dump_u32(d, p + 4);
		/* A record shorter than its prefix gives no way to find the next one, and may not be
		 * written yet; if its last byte is missing, it is not complete yet. */
		d->closed = type == RECORD_CLOSE;
		if (d->closed || size < PREFIX_BYTES || !dump_at(d, *at + size - 1, 1))
			return 0;
		if (n >= IMAGE_MAP_LINES_MAX)
			return IMAGE_OVERSIZE;
		r = dump_record(d, type, *at, *at + size);
		*at += size;
	}
	return r;
}

/* Forget the indices: those to come are of another run. */
static void forget_indices(struct jitdump *d)
{
	struct moved *moved, *next;

	HASH_ITER (hh, d->by_index, moved, next) {
		HASH_DEL(d->by_index, moved);
		free(moved);
	}
}

int jitdump_read_on(struct growing *g, int fd)
{
	struct jitdump *d = g->dump;
	_cleanup_(freep) uint8_t *window = malloc(WINDOW_BYTES);
	if (!window)
		return -ENOMEM;

	read_mark_check(&g->read, fd);
	uint64_t at = g->read.at;
	if (at == 0) { /* rewritten */
		forget_indices(d);
		drop_unwinding(d);
		d->n_lines = 0;
		d->closed = false;
	}
	d->fd = fd;
	d->window = window;
	d->window_offset = d->window_filled = 0;
	int r = dump_read(d, &at);
	d->window = NULL;
	d->fd = -1;
	read_mark_note(&g->read, fd, r == IMAGE_MALFORMED ? 0 : at);
	/* the file was a dump, and becomes another dump */
	return r == IMAGE_MALFORMED && g->history.n > 0 ? 0 : r;
}

struct jitdump *jitdump_new(struct growing *g)
{
	struct jitdump *d = calloc(1, sizeof(*d));

	if (d)
		d->growing = g;
	return d;
}

void jitdump_find(const struct jitdump *d, uint32_t tag, uint64_t addr, struct image_place *place)
{
	const struct jit_lines *j = &d->lines;
	const struct jit_code *code = &j->code[tag];
	const struct jit_line *line = code->n_lines ? j->line + code->first_line : NULL;
	size_t low = 0, high = code->n_lines;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (line[middle].offset <= addr - code->start)
			low = middle + 1;
		else
			high = middle;
	}
	if (low) {
		place->source = line[low - 1].source;
		place->line = line[low - 1].line;
	}
}

/* --- unwinding -------------------------------------------------------------------------------- */

static int compare_addresses(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Addresses at which other code may begin, in order. */
static uint64_t *list_bounds(const struct history *h)
{
	uint64_t *bound = calloc(h->n ? 2 * (size_t)h->n : 1, sizeof(*bound));

	for (uint32_t i = 0; bound && i < h->n; i++) {
		bound[2 * i] = h->code[i].start;
		bound[2 * i + 1] = h->code[i].end;
	}
	if (bound)
		sort_items(bound, 2 * (size_t)h->n, sizeof(*bound), compare_addresses);
	return bound;
}

/* The code that is valid now, piece by piece. */
static size_t list_pieces(const struct jitdump *d, const struct history *h, const uint64_t *bound,
	struct jit_piece *ret_piece)
{
	size_t n = 0;

	for (size_t i = 0; i + 1 < 2 * (size_t)h->n; i++) {
		const struct generated *g =
			bound[i] < bound[i + 1] ? history_find(h, bound[i], UINT32_MAX) : NULL;
		if (g)
			ret_piece[n++] = (struct jit_piece){.start = bound[i],
				.end = bound[i + 1],
				.origin = g->start,
				.span = d->lines.code[g->tag].rows};
	}
	return n;
}

int jitdump_table(const struct jitdump *d, const struct history *h, uint16_t machine,
	size_t n_bytes_max, struct unwind_table **ret_table)
{
	_cleanup_(freep) struct jit_piece *piece = NULL;
	_cleanup_(freep) uint64_t *bound = NULL;

	if (d->rows.n_rows == 0 || machine != (d->machine ? d->machine : OWN_MACHINE))
		return -EBADMSG;
	bound = list_bounds(h);
	piece = calloc(2 * (size_t)h->n, sizeof(*piece));
	if (!bound || !piece)
		return -ENOMEM;
	return jit_rows_table(
		&d->rows, piece, list_pieces(d, h, bound, piece), n_bytes_max, ret_table);
}

struct jitdump *jitdump_free(struct jitdump *d)
{
	if (!d)
		return NULL;
	forget_indices(d);
	drop_unwinding(d);
	jit_rows_clear(&d->rows);
	free(d->lines.code);
	free(d->lines.line);
	free(d);
	return NULL;
}
