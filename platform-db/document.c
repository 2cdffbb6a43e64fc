/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * jansson parses the text and reports errors; it also keeps the members of an object in the order
 * of the text, and we let it refuse duplicates. So its tree in pre-order follows the text, and a
 * second walk over both finds the line of each value: it only skips text and counts newlines, since
 * the text is known to be valid JSON.
 */
#include "platform-db/document.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

static void json_decref_cleanup(json_t **j)
{
	json_decref(*j);
}

struct walk {
	struct pool *pool;
	const char *at, *end;
	int line;
	size_t n_nodes;
	struct document_error *error;
};

static int wrong(struct document_error *e, int line, const char *text)
{
	e->line = line;
	snprintf(e->text, sizeof(e->text), "%s", text);
	return DOCUMENT_WRONG;
}

/* Skip blanks and separators. */
static void skip_between(struct walk *w)
{
	for (; w->at < w->end && strchr(" \t\r\n,:]}", *w->at); w->at++)
		w->line += *w->at == '\n';
}

static void skip_text(struct walk *w)
{
	for (w->at++; w->at < w->end && *w->at != '"'; w->at++)
		if (*w->at == '\\')
			w->at++;
	w->at++;
}

/* Skip a text, a number or a word; of an object or array only the opening bracket. */
static void skip_value(struct walk *w)
{
	if (w->at >= w->end)
		return;
	if (*w->at == '"')
		skip_text(w);
	else if (*w->at == '{' || *w->at == '[')
		w->at++;
	else
		while (w->at < w->end && !strchr(" \t\r\n,]}", *w->at))
			w->at++;
}

static int take_scalar(struct walk *w, const json_t *v, struct node *node)
{
	switch (json_typeof(v)) {
	case JSON_STRING:
		node->type = NODE_TEXT;
		node->text = pool_text(w->pool, json_string_value(v));
		return node->text ? 0 : -ENOMEM;
	case JSON_INTEGER:
		node->type = NODE_WHOLE;
		node->whole = json_integer_value(v);
		node->real = (double)node->whole;
		return 0;
	case JSON_REAL:
		node->type = NODE_REAL;
		node->real = json_real_value(v);
		return 0;
	case JSON_NULL:
		node->type = NODE_NULL;
		return 0;
	default:
		node->type = NODE_BOOL;
		node->whole = json_is_true(v);
		return 0;
	}
}

static int take_value(struct walk *w, json_t *v, int depth, struct node *node);

static int take_object(struct walk *w, json_t *object, int depth, struct node *node)
{
	const char *key;
	json_t *v;
	node->type = NODE_OBJECT;
	json_object_foreach(object, key, v)
	{
		struct node *child = &node->child[node->n_children++];
		child->key = pool_text(w->pool, key);
		if (!child->key)
			return -ENOMEM;
		skip_between(w);
		int line = w->line;
		skip_text(w);
		int r = take_value(w, v, depth, child);
		if (r != 0)
			return r;
		child->line = line;
	}
	return 0;
}

static int take_array(struct walk *w, json_t *array, int depth, struct node *node)
{
	size_t i;
	json_t *v;
	node->type = NODE_ARRAY;
	json_array_foreach(array, i, v)
	{
		int r = take_value(w, v, depth, &node->child[node->n_children++]);
		if (r != 0)
			return r;
	}
	return 0;
}

static int take_value(struct walk *w, json_t *v, int depth, struct node *node)
{
	skip_between(w);
	node->line = w->line;
	skip_value(w);
	if (!json_is_object(v) && !json_is_array(v))
		return take_scalar(w, v, node);

	if (depth == DOCUMENT_DEPTH_MAX)
		return wrong(w->error, node->line, "nested too deeply");
	size_t n = json_is_object(v) ? json_object_size(v) : json_array_size(v);
	w->n_nodes += n;
	if (w->n_nodes > DOCUMENT_NODES_MAX)
		return wrong(w->error, node->line, "too many values for one file");
	node->child = pool_take(w->pool, n * sizeof(*node->child));
	if (!node->child)
		return -ENOMEM;
	return json_is_object(v) ? take_object(w, v, depth + 1, node)
				 : take_array(w, v, depth + 1, node);
}

int document_blank(const char *text, size_t n)
{
	int line = 1;
	for (size_t i = 0; i < n; i++) {
		if ((text[i] == ' ' || text[i] == '\t' || text[i] == '\r') &&
			(i + 1 == n || text[i + 1] == '\n'))
			return line;
		line += text[i] == '\n';
	}
	return 0;
}

/* Hints that we append to jansson's own errors (2.14, load.c), by how these begin. */
static const struct {
	const char *said, *hint;
} hints[] = {
	{"unexpected newline", "a string must end on the line where it begins: write it on one "
			       "line, with \\n for a line break"},
	{"string or '}' expected near '}'",
		"no comma is allowed after the last member of an object: remove it"},
	{"'}' expected near", "a comma is missing between two members, or the object's end"},
	{"']' expected near", "a comma is missing between two values, or the list's end"},
	{"':' expected near", "a member is a name in quotes, a colon and a value"},
};

static int wrong_json(struct document_error *e, const json_error_t *error)
{
	const char *hint = NULL;
	for (size_t i = 0; i < sizeof(hints) / sizeof(hints[0]) && !hint; i++)
		if (strncmp(error->text, hints[i].said, strlen(hints[i].said)) == 0)
			hint = hints[i].hint;
	e->line = error->line > 0 ? error->line : 0;
	snprintf(e->text, sizeof(e->text), "%.120s%s%s", error->text, hint ? ": " : "",
		hint ? hint : "");
	return DOCUMENT_WRONG;
}

int document_parse(struct pool *pool, const char *text, size_t n, struct node **ret_root,
	struct document_error *ret_error)
{
	if (n > DOCUMENT_BYTES_MAX)
		return wrong(ret_error, 0, "larger than 4 MB");

	json_error_t error;
	_cleanup_(json_decref_cleanup) json_t *root =
		json_loadb(text, n, JSON_REJECT_DUPLICATES, &error);
	if (!root && json_error_code(&error) == json_error_out_of_memory)
		return -ENOMEM;
	if (!root)
		return wrong_json(ret_error, &error);

	struct walk w = {pool, text, text + n, 1, 0, ret_error};
	struct node *node = pool_take(pool, sizeof(*node));
	if (!node)
		return -ENOMEM;
	int r = take_value(&w, root, 0, node);
	if (r == 0)
		*ret_root = node;
	return r;
}

const struct node *node_get(const struct node *object, const char *key)
{
	for (size_t i = 0; object->type == NODE_OBJECT && i < object->n_children; i++)
		if (strcmp(object->child[i].key, key) == 0)
			return &object->child[i];
	return NULL;
}
