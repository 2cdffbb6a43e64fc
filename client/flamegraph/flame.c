/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Nodes stand in an array in order of arrival, so a parent's index is below its children's: totals
 * are one pass backwards, boxes one pass forwards over siblings sorted by name, and nothing
 * recurses, however deep somebody's stack is. Names are interned: equal names are equal pointers.
 */
#include "client/flamegraph/flame.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/show/escape.h"
#include "proto/base/hash_table.h"
#include "proto/base/memory.h"

struct word {
	UT_hash_handle hh;
	char text[];
};

/* The daemon's id of a node, and ours. */
struct alias {
	int64_t id;
	uint32_t index;
	UT_hash_handle hh;
};

struct site_key {
	const char *function, *module, *build; /* interned */
	uint32_t parent, kind;
};
struct site {
	struct site_key key;
	uint32_t index;
	UT_hash_handle hh;
};

struct flame {
	struct flame_node *node;
	size_t n_nodes, size_nodes;
	struct word *words;
	struct alias *aliases;
	struct site *sites;
	Mperf__Unit unit;
	bool without_folders; /* of modules */
	bool is_candidate;    /* there is a baseline */
	/* columns; -1: none */
	int id, parent, function, module, kind, build, value, samples, counted;
	size_t n_columns;
};

static const char *const kind_names[N_FLAME_KINDS] = {
	[FLAME_UNKNOWN] = "unknown",
	[FLAME_USER] = "user",
	[FLAME_KERNEL] = "kernel",
	[FLAME_JIT] = "jit",
	[FLAME_INLINED] = "inlined",
	[FLAME_WAITING] = "waiting",
};

const char *flame_kind_name(enum flame_kind kind)
{
	return kind < N_FLAME_KINDS ? kind_names[kind] : kind_names[FLAME_UNKNOWN];
}

int flame_new(struct flame **ret_flame)
{
	_cleanup_(freep) struct flame *f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	f->node = calloc(1, sizeof(*f->node));
	if (!f->node)
		return -ENOMEM;
	f->n_nodes = f->size_nodes = 1;
	f->id = -1;
	*ret_flame = TAKE_PTR(f);
	return 0;
}

static void forget_aliases(struct flame *f)
{
	struct alias *alias, *next_alias;
	HASH_ITER (hh, f->aliases, alias, next_alias) {
		HASH_DEL(f->aliases, alias);
		free(alias);
	}
}

struct flame *flame_free(struct flame *f)
{
	struct word *word, *next_word;
	struct site *site, *next_site;

	if (!f)
		return NULL;
	HASH_ITER (hh, f->words, word, next_word) {
		HASH_DEL(f->words, word);
		free(word);
	}
	forget_aliases(f);
	HASH_ITER (hh, f->sites, site, next_site) {
		HASH_DEL(f->sites, site);
		free(site);
	}
	free(f->node);
	free(f);
	return NULL;
}

/* The one copy of a text. NULL for no text. */
static int intern(struct flame *f, const char *text, const char **ret_word)
{
	struct word *word;
	if (!text || !*text) {
		*ret_word = NULL;
		return 0;
	}

	size_t n = strlen(text);
	HASH_FIND(hh, f->words, text, n, word);
	if (!word) {
		word = calloc(1, sizeof(*word) + n + 1);
		if (!word)
			return -ENOMEM;
		memcpy(word->text, text, n + 1);
		HASH_ADD_KEYPTR(hh, f->words, word->text, n, word);
		if (!word->hh.tbl) {
			free(word);
			return -ENOMEM;
		}
	}
	*ret_word = word->text;
	return 0;
}

static int column(const Mperf__Columns *c, const char *name)
{
	for (size_t i = 0; i < c->n_column; i++)
		if (strcmp(c->column[i]->name, name) == 0)
			return (int)i;
	return -1;
}

static int add_columns(struct flame *f, const Mperf__Columns *c)
{
	f->id = column(c, "node");
	f->parent = column(c, "parent");
	f->function = column(c, "function");
	f->module = column(c, "module");
	f->kind = column(c, "kind");
	f->build = column(c, "build_id");
	f->value = column(c, "value");
	f->samples = column(c, "samples");
	f->counted = column(c, "counted");
	f->n_columns = c->n_column;
	if (f->id < 0 || f->parent < 0 || f->function < 0 || f->value < 0) {
		f->id = -1;
		return FLAME_MALFORMED;
	}
	f->unit = c->column[f->value]->unit;
	return 0;
}

static const char *row_text(const Mperf__Row *row, int i)
{
	return i >= 0 && row->value[i]->is_case == MPERF__VALUE__IS_TEXT ? row->value[i]->text
									 : NULL;
}

static bool row_integer(const Mperf__Row *row, int i, int64_t *ret_value)
{
	if (row->value[i]->is_case != MPERF__VALUE__IS_INTEGER)
		return false;
	*ret_value = row->value[i]->integer;
	return true;
}

/* A value that was not measured, or is no amount, has no width. */
static double row_amount(const Mperf__Row *row, int i)
{
	const Mperf__Value *v = row->value[i];
	double amount = v->is_case == MPERF__VALUE__IS_REAL      ? v->real
			: v->is_case == MPERF__VALUE__IS_INTEGER ? (double)v->integer
								 : 0;
	return isfinite(amount) && amount > 0 ? amount : 0;
}

/* The build of code without a symbol. Without a build id, it is not known whether both sides have the same. */
static const char *row_build(const struct flame *f, const Mperf__Row *row)
{
	const char *build = row_text(row, f->build);
	const bool is_known = !build || strcmp(build, "none") != 0;
	return is_known ? build : f->is_candidate ? "none, candidate" : "none";
}

static enum flame_kind row_kind(const Mperf__Row *row, int i)
{
	const char *text = row_text(row, i);
	for (int k = 0; text && k < N_FLAME_KINDS; k++)
		if (strcmp(text, kind_names[k]) == 0)
			return (enum flame_kind)k;
	return FLAME_UNKNOWN;
}

static int append_node(struct flame *f, const struct site_key *key, uint32_t *ret_index)
{
	if (f->n_nodes == FLAME_NODES_MAX)
		return FLAME_TOO_LARGE;
	if (f->n_nodes == f->size_nodes) {
		struct flame_node *nodes = reallocarray(f->node, 2 * f->size_nodes, sizeof(*nodes));
		if (!nodes)
			return -ENOMEM;
		f->node = nodes;
		f->size_nodes *= 2;
	}
	*ret_index = (uint32_t)f->n_nodes++;
	f->node[*ret_index] = (struct flame_node){
		.parent = key->parent,
		.depth = f->node[key->parent].depth + 1,
		.function = key->function,
		.module = key->module,
		.kind = (enum flame_kind)key->kind,
	};
	return 0;
}

/* The merged node of (parent, function, module, build, kind). */
static int find_site(struct flame *f, const struct site_key *key, uint32_t *ret_index)
{
	struct site *site;
	/* Deeper frames are charged to their caller: their boxes would be too deep to scroll to. */
	if (f->node[key->parent].depth == FLAME_DEPTH_MAX) {
		*ret_index = key->parent;
		return 0;
	}
	HASH_FIND(hh, f->sites, key, sizeof(*key), site);
	if (site) {
		*ret_index = site->index;
		return 0;
	}

	uint32_t index;
	int r = append_node(f, key, &index);
	if (r != 0)
		return r;
	site = calloc(1, sizeof(*site));
	if (!site)
		return -ENOMEM;
	site->key = *key;
	site->index = index;
	HASH_ADD(hh, f->sites, key, sizeof(site->key), site);
	if (!site->hh.tbl) {
		free(site);
		return -ENOMEM;
	}
	*ret_index = index;
	return 0;
}

static int add_alias(struct flame *f, int64_t id, uint32_t index)
{
	if (HASH_COUNT(f->aliases) >= FLAME_NODES_MAX)
		return FLAME_TOO_LARGE;
	struct alias *alias = calloc(1, sizeof(*alias));
	if (!alias)
		return -ENOMEM;
	alias->id = id;
	alias->index = index;
	HASH_ADD(hh, f->aliases, id, sizeof(alias->id), alias);
	if (!alias->hh.tbl) {
		free(alias);
		return -ENOMEM;
	}
	return 0;
}

static void add_amounts(const struct flame *f, const Mperf__Row *row, struct flame_node *node)
{
	node->self += row_amount(row, f->value);
	if (f->samples < 0 || f->counted < 0)
		return;
	node->samples += row_amount(row, f->samples);
	node->counted += row_amount(row, f->counted);
}

static int add_row(struct flame *f, const Mperf__Row *row)
{
	int64_t id, parent_id;
	struct alias *parent = NULL, *twin;
	struct site_key key;

	if (f->id < 0 || row->n_value != f->n_columns || !row_integer(row, f->id, &id) ||
		!row_integer(row, f->parent, &parent_id) || id == 0)
		return FLAME_MALFORMED;
	HASH_FIND(hh, f->aliases, &id, sizeof(id), twin);
	if (parent_id != 0)
		HASH_FIND(hh, f->aliases, &parent_id, sizeof(parent_id), parent);
	if (twin || (parent_id != 0 && !parent))
		return FLAME_MALFORMED;

	memset(&key, 0, sizeof(key)); /* its bytes are hashed, padding included */
	key.parent = parent ? parent->index : 0;
	key.kind = row_kind(row, f->kind);
	int r = intern(f, row_text(row, f->function), &key.function);
	const char *module = row_text(row, f->module),
		   *slash = module ? strrchr(module, '/') : NULL;
	if (f->without_folders && slash && slash[1])
		module = slash + 1;
	if (r == 0)
		r = intern(f, module, &key.module);
	if (r == 0)
		r = intern(f, row_build(f, row), &key.build);
	uint32_t index;
	if (r == 0)
		r = find_site(f, &key, &index);
	if (r == 0)
		r = add_alias(f, id, index);
	if (r == 0)
		add_amounts(f, row, &f->node[index]);
	return r;
}

int flame_add(struct flame *f, const Mperf__Answer *a)
{
	if (a->body_case == MPERF__ANSWER__BODY_COLUMNS)
		return add_columns(f, a->columns);
	if (a->body_case != MPERF__ANSWER__BODY_ROWS)
		return 0;
	for (size_t i = 0; i < a->rows->n_row; i++) {
		int r = add_row(f, a->rows->row[i]);
		if (r != 0)
			return r;
	}
	return 0;
}

void flame_begin_baseline(struct flame *f)
{
	f->without_folders = true;
}

void flame_end_baseline(struct flame *f)
{
	forget_aliases(f);
	f->id = -1;
	f->is_candidate = true;
	for (size_t i = 0; i < f->n_nodes; i++) {
		struct flame_node *node = &f->node[i];
		node->was_self = node->self;
		node->self = node->samples = node->counted = 0;
	}
}

static int compare_text(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "");
}

/* By parent, then by name, so that the same program always draws the same picture. */
static int compare_nodes(const void *x, const void *y, void *nodes)
{
	const struct flame_node *node = nodes, *a = &node[*(const uint32_t *)x],
				*b = &node[*(const uint32_t *)y];
	if (a->parent != b->parent)
		return a->parent < b->parent ? -1 : 1;
	int by_function = compare_text(a->function, b->function);
	if (by_function != 0)
		return by_function;
	int by_module = compare_text(a->module, b->module);
	return by_module != 0 ? by_module : (int)a->kind - (int)b->kind;
}

int flame_finish(struct flame *f)
{
	_cleanup_(freep) uint32_t *order = calloc(f->n_nodes, sizeof(*order));
	_cleanup_(freep) double *cursor = calloc(f->n_nodes, sizeof(*cursor));
	if (!order || !cursor)
		return -ENOMEM;

	for (size_t i = f->n_nodes; i-- > 0;) {
		order[i] = (uint32_t)i;
		f->node[i].total += f->node[i].self;
		f->node[i].was_total += f->node[i].was_self;
		if (i == 0)
			break;
		struct flame_node *parent = &f->node[f->node[i].parent];
		parent->total += f->node[i].total;
		parent->was_total += f->node[i].was_total;
		parent->samples += f->node[i].samples;
		parent->counted += f->node[i].counted;
	}
	qsort_r(order + 1, f->n_nodes - 1, sizeof(*order), compare_nodes, f->node);

	/* Parents have lower indices, so a parent's box is placed before its children's. */
	for (size_t i = 1; i < f->n_nodes; i++) {
		struct flame_node *node = &f->node[order[i]];
		node->start = f->node[node->parent].start + cursor[node->parent];
		cursor[node->parent] += node->total;
	}
	return 0;
}

const struct flame_node *flame_nodes(const struct flame *f, size_t *ret_n)
{
	*ret_n = f->n_nodes;
	return f->node;
}

static const char *const waits[FLAME_WAITS] = {"waiting:hart", "waiting:lock", "waiting:disk",
	"waiting:network", "waiting:pipe", "waiting:device", "waiting:poll", "waiting:sleep",
	"waiting:child", "waiting:fault", "waiting:stopped", "waiting:other"};

size_t flame_wait(const struct flame_node *node)
{
	size_t i = 0;
	while (i < FLAME_WAITS - 1 && compare_text(node->function, waits[i]) != 0)
		i++;
	return i;
}

static int longest_first(const void *a, const void *b)
{
	const struct flame_wait_sum *x = a, *y = b;
	return (x->value < y->value) - (x->value > y->value);
}

size_t flame_waits(const struct flame *f, struct flame_wait_sum ret_sum[static FLAME_WAITS])
{
	double value[FLAME_WAITS] = {0};
	size_t n = 0;
	for (size_t i = 1; i < f->n_nodes; i++)
		if (f->node[i].kind == FLAME_WAITING)
			value[flame_wait(&f->node[i])] += f->node[i].total;
	for (size_t i = 0; i < FLAME_WAITS; i++)
		if (value[i] > 0)
			ret_sum[n++] = (struct flame_wait_sum){waits[i], i, value[i]};
	qsort(ret_sum, n, sizeof(*ret_sum), longest_first);
	return n;
}

Mperf__Unit flame_unit(const struct flame *f)
{
	return f->unit;
}

void flame_label(const struct flame_node *node, char *ret_text, size_t n)
{
	const char *module = node->module ? node->module : "unknown";
	const char *slash = strrchr(module, '/');

	if (node->depth == 0)
		snprintf(ret_text, n, "all");
	else if (node->function)
		snprintf(ret_text, n, "%s", node->function);
	else if (*module == '[')
		snprintf(ret_text, n, "%s", module);
	else
		snprintf(ret_text, n, "[%s]", slash && slash[1] ? slash + 1 : module);
}

static void write_frame(const struct flame_node *node, FILE *out)
{
	char label[4096];
	flame_label(node, label, sizeof(label));
	escape_folded(out, label);
}

int flame_write_folded(const struct flame *f, FILE *out)
{
	uint32_t path[FLAME_DEPTH_MAX + 1];
	for (size_t i = 1; i < f->n_nodes; i++) {
		const struct flame_node *node = &f->node[i];
		if (node->self <= 0)
			continue;
		size_t n = 0;
		for (uint32_t at = (uint32_t)i; at != 0; at = f->node[at].parent)
			path[n++] = at;
		while (n > 0) {
			write_frame(&f->node[path[--n]], out);
			fputc(n > 0 ? ';' : ' ', out);
		}
		fprintf(out, "%.0f\n", node->self);
	}
	return ferror(out) ? -EIO : 0;
}
