/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Most of a picture's bytes are names, and the pictures of one program share most of these: each is written once, and
 * boxes have its number.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/flamegraph/drawing_private.h"
#include "client/show/escape.h"
#include "proto/base/hash_table.h"
#include "proto/base/memory.h"

struct string {
	UT_hash_handle hh; /* it keeps the order in which they were added */
	uint32_t number;
	char text[];
};

struct strings {
	struct string *table;
	uint32_t n;
};

static int number_of(struct strings *s, const char *text, uint32_t *ret_number)
{
	const size_t n = strlen(text);
	struct string *string;
	HASH_FIND(hh, s->table, text, n, string);
	if (!string) {
		string = calloc(1, sizeof(*string) + n + 1);
		if (!string)
			return -ENOMEM;
		memcpy(string->text, text, n + 1);
		string->number = s->n;
		HASH_ADD_KEYPTR(hh, s->table, string->text, n, string);
		if (!string->hh.tbl) {
			free(string);
			return -ENOMEM;
		}
		s->n++;
	}
	*ret_number = string->number;
	return 0;
}

static void forget(struct strings *s)
{
	struct string *string, *next;
	HASH_ITER (hh, s->table, string, next) {
		HASH_DEL(s->table, string);
		free(string);
	}
}

static void write_strings(const struct strings *s, FILE *out)
{
	for (const struct string *string = s->table; string; string = string->hh.next) {
		fputs(string->number > 0 ? ",\n\"" : "\"", out);
		escape_script(out, string->text);
		fputc('"', out);
	}
}

/* The module and the kind, as in the tooltip; "" where a box has none. */
static int place_of(struct strings *s, const struct flame_node *node, uint32_t *ret_number)
{
	_cleanup_(freep) char *text = NULL;
	if (node->depth == 0 || node->kind == FLAME_WAITING)
		return number_of(s, "", ret_number);
	const char *module = node->module ? node->module : "unknown module";
	if (asprintf(&text, "%s · %s", module, flame_kind_name(node->kind)) < 0)
		return -ENOMEM;
	return number_of(s, text, ret_number);
}

/* index: of the boxes written so far, by node */
static int write_box(
	const struct drawing *d, size_t i, struct strings *s, uint32_t *index, FILE *out)
{
	const struct flame_node *node = &d->node[i];
	struct drawing_box box;
	char text[DRAWING_FIGURES_BYTES];
	uint32_t label, place, figures;
	if (!drawing_place(d, node, &box))
		return 0;
	int r = box.label ? number_of(s, box.label, &label) : -ENOMEM;
	free(box.label);
	if (r == 0)
		r = place_of(s, node, &place);
	drawing_figures(d, node, text);
	if (r == 0)
		r = number_of(s, text, &figures);
	if (r != 0)
		return r;
	index[i] = i > 0 ? index[0]++ : 0;
	fprintf(out, "%s[%u,%.3f,%.3f,\"%s\",%u,%u,%u]", i > 0 ? ",\n" : "",
		node->parent > 0 ? index[node->parent] : 0, box.x, box.width, box.class, label,
		place, figures);
	return 0;
}

static int write_boxes(const struct drawing *d, struct strings *s, FILE *out)
{
	_cleanup_(freep) uint32_t *index = calloc(d->n_nodes, sizeof(*index));
	int r = index ? 0 : -ENOMEM;
	for (size_t i = 0; i < d->n_nodes && r == 0; i++) {
		r = write_box(d, i, s, index, out);
		if (i == 0 && index)
			index[0] = 1; /* the next box's; the root's own is 0 */
	}
	return r;
}

int drawing_write_data(const struct drawing *const *drawing, size_t n, FILE *out)
{
	struct strings s = {0};
	uint32_t nothing;
	int r = number_of(&s, "", &nothing);
	fputs("{\"views\":{", out);
	for (size_t i = 0; i < n && r == 0; i++) {
		fprintf(out, "%s\"%s\":[", i > 0 ? ",\n" : "", drawing[i]->view->name);
		r = write_boxes(drawing[i], &s, out);
		fputc(']', out);
	}
	fputs("},\n\"strings\":[", out);
	write_strings(&s, out);
	fputs("]}\n", out);
	forget(&s);
	return r;
}
