/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Reads with pread, so that a shared descriptor keeps its position, and a file that shrinks
 * meanwhile just ends instead of killing us.
 */

#include "daemon/namer/text_lines.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "proto/base/digit.h"

/* Make room, and read what fits. */
static int lines_fill(struct text_lines *t)
{
	memmove(t->buffer, t->buffer + t->start, t->end - t->start);
	t->end -= t->start;
	t->start = 0;
	if (t->end == sizeof(t->buffer)) {
		t->end = 0;
		t->skipping = t->skipped = true;
	}
	if (t->offset >= TEXT_LINES_BYTES_MAX)
		return TEXT_LINES_OVERSIZE;

	ssize_t n;
	do
		n = pread(t->fd, t->buffer + t->end, sizeof(t->buffer) - t->end, (off_t)t->offset);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	if (n == 0)
		return TEXT_LINES_END;

	t->offset += (uint64_t)n;
	t->end += (size_t)n;
	return 0;
}

/* A line at the end of the file that has no newline. */
static bool has_rest(const struct text_lines *t)
{
	return t->takes_rest && t->end > t->start && t->end < sizeof(t->buffer) && !t->skipping;
}

static int take_rest(struct text_lines *t, char **ret_line)
{
	t->buffer[t->end] = '\0';
	*ret_line = t->buffer + t->start;
	t->start = t->end;
	t->took_rest = true;
	return 0;
}

int text_lines_next(struct text_lines *t, char **ret_line)
{
	for (;;) {
		char *line = t->buffer + t->start;
		char *newline = memchr(line, '\n', t->end - t->start);
		if (!newline) {
			int r = lines_fill(t);
			if (r == TEXT_LINES_END && has_rest(t))
				return take_rest(t, ret_line);
			if (r)
				return r;
			continue;
		}

		t->start = (size_t)(newline - t->buffer) + 1;
		if (t->skipping) {
			t->skipping = false;
			continue;
		}
		*newline = '\0';
		*ret_line = line;
		return 0;
	}
}

const char *text_hexadecimal(const char *text, uint64_t *ret_value)
{
	uint64_t value = 0;

	if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
		text += 2;
	const char *digits = text;
	for (int digit; (digit = digit_value(*text)) >= 0; text++) {
		if (value >> 60)
			return NULL;
		value = value << 4 | (uint64_t)digit;
	}
	if (text == digits || (*text != ' ' && *text != '\t'))
		return NULL;

	*ret_value = value;
	return text + strspn(text, " \t");
}
