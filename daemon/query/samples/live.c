/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Live queries use the code of stored ones. Rows, keys, totals and provenance are the same, but
 * come from the walk's structs. Each function has the name of the process that spent most time in
 * it, since on a whole system the function's name alone often does not show which program is meant.
 *
 * A query for callers is answered row by row: we walk the stack from the leaf outwards to the
 * outermost appearance of the function, so that recursion counts once. The row counts for the
 * caller of that frame.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/query/samples/live_load.h"

#define NO_CALLER "[no caller]"

/* State of a query under way. */
struct asking {
	struct hotspots h;
	struct live_load load;
	struct row_filter filter;
	struct scan_notes notes;
	/* self value of (function, comm) pairs */
	struct key_table pairs;
	double *pair;
	uint32_t size_pairs;
	/* the function whose callers are requested */
	const char *function, *module;
	uint32_t function_text, module_text; /* 0: not used by the window */
	uint32_t no_caller;                  /* hot */
};

static int begin(struct asking *q, const struct live *l, enum query_by by,
	const struct query_filter *filter, struct query_error *ret_error)
{
	q->h.by = by;
	q->h.filter = filter;
	q->load.live = l;
	q->load.filter = filter;
	q->load.by = by;
	q->load.callers = query_by_kinds[by].frames;
	q->load.loaded = &q->h.loaded;
	q->h.provenance.live = true;
	provenance_expect(&q->h.provenance, &(struct query_question){.by = by, .filter = filter});
	int r = live_load(&q->load, &q->h.texts, ret_error);
	if (r == 0)
		r = hotspots_prepare(&q->h);
	if (r == 0)
		r = filter_make(&q->filter, &q->h.loaded, filter);
	if (r == 0)
		hotspots_find_values(&q->h, &q->filter);
	return r;
}

/* Losses, then the rest of the provenance. 0, QUERY_FAILED, a callback's value, -errno. */
static int tell(struct asking *q, uint32_t limit, const struct answer *answer)
{
	struct provenance *p = &q->h.provenance;
	provenance_source(p, &q->h.loaded, &q->filter, &q->notes);
	int r = live_losses(&q->load, &q->filter, p);
	if (r == 0)
		r = hotspots_tell(&q->h, limit, answer);
	return r == 0 ? provenance_tell(p, &q->h.texts, answer) : r;
}

static void end(struct asking *q)
{
	filter_clear(&q->filter);
	hotspots_forget_source(&q->h);
	live_load_clear(&q->load);
	hotspots_clear(&q->h);
	key_table_clear(&q->pairs);
	free(q->pair);
	free(q);
}

/* --- hotspots --------------------------------------------------------------------------------- */

static int add_pair(struct asking *q, const struct scan_row *row)
{
	const struct loaded *l = &q->h.loaded;
	uint32_t hot, pair, comm = l->task[l->task[row->task].process].comm;
	int r = hotspots_key_row(&q->h, row, &hot);
	if (r != 0)
		return r;
	r = key_get(&q->pairs, &(struct key){{hot, comm}}, &pair);
	if (r == 0)
		r = array_grow(&q->pair, &q->size_pairs, pair + 1, sizeof(*q->pair));
	if (r != 0)
		return query_fail_full(l, r);
	q->pair[pair] += row->value;
	return 0;
}

static int take_row(void *userdata, const struct scan_row *row)
{
	struct asking *q = userdata;
	int r = hotspots_take_row(&q->h, row);
	return r == 0 && q->h.with_process ? add_pair(q, row) : r;
}

/* Each function's name[0] becomes the comm with most of its self value. */
static int choose_processes(struct asking *q)
{
	double *most = calloc((size_t)q->h.keys.n_keys + 1, sizeof(*most));
	if (!most)
		return -ENOMEM;
	for (uint32_t i = 0; i < q->pairs.n_keys; i++) {
		const uint64_t *part = q->pairs.key[i].part;
		if (q->pair[i] <= most[part[0]])
			continue;
		most[part[0]] = q->pair[i];
		q->h.hotspot[part[0]].name[0] = (uint32_t)part[1];
	}
	free(most);
	return 0;
}

int query_live_hotspots(const struct live *l, enum query_by by, uint32_t limit,
	const struct query_filter *filter, const struct answer *answer,
	struct query_error *ret_error)
{
	struct asking *q = calloc(1, sizeof(*q));
	if (!q)
		return -ENOMEM;
	q->h.with_process = by == QUERY_BY_FUNCTION;
	int r = begin(q, l, by, filter, ret_error);
	if (r == 0)
		r = live_scan(&q->load, &q->filter, &q->notes, take_row, q);
	if (r == 0)
		r = hotspots_add_totals(&q->h);
	if (r == 0 && q->h.with_process)
		r = choose_processes(q);
	if (r == 0)
		r = tell(q, limit, answer);
	end(q);
	return r;
}

/* --- callers ---------------------------------------------------------------------------------- */

/* Is this key the requested function? */
static bool is_callee(const struct asking *q, uint32_t hot)
{
	const uint64_t *part = q->h.keys.key[hot].part;
	return part[0] == q->function_text && q->function_text != 0 &&
	       (!q->module || part[1] == q->module_text);
}

static void count_call(struct hotspots *h, uint32_t hot, const struct scan_row *row, bool self)
{
	struct hotspot *spot = &h->hotspot[hot];
	spot->total += row->value;
	h->sum += row->value;
	if (!self)
		return;
	spot->self += row->value;
	spot->samples += row->count;
	spot->uncounted += row->uncounted;
	spot->self_ns += row->weight_ns;
	if (row->cycles >= 0) {
		spot->cycles += row->cycles;
		spot->has_cycles = h->cycles = true;
	}
	if (row->instructions >= 0) {
		spot->instructions += row->instructions;
		spot->has_instructions = h->instructions = true;
	}
}

static int take_call(void *userdata, const struct scan_row *row)
{
	struct asking *q = userdata;
	const struct loaded *l = &q->h.loaded;
	uint32_t caller = 0;
	bool found = false;
	for (uint32_t id = row->stack; id != 0; id = l->stack[id].parent)
		if (is_callee(q, q->h.frame_hot[l->stack[id].frame])) {
			caller = l->stack[id].parent;
			found = true;
		}
	if (!found)
		return 0;
	provenance_row(&q->h.provenance, l, row);
	uint32_t hot = caller ? q->h.frame_hot[l->stack[caller].frame] : q->no_caller;
	bool self = is_callee(q, q->h.frame_hot[l->stack[row->stack].frame]);
	count_call(&q->h, hot, row, self);
	return 0;
}

/* The key for "no caller", and the texts to look for. 0, QUERY_FAILED, -errno. */
static int prepare_callers(struct asking *q)
{
	struct hotspots *h = &q->h;
	uint32_t text;
	int r = text_get(&h->texts, q->function, &q->function_text);
	if (r == 0 && q->module)
		r = text_get(&h->texts, q->module, &q->module_text);
	if (r == 0)
		r = text_get(&h->texts, NO_CALLER, &text);
	if (r == 0)
		r = key_get(&h->keys, &(struct key){{text}}, &q->no_caller);
	if (r == 0)
		r = array_grow(&h->hotspot, &h->size, q->no_caller + 1, sizeof(*h->hotspot));
	return query_fail_full(&h->loaded, r);
}

int query_live_callers(const struct live *l, const char *function, const char *module,
	uint32_t limit, const struct query_filter *filter, const struct answer *answer,
	struct query_error *ret_error)
{
	struct asking *q = calloc(1, sizeof(*q));
	if (!q)
		return -ENOMEM;
	q->h.by_total = true;
	q->function = function;
	q->module = module;
	int r = begin(q, l, QUERY_BY_FUNCTION, filter, ret_error);
	if (r == 0)
		r = prepare_callers(q);
	if (r == 0)
		r = live_scan(&q->load, &q->filter, &q->notes, take_call, q);
	if (r == 0)
		r = tell(q, limit, answer);
	end(q);
	return r;
}
