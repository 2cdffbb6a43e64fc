/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* A JIT compiler appends a line for each function that it makes; if code is replaced by other code
 * at the same address, the later line is valid from then on. Some rewrite the whole file instead. JIT names
 * are shown unchanged, except mangled ones.
 *
 * Source: Linux tools/perf/Documentation/jit-interface.txt: "START SIZE symbolname", both
 * hexadecimal without 0x (some write it anyway), the name is the remainder of the line.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/namer/growing.h"
#include "daemon/namer/text_lines.h"
#include "proto/base/memory.h"

static bool line_parse(char *text, struct generated *ret_code)
{
	uint64_t start, size, end;

	text[strcspn(text, "\r")] = '\0';
	const char *name = text_hexadecimal(text, &start);
	name = name ? text_hexadecimal(name, &size) : NULL;
	if (!name || !*name || !size || __builtin_add_overflow(start, size, &end))
		return false;

	*ret_code = (struct generated){.start = start, .end = end, .name = name};
	return true;
}

static int line_add(struct growing *g, struct generated code)
{
	if (g->history.n >= IMAGE_MAP_LINES_MAX)
		return IMAGE_OVERSIZE;
	int r = history_add(&g->history, code, &g->names);
	return r == HISTORY_FULL ? IMAGE_OVERSIZE : r;
}

static int map_read(struct growing *g, struct text_lines *lines, uint64_t *ret_at)
{
	size_t n_lines = 0, n_bad = 0;
	char *text;

	int r;
	while ((r = text_lines_next(lines, &text)) == 0) {
		struct generated code;
		uint32_t n = g->history.n;
		if (++n_lines > IMAGE_MAP_LINES_MAX)
			return IMAGE_OVERSIZE;
		if (!lines->took_rest) {
			const char *end = lines->buffer + lines->start - 1;
			read_mark_take(&g->read, text, (size_t)(end - text));
			read_mark_take(&g->read, "\n", 1);
		}
		bool good = line_parse(text, &code);
		n_bad += !good;
		r = good ? line_add(g, code) : 0;
		if (r)
			return r;
		if (lines->took_rest) {
			g->read.cut = g->history.n > n;
			continue;
		}
		*ret_at = lines->offset - (lines->end - lines->start);
	}
	if (r == TEXT_LINES_OVERSIZE)
		return IMAGE_OVERSIZE;
	if (r != TEXT_LINES_END)
		return r;
	return n_lines && n_bad == n_lines && g->history.n == 0 ? IMAGE_MALFORMED : 0;
}

int perf_map_read_on(struct growing *g, int fd)
{
	_cleanup_(freep) struct text_lines *lines = calloc(1, sizeof(*lines));
	if (!lines)
		return -ENOMEM;

	if (g->read.cut)
		history_drop_last(&g->history);
	g->read.cut = false;
	read_mark_check(&g->read, fd);
	uint64_t at = g->read.at;
	lines->fd = fd;
	lines->offset = at;
	lines->takes_rest = true; /* some compilers write no last newline */
	int r = map_read(g, lines, &at);
	if (r || lines->skipped)
		read_mark_note(&g->read, fd, at);
	else
		g->read.at = at;
	return r;
}
