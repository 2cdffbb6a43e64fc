/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Shared tables never change, so programs refer to them without locks or copies. The unused ones
 * are in a list, in the order in which their last program ended.
 */
#include "daemon/loops/table_cache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

int object_tables_new(const struct object_key *key, struct object_tables **ret_tables)
{
	struct object_tables *t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->key = *key;
	t->n_users = 1;
	t->module = calloc((size_t)key->n_modules + 1, sizeof(*t->module));
	t->sorted = calloc((size_t)key->n_modules + 1, sizeof(*t->sorted));
	if (!t->module || !t->sorted) {
		free(t->module);
		free(t->sorted);
		free(t);
		return -ENOMEM;
	}
	*ret_tables = t;
	return 0;
}

size_t program_module_memory(const struct program_module *module)
{
	return (module->bytes ? module->table_bytes : 0) + loop_table_memory(&module->table) +
	       module->n_scopes * sizeof(*module->site) + module->site_memory;
}

void program_module_clear(struct loop_sites *sites, struct program_module *module)
{
	free(module->bytes);
	loop_table_clear(&module->table);
	for (uint32_t i = 0; i < module->n_scopes; i++)
		loop_site_unref(sites, module->site[i]);
	free(module->site);
	*module = (struct program_module){0};
}

static void tables_free(struct loop_sites *sites, struct object_tables *t)
{
	for (uint32_t i = 0; i < t->key.n_modules; i++)
		program_module_clear(sites, &t->module[i]);
	name_set_clear(&t->defined);
	free(t->module);
	free(t->sorted);
	free(t);
}

/* From the list of the unused. */
static void use(struct table_cache *cache, struct object_tables *t)
{
	DL_DELETE(cache->unused, t);
	cache->n_unused--;
	cache->unused_bytes -= t->memory;
}

static void drop(struct table_cache *cache, struct loop_sites *sites, struct object_tables *t)
{
	use(cache, t);
	HASH_DEL(cache->objects, t);
	tables_free(sites, t);
}

struct object_tables *table_cache_get(struct table_cache *cache, const struct object_key *key)
{
	struct object_tables *t = NULL;
	if (!cache || key->n_build_id == 0)
		return NULL;
	HASH_FIND(hh, cache->objects, key, sizeof(*key), t);
	if (t && t->n_users++ == 0)
		use(cache, t);
	return t;
}

void table_cache_share(struct table_cache *cache, struct object_tables *t)
{
	struct object_tables *other;
	if (!cache || t->key.n_build_id == 0)
		return;
	HASH_FIND(hh, cache->objects, &t->key, sizeof(t->key), other);
	if (other)
		return;
	HASH_ADD(hh, cache->objects, key, sizeof(t->key), t);
	t->shared = t->hh.tbl != NULL;
}

void table_cache_put(struct table_cache *cache, struct loop_sites *sites, struct object_tables *t)
{
	if (--t->n_users > 0)
		return;
	if (t->shared && t->memory > TABLE_CACHE_BYTES_MAX) {
		HASH_DEL(cache->objects, t);
		t->shared = false;
	}
	if (!t->shared) {
		tables_free(sites, t);
		return;
	}
	DL_APPEND(cache->unused, t);
	cache->n_unused++;
	cache->unused_bytes += t->memory;
	while (cache->n_unused > TABLE_CACHE_OBJECTS_MAX ||
		cache->unused_bytes > TABLE_CACHE_BYTES_MAX)
		drop(cache, sites, cache->unused);
}

void table_cache_clear(struct table_cache *cache, struct loop_sites *sites)
{
	while (cache->unused)
		drop(cache, sites, cache->unused);
}
