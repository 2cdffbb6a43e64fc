/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Roofs as JSON, both ways. Keys that we do not know are ignored, so that later versions may add
 * some; known keys must exist, have the right type and a valid value, or the file is refused with
 * the position of the fault: a wrong roof would be worse than none.
 */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/memory.h"
#include "proto/roofs/roofs.h"

#define FORMAT "mperf-roofs"
#define DIGITS 12 /* significant digits of numbers; measurements have four at best */

/* --- reading ---------------------------------------------------------------------------------- */

struct reading {
	char *fault;    /* ROOF_NOTE_BYTES */
	char place[64]; /* "roofs[3]" */
	bool failed;
};

static void fail(struct reading *g, const char *key, const char *what)
{
	if (!g->failed)
		snprintf(g->fault, ROOF_NOTE_BYTES, "%s%s%s %s", g->place, *g->place ? "." : "",
			key, what);
	g->failed = true;
}

static void place(struct reading *g, const char *list, size_t i)
{
	snprintf(g->place, sizeof(g->place), "%s[%zu]", list, i);
}

/* A text that fits and is safe to print to a terminal. */
static void take_text(
	struct reading *g, const json_t *o, const char *key, char *ret_text, size_t size)
{
	const json_t *v = json_object_get(o, key);
	const char *text = json_string_value(v);
	if (!text) {
		fail(g, key, v ? "is not a text" : "is missing");
		return;
	}
	if (json_string_length(v) >= size) {
		fail(g, key, "is too long");
		return;
	}
	for (const char *c = text; c < text + json_string_length(v); c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f) {
			fail(g, key, "has control characters");
			return;
		}
	memcpy(ret_text, text, json_string_length(v) + 1);
}

static double take_number(struct reading *g, const json_t *o, const char *key, double max)
{
	const json_t *v = json_object_get(o, key);
	double number = json_number_value(v);
	if (!json_is_number(v))
		fail(g, key, v ? "is not a number" : "is missing");
	else if (!(number >= 0) || number > max)
		fail(g, key, "is out of range");
	else
		return number;
	return 0;
}

static bool take_flag(struct reading *g, const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);
	if (!json_is_boolean(v))
		fail(g, key, v ? "is not true or false" : "is missing");
	return json_is_true(v);
}

/* A list of at most `max`, else NULL. */
static const json_t *take_list(struct reading *g, const json_t *o, const char *key, size_t max)
{
	const json_t *v = json_object_get(o, key);
	if (!json_is_array(v))
		fail(g, key, v ? "is not a list" : "is missing");
	else if (json_array_size(v) > max)
		fail(g, key, "is too long");
	else
		return v;
	return NULL;
}

static void take_kind(struct reading *g, const json_t *o, struct roofs_kind *k)
{
	take_text(g, o, "id", k->id, sizeof(k->id));
	take_text(g, o, "name", k->name, sizeof(k->name));
	take_text(g, o, "harts", k->harts, sizeof(k->harts));
}

static void take_scope(struct reading *g, const json_t *o, struct roof *roof)
{
	char word[ROOF_WORD_BYTES] = "";
	take_text(g, o, "scope", word, sizeof(word));
	for (enum roof_scope s = ROOF_HART; s <= ROOF_MACHINE; s++)
		if (strcmp(word, roof_scope_name(s)) == 0) {
			roof->scope = s;
			return;
		}
	fail(g, "scope", "is not hart, cluster, kind or machine");
}

static void take_limit(struct reading *g, const json_t *o, struct roof *roof)
{
	char word[ROOF_WORD_BYTES] = "";
	take_text(g, o, "limit", word, sizeof(word));
	if (strcmp(word, "compute") == 0) {
		roof->limit = ROOF_COMPUTE;
		take_text(g, o, "precision", roof->precision, sizeof(roof->precision));
		take_text(g, o, "operation", roof->operation, sizeof(roof->operation));
	} else if (strcmp(word, "memory") == 0) {
		roof->limit = ROOF_MEMORY;
		take_text(g, o, "level", roof->level, sizeof(roof->level));
		take_text(g, o, "pattern", roof->pattern, sizeof(roof->pattern));
		roof->bytes = (uint64_t)take_number(g, o, "bytes", 1e15);
	} else
		fail(g, "limit", "is not compute or memory");
}

static void take_roof(struct reading *g, const json_t *o, struct roof *roof)
{
	take_limit(g, o, roof);
	take_scope(g, o, roof);
	take_text(g, o, "kind", roof->kind, sizeof(roof->kind));
	take_text(g, o, "unit", roof->unit, sizeof(roof->unit));
	take_text(g, o, "note", roof->note, sizeof(roof->note));
	roof->n_harts = (uint32_t)take_number(g, o, "harts", 1e6);
	roof->lmul = (uint32_t)take_number(g, o, "lmul", 8);
	roof->repeats = (uint32_t)take_number(g, o, "repeats", 1e6);
	roof->value = take_number(g, o, "value", 1e21);
	roof->low = take_number(g, o, "low", 1e21);
	roof->high = take_number(g, o, "high", 1e21);
	roof->hz = take_number(g, o, "hz", 1e12);
	if (!g->failed && roof->value <= 0)
		fail(g, "value", "is not above zero");
	if (!g->failed && (roof->low > roof->value || roof->high < roof->value))
		fail(g, "value", "is not between low and high");
}

static void take_machine(struct reading *g, const json_t *o, struct roofs *r)
{
	if (!json_is_object(o)) {
		fail(g, "machine", "is missing");
		return;
	}
	snprintf(g->place, sizeof(g->place), "machine");
	take_text(g, o, "id", r->machine, sizeof(r->machine));
	take_text(g, o, "kernel", r->kernel, sizeof(r->kernel));
	take_text(g, o, "architecture", r->architecture, sizeof(r->architecture));
	const json_t *kinds = take_list(g, o, "kinds", ROOFS_KINDS_MAX);
	*g->place = '\0';
	r->n_kinds = json_array_size(kinds);
}

/* Fill what was allocated by the sizes of the lists. */
static void take_lists(struct reading *g, const json_t *root, struct roofs *r)
{
	const json_t *kinds = json_object_get(json_object_get(root, "machine"), "kinds");
	for (size_t i = 0; i < r->n_kinds && !g->failed; i++) {
		place(g, "machine.kinds", i);
		take_kind(g, json_array_get(kinds, i), &r->kinds[i]);
	}
	for (size_t i = 0; i < r->n && !g->failed; i++) {
		place(g, "roofs", i);
		take_roof(g, json_array_get(json_object_get(root, "roofs"), i), &r->roof[i]);
	}
	for (size_t i = 0; i < r->n_notes && !g->failed; i++) {
		const json_t *note = json_array_get(json_object_get(root, "notes"), i);
		place(g, "notes", i);
		if (!json_is_string(note) || json_string_length(note) >= ROOF_NOTE_BYTES)
			fail(g, "", "is not a text, or too long");
		else
			memcpy(r->note[i], json_string_value(note), json_string_length(note) + 1);
	}
}

static int take_all(struct reading *g, const json_t *root, struct roofs *r)
{
	const char *format = json_string_value(json_object_get(root, "format"));
	if (!format || strcmp(format, FORMAT) != 0) {
		fail(g, "format", "is not \"" FORMAT "\"");
		return ROOFS_MALFORMED;
	}
	double version = take_number(g, root, "version", 1e9);
	if (version > ROOFS_VERSION) {
		snprintf(g->fault, ROOF_NOTE_BYTES,
			"version %.0f is newer than %d, the newest known here", version,
			ROOFS_VERSION);
		return ROOFS_NEWER;
	}
	take_machine(g, json_object_get(root, "machine"), r);
	r->measured_s = (int64_t)take_number(g, root, "measured", 1e12);
	r->took_s = take_number(g, root, "took", 1e6);
	r->quick = take_flag(g, root, "quick");
	r->paused = take_flag(g, root, "paused");
	if (json_object_get(root, "disturbed")) /* older files do not have it */
		take_text(g, root, "disturbed", r->disturbed, sizeof(r->disturbed));
	r->n = json_array_size(take_list(g, root, "roofs", ROOFS_MAX));
	r->n_notes = json_array_size(take_list(g, root, "notes", ROOFS_NOTES_MAX));
	if (g->failed)
		return ROOFS_MALFORMED;

	r->kinds = calloc(r->n_kinds + 1, sizeof(*r->kinds));
	r->roof = calloc(r->n + 1, sizeof(*r->roof));
	r->note = calloc(r->n_notes + 1, sizeof(*r->note));
	if (!r->kinds || !r->roof || !r->note)
		return -ENOMEM;
	take_lists(g, root, r);
	return g->failed ? ROOFS_MALFORMED : 0;
}

int roofs_parse(
	const char *text, size_t n, struct roofs *ret_roofs, char fault[static ROOF_NOTE_BYTES])
{
	struct roofs roofs = {0};
	struct reading g = {.fault = fault};
	json_error_t error;

	if (n > ROOFS_BYTES_MAX) {
		snprintf(fault, ROOF_NOTE_BYTES, "it has more than %u bytes", ROOFS_BYTES_MAX);
		return ROOFS_MALFORMED;
	}
	json_t *root = json_loadb(text, n, JSON_REJECT_DUPLICATES, &error);
	if (!root) {
		snprintf(fault, ROOF_NOTE_BYTES, "line %d: %s", error.line, error.text);
		return ROOFS_MALFORMED;
	}
	int r = take_all(&g, root, &roofs);
	json_decref(root);
	if (r == 0)
		*ret_roofs = roofs;
	else
		roofs_clear(&roofs);
	return r;
}

int roofs_read(const char *path, struct roofs *ret_roofs, char fault[static ROOF_NOTE_BYTES])
{
	_cleanup_(fclosep) FILE *f = fopen(path, "re");
	if (!f)
		return -errno;
	_cleanup_(freep) char *text = malloc(ROOFS_BYTES_MAX + 1);
	if (!text)
		return -ENOMEM;
	size_t n = fread(text, 1, ROOFS_BYTES_MAX + 1, f);
	if (ferror(f))
		return errno ? -errno : -EIO;
	return roofs_parse(text, n, ret_roofs, fault);
}

/* --- writing ---------------------------------------------------------------------------------- */

/* Put a new value into an object; NULL values and objects report that memory ran out. */
static bool put(json_t *o, const char *key, json_t *v)
{
	return json_object_set_new(o, key, v) == 0;
}

static json_t *roof_json(const struct roof *r)
{
	json_t *o = json_object();
	bool ok = o && put(o, "kind", json_string(r->kind)) &&
		  put(o, "scope", json_string(roof_scope_name(r->scope))) &&
		  put(o, "harts", json_integer(r->n_harts)) &&
		  put(o, "limit", json_string(r->limit == ROOF_COMPUTE ? "compute" : "memory"));
	if (ok && r->limit == ROOF_COMPUTE)
		ok = put(o, "precision", json_string(r->precision)) &&
		     put(o, "operation", json_string(r->operation));
	else if (ok)
		ok = put(o, "level", json_string(r->level)) &&
		     put(o, "pattern", json_string(r->pattern)) &&
		     put(o, "bytes", json_integer((json_int_t)r->bytes));
	ok = ok && put(o, "unit", json_string(r->unit)) && put(o, "lmul", json_integer(r->lmul)) &&
	     put(o, "value", json_real(r->value)) && put(o, "low", json_real(r->low)) &&
	     put(o, "high", json_real(r->high)) && put(o, "hz", json_real(r->hz)) &&
	     put(o, "repeats", json_integer(r->repeats)) && put(o, "note", json_string(r->note));
	if (ok)
		return o;
	json_decref(o);
	return NULL;
}

static json_t *machine_json(const struct roofs *r)
{
	json_t *o = json_object(), *kinds = json_array();
	for (size_t i = 0; kinds && i < r->n_kinds; i++) {
		json_t *k = json_pack("{s:s, s:s, s:s}", "id", r->kinds[i].id, "name",
			r->kinds[i].name, "harts", r->kinds[i].harts);
		if (json_array_append_new(kinds, k) < 0) {
			json_decref(kinds);
			kinds = NULL;
		}
	}
	if (put(o, "id", json_string(r->machine)) && put(o, "kernel", json_string(r->kernel)) &&
		put(o, "architecture", json_string(r->architecture)) && put(o, "kinds", kinds))
		return o;
	json_decref(o);
	return NULL;
}

int roofs_write(const struct roofs *r, bool compact, FILE *f)
{
	json_t *root = json_object(), *roofs = json_array(), *notes = json_array();
	bool ok = root && roofs && notes;
	for (size_t i = 0; ok && i < r->n; i++)
		ok = json_array_append_new(roofs, roof_json(&r->roof[i])) == 0;
	for (size_t i = 0; ok && i < r->n_notes; i++)
		ok = json_array_append_new(notes, json_string(r->note[i])) == 0;
	ok = ok && put(root, "format", json_string(FORMAT)) &&
	     put(root, "version", json_integer(ROOFS_VERSION)) &&
	     put(root, "machine", machine_json(r)) &&
	     put(root, "measured", json_integer(r->measured_s)) &&
	     put(root, "took", json_real(r->took_s)) &&
	     put(root, "quick", json_boolean(r->quick)) &&
	     put(root, "paused", json_boolean(r->paused)) &&
	     put(root, "disturbed", json_string(r->disturbed)) &&
	     json_object_set(root, "roofs", roofs) == 0 &&
	     json_object_set(root, "notes", notes) == 0;
	int result = ok ? 0 : -ENOMEM;
	size_t form = (compact ? JSON_COMPACT : JSON_INDENT(1)) | JSON_REAL_PRECISION(DIGITS);
	if (ok && (json_dumpf(root, f, form) != 0 || fputc('\n', f) == EOF))
		result = -EIO;
	json_decref(root);
	json_decref(roofs);
	json_decref(notes);
	return result;
}

int roofs_text(const struct roofs *r, bool compact, char **ret_text, size_t *ret_n)
{
	_cleanup_(freep) char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);
	if (!f)
		return -ENOMEM;
	int result = roofs_write(r, compact, f);
	if (fclose(f) != 0 || result == -EIO)
		result = -ENOMEM;
	if (result < 0)
		return result;
	*ret_text = TAKE_PTR(text);
	*ret_n = n;
	return 0;
}
