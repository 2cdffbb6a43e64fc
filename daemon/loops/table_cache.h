/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Table cache: the tables of objects, shared by all programs of a user that run them
 *
 * A large program's tables have megabytes, which take longer to send and to parse than a short
 * program runs. So they are cached by user and build id, also for a while after the last program
 * has ended. By user, since a program can send any table under any build id. Each program that uses
 * tables pays for them as if they were its own, so the order in which programs come changes no
 * limit; tables that nobody uses are bounded here.
 */

#include <sys/types.h>

#include "daemon/loops/name_set.h"
#include "daemon/loops/site.h"
#include "daemon/loops/table.h"
#include "proto/base/hash_table.h"

/* Tables that no program uses; the longest unused are dropped. SQLite's have 1 MB here. */
#define TABLE_CACHE_BYTES_MAX (16u << 20)
#define TABLE_CACHE_OBJECTS_MAX 256u

/* Table of one compilation unit, as far as received. */
struct program_module {
	uint8_t *bytes; /* pieces received so far; NULL: none, or all parsed */
	uint32_t n_bytes, table_bytes;
	uint32_t counter_first, n_counters;
	bool complete, refused;
	struct loop_table table; /* counters and terms; scopes are sites by then */
	struct loop_site **site; /* by scope */
	uint32_t n_scopes;
	size_t site_memory; /* bytes charged for its sites */
};

/* Key that distinguishes an object's tables from others. */
struct object_key {
	uid_t uid;
	uint32_t n_counters, n_modules;
	uint32_t n_build_id; /* 0: not known, and never shared */
	uint8_t build_id[MPERF_BUILD_ID_BYTES_MAX];
};
_Static_assert(sizeof(struct object_key) == 16 + MPERF_BUILD_ID_BYTES_MAX, "hashed without holes");

/* The tables of one object. */
struct object_tables {
	struct object_key key;
	struct program_module *module; /* n_modules */
	uint32_t *sorted;              /* complete modules, by counter_first */
	uint32_t n_sorted, n_complete;
	uint32_t n_users;
	size_t memory;           /* bytes charged to each program */
	struct name_set defined; /* functions of complete modules that others may call */
	bool scalable;           /* has a scalable term */
	bool shared;             /* in the cache */
	UT_hash_handle hh;
	struct object_tables *prev, *next; /* unused ones, the longest unused first */
};

struct table_cache {
	struct object_tables *objects;
	struct object_tables *unused;
	uint32_t n_unused;
	uint64_t unused_bytes;
};

/* Make empty tables for an object, with one reference. 0 or -ENOMEM. */
int object_tables_new(const struct object_key *key, struct object_tables **ret_tables);

/* Free a module's data. */
void program_module_clear(struct loop_sites *sites, struct program_module *module);
size_t program_module_memory(const struct program_module *module);

/* The complete tables of that key, with one more reference; NULL: there are none. cache may be NULL,
 * also below. */
struct object_tables *table_cache_get(struct table_cache *cache, const struct object_key *key);

/* Share tables that are complete, unless others of their key are shared, or they have no build id.
 * Without memory they are not shared. */
void table_cache_share(struct table_cache *cache, struct object_tables *tables);

/* Drop one reference; tables that nobody uses are kept if they are shared, else freed. */
void table_cache_put(
	struct table_cache *cache, struct loop_sites *sites, struct object_tables *tables);

/* Call when no program is left. */
void table_cache_clear(struct table_cache *cache, struct loop_sites *sites);
