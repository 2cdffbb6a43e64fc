/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Tables need all rows before the first can be printed (widths), so a reply copies what arrives
 * out of its frames: protobuf has a copy built in, pack and unpack, and rows are few.
 */
#include "client/show/reply.h"

#include <errno.h>
#include <math.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "client/show/say.h"
#include "proto/base/array.h"
#include "proto/base/memory.h"

static ProtobufCMessage *copy(const ProtobufCMessage *m)
{
	size_t n = protobuf_c_message_get_packed_size(m);
	_cleanup_(freep) uint8_t *bytes = malloc(n + 1);
	if (!bytes)
		return NULL;
	protobuf_c_message_pack(m, bytes);
	return protobuf_c_message_unpack(m->descriptor, NULL, n, bytes);
}

void reply_cut(struct reply *r, size_t n)
{
	while (r->n_rows > n)
		mperf__row__free_unpacked(r->row[--r->n_rows], NULL);
}

struct sorted_row {
	Mperf__Row *row;
	double key; /* -HUGE_VAL: it has none */
	size_t was;
};

static int compare_rows(const void *a, const void *b)
{
	const struct sorted_row *x = a, *y = b;
	return x->key != y->key ? (x->key < y->key ? 1 : -1)
				: (x->was > y->was) - (x->was < y->was);
}

int reply_sort(struct reply *r, int column)
{
	_cleanup_(freep) struct sorted_row *sorted = calloc(r->n_rows + 1, sizeof(*sorted));
	if (!sorted)
		return -ENOMEM;
	if (column < 0)
		return 0;
	for (size_t i = 0; i < r->n_rows; i++) {
		sorted[i] = (struct sorted_row){r->row[i], -HUGE_VAL, i};
		reply_number(r, i, column, &sorted[i].key);
	}
	qsort(sorted, r->n_rows, sizeof(*sorted), compare_rows);
	for (size_t i = 0; i < r->n_rows; i++)
		r->row[i] = sorted[i].row;
	return 0;
}

int reply_name_users(struct reply *r, int column)
{
	for (size_t i = 0; i < r->n_rows; i++) {
		double number;
		const struct passwd *user =
			reply_number(r, i, column, &number) && number >= 0 && number < UINT32_MAX
				? getpwuid((uid_t)number)
				: NULL;
		Mperf__Value *v = r->row[i]->value[column];
		char *name = user ? strdup(user->pw_name) : NULL;
		if (!user)
			continue;
		if (!name)
			return -ENOMEM;
		v->is_case = MPERF__VALUE__IS_TEXT;
		v->text = name;
	}
	return 0;
}

static int add_columns(struct reply *r, const Mperf__Columns *columns)
{
	if (columns->n_column > REPLY_COLUMNS_MAX)
		return REPLY_TOO_LARGE;
	Mperf__Columns *c = (Mperf__Columns *)copy(&columns->base);
	if (!c)
		return -ENOMEM;
	reply_cut(r, 0);
	if (r->columns)
		mperf__columns__free_unpacked(r->columns, NULL);
	r->columns = c;
	return 0;
}

static int add_row(struct reply *r, const Mperf__Row *row)
{
	if (!r->columns || row->n_value != r->columns->n_column)
		return REPLY_MALFORMED;
	if (r->n_rows == REPLY_ROWS_MAX)
		return REPLY_TOO_LARGE;
	int e = array_grow_long(&r->row, &r->size_rows, r->n_rows + 1, sizeof(*r->row));
	if (e < 0)
		return e;
	Mperf__Row *c = (Mperf__Row *)copy(&row->base);
	if (!c)
		return -ENOMEM;
	r->row[r->n_rows++] = c;
	return 0;
}

static int add_rows(struct reply *r, const Mperf__Rows *rows)
{
	for (size_t i = 0; i < rows->n_row; i++) {
		int e = add_row(r, rows->row[i]);
		if (e != 0)
			return e;
	}
	return 0;
}

Mperf__Provenance *reply_copy_provenance(const Mperf__Provenance *p)
{
	return (Mperf__Provenance *)copy(&p->base);
}

static int replace_provenance(Mperf__Provenance **provenance, const Mperf__Provenance *by)
{
	Mperf__Provenance *c = reply_copy_provenance(by);
	if (!c)
		return -ENOMEM;
	if (*provenance)
		mperf__provenance__free_unpacked(*provenance, NULL);
	*provenance = c;
	return 0;
}

int reply_add(struct reply *r, const Mperf__Answer *a)
{
	switch (a->body_case) {
	case MPERF__ANSWER__BODY_COLUMNS:
		return add_columns(r, a->columns);
	case MPERF__ANSWER__BODY_ROWS:
		return add_rows(r, a->rows);
	case MPERF__ANSWER__BODY_PROVENANCE:
		return replace_provenance(&r->provenance, a->provenance);
	default:
		return 0;
	}
}

/* --- made here -------------------------------------------------------------------------------- */

int reply_head(struct reply *r, const struct reply_heading *heading, size_t n)
{
	Mperf__Column column[REPLY_COLUMNS_MAX], *pointer[REPLY_COLUMNS_MAX];
	Mperf__Columns all = MPERF__COLUMNS__INIT;
	if (n > REPLY_COLUMNS_MAX)
		return REPLY_TOO_LARGE;
	for (size_t i = 0; i < n; i++) {
		mperf__column__init(&column[i]);
		column[i].name = (char *)heading[i].name;
		column[i].title = (char *)heading[i].title;
		column[i].unit = heading[i].unit;
		pointer[i] = &column[i];
	}
	all.column = pointer;
	all.n_column = n;
	return add_columns(r, &all);
}

int reply_append(struct reply *r, const Mperf__Value *value, size_t n)
{
	Mperf__Value *pointer[REPLY_COLUMNS_MAX];
	Mperf__Row row = MPERF__ROW__INIT;
	if (n > REPLY_COLUMNS_MAX)
		return REPLY_TOO_LARGE;
	for (size_t i = 0; i < n; i++)
		pointer[i] = (Mperf__Value *)&value[i];
	row.value = pointer;
	row.n_value = n;
	return add_row(r, &row);
}

Mperf__Value reply_value_of_text(const char *text)
{
	Mperf__Value v = MPERF__VALUE__INIT;
	if (!text || !*text)
		return v;
	v.is_case = MPERF__VALUE__IS_TEXT;
	v.text = (char *)text;
	return v;
}

Mperf__Value reply_value_of_real(double n)
{
	Mperf__Value v = MPERF__VALUE__INIT;
	if (!isfinite(n))
		return v;
	v.is_case = MPERF__VALUE__IS_REAL;
	v.real = n;
	return v;
}

Mperf__Value reply_value_of_integer(uint64_t n)
{
	Mperf__Value v = MPERF__VALUE__INIT;
	v.is_case = MPERF__VALUE__IS_INTEGER;
	v.integer = n > INT64_MAX ? INT64_MAX : (int64_t)n;
	return v;
}

int reply_note_first(struct reply *r, const char *note)
{
	Mperf__Provenance *p = r->provenance;
	if (!p)
		return 0;
	char *copy = strdup(note);
	char **grown = copy ? realloc(p->note, (p->n_note + 1) * sizeof(*grown)) : NULL;
	if (!grown) {
		free(copy);
		return -ENOMEM;
	}
	memmove(&grown[1], grown, p->n_note * sizeof(*grown));
	grown[0] = copy;
	p->note = grown;
	p->n_note++;
	return 0;
}

int reply_append_provenance(
	struct reply *r, const Mperf__Provenance *from, char *const *note, size_t n_notes)
{
	if (!from)
		return 0;
	Mperf__Provenance with = *from;
	with.note = (char **)note;
	with.n_note = n_notes;
	return replace_provenance(&r->provenance, &with);
}

/* ---------------------------------------------------------------------------------------------- */

static int say_trouble(int r)
{
	if (r == REPLY_TOO_LARGE)
		say_failure("the answer has more rows than can be shown",
			"Ask for less with --limit or a filter");
	else if (r == REPLY_MALFORMED)
		say_failure("mperfd sent rows that do not match their columns",
			"Install mperfctl and mperfd of the same version");
	return r;
}

int reply_take(void *reply, const Mperf__Answer *a)
{
	return say_trouble(reply_add(reply, a));
}

void reply_clear(struct reply *r)
{
	reply_cut(r, 0);
	free(r->row);
	if (r->columns)
		mperf__columns__free_unpacked(r->columns, NULL);
	if (r->provenance)
		mperf__provenance__free_unpacked(r->provenance, NULL);
	*r = (struct reply){0};
}

int reply_column(const struct reply *r, const char *name)
{
	for (size_t i = 0; r->columns && i < r->columns->n_column; i++)
		if (strcmp(r->columns->column[i]->name, name) == 0)
			return (int)i;
	return -1;
}

const Mperf__Value *reply_value(const struct reply *r, size_t row, int column)
{
	if (column < 0 || row >= r->n_rows)
		return NULL;
	const Mperf__Value *v = r->row[row]->value[column];
	return v->is_case == MPERF__VALUE__IS__NOT_SET ? NULL : v;
}

const char *reply_text(const struct reply *r, size_t row, int column)
{
	const Mperf__Value *v = reply_value(r, row, column);
	return v && v->is_case == MPERF__VALUE__IS_TEXT ? v->text : NULL;
}

bool reply_number(const struct reply *r, size_t row, int column, double *ret_number)
{
	const Mperf__Value *v = reply_value(r, row, column);
	if (!v || (v->is_case != MPERF__VALUE__IS_REAL && v->is_case != MPERF__VALUE__IS_INTEGER))
		return false;
	*ret_number = v->is_case == MPERF__VALUE__IS_REAL ? v->real : (double)v->integer;
	return true;
}

/* --- columns of our own: as if protobuf had unpacked them, since protobuf frees them ------------- */

static int extend_row(Mperf__Row *row)
{
	Mperf__Value **value = reallocarray(row->value, row->n_value + 1, sizeof(*value));
	if (!value)
		return -ENOMEM;
	row->value = value;
	row->value[row->n_value] = malloc(sizeof(**value));
	if (!row->value[row->n_value])
		return -ENOMEM;
	*row->value[row->n_value++] = (Mperf__Value)MPERF__VALUE__INIT;
	return 0;
}

int reply_extend(struct reply *r, const Mperf__Column *column, int *ret_column)
{
	if (!r->columns || r->columns->n_column >= REPLY_COLUMNS_MAX)
		return REPLY_TOO_LARGE;
	size_t n = r->columns->n_column;
	Mperf__Column **list = reallocarray(r->columns->column, n + 1, sizeof(*list));
	if (!list)
		return -ENOMEM;
	r->columns->column = list;
	list[n] = (Mperf__Column *)copy(&column->base);
	if (!list[n])
		return -ENOMEM;
	r->columns->n_column++;
	for (size_t i = 0; i < r->n_rows; i++)
		if (extend_row(r->row[i]) < 0)
			return -ENOMEM;
	*ret_column = (int)n;
	return 0;
}

void reply_set_real(struct reply *r, size_t row, int column, double value)
{
	Mperf__Value *v = r->row[row]->value[column];
	v->is_case = MPERF__VALUE__IS_REAL;
	v->real = value;
}

int reply_set_text(struct reply *r, size_t row, int column, const char *text)
{
	Mperf__Value *v = r->row[row]->value[column];
	char *taken = strdup(text);
	if (!taken)
		return -ENOMEM;
	v->is_case = MPERF__VALUE__IS_TEXT;
	v->text = taken;
	return 0;
}

/* ---------------------------------------------------------------------------------------------- */

static int find_table(const struct replies *r, const char *name)
{
	for (size_t i = 0; i < r->n; i++)
		if (strcmp(r->table[i].columns->table, name) == 0)
			return (int)i;
	return -1;
}

static int begin_table(struct replies *r, const Mperf__Columns *columns)
{
	int at = find_table(r, columns->table);
	if (at < 0 && r->n == REPLIES_MAX)
		return REPLY_TOO_LARGE;
	bool new = at < 0;
	if (new)
		at = (int)r->n;

	int e = add_columns(&r->table[at], columns);
	if (e != 0)
		return e;
	r->n += new;
	r->current = at;
	return 0;
}

int replies_add(struct replies *r, const Mperf__Answer *a)
{
	switch (a->body_case) {
	case MPERF__ANSWER__BODY_COLUMNS:
		return begin_table(r, a->columns);
	case MPERF__ANSWER__BODY_ROWS:
		return r->n > 0 ? add_rows(&r->table[r->current], a->rows) : REPLY_MALFORMED;
	case MPERF__ANSWER__BODY_PROVENANCE:
		return replace_provenance(&r->provenance, a->provenance);
	default:
		return 0;
	}
}

int replies_take(void *replies, const Mperf__Answer *a)
{
	return say_trouble(replies_add(replies, a));
}

const struct reply *replies_table(const struct replies *r, const char *name)
{
	int at = find_table(r, name);
	return at < 0 ? NULL : &r->table[at];
}

void replies_clear(struct replies *r)
{
	for (size_t i = 0; i < r->n; i++)
		reply_clear(&r->table[i]);
	if (r->provenance)
		mperf__provenance__free_unpacked(r->provenance, NULL);
	*r = (struct replies){0};
}
