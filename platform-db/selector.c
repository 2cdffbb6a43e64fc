/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * An expression becomes a tree, and the tree is laid onto the tree of the selector's fields:
 *
 *        +                      OP_TYPE2
 *      /   \            OP_TYPE0        OP_TYPE1
 *     A     B         EVENT0  EVENT1  EVENT2  EVENT3
 *
 * A part is put as deep as it fits, the first field of an operation first: so the sum of two events needs
 * OP_TYPE0 alone. An event field that stays 0 counts nothing, and an operation that stays 0 returns its
 * first operand. If more than two operands share a sign, all splits are tried, since the order of these
 * operations does not matter.
 */
#include "platform-db/selector.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "platform-db/reader.h"

static const struct {
	char sign;
	const char *name;
} operations[] = {{'+', "ADD"}, {'|', "OR"}, {'&', "AND"}, {'^', "XOR"}};
#define N_OPERATIONS (sizeof(operations) / sizeof(operations[0]))

/* A subexpression: an event, or operands with one sign. */
struct part {
	char sign; /* 0: an event */
	uint64_t index;
	size_t at;                            /* in the text */
	uint8_t operand[SELECTOR_EVENTS_MAX]; /* n_operands parts */
	size_t n_operands;
};

struct composing {
	const struct platform *platform;
	const char *bank, *text;
	const struct platform_field *event; /* the first field for an index; all are alike */
	size_t at;
	/* Each event and each pair of brackets is a part, and so is the whole. */
	struct part part[SELECTOR_EVENTS_MAX * (SELECTOR_DEPTH_MAX + 1)];
	size_t n_parts, n_events;
	uint64_t code, counters;
	struct selector_error *error;
};

__attribute__((format(printf, 3, 4))) static int wrong(
	struct selector_error *e, size_t at, const char *format, ...)
{
	va_list list;
	va_start(list, format);
	vsnprintf(e->text, sizeof(e->text), format, list);
	va_end(list);
	e->at = at;
	return SELECTOR_WRONG;
}

/* --- fields ----------------------------------------------------------------------------------- */

uint64_t selector_value(const struct platform_field *f, uint64_t code)
{
	uint64_t value = 0;
	unsigned n = 0;
	for (uint64_t mask = f->mask; mask; mask &= mask - 1)
		value |= (code >> __builtin_ctzll(mask) & 1) << n++;
	return value;
}

static bool fits(const struct platform_field *f, uint64_t value)
{
	int n_bits = __builtin_popcountll(f->mask);
	return n_bits == 64 || value >> n_bits == 0;
}

/* Set the field of the code to the value, which must fit. */
static uint64_t with_value(const struct platform_field *f, uint64_t code, uint64_t value)
{
	code &= ~f->mask;
	for (uint64_t mask = f->mask; mask; mask &= mask - 1, value >>= 1)
		code |= (value & 1) << __builtin_ctzll(mask);
	return code;
}

static bool has_event_field(const struct platform *p)
{
	for (size_t i = 0; i < p->n_fields; i++)
		if (p->field[i].kind == PLATFORM_FIELD_EVENT)
			return true;
	return false;
}

/* The field whose result no other field joins; NULL: the platform combines no fields. */
static const struct platform_field *find_top(const struct platform *p)
{
	const struct platform_field *top = NULL;
	for (size_t i = 0; i < p->n_fields; i++)
		if (p->field[i].kind == PLATFORM_FIELD_EVENT ||
			p->field[i].kind == PLATFORM_FIELD_OPERATION)
			/* a joining field comes after the fields that it joins */
			top = &p->field[i];
	return top;
}

bool selector_has_bank(const struct platform *p, const char *bank)
{
	for (size_t i = 0; has_event_field(p) && i < p->n_events; i++)
		if (strcasecmp(p->event[i].topic, bank) == 0)
			return true;
	return false;
}

/* --- the text --------------------------------------------------------------------------------- */

static const struct platform_event *event_of_bank(
	const struct platform *p, const char *bank, const char *name)
{
	for (size_t i = 0; i < p->n_events; i++) {
		const struct platform_event *e = &p->event[i];
		if (strcasecmp(e->topic, bank) != 0)
			continue;
		if (strcasecmp(e->name, name) == 0)
			return e;
		for (size_t j = 0; j < e->n_aliases; j++)
			if (strcasecmp(e->aliases[j], name) == 0)
				return e;
	}
	return NULL;
}

/* Counters that can count all events so far, and this part's events. */
static void limit_counters(struct composing *c, uint64_t counters)
{
	if (counters)
		c->counters = c->counters ? c->counters & counters : counters;
}

static int take_index(struct composing *c, const char *name, size_t at, uint64_t *ret_index)
{
	const struct platform_event *e = event_of_bank(c->platform, c->bank, name);
	if (isdigit((unsigned char)*name)) {
		if (!code_parse(name, ret_index) || !fits(c->event, *ret_index) || *ret_index == 0)
			return wrong(c->error, at,
				"'%.64s' is not a number from 1 up that fits into %s", name,
				c->event->name);
		for (size_t i = 0; i < c->platform->n_events; i++)
			if (strcasecmp(c->platform->event[i].topic, c->bank) == 0 &&
				c->platform->event[i].code == *ret_index)
				limit_counters(c, c->platform->event[i].counters);
		return 0;
	}
	if (!e)
		return wrong(c->error, at, "%s has no event '%.64s' among those of %s",
			c->platform->title, name, c->bank);
	if (!fits(c->event, e->code))
		return wrong(c->error, at,
			"'%.64s' is itself a combination (0x%llx), and cannot be used in another",
			name, (unsigned long long)e->code);
	limit_counters(c, e->counters);
	*ret_index = e->code;
	return 0;
}

static int part_add(struct composing *c, struct part p, uint8_t *ret_part)
{
	if (c->n_parts == sizeof(c->part) / sizeof(c->part[0]))
		return wrong(c->error, p.at, "too many brackets");
	*ret_part = (uint8_t)c->n_parts;
	c->part[c->n_parts++] = p;
	return 0;
}

static int take_sum(struct composing *c, int depth, uint8_t *ret_part);

static int take_operand(struct composing *c, int depth, uint8_t *ret_part)
{
	char name[NAME_BYTES_MAX + 1];
	size_t at = c->at;
	if (c->text[at] == '(') {
		c->at++;
		if (depth == SELECTOR_DEPTH_MAX)
			return wrong(c->error, at, "brackets are nested too deeply");
		int r = take_sum(c, depth + 1, ret_part);
		if (r == 0 && c->text[c->at] != ')')
			r = wrong(c->error, at, "this '(' has no ')'");
		c->at += r == 0;
		return r;
	}
	size_t n = strcspn(c->text + at, "+|&^()");
	if (n == 0)
		return wrong(c->error, at, "an event is missing");
	if (n >= sizeof(name))
		return wrong(c->error, at, "an event's name has at most %d bytes", NAME_BYTES_MAX);
	if (c->n_events++ == SELECTOR_EVENTS_MAX)
		return wrong(c->error, at, "more than %d events", SELECTOR_EVENTS_MAX);
	snprintf(name, sizeof(name), "%.*s", (int)n, c->text + at);
	struct part p = {.at = at};
	int r = take_index(c, name, at, &p.index);
	c->at += n;
	return r == 0 ? part_add(c, p, ret_part) : r;
}

static int take_sum(struct composing *c, int depth, uint8_t *ret_part)
{
	struct part p = {.at = c->at};
	for (;;) {
		if (p.n_operands == SELECTOR_EVENTS_MAX)
			return wrong(c->error, c->at, "more than %d events", SELECTOR_EVENTS_MAX);
		int r = take_operand(c, depth, &p.operand[p.n_operands]);
		if (r != 0)
			return r;
		p.n_operands++;
		char sign = c->text[c->at];
		if (!sign || !strchr("+|&^", sign))
			break;
		if (p.sign && sign != p.sign)
			return wrong(c->error, c->at,
				"'%c' after '%c': use brackets to say which comes first", sign,
				p.sign);
		p.sign = sign;
		c->at++;
	}
	if (p.n_operands > 1)
		return part_add(c, p, ret_part);
	*ret_part = p.operand[0];
	return 0;
}

/* --- onto the fields -------------------------------------------------------------------------- */

static const struct platform_field_value *operation_find(
	const struct platform_field *f, const char *name)
{
	for (size_t i = 0; i < f->n_values; i++)
		if (strcasecmp(f->value[i].name, name) == 0)
			return &f->value[i];
	return NULL;
}

static const char *sign_name(char sign)
{
	for (size_t i = 0; i < N_OPERATIONS; i++)
		if (operations[i].sign == sign)
			return operations[i].name;
	return "";
}

static bool lay(struct composing *c, const struct platform_field *f, const struct part *p);

/* Operands first … first + n - 1 of a part: the operand, if it is one. */
static struct part piece_of(const struct composing *c, const struct part *p, size_t first, size_t n)
{
	struct part piece = {.sign = p->sign, .at = p->at, .n_operands = n};
	if (n == 1)
		return c->part[p->operand[first]];
	memcpy(piece.operand, p->operand + first, n);
	return piece;
}

/* Split the operands between the two fields that f joins. */
static bool lay_split(struct composing *c, const struct platform_field *f, const struct part *p)
{
	const struct platform_field_value *v = operation_find(f, sign_name(p->sign));
	const struct platform_field *field = c->platform->field;
	const uint64_t before = c->code;
	for (size_t n = p->n_operands; v && n-- > 1;) {
		struct part left = piece_of(c, p, 0, n),
			    right = piece_of(c, p, n, p->n_operands - n);
		c->code = with_value(f, before, v->number);
		if (lay(c, &field[f->joins[0]], &left) && lay(c, &field[f->joins[1]], &right))
			return true;
	}
	c->code = before;
	return false;
}

/* Put the part into that field and those that it joins; false, with the code unchanged, if it does not
 * fit. */
static bool lay(struct composing *c, const struct platform_field *f, const struct part *p)
{
	if (f->kind == PLATFORM_FIELD_EVENT) {
		if (p->sign || !fits(f, p->index))
			return false;
		c->code = with_value(f, c->code, p->index);
		return true;
	}
	return lay(c, &c->platform->field[f->joins[0]], p) || (p->sign && lay_split(c, f, p));
}

static size_t n_event_fields(const struct platform *p)
{
	size_t n = 0;
	for (size_t i = 0; i < p->n_fields; i++)
		n += p->field[i].kind == PLATFORM_FIELD_EVENT;
	return n;
}

/* Report why the expression does not fit. */
static int no_room(const struct composing *c, const struct part *whole)
{
	const struct platform *p = c->platform;
	char joins[SELECTOR_TEXT_BYTES / 2] = "";
	if (c->n_events > n_event_fields(p))
		return wrong(c->error, whole->at,
			"%zu events, but codes of %s have room for only %zu", c->n_events, p->title,
			n_event_fields(p));
	for (size_t i = 0; i < c->n_parts; i++)
		if (c->part[i].sign && !operation_find(find_top(p), sign_name(c->part[i].sign)))
			return wrong(c->error, c->part[i].at, "codes of %s have no operation %s",
				p->title, sign_name(c->part[i].sign));
	for (size_t i = 0; i < p->n_fields; i++) {
		const struct platform_field *f = &p->field[i];
		size_t n = strlen(joins);
		if (f->kind == PLATFORM_FIELD_OPERATION)
			snprintf(joins + n, sizeof(joins) - n, "%s%s joins %s and %s",
				n ? ", " : "", f->name, p->field[f->joins[0]].name,
				p->field[f->joins[1]].name);
	}
	return wrong(c->error, whole->at, "codes of %s cannot express this: %s", p->title, joins);
}

int selector_compose(const struct platform *p, const char *bank, const char *text,
	struct selector_code *ret_code, struct selector_error *ret_error)
{
	struct composing c = {.platform = p, .bank = bank, .text = text, .error = ret_error};
	const struct platform_field *top = find_top(p);
	uint8_t whole;
	if (!selector_has_bank(p, bank))
		return wrong(ret_error, 0, "%s has no bank of counters '%.64s'", p->title, bank);
	for (size_t i = 0; i < p->n_fields; i++)
		if (p->field[i].kind == PLATFORM_FIELD_EVENT && !c.event)
			c.event = &p->field[i];
	int r = take_sum(&c, 0, &whole);
	if (r != 0)
		return r;
	if (text[c.at])
		return wrong(ret_error, c.at, "this '%c' closes nothing", text[c.at]);
	if (!lay(&c, top, &c.part[whole]))
		return no_room(&c, &c.part[whole]);
	*ret_code = (struct selector_code){c.code, c.counters};
	return 0;
}

/* --- one field -------------------------------------------------------------------------------- */

int selector_set(const struct platform *p, const char *field, const char *value, uint64_t *code,
	struct selector_error *ret_error)
{
	const struct platform_field *f = NULL;
	char known[SELECTOR_TEXT_BYTES / 2] = "";
	for (size_t i = 0; i < p->n_fields; i++) {
		size_t n = strlen(known);
		if (strcasecmp(p->field[i].name, field) == 0)
			f = &p->field[i];
		snprintf(known + n, sizeof(known) - n, "%s%s", i ? ", " : "", p->field[i].name);
	}
	if (!f)
		return wrong(ret_error, 0, "codes of %s have no field '%.40s'; they have: %s",
			p->title, field, known);
	const struct platform_field_value *v = operation_find(f, value);
	uint64_t number = v ? v->number : 0;
	if (!v && (!code_parse(value, &number) || !fits(f, number)))
		return wrong(ret_error, 0,
			"'%.40s' is neither a number of %d bits nor a name for field %s", value,
			__builtin_popcountll(f->mask), f->name);
	*code = with_value(f, *code, number);
	return 0;
}
