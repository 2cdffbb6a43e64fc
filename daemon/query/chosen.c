/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "daemon/query/chosen.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/query/filter.h"

static bool narrows_tasks(const struct query_filter *f)
{
	return f->only_uid || f->n_pids + f->n_comms + f->n_cgroups + f->n_labels + f->n_jobs > 0;
}

static int copy_windows(struct query_chosen *c, const struct loaded *l)
{
	c->n_windows = l->n_windows;
	c->window = calloc((size_t)l->n_windows + 1, sizeof(*c->window));
	for (uint32_t i = 1; i <= l->n_windows && c->window; i++)
		c->window[i] = l->window[i].known && l->window[i].wanted;
	return c->window ? 0 : -ENOMEM;
}

int query_choose(sqlite3 *db, const struct query_source *source, const struct query_filter *filter,
	struct query_chosen *ret_chosen, struct query_error *ret_error)
{
	const struct load_wish wish = {
		.loops = true,
		.filter = filter,
		.since_ns = source->since_ns,
		.until_ns = source->until_ns,
	};
	struct query_filter of_time = *filter;
	struct text_table texts = {0};
	struct row_filter rows = {0};
	struct loaded l = {0};
	*ret_chosen = (struct query_chosen){0};
	of_time.event = NULL;
	of_time.n_cpus = 0;
	int r = load_segment(&l, db, &texts, &wish, ret_error);
	if (r == 0)
		r = filter_make(&rows, &l, &of_time);
	if (r == 0)
		r = copy_windows(ret_chosen, &l);
	if (r == 0 && narrows_tasks(filter)) {
		ret_chosen->task = rows.task;
		ret_chosen->n_tasks = l.n_tasks;
		rows.task = NULL;
	}
	filter_clear(&rows);
	loaded_clear(&l);
	text_table_clear(&texts);
	return r;
}

void query_chosen_clear(struct query_chosen *c)
{
	free(c->window);
	free(c->task);
	*c = (struct query_chosen){0};
}
