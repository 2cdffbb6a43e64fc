/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Words of an -e argument, and errors that name their column. */

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/pmu/event/event_private.h"

int event_fail(const struct event_scan *s, int outcome, const char *at, const char *format, ...)
{
	long column = (s->pinned ? s->pinned : at) - s->text + 1;
	int n = snprintf(s->error->text, sizeof(s->error->text), "column %ld: ", column);
	va_list list;
	va_start(list, format);
	vsnprintf(s->error->text + n, sizeof(s->error->text) - (size_t)n, format, list);
	va_end(list);

	for (char *c = s->error->text; *c; c++)
		if (iscntrl((unsigned char)*c))
			*c = '?';
	return outcome;
}

bool event_word_is(struct event_word w, const char *text)
{
	return w.start && strlen(text) == w.n && memcmp(w.start, text, w.n) == 0;
}

bool event_word_copy(struct event_word w, char *buffer, size_t size)
{
	if (w.n >= size)
		return false;
	memcpy(buffer, w.start, w.n);
	buffer[w.n] = '\0';
	return true;
}

bool event_word_hex(struct event_word w, uint64_t *ret_number)
{
	char text[17], *end;
	if (w.n == 0 || !isxdigit((unsigned char)w.start[0]) ||
		!event_word_copy(w, text, sizeof(text)))
		return false;
	uint64_t number = strtoull(text, &end, 16);
	/* strtoull would take a second "0x"; we have stripped the only one that is allowed. */
	if (*end || strpbrk(text, "xX"))
		return false;
	*ret_number = number;
	return true;
}

bool event_word_number(struct event_word w, uint64_t *ret_number)
{
	if (w.n > 2 && w.start[0] == '0' && (w.start[1] == 'x' || w.start[1] == 'X'))
		return event_word_hex((struct event_word){w.start + 2, w.n - 2}, ret_number);

	uint64_t number = 0;
	for (size_t i = 0; i < w.n; i++) {
		if (!isdigit((unsigned char)w.start[i]) ||
			__builtin_mul_overflow(number, 10u, &number) ||
			__builtin_add_overflow(number, (uint64_t)(w.start[i] - '0'), &number))
			return false;
	}
	if (w.n == 0)
		return false;
	*ret_number = number;
	return true;
}
