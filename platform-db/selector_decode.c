/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * From a raw code back to words: each field, and for each bank the expression that has this code.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "platform-db/reader.h"
#include "platform-db/selector.h"

/* Append to a text of SELECTOR_TEXT_BYTES, which is cut if it is too long. */
__attribute__((format(printf, 2, 3))) static void append(char *text, const char *format, ...)
{
	size_t n = strlen(text);
	va_list list;
	va_start(list, format);
	vsnprintf(text + n, SELECTOR_TEXT_BYTES - n, format, list);
	va_end(list);
}

bool selector_code_parse(const char *text, uint64_t *ret_code)
{
	char hex[24];
	const char *digits = text + (*text == 'r');
	if (strncmp(digits, "0x", 2) == 0)
		digits += 2;
	return digits > text && snprintf(hex, sizeof(hex), "0x%s", digits) < (int)sizeof(hex) &&
	       code_parse(hex, ret_code);
}

const struct platform_field *selector_field_of(const struct platform *p, unsigned bit)
{
	for (size_t i = 0; i < p->n_fields; i++)
		if (p->field[i].mask >> bit & 1)
			return &p->field[i];
	return NULL;
}

const char *selector_bits_say(uint64_t mask, char buffer[static SELECTOR_BITS_BYTES])
{
	size_t n = 0;
	buffer[0] = '\0';
	while (mask) {
		unsigned low = (unsigned)__builtin_ctzll(mask), high = low;
		while (high < 63 && mask >> (high + 1) & 1)
			high++;
		mask &= high == 63 ? 0 : UINT64_MAX << (high + 1);
		int wrote = high > low ? snprintf(buffer + n, SELECTOR_BITS_BYTES - n, "%s%u-%u",
						 n ? "," : "", high, low)
				       : snprintf(buffer + n, SELECTOR_BITS_BYTES - n, "%s%u",
						 n ? "," : "", low);
		if (wrote < 0 || (size_t)wrote >= SELECTOR_BITS_BYTES - n)
			break;
		n += (size_t)wrote;
	}
	return buffer;
}

/* Is there an event field? Without one, topics are no banks. */
static const struct platform_field *event_field(const struct platform *p)
{
	for (size_t i = 0; i < p->n_fields; i++)
		if (p->field[i].kind == PLATFORM_FIELD_EVENT)
			return &p->field[i];
	return NULL;
}

const char *selector_bank(const struct platform *p, size_t i)
{
	/* Events are sorted by topic. */
	for (size_t e = 0; event_field(p) && e < p->n_events; e++) {
		if (e > 0 && strcmp(p->event[e].topic, p->event[e - 1].topic) == 0)
			continue;
		if (p->event[e].counters && i-- == 0)
			return p->event[e].topic;
	}
	return NULL;
}

static const struct platform_event *by_index(
	const struct platform *p, const char *bank, uint64_t index)
{
	for (size_t i = 0; i < p->n_events; i++)
		if (p->event[i].code == index && strcasecmp(p->event[i].topic, bank) == 0)
			return &p->event[i];
	return NULL;
}

/* --- one field -------------------------------------------------------------------------------- */

static void event_means(const struct platform *p, uint64_t index, char *text)
{
	const char *bank;
	if (index == 0) {
		append(text, "no event");
		return;
	}
	for (size_t i = 0; (bank = selector_bank(p, i)); i++) {
		const struct platform_event *e = by_index(p, bank, index);
		if (e)
			append(text, "%s%s:%s", *text ? ", " : "", bank, e->name);
	}
}

/* Events that have one of the code's bits in the field, and the same bits elsewhere. */
static void set_means(
	const struct platform *p, const struct platform_field *f, uint64_t code, char *text)
{
	for (size_t i = 0; i < p->n_events; i++) {
		uint64_t own = p->event[i].code;
		if (__builtin_popcountll(own & f->mask) == 1 && (own & code & f->mask) &&
			(own & ~f->mask) == (code & ~f->mask))
			append(text, "%s%s", *text ? " or " : "", p->event[i].name);
	}
}

const char *selector_means(const struct platform *p, const struct platform_field *f, uint64_t code,
	char buffer[static SELECTOR_TEXT_BYTES])
{
	uint64_t value = selector_value(f, code);
	buffer[0] = '\0';
	if (f->kind == PLATFORM_FIELD_EVENT)
		event_means(p, value, buffer);
	else if (f->kind == PLATFORM_FIELD_SET)
		set_means(p, f, code, buffer);
	for (size_t i = 0; i < f->n_values && !*buffer; i++)
		if (f->value[i].number == value)
			append(buffer, "%s", f->value[i].name);
	if (f->kind == PLATFORM_FIELD_OPERATION)
		append(buffer, "%sof %s and %s", *buffer ? " " : "unknown, ",
			p->field[f->joins[0]].name, p->field[f->joins[1]].name);
	if (!*buffer)
		append(buffer, "%s", f->says);
	return buffer;
}

/* --- the whole code --------------------------------------------------------------------------- */

struct saying {
	const struct platform *platform;
	const char *bank;
	uint64_t code;
	char *text;
};

/* Does the field, or one that it joins, hold an event? */
static bool is_used(const struct saying *s, const struct platform_field *f)
{
	if (f->kind == PLATFORM_FIELD_EVENT)
		return selector_value(f, s->code) != 0;
	return is_used(s, &s->platform->field[f->joins[0]]) ||
	       is_used(s, &s->platform->field[f->joins[1]]);
}

static char sign_of(const struct platform_field *f, uint64_t value)
{
	static const char *const names[] = {"ADD", "OR", "AND", "XOR"};
	for (size_t i = 0; i < f->n_values; i++)
		for (size_t j = 0; f->value[i].number == value && j < 4; j++)
			if (strcasecmp(f->value[i].name, names[j]) == 0)
				return "+|&^"[j];
	return '\0';
}

/* Write the field's part of the expression. False: it has no meaning in this bank. */
static bool say(const struct saying *s, const struct platform_field *f, bool is_top)
{
	if (f->kind == PLATFORM_FIELD_EVENT) {
		const struct platform_event *e =
			by_index(s->platform, s->bank, selector_value(f, s->code));
		if (e)
			append(s->text, "%s", e->name);
		return e != NULL;
	}
	const struct platform_field *left = &s->platform->field[f->joins[0]];
	const struct platform_field *right = &s->platform->field[f->joins[1]];
	char sign = sign_of(f, selector_value(f, s->code));
	/* AND with an empty result is empty: pass on a single result only if the operation does not
	 * change it. */
	if (!is_used(s, right) && sign && sign != '&')
		return say(s, left, is_top);
	if (!sign || !is_used(s, left) || !is_used(s, right))
		return false;
	append(s->text, "%s", is_top ? "" : "(");
	bool is_whole = say(s, left, false);
	append(s->text, "%c", sign);
	is_whole = is_whole && say(s, right, false);
	append(s->text, "%s", is_top ? "" : ")");
	return is_whole;
}

static uint64_t bits_of_expression(const struct platform *p, const struct platform_field **ret_top)
{
	uint64_t bits = 0;
	for (size_t i = 0; i < p->n_fields; i++)
		if (p->field[i].kind == PLATFORM_FIELD_EVENT ||
			p->field[i].kind == PLATFORM_FIELD_OPERATION) {
			bits |= p->field[i].mask;
			*ret_top = &p->field[i];
		}
	return bits;
}

const char *selector_says(const struct platform *p, const char *bank, uint64_t code,
	char buffer[static SELECTOR_TEXT_BYTES])
{
	const struct platform_field *top = NULL;
	uint64_t bits = bits_of_expression(p, &top);
	buffer[0] = '\0';
	if (!top || code & ~bits)
		return buffer;
	append(buffer, "%s:", bank);
	const struct saying s = {p, bank, code, buffer};
	if (!say(&s, top, true) || strlen(buffer) + 1 == SELECTOR_TEXT_BYTES)
		buffer[0] = '\0';
	return buffer;
}
