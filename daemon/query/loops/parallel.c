/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Facts by (site, thread) become rows by (site, process) or (site, thread), with the spread over
 * threads, from which the imbalance follows.
 *
 * Imbalance: the largest work of a thread over the mean of all, less 1: by how much longer the region
 * takes than if the same work were divided evenly. Source: Pearce et al., Quantifying the
 * Effectiveness of Load Balance Algorithms, ICS 2012 (percent imbalance). It uses sums over all
 * instances: if a different thread is late each time, the sums are even, and only the waits show the
 * imbalance.
 */
#include "daemon/query/loops/parallel_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/memory.h"

int parallel_by_parse(const char *name)
{
	static const char *const names[N_PARALLEL_BY] = {
		"region", "thread", "place", "wait", "loop", "function"};
	for (int i = 0; i < N_PARALLEL_BY; i++)
		if (strcmp(names[i], name) == 0)
			return i;
	return -1;
}

static double value_of(const struct fact *f, enum loop_metric metric)
{
	return (double)f->value[LOOP_VALUE(metric, false)];
}

static double both(const struct fact *f, enum loop_metric metric)
{
	return value_of(f, metric) + (double)f->value[LOOP_VALUE(metric, true)];
}

/* --- rows ------------------------------------------------------------------------------------- */

static bool is_of_kind(const struct parallel *p, uint8_t kind)
{
	switch (p->q.by) {
	case PARALLEL_BY_PLACE:
		return kind >= LOOP_SITE_WORK && kind <= LOOP_SITE_LOCK;
	case PARALLEL_BY_WAIT:
		return kind == LOOP_SITE_WAIT || kind == LOOP_SITE_LOCK;
	case PARALLEL_BY_LOOP:
		return kind == LOOP_SITE_LOOP;
	default:
		return kind == LOOP_SITE_PARALLEL;
	}
}

static bool by_thread(const struct parallel *p)
{
	return p->q.by == PARALLEL_BY_THREAD || p->q.by == PARALLEL_BY_WAIT;
}

static uint64_t process_of(const struct loop_facts *f, uint32_t who)
{
	return who ? (uint32_t)f->whos.who[who - 1].pid : 0;
}

static int row_get(struct parallel *p, const struct key *key, struct parallel_row **ret_row)
{
	uint32_t i;
	int r = key_get(&p->keys, key, &i);
	if (r == 0)
		r = array_grow(&p->row, &p->size_rows, i + 1, sizeof(*p->row));
	if (r == 0)
		*ret_row = &p->row[i];
	return r == KEY_TABLE_FULL ? -EOVERFLOW : r;
}

static void add_counted(struct parallel_row *row, const struct fact *fact, bool is_loop)
{
	double time_ns = value_of(fact, LOOP_TIME_NS), wait_ns = value_of(fact, LOOP_WAIT_NS),
	       lock_ns = value_of(fact, LOOP_LOCK_NS);
	double work = is_loop ? both(fact, LOOP_ITERATIONS) : time_ns - wait_ns - lock_ns;
	work = work > 0 ? work : 0;
	row->n_threads++;
	row->entries += value_of(fact, LOOP_ENTRIES);
	row->calls += is_loop ? 0 : value_of(fact, LOOP_CALLS);
	row->time_ns += time_ns;
	row->wait_ns += wait_ns;
	row->lock_ns += lock_ns;
	row->longest_ns = time_ns > row->longest_ns ? time_ns : row->longest_ns;
	row->work += work;
	row->most_work = work > row->most_work ? work : row->most_work;
	row->iterations += both(fact, LOOP_ITERATIONS);
	row->fp_ops += both(fact, LOOP_FP16_OPS) + both(fact, LOOP_FP32_OPS) +
		       both(fact, LOOP_FP64_OPS) + both(fact, LOOP_FP_WIDE_OPS);
	row->bytes += both(fact, LOOP_BYTES_LOADED) + both(fact, LOOP_BYTES_STORED);
}

static int take_counted(struct parallel *p, const uint64_t *part, const struct fact *fact)
{
	const struct loop_facts *f = &p->facts;
	uint32_t site = (uint32_t)part[0], who = (uint32_t)part[2];
	const struct fact_site *s = &f->sites.site[site - 1];
	bool is_loop = p->q.by == PARALLEL_BY_LOOP;
	if (!is_of_kind(p, s->kind) || p->q.by == PARALLEL_BY_FUNCTION)
		return 0;
	uint32_t region = is_loop                         ? loop_facts_region_of_loop(f, site)
			  : s->kind == LOOP_SITE_PARALLEL ? site
							  : s->parent;
	if (is_loop && !region)
		return 0;
	struct parallel_row *row;
	const struct key key = {{site, process_of(f, who), by_thread(p) ? who : 0, 0}};
	int r = row_get(p, &key, &row);
	if (r != 0)
		return r;
	row->site = site;
	row->region = region;
	row->who = row->who ? row->who : who;
	add_counted(row, fact, is_loop);
	return 0;
}

/* Samples go to rows of regions, and are rows by function. */
static int take_sampled(struct parallel *p, const uint64_t *part, const struct fact *fact)
{
	struct loop_facts *f = &p->facts;
	uint32_t region = (uint32_t)part[0], who = (uint32_t)part[2];
	bool functions = p->q.by == PARALLEL_BY_FUNCTION;
	bool regions = p->q.by == PARALLEL_BY_REGION || p->q.by == PARALLEL_BY_THREAD;
	if (!(functions || (regions && region)))
		return 0;
	struct parallel_row *row;
	const struct key key = {
		{region, process_of(f, who), by_thread(p) ? who : 0, functions ? part[3] : 0}};
	int r = row_get(p, &key, &row);
	if (r != 0)
		return r;
	row->site = row->region = region;
	row->who = row->who ? row->who : who;
	row->function = functions ? LOOP_UNCOUNTED_FUNCTION(part[3]) : 0;
	row->module = functions ? LOOP_UNCOUNTED_MODULE(part[3]) : 0;
	row->sampled_ns += fact->sampled_ns;
	row->samples += (double)fact->samples;
	return 0;
}

static int take_facts(struct parallel *p)
{
	const struct loop_facts *f = &p->facts;
	int r = 0;
	for (uint32_t i = 0; i < f->table.keys.n_keys && r == 0; i++) {
		const uint64_t *part = f->table.keys.key[i].part;
		r = part[1] == FACT_ANY_REGION ? take_sampled(p, part, &f->table.fact[i])
					       : take_counted(p, part, &f->table.fact[i]);
	}
	return r;
}

static double weight_of(const struct parallel *p, const struct parallel_row *row)
{
	return p->q.by == PARALLEL_BY_FUNCTION ? row->sampled_ns
	       : p->q.by == PARALLEL_BY_LOOP   ? row->iterations
					       : row->time_ns;
}

static int compare(const void *a, const void *b, void *userdata)
{
	const struct parallel *p = userdata;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	double of_x = weight_of(p, &p->row[x]), of_y = weight_of(p, &p->row[y]);
	return of_x != of_y ? (of_x < of_y ? 1 : -1) : (x > y) - (x < y);
}

static int sort(struct parallel *p)
{
	p->order = calloc((size_t)p->keys.n_keys + 1, sizeof(*p->order));
	if (!p->order)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->keys.n_keys; i++)
		p->order[i] = i;
	qsort_r(p->order, p->keys.n_keys, sizeof(*p->order), compare, p);
	return 0;
}

/* ---------------------------------------------------------------------------------------------- */

static int tell(struct parallel *p, const struct answer *answer)
{
	int r = take_facts(p);
	if (r == 0)
		r = sort(p);
	if (r == 0)
		r = parallel_tell_columns(p, answer);
	uint32_t n = p->q.limit && p->q.limit < p->keys.n_keys ? p->q.limit : p->keys.n_keys;
	for (uint32_t i = 0; i < n && r == 0; i++)
		r = parallel_tell_row(p, &p->row[p->order[i]], answer);
	return r == 0 ? provenance_tell(&p->facts.provenance, &p->facts.texts, answer) : r;
}

static void parallel_free(struct parallel *p)
{
	loop_facts_clear(&p->facts);
	key_table_clear(&p->keys);
	free(p->row);
	free(p->order);
	free(p);
}
DEFINE_CLEANUP(struct parallel *, parallel_free)

static struct parallel *parallel_new(const struct parallel_question *question)
{
	struct parallel *p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->q = *question;
	const struct facts_question wish = {.filter = question->filter,
		.by_thread = true,
		.samples = question->by == PARALLEL_BY_REGION ||
			   question->by == PARALLEL_BY_THREAD ||
			   question->by == PARALLEL_BY_FUNCTION,
		.places = true,
		.places_only = question->by != PARALLEL_BY_LOOP};
	loop_facts_begin(&p->facts, &wish, QUERY_BY_THREAD);
	return p;
}

int query_parallel(struct query_source *source, size_t n_sources,
	const struct parallel_question *question, const struct answer *answer,
	struct query_error *ret_error)
{
	_cleanup_(parallel_freep) struct parallel *p = parallel_new(question);
	if (!p)
		return -ENOMEM;
	int outcome = loop_facts_read(&p->facts, source, n_sources, ret_error);
	return outcome == 0 ? tell(p, answer) : outcome;
}
