/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Find the loop or function that a frame is in. A frame is a list of places, the innermost inlined function first;
 * from there outwards, the frame belongs to the first loop that contains the line, and to the innermost if several do.
 * Code in no loop belongs to its function. Without lines only functions have time.
 *
 * A function may have been inlined in several places. We take the copy whose call is where the next place outwards is.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/query/loops/facts_private.h"

/* Compilers are given relative paths, and debug information may have absolute ones. */
bool loop_facts_same_file(const char *a, const char *b)
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

/* Is the site's innermost call at the next place outwards? Also yes if neither was inlined. */
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

/* How well a site fits; 0: not at all. Deeper and smaller loops score higher, and a loop that was
 * inlined here scores highest by far. */
static uint32_t fitness(const struct loop_facts *f, const struct fact_site *s, uint32_t place,
	const struct loaded_frame *frame)
{
	const struct loaded_place *p = &f->loaded.place[place];
	if (!s->here || s->kind != LOOP_SITE_LOOP || s->line == 0 || p->line < s->line ||
		p->line > s->line_last)
		return 0;
	const char *source = p->source ? text_of(&f->texts, p->source) : "";
	if (!loop_facts_same_file(source ? source : "", text_of(&f->texts, s->source)))
		return 0;
	return 1 + s->depth + (same_call(f, s, place, frame) ? 1u << 16 : 0);
}

/* The loop of one place; 0 none. */
static uint32_t loop_of_place(
	const struct loop_facts *f, uint32_t place, const struct loaded_frame *frame)
{
	uint32_t best = 0, best_fitness = 0;
	for (uint32_t i = fact_sites_alike(&f->sites, f->loaded.place[place].function); i != 0;
		i = f->sites.site[i - 1].next_alike) {
		uint32_t fits = fitness(f, &f->sites.site[i - 1], place, frame);
		if (fits > best_fitness) {
			best = i;
			best_fitness = fits;
		}
	}
	return best;
}

static uint32_t function_of_place(const struct loop_facts *f, uint32_t place)
{
	uint32_t i = fact_sites_alike(&f->sites, f->loaded.place[place].function);
	while (i != 0 &&
		(!f->sites.site[i - 1].here || f->sites.site[i - 1].kind != LOOP_SITE_FUNCTION))
		i = f->sites.site[i - 1].next_alike;
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

uint32_t loop_facts_frame(struct loop_facts *f, uint32_t frame)
{
	if (f->frame_site[frame] == FACT_UNSEEN)
		f->frame_site[frame] = site_of_frame(f, &f->loaded.frame[frame]);
	return f->frame_site[frame];
}

int loop_frames_begin(struct loop_facts *f)
{
	const size_t n = (size_t)f->loaded.n_frames + 1;
	f->frame_site = malloc(n * sizeof(*f->frame_site));
	if (!f->frame_site)
		return -ENOMEM;
	memset(f->frame_site, 0xff, n * sizeof(*f->frame_site)); /* FACT_UNSEEN */
	return 0;
}

void loop_frames_end(struct loop_facts *f)
{
	free(f->frame_site);
	f->frame_site = NULL;
}
