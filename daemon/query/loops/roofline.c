/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * From facts to rows: sums of each group, their times, and the figures of both.
 *
 * A loop's own counts are without the loops inside; each row has the figures of both, a loop's own
 * and those with the loops inside. roofline_time.c finds their time. A figure without a time or
 * without counts is absent.
 */
#include "daemon/query/loops/roofline_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/memory.h"

/* Iterations from which the rates of a running nest are shown: they are then off by at most a
 * tenth. */
#define UNFINISHED_ITERATIONS 10
#define NOTED_SHARE 0.01 /* of the time: less needs no note below the table */

static int find(const char *const *names, int n, const char *name)
{
	for (int i = 0; i < n; i++)
		if (strcmp(names[i], name) == 0)
			return i;
	return -1;
}

int roofline_by_parse(const char *name)
{
	static const char *const names[N_ROOFLINE_BY] = {"loop", "function", "region", "thread"};
	return find(names, N_ROOFLINE_BY, name);
}

int roofline_ops_parse(const char *name)
{
	static const char *const names[N_ROOFLINE_OPS] = {"fp", "int", "sp", "dp"};
	return find(names, N_ROOFLINE_OPS, name);
}

enum tier roofline_coarsest(const struct roofline_question *question)
{
	const struct query_filter *f = question->filter;
	if (question->by == ROOFLINE_THREAD)
		return TIER_WINDOW;
	return f && f->n_pids > 0 ? TIER_MINUTE : TIER_HOUR;
}

/* --- sums ------------------------------------------------------------------------------------- */

/* Metrics that belong to a loop or region itself, regardless of nested ones. */
static bool is_own(unsigned metric)
{
	return metric == LOOP_ENTRIES || metric == LOOP_ITERATIONS ||
	       metric == LOOP_TIMED_ENTRIES || metric == LOOP_TIME_NS ||
	       metric == LOOP_COUNTED_ENTRIES || metric >= LOOP_METRICS_OF_PROGRAMS;
}

static void add_fact(struct roof_sums *to, const struct fact *fact, bool own)
{
	for (unsigned metric = 1; metric < N_LOOP_METRICS; metric++) {
		if (is_own(metric) && !own)
			continue;
		to->value[metric] += (double)fact->value[LOOP_VALUE(metric, false)] +
				     (double)fact->value[LOOP_VALUE(metric, true)];
	}
	to->modelled_bytes += (double)fact->value[LOOP_VALUE(LOOP_BYTES_LOADED, true)] +
			      (double)fact->value[LOOP_VALUE(LOOP_BYTES_STORED, true)];
	to->sampled_ns += fact->sampled_ns;
	to->cycles += fact->cycles;
	to->instructions += fact->instructions;
	to->samples += fact->samples;
	to->uncounted += fact->uncounted;
}

static void add_sums(struct roof_sums *to, const struct roof_sums *from)
{
	for (unsigned metric = 1; metric < N_LOOP_METRICS; metric++)
		to->value[metric] += from->value[metric];
	to->modelled_bytes += from->modelled_bytes;
	to->sampled_ns += from->sampled_ns;
	to->cycles += from->cycles;
	to->instructions += from->instructions;
	to->samples += from->samples;
	to->uncounted += from->uncounted;
	to->n_scarce += from->n_scarce;
}

static bool is_region(const struct loop_facts *f, uint32_t site)
{
	return site != 0 && f->sites.site[site - 1].kind == LOOP_SITE_REGION;
}

static bool is_callee(const struct loop_facts *f, uint32_t site)
{
	return site != 0 && f->sites.site[site - 1].kind == LOOP_SITE_CALLEE;
}

static bool is_block(const struct loop_facts *f, uint32_t site)
{
	return site != 0 && f->sites.site[site - 1].kind == LOOP_SITE_BLOCK;
}

/* The group of code outside of all regions; 0: none. */
static uint32_t outside(const struct loop_facts *f)
{
	for (uint32_t i = 0; i < f->sites.keys.n_keys; i++) {
		const char *name = text_of(&f->texts, f->sites.site[i].subprogram);
		if (f->sites.site[i].kind == LOOP_SITE_REGION && name && !*name)
			return i + 1;
	}
	return 0;
}

/* The group that a fact's counts belong to; 0 none. */
static uint32_t group_of(const struct roofline *r, const struct key *key, uint32_t no_region)
{
	const struct loop_facts *f = &r->facts;
	uint32_t site = (uint32_t)key->part[0], region = (uint32_t)key->part[1];
	if (r->q.by == ROOFLINE_THREAD)
		return (uint32_t)key->part[2];
	if (r->q.by != ROOFLINE_REGION)
		return is_region(f, site) ? 0 : loop_facts_owner(f, site);
	if (region == FACT_ANY_REGION)
		return 0;
	return is_region(f, site) ? site : region ? region : no_region;
}

static void sum_self(struct roofline *r)
{
	const struct loop_facts *f = &r->facts;
	uint32_t no_region = outside(f);
	for (uint32_t i = 0; i < f->table.keys.n_keys; i++) {
		uint32_t group = group_of(r, &f->table.keys.key[i], no_region);
		if (group == 0)
			continue;
		uint32_t site = (uint32_t)f->table.keys.key[i].part[0];
		/* the entries of a loop do not count for its region, nor a block's for its loop; a
		 * region's time is its thread's time again */
		bool own = r->q.by == ROOFLINE_REGION ? is_region(f, site)
			   : is_region(f, site)       ? site == no_region
			   : is_callee(f, site)       ? r->q.by != ROOFLINE_THREAD
						      : !is_block(f, site);
		add_fact(&r->groups.self[group - 1], &f->table.fact[i], own);
		bool is_function =
			f->table.keys.key[i].part[0] != 0 &&
			f->sites.site[f->table.keys.key[i].part[0] - 1].kind == LOOP_SITE_FUNCTION;
		r->groups.self[group - 1].n_scarce += is_function && loop_facts_is_scarce(f, i);
	}
}

/* Parents have lower numbers than what is in them. Blocks have nothing of their own. */
static void sum_total(struct roofline *r)
{
	const struct loop_facts *f = &r->facts;
	for (uint32_t i = 0; i < r->groups.n; i++)
		r->groups.total[i] = r->groups.self[i];
	if (r->q.by == ROOFLINE_THREAD)
		return;
	for (uint32_t i = r->groups.n; i > 0; i--) {
		uint32_t parent = f->sites.site[i - 1].parent;
		/* a copy's time counts as its caller's work, another callee's does not */
		bool is_own_work = !roofline_is_callee(r, i - 1) || roofline_is_copy(r, i - 1);
		if (parent != 0 && parent < i && is_own_work)
			add_sums(&r->groups.total[parent - 1], &r->groups.total[i - 1]);
	}
	for (uint32_t i = 0; i < r->groups.n; i++)
		for (unsigned metric = 1; metric < N_LOOP_METRICS; metric++)
			if (is_own(metric))
				r->groups.total[i].value[metric] = r->groups.self[i].value[metric];
}

/* If 1 in N entries of a region was counted, the others are assumed to be like it. */
static void scale_region(struct roof_sums *s)
{
	double all = s->value[LOOP_ENTRIES], counted = s->value[LOOP_COUNTED_ENTRIES];
	if (counted <= 0 || counted >= all)
		return;
	for (unsigned metric = 1; metric < N_LOOP_METRICS; metric++)
		if (!is_own(metric))
			s->value[metric] *= all / counted;
}

/* --- rows ------------------------------------------------------------------------------------- */

static bool is_wanted(const struct roofline *r, uint32_t group)
{
	static const uint8_t kinds[] = {
		[ROOFLINE_LOOP] = LOOP_SITE_LOOP,
		[ROOFLINE_FUNCTION] = LOOP_SITE_FUNCTION,
		[ROOFLINE_REGION] = LOOP_SITE_REGION,
	};
	const double *v = r->groups.total[group].value;
	if (r->q.by == ROOFLINE_LOOP && roofline_is_copy(r, group))
		return roofline_is_loop(r, group);
	if (r->q.by != ROOFLINE_THREAD && r->facts.sites.site[group].kind != kinds[r->q.by])
		return false;
	return v[LOOP_INSTRUCTIONS] > 0 || v[LOOP_ENTRIES] > 0 || v[LOOP_ITERATIONS] > 0 ||
	       v[LOOP_TIME_NS] > 0;
}

/* If no entry of a loop counted, only its time is known. */
static void forget_counts(struct roof_figures *f)
{
	f->ops = f->bytes = f->ops_per_ns = f->bytes_per_ns = f->bytes_per_ns_corrected =
		f->ops_per_byte = f->lanes = f->cost = f->error = -1;
	f->loaded_per_ns = f->stored_per_ns = f->loaded_per_ns_corrected =
		f->stored_per_ns_corrected = -1;
}

static void forget_rates(struct roof_figures *f)
{
	f->ops_per_ns = f->bytes_per_ns = f->bytes_per_ns_corrected = f->cost = f->error = -1;
	f->loaded_per_ns = f->stored_per_ns = f->loaded_per_ns_corrected =
		f->stored_per_ns_corrected = -1;
}

/* An outermost loop that adds all counts at once, and of which no entry both began and ended within
 * these counts: the counts may be ahead of its time or behind, by any factor. A nest that did many
 * iterations is off by only one of them. */
static bool is_unfinished(const struct roofline *r, uint32_t group)
{
	const double *own = r->groups.self[group].value;
	if (!(r->facts.sites.site[group].flags & MPERF_SCOPE_HOISTED) || own[LOOP_TIME_NS] <= 0 ||
		(own[LOOP_ENTRIES] > 0 && own[LOOP_TIMED_ENTRIES] > 0))
		return false;
	const bool has_inner =
		r->groups.total[group].value[LOOP_INSTRUCTIONS] > own[LOOP_INSTRUCTIONS];
	return !has_inner || own[LOOP_ITERATIONS] < UNFINISHED_ITERATIONS;
}

/* Is the loop unfinished, or one around it? */
static bool has_no_rates(const struct roofline *r, uint32_t group)
{
	if (r->q.by != ROOFLINE_LOOP || !roofline_is_loop(r, group))
		return false;
	for (uint32_t i = group + 1; i != 0; i = roofline_loop_around(r, i - 1))
		if (is_unfinished(r, i - 1))
			return true;
	return false;
}

static struct roof_row row_of(const struct roofline *r, uint32_t group)
{
	struct roof_row row = {
		.group = group,
		.total = roof_figures_of(
			&r->groups.total[group], &r->times.total[group], r->q.ops, &r->costs),
		.self = roof_figures_of(
			&r->groups.self[group], &r->times.self[group], r->q.ops, &r->costs),
		.self_ns = r->times.self[group].ns,
		.doubted = roofline_doubts(r, group),
	};
	struct roof_share share = roof_share_of(r, group);
	if (share.entries > 0 && share.counted == 0) {
		forget_counts(&row.total);
		forget_counts(&row.self);
	} else if (has_no_rates(r, group)) {
		forget_rates(&row.total);
		forget_rates(&row.self);
	}
	for (uint32_t i = roofline_loop_around(r, group); i != 0 && row.depth < UINT8_MAX;
		i = roofline_loop_around(r, i - 1))
		row.depth++;
	return row;
}

static int make_rows(struct roofline *r)
{
	r->rows.row = calloc((size_t)r->groups.n + 1, sizeof(*r->rows.row));
	if (!r->rows.row)
		return -ENOMEM;
	for (uint32_t i = 0; i < r->groups.n; i++) {
		if (!is_wanted(r, i))
			continue;
		r->rows.any_sampled |= r->times.self[i].clock == ROOF_SAMPLED;
		r->rows.any_shared |= r->times.self[i].clock == ROOF_SHARED &&
				      r->times.self[i].ns >= NOTED_SHARE * r->times.whole_ns;
		r->rows.any_measured_in_part |=
			r->q.by == ROOFLINE_REGION && r->groups.self[i].value[LOOP_REPRESENTED] > 0;
		r->rows.row[r->rows.n] = row_of(r, i);
		r->rows.any_doubted |= r->rows.row[r->rows.n++].doubted != 0;
	}
	return roofline_order(r);
}

/* The time for which the counts of all threads gathered. */
static double span_of(const struct loop_facts *f)
{
	double span_ns = 0;
	uint32_t no_region = outside(f);
	for (uint32_t i = 0; i < f->table.keys.n_keys; i++)
		if (no_region && f->table.keys.key[i].part[0] == no_region)
			span_ns += (double)f->table.fact[i].value[LOOP_VALUE(LOOP_SPAN_NS, false)];
	return span_ns;
}

static int work_out(struct roofline *r, const struct answer *answer)
{
	const struct loop_facts *f = &r->facts;
	r->groups.n = r->q.by == ROOFLINE_THREAD ? f->whos.keys.n_keys : f->sites.keys.n_keys;
	size_t n = (size_t)r->groups.n + 1;
	r->groups.self = calloc(n, sizeof(*r->groups.self));
	r->groups.total = calloc(n, sizeof(*r->groups.total));
	if (!r->groups.self || !r->groups.total)
		return -ENOMEM;
	loop_facts_scale(&r->facts);
	r->has_dram = dram_find(f, r->q.cores, &r->dram);
	sum_self(r);
	sum_total(r);
	for (uint32_t i = 0; i < r->groups.n && r->q.by == ROOFLINE_REGION; i++)
		scale_region(&r->groups.total[i]);
	r->groups.span_ns = span_of(f);
	int outcome = roofline_find_inside(r);
	if (outcome == 0)
		outcome = roofline_times(r);
	if (outcome != 0)
		return outcome;
	r->costs = roof_costs_measure();
	outcome = make_rows(r);
	return outcome == 0 ? roofline_tell(r, answer) : outcome;
}

static void roofline_free(struct roofline *r)
{
	loop_facts_clear(&r->facts);
	free(r->groups.self);
	free(r->groups.total);
	free(r->rows.row);
	roof_times_clear(&r->times);
	roof_nests_clear(&r->nests);
	free(r);
}
DEFINE_CLEANUP(struct roofline *, roofline_free)

static struct roofline *roofline_new(const struct roofline_question *question)
{
	struct roofline *r = calloc(1, sizeof(*r));
	if (!r)
		return NULL;
	r->q = *question;
	const struct facts_question wish = {.filter = question->filter,
		.by_thread = question->by == ROOFLINE_THREAD,
		.by_region = question->by == ROOFLINE_REGION,
		.samples = true};
	loop_facts_begin(&r->facts, &wish, QUERY_BY_FUNCTION);
	return r;
}

int query_roofline(struct query_source *source, size_t n_sources,
	const struct roofline_question *question, const struct answer *answer,
	struct query_error *ret_error)
{
	_cleanup_(roofline_freep) struct roofline *r = roofline_new(question);
	if (!r)
		return -ENOMEM;
	int outcome = loop_facts_read(&r->facts, source, n_sources, ret_error);
	return outcome == 0 ? work_out(r, answer) : outcome;
}
