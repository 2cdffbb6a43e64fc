/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * An unknown key is an error: a quirk with a misspelt key would be silently off. The error lists
 * the keys that the object may have.
 */
#include "platform-db/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define SENTENCE_BYTES_MAX 512
#define NAMES_MAX 16 /* aliases of one event; none has more than three */

int reader_wrong(const struct reader *r, int line, const char *format, ...)
{
	char text[SENTENCE_BYTES_MAX];
	struct complaints *c = r->complaints;
	if (c->n == PLATFORM_ERRORS_MAX) {
		c->n_more++;
		return READ_WRONG;
	}

	int n = line > 0 ? snprintf(text, sizeof(text), "%s:%d: ", r->file, line)
			 : snprintf(text, sizeof(text), "%s: ", r->file);
	if (n > 0 && (size_t)n < sizeof(text)) {
		va_list list;
		va_start(list, format);
		vsnprintf(text + n, sizeof(text) - (size_t)n, format, list);
		va_end(list);
	}
	/* The text may contain pieces of the file. */
	for (char *at = text; *at; at++)
		if ((unsigned char)*at < 0x20 || *at == 0x7f)
			*at = '?';
	c->text[c->n] = pool_text(c->pool, text);
	if (!c->text[c->n])
		return -ENOMEM;
	c->n++;
	return READ_WRONG;
}

bool code_parse(const char *text, uint64_t *ret_code)
{
	int base = strncmp(text, "0x", 2) == 0 || strncmp(text, "0X", 2) == 0 ? 16 : 10;
	const char *digits = base == 16 ? text + 2 : text;
	const char *known = base == 16 ? "0123456789abcdefABCDEF" : "0123456789";
	if (!*digits || digits[strspn(digits, known)])
		return false;
	errno = 0;
	unsigned long long code = strtoull(digits, NULL, base);
	if (errno)
		return false;
	*ret_code = code;
	return true;
}

static int take_text(
	const struct reader *r, const struct node *v, const char *key, const char **ret_text)
{
	if (v->type != NODE_TEXT || !*v->text)
		return reader_wrong(r, v->line, "'%s' is not a text", key);
	if (strlen(v->text) > TEXT_BYTES_MAX)
		return reader_wrong(
			r, v->line, "'%s' is longer than %d bytes", key, TEXT_BYTES_MAX);
	for (const char *at = v->text; *at; at++)
		if ((unsigned char)*at < 0x20 || *at == 0x7f)
			return reader_wrong(r, v->line, "'%s' is not one line of text", key);
	size_t n = strlen(v->text);
	if (v->text[0] == ' ' || v->text[n - 1] == ' ')
		return reader_wrong(r, v->line, "'%s' begins or ends with a space", key);
	*ret_text = pool_text(r->pool, v->text);
	return *ret_text ? 0 : -ENOMEM;
}

static int take_name(
	const struct reader *r, const struct node *v, const char *key, const char **ret_name)
{
	int error = take_text(r, v, key, ret_name);
	if (error)
		return error;
	if (strlen(v->text) > NAME_BYTES_MAX)
		return reader_wrong(
			r, v->line, "'%s' is longer than %d bytes", key, NAME_BYTES_MAX);
	/* Characters that would end a name in -e, or look like a path. */
	if (strpbrk(v->text, " ,{}/\"'\\") || v->text[0] == '-' || v->text[0] == '.')
		return reader_wrong(r, v->line, "'%s' is not a name: '%s'", key, v->text);
	return 0;
}

static int take_names(
	const struct reader *r, const struct node *v, const char *key, struct names *ret_names)
{
	if (v->type != NODE_ARRAY)
		return reader_wrong(r, v->line, "'%s' is not a list of names", key);
	if (v->n_children > NAMES_MAX)
		return reader_wrong(r, v->line, "'%s' has more than %d names", key, NAMES_MAX);
	const char **name = pool_take(r->pool, v->n_children * sizeof(*name));
	if (!name)
		return -ENOMEM;
	for (size_t i = 0; i < v->n_children; i++) {
		int error = take_name(r, &v->child[i], key, &name[i]);
		if (error)
			return error;
	}
	*ret_names = (struct names){name, v->n_children};
	return 0;
}

static int take_code(
	const struct reader *r, const struct node *v, const char *key, uint64_t *ret_code)
{
	if (v->type == NODE_WHOLE && v->whole >= 0) {
		*ret_code = (uint64_t)v->whole;
		return 0;
	}
	if (v->type == NODE_TEXT && code_parse(v->text, ret_code))
		return 0;
	return reader_wrong(r, v->line, "'%s' is not a whole number such as 34 or \"0x22\"", key);
}

static int take_range(
	const struct reader *r, const struct node *v, const char *key, struct code_range *ret_range)
{
	struct code_range range;
	char first[32];
	const char *dash = v->type == NODE_TEXT ? strchr(v->text, '-') : NULL;
	if (!dash || (size_t)(dash - v->text) >= sizeof(first)) {
		int error = take_code(r, v, key, &range.first);
		if (error)
			return error;
		*ret_range = (struct code_range){range.first, range.first};
		return 0;
	}
	snprintf(first, sizeof(first), "%.*s", (int)(dash - v->text), v->text);
	if (!code_parse(first, &range.first) || !code_parse(dash + 1, &range.last) ||
		range.last < range.first)
		return reader_wrong(
			r, v->line, "'%s' is not a range of codes such as \"0xb8-0xbd\"", key);
	*ret_range = range;
	return 0;
}

static int take_choice(
	const struct reader *r, const struct node *v, const struct field *f, int *ret_choice)
{
	char known[SENTENCE_BYTES_MAX] = "";
	for (int i = 0; f->choices[i]; i++) {
		if (v->type == NODE_TEXT && strcmp(v->text, f->choices[i]) == 0) {
			*ret_choice = i;
			return 0;
		}
		size_t n = strlen(known);
		snprintf(known + n, sizeof(known) - n, "%s%s", i ? ", " : "", f->choices[i]);
	}
	return reader_wrong(r, v->line, "'%s' is not one of: %s", f->key, known);
}

static int take_field(
	const struct reader *r, const struct node *v, const struct field *f, unsigned char *into)
{
	void *to = into + f->offset;
	switch (f->kind) {
	case FIELD_TEXT:
		return take_text(r, v, f->key, to);
	case FIELD_NAME:
		return take_name(r, v, f->key, to);
	case FIELD_NAMES:
		return take_names(r, v, f->key, to);
	case FIELD_CODE:
		return take_code(r, v, f->key, to);
	case FIELD_RANGE:
		return take_range(r, v, f->key, to);
	case FIELD_CHOICE:
		return take_choice(r, v, f, to);
	case FIELD_NODE:
		*(const struct node **)to = v;
		return 0;
	case FIELD_COUNT:
		if (v->type != NODE_WHOLE || v->whole < 1 || v->whole > (long long)f->max)
			return reader_wrong(
				r, v->line, "'%s' is not a number from 1 to %u", f->key, f->max);
		*(uint32_t *)to = (uint32_t)v->whole;
		return 0;
	case FIELD_REAL:
		if ((v->type != NODE_WHOLE && v->type != NODE_REAL) || v->real <= 0)
			return reader_wrong(r, v->line, "'%s' is not a number above 0", f->key);
		*(double *)to = v->real;
		return 0;
	}
	return -EINVAL;
}

static const struct field *field_find(const struct grammar *g, const char *key)
{
	for (size_t i = 0; i < g->n_fields; i++)
		if (strcmp(g->fields[i].key, key) == 0)
			return &g->fields[i];
	return NULL;
}

static int unknown_key(const struct reader *r, const struct node *v, const struct grammar *g)
{
	char known[SENTENCE_BYTES_MAX / 2] = "";
	for (size_t i = 0; i < g->n_fields; i++) {
		size_t n = strlen(known);
		snprintf(known + n, sizeof(known) - n, "%s%s", i ? ", " : "", g->fields[i].key);
	}
	return reader_wrong(r, v->line, "unknown key '%s'; %s has: %s", v->key, g->what, known);
}

int reader_fields(
	const struct reader *r, const struct node *object, const struct grammar *g, void *into)
{
	if (object->type != NODE_OBJECT)
		return reader_wrong(r, object->line, "%s must be an object in braces", g->what);
	for (size_t i = 0; i < object->n_children; i++) {
		const struct node *v = &object->child[i];
		const struct field *f = field_find(g, v->key);
		int error = f ? take_field(r, v, f, into) : unknown_key(r, v, g);
		if (error)
			return error;
	}
	for (size_t i = 0; i < g->n_fields; i++)
		if (g->fields[i].required && !node_get(object, g->fields[i].key))
			return reader_wrong(
				r, object->line, "%s lacks its '%s'", g->what, g->fields[i].key);
	return 0;
}

int reader_load(const struct reader *r, char **ret_text, size_t *ret_n)
{
	/* Do not block on a FIFO or a device. */
	int fd = open(r->file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	_cleanup_(fclosep) FILE *f = fd < 0 ? NULL : fdopen(fd, "re");
	struct stat s;
	if (!f && fd >= 0)
		close(fd);
	if (!f || fstat(fd, &s) < 0)
		return reader_wrong(r, 0, "cannot be read: %s", strerror(errno));
	if (!S_ISREG(s.st_mode))
		return reader_wrong(r, 0, "is not a regular file");
	if (s.st_size > DOCUMENT_BYTES_MAX)
		return reader_wrong(r, 0, "is larger than 4 MB");

	_cleanup_(freep) char *text = malloc((size_t)s.st_size + 1);
	if (!text)
		return -ENOMEM;
	size_t n = fread(text, 1, (size_t)s.st_size, f);
	if (ferror(f))
		return reader_wrong(r, 0, "cannot be read: %s", strerror(errno));
	text[n] = '\0';
	*ret_text = TAKE_PTR(text);
	*ret_n = n;
	return 0;
}

int reader_parse(const struct reader *r, const char *text, size_t n, bool strict,
	const struct node **ret_root)
{
	struct document_error e;
	struct node *root;
	int line = strict ? document_blank(text, n) : 0;
	if (line)
		return reader_wrong(r, line, "a space at the end of the line");
	int error = document_parse(r->scratch, text, n, &root, &e);
	if (error > 0)
		return reader_wrong(r, e.line, "%s", e.text);
	if (error == 0)
		*ret_root = root;
	return error;
}

int reader_document(const struct reader *r, bool strict, const struct node **ret_root)
{
	_cleanup_(freep) char *text = NULL;
	size_t n;
	int error = reader_load(r, &text, &n);
	return error ? error : reader_parse(r, text, n, strict, ret_root);
}
