/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A hash table with chains; the key is all that identifies a site. The parent does not identify a
 * loop or function, since its place in the nest does. It does identify a region, callee or place of
 * OpenMP: under another parent it is another site. Ids are never reused: a segment that is being
 * written refers to sites by id after they are freed.
 */
#include "daemon/loops/site.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/loops/cause.h"
#include "daemon/loops/table.h"
#include "proto/base/hash.h"
#include "proto/base/memory.h"

#define SLOTS_FIRST 256u

static const struct loop_site *identity_parent(
	const struct loop_site_key *key, const struct loop_site *parent)
{
	return loop_site_is_of_parent(key->kind) ? parent : NULL;
}

static uint64_t add_text(uint64_t hash, const char *text)
{
	return hash_words(hash, hash_bytes(text, strlen(text)));
}

/* Programs choose all of it: the hash has a key. */
static uint64_t hash_key(const struct loop_site_key *key, const struct loop_site *parent)
{
	uint64_t hash = hash_words(key->kind, (uintptr_t)identity_parent(key, parent));
	hash = hash_words(hash, hash_bytes(key->build_id, key->n_build_id));
	hash = hash_words(hash, key->line);
	hash = hash_words(hash, key->owner);
	hash = add_text(hash, key->subprogram);
	hash = add_text(hash, key->source);
	hash = add_text(hash, key->nest);
	return add_text(hash, key->inlined_at);
}

static bool is_same(const struct loop_site *site, const struct loop_site_key *key,
	const struct loop_site *parent)
{
	const struct loop_site_key *ours = &site->key;
	return ours->kind == key->kind && ours->line == key->line && ours->owner == key->owner &&
	       ours->n_build_id == key->n_build_id &&
	       memcmp(ours->build_id, key->build_id, key->n_build_id) == 0 &&
	       strcmp(ours->subprogram, key->subprogram) == 0 &&
	       strcmp(ours->source, key->source) == 0 && strcmp(ours->nest, key->nest) == 0 &&
	       strcmp(ours->inlined_at, key->inlined_at) == 0 &&
	       identity_parent(ours, site->parent) == identity_parent(key, parent);
}

static struct loop_site *find(const struct loop_sites *t, uint64_t hash,
	const struct loop_site_key *key, const struct loop_site *parent)
{
	struct loop_site *site = t->n_slots ? t->slot[hash & (t->n_slots - 1)] : NULL;
	while (site && (site->hash != hash || !is_same(site, key, parent)))
		site = site->next;
	return site;
}

static int reserve(struct loop_sites *t)
{
	if (t->n_sites < t->n_slots)
		return 0;
	uint32_t n = t->n_slots ? 2 * t->n_slots : SLOTS_FIRST;
	struct loop_site **slot = calloc(n, sizeof(*slot));
	if (!slot)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->n_slots; i++)
		for (struct loop_site *site = t->slot[i], *next; site; site = next) {
			next = site->next;
			site->next = slot[site->hash & (n - 1)];
			slot[site->hash & (n - 1)] = site;
		}
	free(t->slot);
	t->slot = slot;
	t->n_slots = n;
	return 0;
}

/* Copy a text to *at, which moves on. */
static const char *put_text(char **at, const char *text)
{
	char *copy = *at;
	size_t n = strlen(text) + 1;
	memcpy(copy, text, n);
	*at += n;
	return copy;
}

size_t loop_site_memory(const struct loop_site_key *key)
{
	return sizeof(struct loop_site) + strlen(key->subprogram) + strlen(key->source) +
	       strlen(key->nest) + strlen(key->inlined_at) + 4;
}

static int site_new(struct loop_sites *t, const struct loop_site_key *key, uint64_t hash,
	struct loop_site *parent, struct loop_site **ret_site)
{
	uint32_t depth = parent ? parent->depth + 1 : 0;
	if (t->n_sites >= LOOP_SITES_MAX)
		return FEED_SITES;
	if (depth >= LOOP_DEPTH_MAX)
		return FEED_TABLE_MALFORMED;
	int r = reserve(t);
	if (r < 0)
		return r;
	struct loop_site *site = calloc(1, loop_site_memory(key));
	if (!site)
		return -ENOMEM;
	char *at = (char *)(site + 1);
	site->key = *key;
	site->key.subprogram = put_text(&at, key->subprogram);
	site->key.source = put_text(&at, key->source);
	site->key.nest = put_text(&at, key->nest);
	site->key.inlined_at = put_text(&at, key->inlined_at);
	site->id = ++t->last_id;
	site->parent = loop_site_ref(parent);
	site->depth = depth;
	site->hash = hash;
	struct loop_site **slot = &t->slot[hash & (t->n_slots - 1)];
	site->next = *slot;
	*slot = site;
	t->n_sites++;
	*ret_site = site;
	return 0;
}

int loop_site_get(struct loop_sites *t, const struct loop_site_key *key, struct loop_site *parent,
	const struct loop_site_more *more, struct loop_site **ret_site)
{
	uint64_t hash = hash_key(key, parent);
	struct loop_site *site = find(t, hash, key, parent);
	if (!site) {
		int r = site_new(t, key, hash, parent, &site);
		if (r != 0)
			return r;
	}
	if (more->line_last > site->line_last)
		site->line_last = more->line_last;
	if (more->column && (!site->column || more->column < site->column))
		site->column = more->column;
	site->flags |= more->flags;
	*ret_site = loop_site_ref(site);
	return 0;
}

struct loop_site *loop_site_ref(struct loop_site *site)
{
	if (site)
		site->n_users++;
	return site;
}

void loop_site_unref(struct loop_sites *t, struct loop_site *site)
{
	while (site && --site->n_users == 0) {
		struct loop_site **at = &t->slot[site->hash & (t->n_slots - 1)];
		while (*at != site)
			at = &(*at)->next;
		*at = site->next;
		t->n_sites--;
		struct loop_site *parent = site->parent;
		free(site);
		site = parent;
	}
}

void loop_sites_clear(struct loop_sites *t)
{
	for (uint32_t i = 0; i < t->n_slots; i++)
		for (struct loop_site *site = t->slot[i], *next; site; site = next) {
			next = site->next;
			free(site);
		}
	free(t->slot);
	*t = (struct loop_sites){0};
}
