/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Hotspots: one pass over the samples, one over the tree
 *
 * Each sample row adds to the key of its leaf (or task, or hart) and, where code is asked for, to
 * its node of the call-site tree. Then values flow down the tree to their callers, from the highest
 * id to the lowest, since callers have lower ids. A walk of the tree gives each key its total: a
 * node's subtree counts for its key only if no caller above it has the same key, so a stack counts
 * once even if a function recurs in it. Both passes are linear in rows and nodes.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/query/load_part.h"
#include "daemon/query/samples/hotspots.h"
#include "daemon/query/samples/hotspots_metrics.h"
#include "daemon/query/sources.h"

int hotspots_take_row(void *userdata, const struct scan_row *row)
{
	struct hotspots *h = userdata;
	uint32_t hot;
	int r = hotspots_key_row(h, row, &hot);
	if (r != 0)
		return r;

	struct hotspot *spot = &h->hotspot[hot];
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
	r = h->metrics ? hotspots_metrics_take(h->metrics, hot, row) : 0;
	if (r != 0)
		return r;
	uint8_t state = loaded_leaf(&h->loaded, row->stack)->state;
	if (state == FRAME_NAMED)
		spot->named += row->count;
	else if (state == FRAME_PLACED)
		spot->placed += row->count;
	else if (state == FRAME_OUT_OF_SYMBOL)
		spot->out_of_symbol += row->count;
	else
		spot->unnamed += row->count;

	h->sum += row->value;
	if (h->stack_value && row->stack != 0)
		h->stack_value[row->stack] += row->value;
	/* no stack, no tree or no own frame: self is the total */
	if (!h->stack_value || row->stack == 0 || hotspots_is_profiling(h, row->stack))
		spot->total += row->value;
	provenance_row(&h->provenance, &h->loaded, row);
	return 0;
}

/* --- totals ----------------------------------------------------------------------------------- */

/* The tree as children lists: first child and next sibling by id, 0 none. */
struct children {
	uint32_t *first, *next;
};

static int children_make(struct children *c, const struct loaded *l)
{
	c->first = calloc((size_t)l->n_stacks + 1, sizeof(*c->first));
	c->next = calloc((size_t)l->n_stacks + 1, sizeof(*c->next));
	if (!c->first || !c->next)
		return -ENOMEM;
	for (uint32_t id = l->n_stacks; id > 0; id--) {
		uint32_t parent = l->stack[id].parent;
		if (!is_marked(l, MARK_STACK, id))
			continue; /* outside the requested time */
		c->next[id] = c->first[parent];
		c->first[parent] = id;
	}
	return 0;
}

/* Push a key onto the path: its outermost occurrence gets the whole subtree. */
static void open_key(struct hotspots *h, uint32_t hot, double value)
{
	struct hotspot *spot = &h->hotspot[hot];
	if (spot->n_open++ == 0)
		spot->total += value;
}

static void open_node(struct hotspots *h, uint32_t id)
{
	uint32_t frame = h->loaded.stack[id].frame;
	const struct loaded_frame *f = &h->loaded.frame[frame];
	double value = h->stack_value[id];
	if (!h->place_hot || f->n_places == 0)
		open_key(h, h->frame_hot[frame], value);
	else
		for (uint32_t i = 0; i < f->n_places; i++)
			open_key(h, h->place_hot[f->place + i], value);
}

static void close_node(struct hotspots *h, uint32_t id)
{
	uint32_t frame = h->loaded.stack[id].frame;
	const struct loaded_frame *f = &h->loaded.frame[frame];
	if (!h->place_hot || f->n_places == 0)
		h->hotspot[h->frame_hot[frame]].n_open--;
	else
		for (uint32_t i = 0; i < f->n_places; i++)
			h->hotspot[h->place_hot[f->place + i]].n_open--;
}

/* Walk the tree depth first, by the lists alone: no function recurses, however deep a stack is. */
static void walk(struct hotspots *h, const struct children *c)
{
	uint32_t id = c->first[0];
	while (id != 0) {
		open_node(h, id);
		if (c->first[id] != 0) {
			id = c->first[id];
			continue;
		}
		while (id != 0) {
			close_node(h, id);
			if (c->next[id] != 0) {
				id = c->next[id];
				break;
			}
			id = h->loaded.stack[id].parent;
		}
	}
}

int hotspots_add_totals(struct hotspots *h)
{
	struct children c = {0};
	if (!h->stack_value)
		return 0;
	int r = children_make(&c, &h->loaded);
	if (r == 0) {
		for (uint32_t id = h->loaded.n_stacks; id > 0; id--)
			if (is_marked(&h->loaded, MARK_STACK, id))
				h->stack_value[h->loaded.stack[id].parent] += h->stack_value[id];
		walk(h, &c);
	}
	free(c.first);
	free(c.next);
	return r;
}

/* --- segments --------------------------------------------------------------------------------- */

int hotspots_prepare(struct hotspots *h)
{
	const struct loaded *l = &h->loaded;
	h->task_hot = calloc((size_t)l->n_tasks + 1, sizeof(*h->task_hot));
	if (!h->task_hot)
		return -ENOMEM;
	if (!query_by_kinds[h->by].frames)
		return 0;
	h->stack_value = calloc((size_t)l->n_stacks + 1, sizeof(*h->stack_value));
	int r = h->stack_value ? hotspots_key_frames(h) : -ENOMEM;
	return r == 0 && h->by != QUERY_BY_MODULE ? hotspots_find_profiling(h) : r;
}

void hotspots_forget_source(struct hotspots *h)
{
	loaded_clear(&h->loaded);
	free(h->frame_hot);
	free(h->place_hot);
	free(h->task_hot);
	free(h->stack_value);
	free(h->profiling);
	h->frame_hot = h->place_hot = h->task_hot = NULL;
	h->stack_value = NULL;
	h->profiling = NULL;
}

void hotspots_find_values(struct hotspots *h, const struct row_filter *filter)
{
	h->of_event |= filter->asked;
	for (uint32_t i = 1; i < QUERY_EVENTS_MAX; i++) {
		const struct loaded_event *e = &h->loaded.event[i];
		h->of_other |= filter->event[i] && !e->clock && !e->cycles && !e->instructions;
	}
}

static int add_segment(
	void *query, sqlite3 *db, const struct query_source *source, struct query_error *ret_error)
{
	struct hotspots *h = query;
	struct row_filter filter = {0};
	struct scan_notes notes = {0};
	const struct load_wish wish = {
		.places = query_by_kinds[h->by].frames,
		.filter = h->filter,
		.since_ns = source->since_ns,
		.until_ns = source->until_ns,
		.pin = source->pin,
	};
	int r = load_segment(&h->loaded, db, &h->texts, &wish, ret_error);
	if (r == 0)
		r = hotspots_prepare(h);
	if (r == 0)
		r = filter_make(&filter, &h->loaded, h->filter);
	if (r == 0 && h->metrics)
		r = hotspots_metrics_prepare(h->metrics, &h->loaded);
	filter.every = h->metrics != NULL;
	hotspots_find_values(h, &filter);
	if (r == 0)
		r = scan_values(&h->loaded, &filter, &notes, hotspots_take_row, h);
	if (r == 0)
		r = hotspots_add_totals(h);
	if (r == 0)
		r = provenance_segment(&h->provenance, &h->loaded, &filter, &notes);
	filter_clear(&filter);
	hotspots_forget_source(h);
	return r;
}

/* --- sums that may have to be taken back ------------------------------------------------------ */

struct hotspots_kept {
	struct hotspot *hotspot;
	uint32_t n, size;
	double sum;
	bool cycles, instructions, of_event, of_other;
	struct provenance provenance;
};

static int keep(void *query)
{
	struct hotspots *h = query;
	if (!h->kept)
		h->kept = calloc(1, sizeof(*h->kept));
	struct hotspots_kept *k = h->kept;
	if (!k)
		return -ENOMEM;
	k->n = h->keys.n_keys;
	int r = array_grow(&k->hotspot, &k->size, k->n, sizeof(*k->hotspot));
	if (r < 0)
		return r;
	if (k->n > 0)
		memcpy(k->hotspot, h->hotspot, k->n * sizeof(*k->hotspot));
	k->sum = h->sum;
	k->cycles = h->cycles;
	k->instructions = h->instructions;
	k->of_event = h->of_event;
	k->of_other = h->of_other;
	k->provenance = h->provenance;
	return h->metrics ? hotspots_metrics_keep(h->metrics) : 0;
}

static void take_back(void *query)
{
	struct hotspots *h = query;
	const struct hotspots_kept *k = h->kept;
	if (k->n > 0)
		memcpy(h->hotspot, k->hotspot, k->n * sizeof(*k->hotspot));
	if (h->size > k->n)
		memset(h->hotspot + k->n, 0, (h->size - k->n) * sizeof(*h->hotspot));
	h->sum = k->sum;
	h->cycles = k->cycles;
	h->instructions = k->instructions;
	h->of_event = k->of_event;
	h->of_other = k->of_other;
	h->provenance = k->provenance;
	if (h->metrics)
		hotspots_metrics_take_back(h->metrics);
}

/* --- queries ---------------------------------------------------------------------------------- */

void hotspots_clear(struct hotspots *h)
{
	key_table_clear(&h->keys);
	text_table_clear(&h->texts);
	free(h->hotspot);
	hotspots_metrics_free(h->metrics);
	if (h->kept)
		free(h->kept->hotspot);
	free(h->kept);
}

/* Report inputs of metrics that were not counted. */
static int note_missing(struct hotspots *h)
{
	struct provenance *p = &h->provenance;
	const char *note;
	int r = 0;
	for (size_t i = 0; h->metrics && (note = hotspots_metrics_note(h->metrics, i)) && r == 0 &&
			   p->n_notes < PROVENANCE_NOTES_MAX;
		i++)
		r = text_get(&h->texts, note, &p->note[p->n_notes++]);
	return r;
}

/* Answer with rows, or else with sums. */
static int ask(struct query_source *source, size_t n_sources, const struct query_question *question,
	const struct answer *answer, const struct sums_reader *sums, struct query_error *ret_error)
{
	struct hotspots *h = calloc(1, sizeof(*h));
	if (!h)
		return -ENOMEM;
	h->by = question->by;
	h->inlined = question->inlined;
	h->filter = question->filter;
	provenance_expect(&h->provenance, question);
	int r = question->metrics ? hotspots_metrics_new(question->metrics, &h->metrics) : 0;
	const struct source_reader reader = {h, add_segment, keep, take_back, &h->provenance};
	if (r >= 0)
		r = sources_read(&reader, source, n_sources, ret_error);
	if (r == 0)
		r = note_missing(h);
	if (r == 0)
		r = sums ? hotspots_tell_sums(h, sums) : hotspots_tell(h, question->limit, answer);
	if (r == 0)
		r = provenance_tell(&h->provenance, &h->texts, answer);
	hotspots_clear(h);
	free(h);
	return r;
}

int query_hotspots(struct query_source *source, size_t n_sources,
	const struct query_question *question, const struct answer *answer,
	struct query_error *ret_error)
{
	return ask(source, n_sources, question, answer, NULL, ret_error);
}

int query_hotspot_sums(struct query_source *source, size_t n_sources,
	const struct query_question *question, const struct sums_reader *to,
	struct query_error *ret_error)
{
	const struct answer of = {.provenance = to->provenance, .userdata = to->userdata};
	return ask(source, n_sources, question, &of, to, ret_error);
}
