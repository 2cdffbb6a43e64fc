/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Everything goes through one strict decoder: a character is shown as it is, or as its number. The
 * list of characters not shown is short and errs on the side of numbers; letters of all scripts
 * pass. Markup differs only in its five special characters.
 */
#include "client/show/escape.h"

#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "proto/base/memory.h"

/* Source: The Unicode Standard 15, table 3-7 (well-formed UTF-8). */
size_t escape_decode(const char *p, size_t n, uint32_t *ret_point)
{
	const uint8_t *b = (const uint8_t *)p;
	uint32_t point = b[0], least;
	size_t length;

	*ret_point = ESCAPE_INVALID;
	if (b[0] < 0x80) {
		*ret_point = b[0];
		return 1;
	}
	if (b[0] >= 0xc2 && b[0] <= 0xdf)
		length = 2, least = 0x80, point &= 0x1f;
	else if (b[0] >= 0xe0 && b[0] <= 0xef)
		length = 3, least = 0x800, point &= 0x0f;
	else if (b[0] >= 0xf0 && b[0] <= 0xf4)
		length = 4, least = 0x10000, point &= 0x07;
	else
		return 1;
	if (n < length)
		return 1;

	for (size_t i = 1; i < length; i++) {
		if ((b[i] & 0xc0) != 0x80)
			return 1;
		point = point << 6 | (b[i] & 0x3f);
	}
	if (point < least || point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff))
		return 1;
	*ret_point = point;
	return length;
}

bool escape_is_plain(uint32_t point)
{
	/* Controls; bidirectional marks, overrides and isolates; line and paragraph separators;
	 * invisible characters and those that hide others: soft hyphen, zero-width space and
	 * joiners, word joiner and invisible operators, byte-order mark, annotations, tags,
	 * variation selectors, fillers and others without a shape.
	 * Source: Unicode Technical Report 36, section 2; Unicode Standard Annex 9, section 2;
	 * DerivedCoreProperties.txt of Unicode 15, Default_Ignorable_Code_Point. */
	static const struct {
		uint32_t first, last;
	} hidden[] = {
		{0x00, 0x1f},
		{0x7f, 0x9f},
		{0xad, 0xad},
		{0x34f, 0x34f},
		{0x61c, 0x61c},
		{0x115f, 0x1160},
		{0x17b4, 0x17b5},
		{0x180b, 0x180f},
		{0x200b, 0x200f},
		{0x2028, 0x202e},
		{0x2060, 0x206f},
		{0x3164, 0x3164},
		{0xd800, 0xdfff},
		{0xfe00, 0xfe0f},
		{0xfeff, 0xfeff},
		{0xffa0, 0xffa0},
		{0xfff0, 0xfffb},
		{0x1bca0, 0x1bca3},
		{0x1d173, 0x1d17a},
		{0xe0000, 0xe0fff},
	};
	for (size_t i = 0; i < sizeof(hidden) / sizeof(*hidden); i++)
		if (point >= hidden[i].first && point <= hidden[i].last)
			return false;
	/* XML allows no U+FFFE and U+FFFF; the other planes' last two are as meaningless. */
	return point <= 0x10ffff && (point & 0xfffe) != 0xfffe;
}

typedef void emit_plain(FILE *f, const char *p, size_t n);

/* sign: a backslash, as the format has it */
static void escape_with(FILE *f, const char *text, emit_plain *plain, const char *sign)
{
	size_t left = strlen(text);
	while (left > 0) {
		uint32_t point;
		size_t n = escape_decode(text, left, &point);

		if (escape_is_plain(point))
			plain(f, text, n);
		else if (point == ESCAPE_INVALID || point < 0x80)
			fprintf(f, "%sx%02x", sign, (uint8_t)*text);
		else
			fprintf(f, "%su{%x}", sign, point);
		text += n;
		left -= n;
	}
}

static void escape(FILE *f, const char *text, emit_plain *plain)
{
	escape_with(f, text, plain, "\\");
}

static void plain_as_is(FILE *f, const char *p, size_t n)
{
	fwrite(p, 1, n, f);
}

static void plain_markup(FILE *f, const char *p, size_t n)
{
	switch (*p) {
	case '&':
		fputs("&amp;", f);
		break;
	case '<':
		fputs("&lt;", f);
		break;
	case '>':
		fputs("&gt;", f);
		break;
	case '"':
		fputs("&quot;", f);
		break;
	case '\'':
		fputs("&#39;", f);
		break;
	default:
		fwrite(p, 1, n, f);
	}
}

static void plain_script(FILE *f, const char *p, size_t n)
{
	if (strchr("\"\\<>&'", *p))
		fprintf(f, "\\u%04x", (unsigned)*p);
	else
		fwrite(p, 1, n, f);
}

static void plain_folded(FILE *f, const char *p, size_t n)
{
	if (*p == ';')
		fputc(':', f);
	else
		fwrite(p, 1, n, f);
}

static void plain_quoted(FILE *f, const char *p, size_t n)
{
	if (*p == '"')
		fputc('"', f);
	fwrite(p, 1, n, f);
}

void escape_quoted(FILE *f, const char *text)
{
	escape(f, text, plain_quoted);
}

/* Source: RFC 8259, section 7: beyond U+FFFF two halves of UTF-16. */
static void json_escape(FILE *f, uint32_t point)
{
	if (point > 0xffff)
		fprintf(f, "\\u%04x\\u%04x", 0xd7c0 + (point >> 10), 0xdc00 + (point & 0x3ff));
	else
		fprintf(f, "\\u%04x", point);
}

void escape_json(FILE *f, const char *json, size_t n)
{
	while (n > 0) {
		uint32_t point;
		size_t bytes = escape_decode(json, n, &point);

		if (point < 0x7f || escape_is_plain(point) || point == ESCAPE_INVALID)
			fwrite(json, 1, bytes, f);
		else
			json_escape(f, point);
		json += bytes;
		n -= bytes;
	}
}

void escape_terminal(FILE *f, const char *text)
{
	escape(f, text, plain_as_is);
}

void escape_markup(FILE *f, const char *text)
{
	escape(f, text, plain_markup);
}

void escape_script(FILE *f, const char *text)
{
	escape_with(f, text, plain_script, "\\\\");
}

static size_t longest_run(const char *text, char c)
{
	size_t longest = 0, n = 0;
	for (; *text; text++) {
		n = *text == c ? n + 1 : 0;
		longest = n > longest ? n : longest;
	}
	return longest;
}

static void write_fence(FILE *f, size_t n)
{
	while (n-- > 0)
		fputc('`', f);
}

/* The fence is longer than each run of backticks in it. A space at both ends, which is not part of the span, keeps
 * it from backticks there, and what begins and ends with a space from losing these. A backslash does nothing in a
 * span; but a table takes one before a pipe, and some take two for one, so that the pipe would end the cell. */
void escape_markdown(FILE *f, const char *text, bool in_table)
{
	_cleanup_(freep) char *plain = escape_terminal_dup(text);
	if (!plain || !*plain)
		return;
	const size_t n = strlen(plain), fence = longest_run(plain, '`') + 1;
	const bool padded =
		*plain == '`' || plain[n - 1] == '`' || (*plain == ' ' && plain[n - 1] == ' ');
	write_fence(f, fence);
	fputs(padded ? " " : "", f);
	for (const char *c = plain; *c; c++)
		if (*c != '|' || !in_table)
			fputc(*c, f);
		else
			fputs(c > plain && c[-1] == '\\' ? "\\x7c" : "\\|", f);
	fputs(padded ? " " : "", f);
	write_fence(f, fence);
}

void escape_folded(FILE *f, const char *text)
{
	escape(f, text, plain_folded);
}

char *escape_terminal_dup(const char *text)
{
	_cleanup_(freep) char *copy = NULL;
	size_t size;
	FILE *f = open_memstream(&copy, &size);
	if (!f)
		return NULL;
	escape_terminal(f, text);
	if (fclose(f) != 0)
		return NULL;
	return TAKE_PTR(copy);
}

char *escape_utf8_dup(const char *text)
{
	size_t left = strlen(text);
	char *copy = malloc(3 * left + 1); /* U+FFFD takes three bytes instead of one */
	char *p = copy;

	while (copy && left > 0) {
		uint32_t point;
		size_t n = escape_decode(text, left, &point);
		if (point == ESCAPE_INVALID)
			p = mempcpy(p, "\xef\xbf\xbd", 3);
		else
			p = mempcpy(p, text, n);
		text += n;
		left -= n;
	}
	if (copy)
		*p = '\0';
	return copy;
}

/* Outside a UTF-8 locale wcwidth knows no letters; we then assume one column. */
static size_t point_width(uint32_t point)
{
	int n = point < 0x80 ? 1 : wcwidth((wchar_t)point);
	return n < 0 ? 1 : (size_t)n;
}

size_t escape_cut(const char *text, size_t columns)
{
	size_t left = strlen(text), at = 0, used = 0;
	while (left > 0) {
		uint32_t point;
		size_t n = escape_decode(text + at, left, &point);
		used += point_width(point);
		if (used > columns)
			break;
		at += n;
		left -= n;
	}
	return at;
}

size_t escape_width(const char *text)
{
	size_t left = strlen(text), used = 0;
	while (left > 0) {
		uint32_t point;
		size_t n = escape_decode(text, left, &point);
		used += point_width(point);
		text += n;
		left -= n;
	}
	return used;
}

size_t escape_cut_front(const char *text, size_t columns)
{
	size_t width = escape_width(text), left = strlen(text), at = 0;
	while (left > 0 && width > columns) {
		uint32_t point;
		size_t n = escape_decode(text + at, left, &point);
		width -= point_width(point);
		at += n;
		left -= n;
	}
	return at;
}

bool escape_is_path(const char *text)
{
	return *text == '/' && !strchr(text, ' ');
}
