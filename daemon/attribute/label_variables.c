/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "daemon/attribute/label_variables.h"

#include <stdio.h>
#include <string.h>

/* Parts of names that secrets have in CI systems: GITHUB_TOKEN, CI_JOB_JWT, AWS_SECRET_ACCESS_KEY,
 * NPM_PASSWORD. */
static bool is_secret(const char *name)
{
	static const char *const parts[] = {
		"TOKEN", "SECRET", "PASSW", "CREDENTIAL", "PRIVATE", "KEY", "JWT", "AUTH"};

	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		if (strcasestr(name, parts[i]))
			return true;
	return false;
}

static bool is_there(const struct label_variables *v, const char *key)
{
	for (size_t i = 0; i < v->n; i++)
		if (strcmp(v->variable[i].key, key) == 0)
			return true;
	return false;
}

/* Add an item, "KEY=NAME" or "NAME", of n bytes. */
static int add(struct label_variables *v, const char *item, size_t n)
{
	const char *equals = memchr(item, '=', n);
	size_t n_key = equals ? (size_t)(equals - item) : n;
	const char *name = equals ? equals + 1 : item;
	size_t n_name = (size_t)(item + n - name);
	struct label_fault fault;
	struct label label;

	if (v->n == LABEL_VARIABLES_MAX || n_key > LABEL_KEY_BYTES_MAX ||
		n_name > LABEL_KEY_BYTES_MAX)
		return LABELS_WRONG;
	struct label_variable *to = &v->variable[v->n];
	snprintf(to->key, sizeof(to->key), "%.*s", (int)n_key, item);
	snprintf(to->name, sizeof(to->name), "%.*s", (int)n_name, name);
	/* a variable's name follows the rules of a label's key */
	if (label_make(to->key, "", &label, &fault) || label_make(to->name, "", &label, &fault) ||
		label_is_reserved(to->key) || is_secret(to->name) || is_there(v, to->key))
		return LABELS_WRONG;
	v->n++;
	return 0;
}

int label_variables_parse(const char *text, struct label_variables *ret)
{
	struct label_variables v = {.n = 0};

	for (const char *p = text; *p && strcmp(text, "none") != 0;) {
		size_t n = strcspn(p, ",");
		if (add(&v, p, n) != 0)
			return LABELS_WRONG;
		p += n + (p[n] == ',');
	}
	*ret = v;
	return 0;
}
