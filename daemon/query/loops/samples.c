/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Samples of the processes that count, given to the loops whose lines they hit. A sample's leaf is
 * a list of places, the innermost inlined function first; from there outwards the first loop that
 * holds the line has it, the innermost one where several do. What is in no loop belongs to the
 * function that holds the code. Without lines, that is all there is: time of functions.
 *
 * Of several copies of one function that were inlined in different places, the one is taken whose
 * call stands where the next place outwards is.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/query/loops/facts.h"

#define UNSEEN UINT32_MAX

/* Do two paths of a file end alike? Compilers are given relative ones, debug information may have
 * them absolute. */
static bool same_file(const char *a, const char *b)
{
	size_t n = strlen(a), m = strlen(b);
	if (n == 0 || m == 0)
		return true; /* not known */
	const char *shorter = n < m ? a : b, *longer = n < m ? b : a;
	size_t k = n < m ? n : m, more = n < m ? m - n : n - m;
	while (strncmp(shorter, "./", 2) == 0) {
		shorter += 2;
		k -= 2;
		more += 2;
	}
	return strcmp(longer + more, shorter) == 0 && (more == 0 || longer[more - 1] == '/') &&
	       k > 0;
}

/* Is the site's innermost call at the place outwards of this one? Neither counts as yes. */
static bool same_call(const struct loop_facts *f, const struct fact_site *s, uint32_t place,
	const struct loaded_frame *frame)
{
	const struct loaded *l = &f->loaded;
	const char *chain = text_of(&f->texts, s->inlined_at);
	bool last = place + 1 >= frame->place + frame->n_places;
	if (last || !l->place[place].inlined)
		return !*chain;
	const char *end = strchr(chain, ' ');
	size_t n = end ? (size_t)(end - chain) : strlen(chain);
	char line[16];
	int m = snprintf(line, sizeof(line), ":%u", l->place[place + 1].line);
	return n > (size_t)m && strncmp(chain + n - m, line, (size_t)m) == 0;
}

/* How well a site fits: 0 not at all. Deeper loops and smaller ones are better, and by far the one
 * that was inlined here. */
static uint32_t fitness(const struct loop_facts *f, const struct fact_site *s, uint32_t place,
	const struct loaded_frame *frame)
{
	const struct loaded_place *p = &f->loaded.place[place];
	if (!s->here || s->kind != LOOP_SITE_LOOP || s->line == 0 || p->line < s->line ||
		p->line > s->line_last)
		return 0;
	const char *source = p->source ? text_of(&f->texts, p->source) : "";
	if (!same_file(source ? source : "", text_of(&f->texts, s->source)))
		return 0;
	return 1 + s->depth + (same_call(f, s, place, frame) ? 1u << 16 : 0);
}

static uint32_t first_alike(const struct loop_facts *f, uint32_t name)
{
	return name < f->size_alike ? f->alike[name] : 0;
}

/* The loop of one place; 0 none. */
static uint32_t loop_of_place(
	const struct loop_facts *f, uint32_t place, const struct loaded_frame *frame)
{
	uint32_t best = 0, best_fitness = 0;
	for (uint32_t i = first_alike(f, f->loaded.place[place].function); i != 0;
		i = f->site[i - 1].next_alike) {
		uint32_t fits = fitness(f, &f->site[i - 1], place, frame);
		if (fits > best_fitness) {
			best = i;
			best_fitness = fits;
		}
	}
	return best;
}

static uint32_t function_of_place(const struct loop_facts *f, uint32_t place)
{
	uint32_t i = first_alike(f, f->loaded.place[place].function);
	while (i != 0 && (!f->site[i - 1].here || f->site[i - 1].kind != LOOP_SITE_FUNCTION))
		i = f->site[i - 1].next_alike;
	return i;
}

static uint32_t site_of_frame(const struct loop_facts *f, const struct loaded_frame *frame)
{
	for (uint32_t i = frame->place; i < frame->place + frame->n_places; i++) {
		uint32_t site = loop_of_place(f, i, frame);
		if (site != 0)
			return site;
	}
	for (uint32_t i = frame->place + frame->n_places; i > frame->place; i--) {
		uint32_t site = function_of_place(f, i - 1);
		if (site != 0)
			return site;
	}
	return 0;
}

/* What code that nobody counts is called, as the last part of a fact's key: texts of its function
 * and its module. 0: there are too many names. */
static uint64_t uncounted_name(struct loop_facts *f, const struct loaded_frame *frame)
{
	const struct loaded *l = &f->loaded;
	uint32_t function = frame->n_places > 0
				    ? l->place[frame->place + frame->n_places - 1].function
				    : l->unknown_name;
	if (f->n_uncounted >= LOOP_UNCOUNTED_MAX)
		return 0;
	return (uint64_t)function << 32 | loaded_module(l, frame);
}

static int take_sample(void *userdata, const struct scan_row *row)
{
	struct loop_facts *f = userdata;
	const struct loaded *l = &f->loaded;
	uint32_t frame = row->stack <= l->n_stacks ? l->stack[row->stack].frame : 0, who = 0;
	if (!f->counts[l->task[row->task].process])
		return 0;
	provenance_row(&f->provenance, l, row);
	f->sampled_ns += (double)row->weight_ns;
	f->samples_taken += row->count;
	if (f->frame_site[frame] == UNSEEN)
		f->frame_site[frame] = site_of_frame(f, &l->frame[frame]);
	uint32_t site = f->frame_site[frame];
	int r = f->by_thread ? loop_facts_task(f, row->task, &who) : 0;
	struct fact *fact;
	uint64_t name = site == 0 ? uncounted_name(f, &l->frame[frame]) : 0;
	const struct key key = FACT_KEY(site, FACT_ANY_REGION, who, name);
	uint32_t n = f->keys.n_keys;
	if (r == 0)
		r = loop_facts_get(f, &key, &fact);
	if (r != 0)
		return r;
	f->n_uncounted += name != 0 && f->keys.n_keys > n;
	fact->sampled_ns += (double)row->weight_ns;
	fact->samples += row->count;
	fact->uncounted += row->uncounted;
	fact->cycles += row->cycles > 0 ? row->cycles : 0;
	fact->instructions += row->instructions > 0 ? row->instructions : 0;
	return 0;
}

int loop_facts_add_samples(
	struct loop_facts *f, const struct row_filter *filter, struct scan_notes *notes)
{
	size_t n = (size_t)f->loaded.n_frames + 1;
	f->frame_site = malloc(n * sizeof(*f->frame_site));
	if (!f->frame_site)
		return -ENOMEM;
	memset(f->frame_site, 0xff, n * sizeof(*f->frame_site));
	return scan_samples(&f->loaded, filter, notes, take_sample, f);
}
