/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* A JIT compiler appends a line for each function that it makes; if code is replaced by other code
 * at the same address, the later line is valid. JIT names are shown as they are, except mangled
 * ones.
 *
 * Source: Linux tools/perf/Documentation/jit-interface.txt: "START SIZE symbolname", both
 * hexadecimal without 0x (some write it anyway), the name is the rest of the line.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/namer/image_private.h"
#include "daemon/namer/text_lines.h"

static bool line_parse(const char *text, struct span *ret_span)
{
	uint64_t start, size, end;

	const char *rest = text_hexadecimal(text, &start);
	rest = rest ? text_hexadecimal(rest, &size) : NULL;
	if (!rest || !*rest || !size || __builtin_add_overflow(start, size, &end))
		return false;

	*ret_span = (struct span){.start = start, .end = end, .name = rest};
	return true;
}

static int map_read(struct image *image, struct text_lines *lines)
{
	size_t n_lines = 0, n_bad = 0;
	char *text;

	int r;
	while ((r = text_lines_next(lines, &text)) == 0) {
		struct span span;
		if (++n_lines > IMAGE_MAP_LINES_MAX)
			return IMAGE_OVERSIZE;
		if (!line_parse(text, &span)) {
			n_bad++;
			continue;
		}
		span.name = names_copy(&image->names, span.name, strcspn(span.name, "\r"));
		if (!span.name)
			return IMAGE_OVERSIZE;
		r = spans_add(&image->symbols, span);
		if (r)
			return r == SPANS_FULL ? IMAGE_OVERSIZE : r;
	}
	if (r == TEXT_LINES_OVERSIZE)
		return IMAGE_OVERSIZE;
	if (r != TEXT_LINES_END)
		return r;
	return n_lines && n_bad == n_lines ? IMAGE_MALFORMED : 0;
}

int image_open_perf_map(int fd, struct image **ret_image)
{
	_cleanup_(freep) struct text_lines *lines = calloc(1, sizeof(*lines));
	_cleanup_(image_freep) struct image *image = image_new();
	if (!lines || !image)
		return -ENOMEM;
	lines->fd = fd;
	lines->takes_rest = true; /* some compilers write no last newline */

	int r = map_read(image, lines);
	if (r == 0)
		r = spans_seal(&image->symbols);
	if (r)
		return r;

	*ret_image = TAKE_PTR(image);
	return 0;
}
