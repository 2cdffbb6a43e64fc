/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Fields of raw codes as data: their bits, their meaning, and for an operation the two fields that it
 * joins. An operation names fields above it, so there are no circles; and each field is joined once at
 * most, so that events and operations are one tree, which selector.c fills.
 */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "platform-db/draft.h"

__attribute__((format(printf, 3, 4))) static int wrong_at(
	const struct build *b, const struct platform_origin *at, const char *format, ...)
{
	char text[256];
	struct reader r = *b->reader;
	va_list list;
	va_start(list, format);
	vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	r.file = at->file;
	return reader_wrong(&r, at->line, "%s", text);
}

/* Parse the number of a bit in "40-44,48" at *at. */
static bool take_bit(const char **at, unsigned *ret_bit)
{
	char *end;
	if (!isdigit((unsigned char)**at))
		return false;
	unsigned long bit = strtoul(*at, &end, 10);
	if (bit > 63)
		return false;
	*at = end;
	*ret_bit = (unsigned)bit;
	return true;
}

/* "40-44", "0-7,32-35": as the kernel's formats are written, lowest bits first. */
static bool bits_parse(const char *text, uint64_t *ret_mask)
{
	uint64_t mask = 0;
	for (const char *at = text;; at++) {
		unsigned low, high;
		if (!take_bit(&at, &low))
			return false;
		high = low;
		if (*at == '-') {
			at++;
			if (!take_bit(&at, &high))
				return false;
		}
		if (high < low || mask >> low)
			return false;
		mask |= UINT64_MAX >> (63 - (high - low)) << low;
		if (!*at)
			break;
		if (*at != ',')
			return false;
	}
	*ret_mask = mask;
	return true;
}

static const struct platform_field *field_find(const struct build *b, const char *name, int *ret_i)
{
	const struct platform_field *f = b->fields.items;
	for (size_t i = 0; i < b->fields.n; i++)
		if (strcmp(f[i].name, name) == 0) {
			*ret_i = (int)i;
			return &f[i];
		}
	return NULL;
}

/* "ADD=0x4" */
static int take_value(const struct build *b, const struct quirk *q, const char *text, uint64_t mask,
	struct platform_field_value *ret_value)
{
	const char *equals = strchr(text, '=');
	char name[NAME_BYTES_MAX + 1];
	uint64_t number;
	const int n_bits = __builtin_popcountll(mask);
	if (!equals || equals == text || !code_parse(equals + 1, &number))
		return wrong_at(b, &q->origin,
			"'values' of %s: '%.64s' is not a name and its number, such as ADD=0x4",
			q->name, text);
	if (n_bits < 64 && number >> n_bits)
		return wrong_at(b, &q->origin, "'values' of %s: %.64s does not fit into %d bits",
			q->name, text, n_bits);
	snprintf(name, sizeof(name), "%.*s", (int)(equals - text), text);
	*ret_value = (struct platform_field_value){pool_text(b->reader->pool, name), number};
	return ret_value->name ? 0 : -ENOMEM;
}

static int take_values(const struct build *b, const struct quirk *q, struct platform_field *f)
{
	struct platform_field_value *value =
		pool_take(b->reader->pool, q->values.n * sizeof(*value));
	if (!value)
		return -ENOMEM;
	for (size_t i = 0; i < q->values.n; i++) {
		int error = take_value(b, q, q->values.name[i], f->mask, &value[i]);
		if (error)
			return error;
	}
	f->value = value;
	f->n_values = q->values.n;
	return 0;
}

static bool is_joined(const struct build *b, int position)
{
	const struct platform_field *f = b->fields.items;
	for (size_t i = 0; i < b->fields.n; i++)
		if (f[i].kind == PLATFORM_FIELD_OPERATION &&
			(f[i].joins[0] == position || f[i].joins[1] == position))
			return true;
	return false;
}

static int take_joins(const struct build *b, const struct quirk *q, struct platform_field *f)
{
	if (f->kind != PLATFORM_FIELD_OPERATION && q->joins.n > 0)
		return wrong_at(b, &q->origin, "%s joins fields, but has no operation", q->name);
	if (f->kind != PLATFORM_FIELD_OPERATION)
		return 0;
	if (q->joins.n != 2 || q->values.n == 0)
		return wrong_at(b, &q->origin,
			"the operation %s needs the two fields that it 'joins', and 'values'",
			q->name);
	for (size_t i = 0; i < 2; i++) {
		const struct platform_field *of = field_find(b, q->joins.name[i], &f->joins[i]);
		if (!of ||
			(of->kind != PLATFORM_FIELD_EVENT && of->kind != PLATFORM_FIELD_OPERATION))
			return wrong_at(b, &q->origin,
				"%s joins %s, which is not an event or operation above it", q->name,
				q->joins.name[i]);
		if (is_joined(b, f->joins[i]) || f->joins[0] == f->joins[1])
			return wrong_at(b, &q->origin, "%s is joined twice", q->joins.name[i]);
	}
	return 0;
}

int field_apply(struct build *b, const struct quirk *q)
{
	const struct platform_field *have = b->fields.items;
	struct platform_field f = {.name = q->name,
		.kind = (enum platform_field_kind)q->holds,
		.says = q->says ? q->says : "",
		.joins = {-1, -1},
		.origin = q->origin};
	if (b->fields.n == PLATFORM_FIELDS_MAX)
		return wrong_at(b, &q->origin, "more than %d fields", PLATFORM_FIELDS_MAX);
	if (!bits_parse(q->bits_text, &f.mask))
		return wrong_at(b, &q->origin,
			"'bits' of %s are not ranges of bits below 64, lowest first, such as "
			"\"0-7,32-35\"",
			q->name);
	for (size_t i = 0; i < b->fields.n; i++)
		if (strcasecmp(have[i].name, f.name) == 0 || have[i].mask & f.mask)
			return wrong_at(b, &q->origin, "the field %s has the name or bits of %s",
				f.name, have[i].name);
	int error = take_values(b, q, &f);
	if (!error)
		error = take_joins(b, q, &f);
	return error ? error : list_append(&b->fields, &f, 1);
}

int fields_check(const struct build *b)
{
	const struct platform_field *f = b->fields.items;
	const struct platform_field *top = NULL;
	if (*b->platform->selector && b->fields.n == 0)
		return wrong_at(b, &b->platform->origin, "the selector '%s' has no fields",
			b->platform->selector);
	for (size_t i = 0; i < b->fields.n; i++) {
		bool combines =
			f[i].kind == PLATFORM_FIELD_EVENT || f[i].kind == PLATFORM_FIELD_OPERATION;
		if (!combines || is_joined(b, (int)i))
			continue;
		if (top)
			return wrong_at(b, &f[i].origin,
				"no operation joins %s or %s: only one field may be left as the "
				"result",
				top->name, f[i].name);
		top = &f[i];
	}
	return 0;
}
