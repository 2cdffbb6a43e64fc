/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Sites are met again in each file under another id, so they are found by what they are, as the
 * feed does it; their names are made readable once, here, in the process that answers, because what
 * a program says its functions are called is anybody's bytes.
 */
#include "daemon/query/loops/facts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/namer/demangle.h"

static int full(int r)
{
	return r == KEY_TABLE_FULL ? -EOVERFLOW : r;
}

static int text(struct loop_facts *f, const char *t, uint32_t *ret_id)
{
	return full(text_get(&f->texts, t ? t : "", ret_id));
}

static int readable(struct loop_facts *f, const char *name, uint32_t *ret_id)
{
	char plain[DEMANGLED_BYTES];
	return text(f, demangle(name, plain) == 0 ? plain : name, ret_id);
}

/* Put a new site on the list of those of its function. */
static int note_alike(struct loop_facts *f, uint32_t site)
{
	struct fact_site *s = &f->site[site];
	int r = array_grow(&f->alike, &f->size_alike, s->readable + 1, sizeof(*f->alike));
	if (r < 0)
		return r;
	s->next_alike = f->alike[s->readable];
	f->alike[s->readable] = site + 1;
	return 0;
}

uint32_t loop_facts_owner(const struct loop_facts *f, uint32_t site)
{
	while (site != 0 && f->site[site - 1].kind == LOOP_SITE_BLOCK)
		site = f->site[site - 1].parent;
	return site;
}

/* Put a new callee on the list of its caller's. */
static void note_callee(struct loop_facts *f, uint32_t site)
{
	uint32_t caller = loop_facts_owner(f, f->site[site].parent);
	if (caller == 0)
		return;
	f->site[site].next_callee = f->site[caller - 1].first_callee;
	f->site[caller - 1].first_callee = site + 1;
}

static int site_fill(struct loop_facts *f, struct fact_site *s, const struct fact_site_key *key)
{
	int r = text(f, key->subprogram, &s->subprogram);
	if (r == 0)
		r = text(f, key->source, &s->source);
	if (r == 0)
		r = text(f, key->nest, &s->nest);
	if (r == 0)
		r = text(f, key->inlined_at, &s->inlined_at);
	if (r == 0)
		r = text(f, key->build_id, &s->build_id);
	s->kind = key->kind;
	s->line = key->line;
	s->parent = key->parent;
	return r;
}

int loop_facts_site(struct loop_facts *f, const struct fact_site_key *key, uint32_t *ret_site)
{
	struct fact_site s = {0};
	uint32_t i, n = f->site_keys.n_keys;
	int r = site_fill(f, &s, key);
	uint32_t around = loop_site_is_of_parent(key->kind) ? key->parent : 0;
	const struct key content = {
		{(uint64_t)key->kind << 32 | key->line, (uint64_t)s.build_id << 32 | s.subprogram,
			(uint64_t)s.source << 32 | s.nest, (uint64_t)s.inlined_at << 32 | around}};
	if (r == 0)
		r = full(key_get(&f->site_keys, &content, &i));
	if (r == 0)
		r = array_grow(&f->site, &f->size_sites, i + 1, sizeof(*f->site));
	if (r == 0 && i == n) { /* it is new */
		r = readable(f, key->subprogram, &s.readable);
		if (s.parent)
			s.depth = (uint8_t)(f->site[s.parent - 1].depth + 1);
		f->site[i] = s;
		if (s.kind == LOOP_SITE_CALLEE)
			note_callee(f, i);
		if (r == 0)
			r = note_alike(f, i);
	}
	if (r != 0)
		return r;
	struct fact_site *known = &f->site[i];
	known->here = true;
	known->flags |= key->flags;
	if (key->line_last > known->line_last)
		known->line_last = key->line_last;
	*ret_site = i + 1;
	return 0;
}

int loop_facts_who(struct loop_facts *f, const struct fact_who_key *key, uint32_t *ret_who)
{
	uint32_t i;
	const struct key content = {{(uint64_t)(uint32_t)key->pid << 32 | (uint32_t)key->tid,
		key->start_ns, f->loaded.boot}};
	int r = full(key_get(&f->who_keys, &content, &i));
	if (r == 0)
		r = array_grow(&f->who, &f->size_whos, i + 1, sizeof(*f->who));
	if (r != 0)
		return r;
	f->who[i].pid = key->pid;
	f->who[i].tid = key->tid;
	*ret_who = i + 1;
	return text(f, key->comm, &f->who[i].comm);
}

int loop_facts_task(struct loop_facts *f, uint32_t task, uint32_t *ret_who)
{
	const struct loaded_task *t = &f->loaded.task[task];
	const char *comm = text_of(&f->texts, t->comm);
	char copy[TASK_COMM_BYTES + 1]; /* the table that it stands in may move */
	snprintf(copy, sizeof(copy), "%s", comm ? comm : "[unknown]");
	const struct fact_who_key key = {
		.pid = t->pid, .tid = t->tid, .start_ns = (uint64_t)t->start_ns, .comm = copy};
	return loop_facts_who(f, &key, ret_who);
}

void loop_facts_was_in(struct loop_facts *f, uint32_t who, bool in_region)
{
	if (who == 0)
		return;
	f->who[who - 1].counted_inside |= in_region;
	f->who[who - 1].counted_outside |= !in_region;
}

int loop_facts_get(struct loop_facts *f, const struct key *key, struct fact **ret_fact)
{
	uint32_t i;
	int r = full(key_get(&f->keys, key, &i));
	if (r == 0 && i >= LOOP_FACTS_MAX)
		r = -EOVERFLOW;
	if (r == 0)
		r = array_grow(&f->fact, &f->size_facts, i + 1, sizeof(*f->fact));
	if (r == 0)
		*ret_fact = &f->fact[i];
	return r;
}

/* --- sums that may have to be taken back ------------------------------------------------------ */

struct loop_facts_kept {
	struct fact *fact;
	uint32_t n, size;
	double sampled_ns;
	uint64_t samples_taken;
	struct provenance provenance;
};

int loop_facts_keep(void *facts)
{
	struct loop_facts *f = facts;
	if (!f->kept)
		f->kept = calloc(1, sizeof(*f->kept));
	struct loop_facts_kept *k = f->kept;
	if (!k)
		return -ENOMEM;
	k->n = f->keys.n_keys;
	int r = array_grow(&k->fact, &k->size, k->n, sizeof(*k->fact));
	if (r < 0)
		return r;
	if (k->n > 0)
		memcpy(k->fact, f->fact, k->n * sizeof(*k->fact));
	k->sampled_ns = f->sampled_ns;
	k->samples_taken = f->samples_taken;
	k->provenance = f->provenance;
	return 0;
}

void loop_facts_take_back(void *facts)
{
	struct loop_facts *f = facts;
	const struct loop_facts_kept *k = f->kept;
	if (k->n > 0)
		memcpy(f->fact, k->fact, k->n * sizeof(*k->fact));
	if (f->size_facts > k->n)
		memset(f->fact + k->n, 0, (f->size_facts - k->n) * sizeof(*f->fact));
	f->sampled_ns = k->sampled_ns;
	f->samples_taken = k->samples_taken;
	f->provenance = k->provenance;
}

void loop_facts_clear(struct loop_facts *f)
{
	text_table_clear(&f->texts);
	key_table_clear(&f->site_keys);
	key_table_clear(&f->who_keys);
	key_table_clear(&f->keys);
	free(f->site);
	free(f->who);
	free(f->fact);
	free(f->alike);
	key_table_clear(&f->calls);
	key_table_clear(&f->bodies);
	key_table_clear(&f->owners);
	free(f->owner_region);
	free(f->call_region);
	free(f->body_region);
	if (f->kept)
		free(f->kept->fact);
	free(f->kept);
	*f = (struct loop_facts){0};
}
