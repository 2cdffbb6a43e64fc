/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "client/show/ascii.h"

#include <stdlib.h>
#include <string.h>

#include "client/show/escape.h"
#include "proto/base/memory.h"

/* Marks in ASCII, of one column each except for ±, so that tables stay straight. */
static const struct mark {
	uint32_t point;
	const char *text;
} marks[] = {
	{0xb5, "u"},    /* µ */
	{0xb1, "+-"},   /* ± */
	{0xb7, "*"},    /* · */
	{0xd7, "x"},    /* × */
	{0x2013, "-"},  /* – */
	{0x2014, "-"},  /* — */
	{0x2018, "'"},  /* ‘ */
	{0x2019, "'"},  /* ’ */
	{0x201c, "\""}, /* “ */
	{0x201d, "\""}, /* ” */
	{0x2026, "~"},  /* … */
	{0x2192, ">"},  /* → */
	{0x2212, "-"},  /* − */
};

bool ascii_is_wanted(void)
{
	static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		const char *value = getenv(names[i]);
		if (value && *value)
			return !strcasestr(value, "utf-8") && !strcasestr(value, "utf8");
	}
	return true;
}

static size_t write_point(uint32_t point, char ret_text[static ASCII_BYTES_MAX])
{
	for (size_t i = 0; i < sizeof(marks) / sizeof(*marks); i++)
		if (marks[i].point == point) {
			const size_t n = strlen(marks[i].text);
			memcpy(ret_text, marks[i].text, n);
			return n;
		}
	return (size_t)snprintf(ret_text, ASCII_BYTES_MAX, "\\u{%x}", (unsigned)point);
}

/* Bytes of the character that begins with this byte; 0: no character does. */
static size_t length_of(unsigned char lead)
{
	return lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 0;
}

size_t ascii_take(struct ascii *a, char byte, char ret_text[static ASCII_BYTES_MAX])
{
	const bool goes_on = ((unsigned char)byte & 0xc0) == 0x80;
	size_t n = 0;
	if (a->n > 0 && !goes_on) {
		ret_text[n++] = '?';
		a->n = 0;
	}
	if ((unsigned char)byte < 0x80) {
		ret_text[n++] = byte;
		return n;
	}
	if (goes_on == (a->n == 0)) {
		ret_text[n++] = '?';
		return n;
	}
	a->part[a->n++] = byte;
	const size_t length = length_of((unsigned char)a->part[0]);
	if (a->n < length)
		return n;
	uint32_t point;
	const bool is_whole = escape_decode(a->part, a->n, &point) == length;
	a->n = 0;
	if (is_whole && point != ESCAPE_INVALID)
		return n + write_point(point, ret_text);
	ret_text[n++] = '?';
	return n;
}

char *ascii_dup(const char *text)
{
	struct ascii a = {.n = 0};
	char *copy = malloc(strlen(text) * ASCII_BYTES_MAX + 1), *to = copy;
	for (; copy && *text; text++)
		to += ascii_take(&a, *text, to);
	if (copy)
		*to = '\0';
	return copy;
}

void ascii_print(FILE *f, const char *text)
{
	_cleanup_(freep) char *ascii = ascii_is_wanted() ? ascii_dup(text) : NULL;
	const char *printed = ascii ? ascii : text;
	fwrite(printed, 1, strlen(printed), f);
}
