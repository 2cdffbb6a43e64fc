/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Flame graph: call trees merged by name
 *
 * A segment's stacks are trees of addresses; a flame graph merges frames that have the same name
 * under the same callers, with a node per process name at the root. Rows are first summed per
 * (process name, stack), then each such stack is folded into the merged tree from its outermost
 * caller inwards; a stack whose callers were folded before starts there. Inlined functions are
 * nodes of their own. Asked for by_wait, the name of the wait is part of what is summed, and a node at its end,
 * below the stack of a waker.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/answer/row.h"
#include "daemon/query/sources.h"

enum flame_kind {
	KIND_USER,
	KIND_KERNEL,
	KIND_JIT,
	KIND_INLINED,
	KIND_UNKNOWN,
	KIND_WAITING, /* no code: for what a thread waits */
};

static const char *const kind_name[] = {"user", "kernel", "jit", "inlined", "unknown", "waiting"};

struct flame_sum {
	double value;
	uint64_t samples, uncounted; /* samples, and those that the counts do not cover */
};

/* Node 0 is the root of all; children of it are process names. */
struct flame_node {
	uint32_t parent, name; /* name: index in names */
	struct flame_sum self;
};

struct flame {
	const struct query_filter *filter;
	struct text_table texts;
	struct key_table names; /* function, module, kind */
	struct flame_site {
		uint32_t source, line; /* lowest line seen: nearest to the function's start */
		uint32_t rank;         /* rank among all names, once they are sent */
	} *site;                       /* by name */
	uint32_t size_sites;
	struct key_table nodes;  /* parent, name */
	struct flame_node *node; /* by index in nodes */
	uint32_t size_nodes;
	struct provenance provenance;
	bool counts; /* values are counts of an event, not ns */
	struct {
		struct flame_sum *self; /* by node, as before the current source */
		uint32_t n, size;
		struct provenance provenance;
	} kept;

	/* of the current segment */
	struct loaded loaded;
	struct key_table
		stacks; /* comm, stack, with query_filter.by_wait the name of a wait or 0 */
	struct folded {
		struct flame_sum sum; /* of rows with just this stack */
		uint32_t node;        /* node of the tree at which it ends; 0: not folded yet */
	} *folded;                    /* by index in stacks */
	uint32_t size_folded;
};

static void add(struct flame_sum *to, const struct flame_sum *from)
{
	to->value += from->value;
	to->samples += from->samples;
	to->uncounted += from->uncounted;
}

/* wait: text of the wait's name; 0: none */
static int get_folded(
	struct flame *f, uint32_t comm, uint32_t stack, uint32_t wait, uint32_t *ret_index)
{
	int r = key_get(&f->stacks, &(struct key){{comm, stack, wait}}, ret_index);
	if (r != 0)
		return query_fail_full(&f->loaded, r);
	return array_grow(&f->folded, &f->size_folded, *ret_index + 1, sizeof(*f->folded));
}

static int take_row(void *userdata, const struct scan_row *row)
{
	struct flame *f = userdata;
	const struct loaded_task *task = &f->loaded.task[row->task];
	const struct loaded_task *process = &f->loaded.task[task->process];
	provenance_row(&f->provenance, &f->loaded, row);
	if (row->value <= 0 && row->count == 0)
		return 0;
	uint32_t comm = process->known ? process->comm : task->comm, i;
	const struct loaded_event *event = &f->loaded.event[row->event];
	int r = get_folded(f, comm ? comm : f->loaded.unknown_name, row->stack,
		f->filter->by_wait && event->offcpu ? event->name : 0, &i);
	const struct flame_sum sum = {row->value > 0 ? row->value : 0, row->count, row->uncounted};
	if (r == 0)
		add(&f->folded[i].sum, &sum);
	return r;
}

/* --- folding ---------------------------------------------------------------------------------- */

/* The child of that name, made if need be. */
static int step_down(
	struct flame *f, uint32_t *node, const struct key *name, uint32_t source, uint32_t line)
{
	uint32_t n, child;
	int r = key_get(&f->names, name, &n);
	if (r != 0)
		return query_fail_full(&f->loaded, r);
	r = array_grow(&f->site, &f->size_sites, n + 1, sizeof(*f->site));
	if (r < 0)
		return r;
	struct flame_site *site = &f->site[n];
	if (source && (!site->source || (line && (!site->line || line < site->line))))
		*site = (struct flame_site){.source = source, .line = line};

	r = key_get(&f->nodes, &(struct key){{*node, n}}, &child);
	if (r != 0)
		return query_fail_full(&f->loaded, r);
	r = array_grow(&f->node, &f->size_nodes, child + 1, sizeof(*f->node));
	if (r < 0)
		return r;
	f->node[child].parent = *node;
	f->node[child].name = n;
	*node = child;
	return 0;
}

static enum flame_kind kind_of(const struct loaded *l, const struct loaded_frame *frame)
{
	const bool named = frame->state == FRAME_NAMED;

	switch (l->file[frame->file].kind) {
	case FILE_KERNEL:
	case FILE_MODULE:
		return KIND_KERNEL;
	case FILE_PERF_MAP:
	case FILE_JITDUMP:
		return KIND_JIT;
	case FILE_ANON:
		return named ? KIND_JIT : KIND_UNKNOWN;
	case FILE_ELF:
	case FILE_VDSO:
		return KIND_USER;
	default:
		return named ? KIND_USER : KIND_UNKNOWN;
	}
}

static bool is_hidden_kernel(const struct flame *f, uint32_t node)
{
	const uint64_t *name = f->names.key[f->node[node].name].part;
	return node != 0 && name[0] == f->loaded.kernel_name && name[1] == f->loaded.kernel_name;
}

/* Fold the frame of a stack: its symbol, then the functions inlined into it, each one level down. A waker's stack is
 * upside down, above that of the thread that it woke. */
static int fold_frame(struct flame *f, uint32_t *node, uint32_t stack)
{
	const struct loaded *l = &f->loaded;
	const struct loaded_frame *frame = &l->frame[l->stack[stack].frame];
	const bool is_wakers = loaded_sleeper(l, stack) != stack;
	uint32_t module = loaded_module(l, frame), unknown = l->unknown_name;
	if (l->file[frame->file].hidden && is_hidden_kernel(f, *node))
		return 0; /* nor is its depth shown */
	int r = 0;
	for (uint32_t n = frame->n_places; n > 0 && r == 0; n--) {
		const uint32_t i = is_wakers ? frame->n_places - n : n - 1;
		const struct loaded_place *p = &l->place[frame->place + i];
		enum flame_kind kind = kind_of(l, frame);
		if (i + 1 < frame->n_places && kind == KIND_USER)
			kind = KIND_INLINED;
		struct key name = {{p->function ? p->function : unknown, module, kind,
			loaded_build(l, frame)}};
		r = step_down(f, node, &name, p->source, p->line);
	}
	return r;
}

/* Find where the outer callers that were folded before end. path holds the remaining nodes to fold,
 * leaf first. */
struct unfolded {
	uint32_t *path, n, size;
	uint32_t node;
};

static int find_folded(struct flame *f, uint32_t comm, uint32_t stack, struct unfolded *u)
{
	u->n = 0;
	u->node = 0;
	for (;; stack = f->loaded.stack[stack].parent) {
		uint32_t i;
		int r = get_folded(f, comm, stack, 0, &i);
		if (r == 0)
			r = array_grow(&u->path, &u->size, u->n + 1, sizeof(*u->path));
		if (r != 0)
			return r;
		u->node = f->folded[i].node;
		if (u->node != 0)
			return 0;
		u->path[u->n++] = i;
		if (stack == 0)
			return 0;
	}
}

/* Fold a stack; u->node is where it ends. */
static int fold_stack(struct flame *f, uint32_t comm, uint32_t of, struct unfolded *u)
{
	int r = find_folded(f, comm, of, u);
	while (r == 0 && u->n > 0) {
		uint32_t i = u->path[--u->n];
		uint32_t stack = (uint32_t)f->stacks.key[i].part[1];
		if (stack == 0) {
			struct key name = {{comm, 0, KIND_USER}};
			r = step_down(f, &u->node, &name, 0, 0);
		} else {
			r = fold_frame(f, &u->node, stack);
		}
		f->folded[i].node = u->node;
	}
	return r;
}

static int fold_wait(struct flame *f, uint32_t *node, uint32_t name)
{
	return step_down(f, node, &(struct key){{name, 0, KIND_WAITING}}, 0, 0);
}

/* A sample without a stack is shown below its process as an unknown place. */
static int fold_nothing(struct flame *f, uint32_t *node)
{
	struct key name = {{f->loaded.unknown_name, f->loaded.unknown_name, KIND_UNKNOWN}};
	return step_down(f, node, &name, 0, 0);
}

/* Fold the part of a stack that is a waker's. */
static int fold_waker(struct flame *f, uint32_t *node, uint32_t stack, uint32_t sleeper)
{
	uint32_t path[STACK_FRAMES_MAX], n = 0;
	int r = 0;
	for (; stack > sleeper && n < STACK_FRAMES_MAX; stack = f->loaded.stack[stack].parent)
		path[n++] = stack;
	while (n > 0 && r == 0)
		r = fold_frame(f, node, path[--n]);
	return r;
}

static int fold_stacks(struct flame *f)
{
	struct unfolded u = {0};
	int r = 0;
	/* folding adds callers behind the end; they have no value of their own */
	for (uint32_t i = 0, n = f->stacks.n_keys; i < n && r == 0; i++) {
		const struct key of = f->stacks.key[i];
		const uint32_t wait = (uint32_t)of.part[2], stack = (uint32_t)of.part[1];
		const uint32_t sleeper = wait ? loaded_sleeper(&f->loaded, stack) : stack;
		r = fold_stack(f, (uint32_t)of.part[0], sleeper, &u);
		uint32_t node = u.node;
		if (r == 0 && sleeper == 0)
			r = fold_nothing(f, &node);
		if (r == 0 && wait)
			r = fold_wait(f, &node, wait);
		if (r == 0)
			r = fold_waker(f, &node, stack, sleeper);
		if (r == 0)
			add(&f->node[node].self, &f->folded[i].sum);
	}
	free(u.path);
	return r;
}

static int add_segment(
	void *query, sqlite3 *db, const struct query_source *source, struct query_error *ret_error)
{
	struct flame *f = query;
	struct row_filter filter = {0};
	struct scan_notes notes = {0};
	const struct load_wish wish = {
		.places = true,
		.filter = f->filter,
		.since_ns = source->since_ns,
		.until_ns = source->until_ns,
		.pin = source->pin,
	};
	int r = load_segment(&f->loaded, db, &f->texts, &wish, ret_error);
	if (r == 0)
		r = filter_make(&filter, &f->loaded, f->filter);
	if (r == 0)
		r = scan_values(&f->loaded, &filter, &notes, take_row, f);
	if (r == 0)
		r = fold_stacks(f);
	if (r == 0)
		r = provenance_segment(&f->provenance, &f->loaded, &filter, &notes);
	for (uint32_t i = 1; i < QUERY_EVENTS_MAX; i++)
		f->counts |= filter.event[i] && !f->loaded.event[i].clock;
	filter_clear(&filter);
	loaded_clear(&f->loaded);
	key_table_clear(&f->stacks);
	free(f->folded);
	f->folded = NULL;
	f->size_folded = 0;
	return r;
}

/* --- values that may have to be taken back ---------------------------------------------------- */

static int keep(void *query)
{
	struct flame *f = query;
	f->kept.n = f->nodes.n_keys;
	int r = array_grow(&f->kept.self, &f->kept.size, f->kept.n, sizeof(*f->kept.self));
	for (uint32_t i = 0; i < f->kept.n && r == 0; i++)
		f->kept.self[i] = f->node[i].self;
	f->kept.provenance = f->provenance;
	return r;
}

/* Nodes stay, without a value, and are not sent. */
static void take_back(void *query)
{
	struct flame *f = query;
	for (uint32_t i = 0; i < f->nodes.n_keys && i < f->size_nodes; i++)
		f->node[i].self = i < f->kept.n ? f->kept.self[i] : (struct flame_sum){0};
	f->provenance = f->kept.provenance;
}

/* --- telling ---------------------------------------------------------------------------------- */

static int compare_names(const void *a, const void *b, void *userdata)
{
	const struct flame *f = userdata;
	const uint64_t *x = f->names.key[*(const uint32_t *)a].part;
	const uint64_t *y = f->names.key[*(const uint32_t *)b].part;
	for (size_t i = 0; i < 2; i++) {
		const char *s = text_of(&f->texts, (uint32_t)x[i]);
		const char *t = text_of(&f->texts, (uint32_t)y[i]);
		int r = x[i] == y[i] ? 0 : strcmp(s ? s : "", t ? t : "");
		if (r != 0)
			return r;
	}
	for (size_t i = 2; i < 4; i++)
		if (x[i] != y[i])
			return x[i] > y[i] ? 1 : -1;
	return 0;
}

/* The build id of the file of code without a symbol; NULL: it has a symbol, or is in no file. */
static const char *build_of(const struct flame *f, const uint64_t *name)
{
	const char *id = name[3] ? text_of(&f->texts, (uint32_t)(name[3] - 1)) : NULL;
	return name[3] && !(id && *id) ? "none" : id;
}

static int compare_nodes(const void *a, const void *b, void *userdata)
{
	const struct flame *f = userdata;
	const struct flame_node *x = &f->node[*(const uint32_t *)a];
	const struct flame_node *y = &f->node[*(const uint32_t *)b];
	if (x->parent != y->parent)
		return x->parent < y->parent ? -1 : 1;
	uint32_t p = f->site[x->name].rank, q = f->site[y->name].rank;
	return (p > q) - (p < q);
}

/* Names are few and nodes are many: names are compared once, nodes by their names' ranks. */
static int rank_names(struct flame *f)
{
	uint32_t n = f->names.n_keys, *name = calloc((size_t)n + 1, sizeof(*name));
	if (!name)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		name[i] = i;
	qsort_r(name, n, sizeof(*name), compare_names, f);
	for (uint32_t i = 0; i < n; i++)
		f->site[name[i]].rank = i;
	free(name);
	return 0;
}

/* Are there counts that cover only a part of the samples? */
static bool tells_counted(const struct flame *f)
{
	return f->counts && f->provenance.uncounted > 0;
}

struct node_row {
	const struct flame_node *node;
	const uint64_t *name; /* its key's parts */
	const struct flame_site *site;
	uint32_t number, parent; /* their numbers in the answer */
};

#define NODE_PART(COLUMN, KNOWN_IF)                                                                \
	COLUMN(node, "Node", number, of->number)                                                   \
	COLUMN(parent, "Parent", number, of->parent)                                               \
	COLUMN(function, "Function", text, text_of(&f->texts, (uint32_t)of->name[0]))              \
	COLUMN(module, "Module", text, text_of(&f->texts, (uint32_t)of->name[1]))                  \
	COLUMN(kind, "Kind", text, kind_name[of->name[2]])                                         \
	COLUMN(source, "Source", text, text_of(&f->texts, (uint32_t)of->site->source))             \
	KNOWN_IF(line, "Line", number, of->site->line, of->site->line)                             \
	COLUMN(build_id, "Build id", text, build_of(f, of->name))
#define COUNTS_PART(COLUMN, KNOWN_IF) COLUMN(value, "Self", count, integer_of(of->node->self.value))
#define TIME_PART(COLUMN, KNOWN_IF) COLUMN(value, "Self", ns, integer_of(of->node->self.value))
#define COUNTED_PART(COLUMN, KNOWN_IF)                                                             \
	COLUMN(samples, "Samples", count, of->node->self.samples)                                  \
	COLUMN(counted, "Counted", count, of->node->self.samples - of->node->self.uncounted)

#define COLUMNS_MAX 11

/* The table's head (of: NULL), or a row. */
static int tell_one(const struct flame *f, const struct node_row *of, const struct answer *answer)
{
	struct answer_column column[COLUMNS_MAX];
	struct answer_value value[COLUMNS_MAX];
	struct row_builder b = {.column = of ? NULL : column, .value = of ? value : NULL};
	ROW_PART(&b, NODE_PART);
	if (f->counts)
		ROW_PART(&b, COUNTS_PART);
	else
		ROW_PART(&b, TIME_PART);
	if (tells_counted(f))
		ROW_PART(&b, COUNTED_PART);
	return row_send(answer, NULL, &b);
}

static int tell_node(const struct flame *f, uint32_t i, uint32_t number, uint32_t parent,
	const struct answer *answer)
{
	const struct flame_node *node = &f->node[i];
	return tell_one(f,
		&(struct node_row){
			node, f->names.key[node->name].part, &f->site[node->name], number, parent},
		answer);
}

/* Nodes in the order in which they are sent: siblings together, sorted by name. A node without a
 * value in its subtree is not sent; its samples count for its caller. */
struct order {
	uint32_t n;         /* nodes, the root included */
	uint32_t *node;     /* by position; the root stands at 0 */
	uint32_t *position; /* by node */
	uint32_t *first;    /* by node: position of its first child, 0 none */
	uint32_t *number;   /* by node: its number in the answer */
};

static int order_make(struct order *o, struct flame *f)
{
	uint32_t n = f->nodes.n_keys;
	_cleanup_(freep) double *within = calloc(n, sizeof(*within));
	o->node = calloc(n, sizeof(*o->node));
	o->position = calloc(n, sizeof(*o->position));
	o->first = calloc(n, sizeof(*o->first));
	o->number = calloc(n, sizeof(*o->number));
	if (!o->node || !o->position || !o->first || !o->number || !within)
		return -ENOMEM;
	for (uint32_t i = n - 1; i > 0; i--) { /* children come behind their parents */
		within[i] += f->node[i].self.value;
		within[f->node[i].parent] += within[i];
		if (within[i] <= 0)
			add(&f->node[f->node[i].parent].self, &f->node[i].self);
	}
	o->n = 1;
	for (uint32_t i = 1; i < n; i++)
		if (within[i] > 0)
			o->node[o->n++] = i;
	qsort_r(o->node + 1, o->n - 1, sizeof(*o->node), compare_nodes, f);
	for (uint32_t i = o->n - 1; i > 0; i--) {
		o->position[o->node[i]] = i;
		o->first[f->node[o->node[i]].parent] = i;
	}
	return 0;
}

static void order_clear(struct order *o)
{
	free(o->node);
	free(o->position);
	free(o->first);
	free(o->number);
}

/* The position behind this one in preorder, its children left out; 0 at the end. */
static uint32_t next_beside(const struct flame *f, const struct order *o, uint32_t at)
{
	while (at != 0) {
		uint32_t parent = f->node[o->node[at]].parent;
		if (at + 1 < o->n && f->node[o->node[at + 1]].parent == parent)
			return at + 1;
		at = o->position[parent];
	}
	return 0;
}

static int tell_tree(const struct flame *f, struct order *o, const struct answer *answer)
{
	uint32_t turn = 0, at = o->first[0];
	while (at != 0) {
		uint32_t i = o->node[at];
		o->number[i] = ++turn;
		int r = tell_node(f, i, turn, o->number[f->node[i].parent], answer);
		if (r != 0)
			return r;
		at = o->first[i] ? o->first[i] : next_beside(f, o, at);
	}
	return 0;
}

static int tell(struct flame *f, const struct answer *answer)
{
	struct order o = {0};
	int r = rank_names(f);
	if (r == 0)
		r = order_make(&o, f);
	if (r == 0)
		r = tell_one(f, NULL, answer);
	if (r == 0)
		r = tell_tree(f, &o, answer);
	if (r == 0)
		r = provenance_tell(&f->provenance, &f->texts, answer);
	order_clear(&o);
	return r;
}

/* The root of all is node 0; no child can have its key. */
static int make_root(struct flame *f)
{
	uint32_t root;
	int r = key_get(&f->nodes, &(struct key){{UINT64_MAX}}, &root);
	return r != 0 ? r : array_grow(&f->node, &f->size_nodes, 1, sizeof(*f->node));
}

int query_flamegraph(struct query_source *source, size_t n_sources,
	const struct query_filter *filter, const struct answer *answer,
	struct query_error *ret_error)
{
	struct flame *f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	f->filter = filter;
	provenance_expect(&f->provenance,
		&(struct query_question){
			.by = QUERY_BY_FUNCTION, .inlined = true, .filter = filter});
	const struct source_reader reader = {f, add_segment, keep, take_back, &f->provenance};
	int r = make_root(f);
	if (r == 0)
		r = sources_read(&reader, source, n_sources, ret_error);
	if (r == 0)
		r = tell(f, answer);

	key_table_clear(&f->names);
	key_table_clear(&f->nodes);
	text_table_clear(&f->texts);
	free(f->site);
	free(f->node);
	free(f->kept.self);
	free(f);
	return r;
}
