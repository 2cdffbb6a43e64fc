/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Part of a segment: the requested samples, and the dictionary entries that they need
 *
 * Without marks everything is needed. Marks are allocated once the size of a dictionary is known;
 * tasks and stacks are marked from the samples, other entries from references of these.
 */

#include "daemon/query/filter.h"

/* Looking up one entry by id costs as much as reading this many in sequence. */
#define LOAD_POINT_COST 8

enum mark_kind {
	MARK_TASK,
	MARK_STACK,
	MARK_FRAME,
	MARK_FILE,
	MARK_FUNCTION,
	MARK_SOURCE,
	N_MARK_KINDS,
};

struct mark_table {
	bool *mark; /* by id */
	uint32_t n, n_marked;
};

struct load_marks {
	struct mark_table table[N_MARK_KINDS];
};

static inline struct mark_table *marks_of(const struct loaded *l, enum mark_kind k)
{
	return l->marks ? &l->marks->table[k] : NULL;
}

static inline bool is_marked(const struct loaded *l, enum mark_kind k, uint32_t id)
{
	return !l->marks || l->marks->table[k].mark[id];
}

static inline void mark(struct loaded *l, enum mark_kind k, uint32_t id)
{
	struct mark_table *m = marks_of(l, k);
	if (!m || id == 0 || id > m->n || m->mark[id])
		return;
	m->mark[id] = true;
	m->n_marked++;
}

/* Does the file have this table? Later ones are missing in files of earlier versions. 0, QUERY_FAILED, -errno. */
int load_has_table(struct loaded *l, const char *name, bool *ret_is_there);

/* Allocate marks for n ids, if marks are used. 0 or -ENOMEM. */
int marks_make(struct loaded *l, enum mark_kind k, uint32_t n);
void marks_clear(struct loaded *l);

/* Find the range of samples in selected windows; use marks unless that is all of them. 0,
 * QUERY_FAILED, -errno. */
int load_part_find(struct loaded *l, const struct query_filter *filter);
/* Mark the tasks and stacks of these samples, and what else is wished. */
int load_part_mark(struct loaded *l, const struct load_wish *wish);

/* Give loaded processes their labels. 0, QUERY_FAILED, -errno. */
int load_labels(struct loaded *l);
/* Read its meta table (load_meta.c). 0, QUERY_FAILED, -errno. */
int load_meta(struct loaded *l);

/* Rows of one statement. */
typedef int load_take(struct loaded *l, struct cursor *c);
int load_each(struct loaded *l, const char *sql, bool pairs, load_take *take);
/* Allocate an array for a table's ids. */
int load_array(
	struct loaded *l, const char *sql, void *array, uint32_t *ret_n, size_t element_bytes);
