/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Sites have a different id in each file, so they are found by content, as in the feed. Their names are made
 * readable once, here, in the process that answers, because a program may send any bytes as the names of its
 * functions.
 */
#include <errno.h>
#include <stdlib.h>

#include "daemon/namer/demangle.h"
#include "daemon/query/loops/facts_private.h"

static int readable(struct loop_facts *f, const char *name, uint32_t *ret_id)
{
	char plain[DEMANGLED_BYTES];
	return facts_text(f, demangle(name, plain) == 0 ? plain : name, ret_id);
}

/* Put a new site on the list of those of its function. */
static int note_alike(struct loop_facts *f, uint32_t site)
{
	struct fact_site *s = &f->sites.site[site];
	int r = array_grow(
		&f->sites.alike, &f->sites.size_alike, s->readable + 1, sizeof(*f->sites.alike));
	if (r < 0)
		return r;
	s->next_alike = f->sites.alike[s->readable];
	f->sites.alike[s->readable] = site + 1;
	return 0;
}

uint32_t loop_facts_owner(const struct loop_facts *f, uint32_t site)
{
	while (site != 0 && f->sites.site[site - 1].kind == LOOP_SITE_BLOCK)
		site = f->sites.site[site - 1].parent;
	return site;
}

/* Put a new callee on the list of its caller's. */
static void note_callee(struct loop_facts *f, uint32_t site)
{
	uint32_t caller = loop_facts_owner(f, f->sites.site[site].parent);
	if (caller == 0)
		return;
	f->sites.site[site].next_callee = f->sites.site[caller - 1].first_callee;
	f->sites.site[caller - 1].first_callee = site + 1;
}

static int site_fill(struct loop_facts *f, struct fact_site *s, const struct fact_site_key *key)
{
	int r = facts_text(f, key->subprogram, &s->subprogram);
	if (r == 0)
		r = facts_text(f, key->source, &s->source);
	if (r == 0)
		r = facts_text(f, key->nest, &s->nest);
	if (r == 0)
		r = facts_text(f, key->inlined_at, &s->inlined_at);
	if (r == 0)
		r = facts_text(f, key->build_id, &s->build_id);
	s->kind = key->kind;
	s->line = key->line;
	s->parent = key->parent;
	return r;
}

int loop_facts_site(struct loop_facts *f, const struct fact_site_key *key, uint32_t *ret_site)
{
	struct fact_site s = {0};
	uint32_t i, n = f->sites.keys.n_keys;
	int r = site_fill(f, &s, key);
	uint32_t around = loop_site_is_of_parent(key->kind) ? key->parent : 0;
	const struct key content = {
		{(uint64_t)key->kind << 32 | key->line, (uint64_t)s.build_id << 32 | s.subprogram,
			(uint64_t)s.source << 32 | s.nest, (uint64_t)s.inlined_at << 32 | around}};
	if (r == 0)
		r = facts_outcome(key_get(&f->sites.keys, &content, &i));
	if (r == 0)
		r = array_grow(&f->sites.site, &f->sites.size, i + 1, sizeof(*f->sites.site));
	if (r == 0 && i == n) { /* it is new */
		r = readable(f, key->subprogram, &s.readable);
		if (s.parent)
			s.depth = (uint8_t)(f->sites.site[s.parent - 1].depth + 1);
		f->sites.site[i] = s;
		if (s.kind == LOOP_SITE_CALLEE)
			note_callee(f, i);
		if (r == 0)
			r = note_alike(f, i);
	}
	if (r != 0)
		return r;
	struct fact_site *known = &f->sites.site[i];
	known->here = true;
	known->flags |= key->flags;
	if (key->line_last > known->line_last)
		known->line_last = key->line_last;
	*ret_site = i + 1;
	return 0;
}

void fact_sites_begin_segment(struct fact_sites *s)
{
	for (uint32_t i = 0; i < s->keys.n_keys; i++)
		s->site[i].here = false;
}

uint32_t fact_sites_alike(const struct fact_sites *s, uint32_t name)
{
	return name < s->size_alike ? s->alike[name] : 0;
}

void fact_sites_clear(struct fact_sites *s)
{
	key_table_clear(&s->keys);
	free(s->site);
	free(s->alike);
}
