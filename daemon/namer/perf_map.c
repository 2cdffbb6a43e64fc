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

#include "daemon/namer/image_private.h"
#include "daemon/namer/text_lines.h"

static bool line_parse(char *text, struct generated *ret_code)
{
	uint64_t start, size, end;

	text[strcspn(text, "\r")] = '\0';
	const char *rest = text_hexadecimal(text, &start);
	rest = rest ? text_hexadecimal(rest, &size) : NULL;
	if (!rest || !*rest || !size || __builtin_add_overflow(start, size, &end))
		return false;

	*ret_code = (struct generated){.start = start, .end = end, .name = rest};
	return true;
}

static int line_add(struct image *image, struct generated code)
{
	if (image->history.n >= IMAGE_MAP_LINES_MAX)
		return IMAGE_OVERSIZE;
	int r = history_add(&image->history, code, &image->names);
	return r == HISTORY_FULL ? IMAGE_OVERSIZE : r;
}

static int map_read(struct image *image, struct text_lines *lines, uint64_t *ret_at)
{
	size_t n_lines = 0, n_bad = 0;
	char *text;

	int r;
	while ((r = text_lines_next(lines, &text)) == 0) {
		struct generated code;
		uint32_t n = image->history.n;
		if (++n_lines > IMAGE_MAP_LINES_MAX)
			return IMAGE_OVERSIZE;
		if (!lines->took_rest) {
			const char *end = lines->buffer + lines->start - 1;
			read_mark_take(&image->read, text, (size_t)(end - text));
			read_mark_take(&image->read, "\n", 1);
		}
		bool good = line_parse(text, &code);
		n_bad += !good;
		r = good ? line_add(image, code) : 0;
		if (r)
			return r;
		if (lines->took_rest) {
			image->read.cut = image->history.n > n;
			continue;
		}
		*ret_at = lines->offset - (lines->end - lines->start);
	}
	if (r == TEXT_LINES_OVERSIZE)
		return IMAGE_OVERSIZE;
	if (r != TEXT_LINES_END)
		return r;
	return n_lines && n_bad == n_lines && image->history.n == 0 ? IMAGE_MALFORMED : 0;
}

int perf_map_read_on(struct image *image, int fd)
{
	_cleanup_(freep) struct text_lines *lines = calloc(1, sizeof(*lines));
	if (!lines)
		return -ENOMEM;

	if (image->read.cut)
		history_drop_last(&image->history);
	image->read.cut = false;
	read_mark_check(&image->read, fd);
	uint64_t at = image->read.at;
	lines->fd = fd;
	lines->offset = at;
	lines->takes_rest = true; /* some compilers write no last newline */
	int r = map_read(image, lines, &at);
	if (r || lines->skipped)
		read_mark_note(&image->read, fd, at);
	else
		image->read.at = at;
	return r;
}

int image_open_perf_map(int fd, struct image **ret_image)
{
	_cleanup_(image_freep) struct image *image = image_new();
	if (!image)
		return -ENOMEM;

	int r = perf_map_read_on(image, fd);
	if (r)
		return r;

	*ret_image = TAKE_PTR(image);
	return 0;
}
