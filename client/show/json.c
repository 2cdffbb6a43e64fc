/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The JSON form of a reply. Keys are the columns' stable names, numbers are plain and in the unit
 * that the column declares, and values that were not measured are null. jansson escapes what JSON
 * requires; it takes only UTF-8, so we repair text first. It keeps bidirectional and invisible
 * characters, so we escape its output once more.
 */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/show/escape.h"
#include "client/show/reply.h"
#include "proto/base/memory.h"
#include "proto/syntax/unit.h"

static json_t *json_text(const char *text)
{
	if (!text)
		return json_null();
	_cleanup_(freep) char *mended = escape_utf8_dup(text);
	return mended ? json_string(mended) : NULL;
}

static json_t *json_number(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

static json_t *json_series(const Mperf__Series *s)
{
	json_t *array = json_array();
	for (size_t i = 0; i < s->n_value; i++)
		if (json_array_append_new(array, json_number(s->value[i])) < 0) {
			json_decref(array);
			return NULL;
		}
	return array;
}

static json_t *json_value(const Mperf__Value *v)
{
	switch (v->is_case) {
	case MPERF__VALUE__IS_TEXT:
		return json_text(v->text);
	case MPERF__VALUE__IS_INTEGER:
		return json_integer(v->integer);
	case MPERF__VALUE__IS_REAL:
		return json_number(v->real);
	case MPERF__VALUE__IS_SERIES:
		return json_series(v->series);
	default:
		return json_null();
	}
}

/* Every json_*_new below steals its argument, even on failure, and takes NULL for a failure. */
static int set(json_t *object, const char *key, json_t *value)
{
	_cleanup_(freep) char *mended = escape_utf8_dup(key);
	if (!mended) {
		json_decref(value);
		return -ENOMEM;
	}
	return json_object_set_new(object, mended, value) < 0 ? -ENOMEM : 0;
}

static int add_columns(json_t *root, const struct reply *r)
{
	json_t *columns = json_array();
	int e = set(root, "columns", columns);
	for (size_t i = 0; e == 0 && r->columns && i < r->columns->n_column; i++) {
		const Mperf__Column *c = r->columns->column[i];
		json_t *column = json_object();
		if (json_array_append_new(columns, column) < 0)
			return -ENOMEM;
		e = set(column, "name", json_text(c->name));
		if (e == 0)
			e = set(column, "title", json_text(c->title));
		if (e == 0)
			e = set(column, "unit", json_text(unit_name(c->unit)));
	}
	return e;
}

static int add_rows(json_t *root, const char *key, const struct reply *r)
{
	json_t *rows = json_array();
	int e = set(root, key, rows);
	for (size_t i = 0; e == 0 && i < r->n_rows; i++) {
		json_t *row = json_object();
		if (json_array_append_new(rows, row) < 0)
			return -ENOMEM;
		for (size_t k = 0; e == 0 && k < r->columns->n_column; k++)
			e = set(row, r->columns->column[k]->name, json_value(r->row[i]->value[k]));
	}
	return e;
}

static int add_losses(json_t *object, const Mperf__Provenance *p)
{
	json_t *losses = json_object();
	int e = set(object, "lost", losses);
	for (size_t i = 0; e == 0 && i < p->n_loss; i++)
		e = set(losses, p->loss[i]->cause, json_integer((json_int_t)p->loss[i]->count));
	return e;
}

static int add_notes(json_t *object, const Mperf__Provenance *p)
{
	json_t *notes = json_array();
	int e = set(object, "notes", notes);
	for (size_t i = 0; e == 0 && i < p->n_note; i++)
		if (json_array_append_new(notes, json_text(p->note[i])) < 0)
			return -ENOMEM;
	return e;
}

static json_t *threads_json(const Mperf__Threads *t)
{
	return t ? json_pack("{s:f, s:f, s:f, s:f, s:f}", "lived_s", t->lived, "ran_s", t->ran,
			   "ready_s", t->ready, "waited_s", reply_waited_s(t), "unknown_s",
			   t->unsplit)
		 : json_null();
}

static json_t *wall_json(const Mperf__Wall *w)
{
	return w ? json_pack("{s:f, s:f, s:f, s:f}", "busy_s", w->busy, "least_s", w->least,
			   "most_s", w->most, "cpu_s", w->cpu)
		 : json_null();
}

static int add_provenance(json_t *root, const Mperf__Provenance *p)
{
	if (!p)
		return set(root, "provenance", json_null());

	json_t *object = json_object();
	int e = set(root, "provenance", object);
	if (e == 0)
		e = set(object, "event", json_text(p->event));
	if (e == 0)
		e = set(object, "rung", json_text(p->rung));
	if (e == 0)
		e = set(object, "switches", *p->switches ? json_text(p->switches) : json_null());
	if (e == 0)
		e = set(object, "hz", json_integer(p->hz));
	if (e == 0)
		e = set(object, "period",
			p->period ? json_integer((json_int_t)p->period) : json_null());
	if (e == 0)
		e = set(object, "samples", json_integer((json_int_t)p->samples));
	if (e == 0)
		e = set(object, "seconds", json_number(p->seconds));
	if (e == 0)
		e = set(object, "named_share",
			p->samples > 0 ? json_number(p->named_share) : json_null());
	if (e == 0)
		e = set(object, "interval_s",
			p->look_every > 0 ? json_number(p->look_every) : json_null());
	if (e == 0)
		e = set(object, "has_waiting", json_boolean(p->has_waiting));
	if (e == 0)
		e = set(object, "placed_share",
			p->samples > 0 ? json_number(p->placed_share) : json_null());
	if (e == 0)
		e = set(object, "cost_share",
			p->cost_share > 0 ? json_number(p->cost_share) : json_null());
	if (e == 0)
		e = set(object, "uncounted_share", json_number(p->uncounted_share));
	if (e == 0)
		e = set(object, "threads", threads_json(p->threads));
	if (e == 0)
		e = set(object, "wall", wall_json(p->wall));
	if (e == 0)
		e = add_losses(object, p);
	return e == 0 ? add_notes(object, p) : e;
}

static int write_part(const char *json, size_t n, void *f)
{
	escape_json(f, json, n);
	return ferror(f) ? -1 : 0;
}

/* Write the object and a newline, and drop the reference. */
static int dump(json_t *root, size_t layout, FILE *f)
{
	int e = 0;
	if (json_dump_callback(root, write_part, f, layout | JSON_REAL_PRECISION(15)) < 0 ||
		fputc('\n', f) == EOF)
		e = -EIO;
	json_decref(root);
	return e;
}

int reply_write_json(const struct reply *r, FILE *f)
{
	json_t *root = json_object();
	int e = root ? add_columns(root, r) : -ENOMEM;
	if (e == 0)
		e = add_rows(root, "rows", r);
	if (e == 0)
		e = add_provenance(root, r->provenance);
	if (e == 0)
		return dump(root, JSON_INDENT(1), f);
	json_decref(root);
	return e;
}

/* Add a frame's members before its tables. */
static int add_frame(json_t *root, const struct replies_frame *frame)
{
	int e = set(root, "time", json_number(frame->time));
	return e == 0 ? set(root, "by", json_text(frame->rows)) : e;
}

int replies_write_json(const struct replies *r, const struct replies_frame *frame, FILE *f)
{
	json_t *root = json_object();
	int e = root ? 0 : -ENOMEM;
	if (e == 0 && frame)
		e = add_frame(root, frame);
	for (size_t i = 0; i < r->n && e == 0; i++) {
		const char *name = r->table[i].columns->table;
		bool rows = frame && strcmp(name, frame->rows) == 0;
		e = add_rows(root, rows ? "rows" : name, &r->table[i]);
	}
	if (e == 0 && (frame || r->provenance))
		e = add_provenance(root, r->provenance);
	if (e == 0)
		return dump(root, frame ? JSON_COMPACT : JSON_INDENT(1), f);
	json_decref(root);
	return e;
}
