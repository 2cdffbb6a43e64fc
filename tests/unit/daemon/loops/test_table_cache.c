/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Which tables programs share, and for how long those are kept that nobody uses.
 */
#include <string.h>

#include "daemon/loops/table_cache.h"
#include "tests/unit/test.h"

static struct object_key key_of(uid_t uid, uint8_t build_id)
{
	return (struct object_key){.uid = uid,
		.n_counters = 2,
		.n_modules = 1,
		.n_build_id = 1,
		.build_id = {build_id}};
}

static struct object_tables *share(struct table_cache *c, const struct object_key *key)
{
	struct object_tables *t;
	ck_assert_int_eq(object_tables_new(key, &t), 0);
	t->memory = 1000;
	table_cache_share(c, t);
	return t;
}

TEST(tables_are_shared_by_programs_of_one_user_and_build_id)
{
	struct table_cache c = {0};
	struct loop_sites sites = {0};
	struct object_key key = key_of(7, 1), other = key_of(8, 1), rebuilt = key_of(7, 2);
	struct object_tables *t = share(&c, &key);
	ck_assert_ptr_eq(table_cache_get(&c, &key), t);
	ck_assert_ptr_null(table_cache_get(&c, &other));
	ck_assert_ptr_null(table_cache_get(&c, &rebuilt));
	rebuilt = key;
	rebuilt.n_counters++;
	ck_assert_ptr_null(table_cache_get(&c, &rebuilt));
	table_cache_put(&c, &sites, t);
	table_cache_put(&c, &sites, t);
	table_cache_clear(&c, &sites);
}

TEST(tables_without_a_build_id_are_not_shared)
{
	struct table_cache c = {0};
	struct loop_sites sites = {0};
	struct object_key key = key_of(7, 0);
	key.n_build_id = 0;
	struct object_tables *t = share(&c, &key);
	ck_assert(!t->shared);
	ck_assert_ptr_null(table_cache_get(&c, &key));
	table_cache_put(&c, &sites, t);
	ck_assert_uint_eq(c.n_unused, 0);
}

TEST(the_second_tables_of_a_key_are_their_programs_own)
{
	struct table_cache c = {0};
	struct loop_sites sites = {0};
	struct object_key key = key_of(7, 1);
	struct object_tables *first = share(&c, &key), *second = share(&c, &key);
	ck_assert(!second->shared);
	table_cache_put(&c, &sites, second);
	ck_assert_ptr_eq(table_cache_get(&c, &key), first);
	table_cache_put(&c, &sites, first);
	table_cache_put(&c, &sites, first);
	table_cache_clear(&c, &sites);
}

TEST(unused_tables_are_kept_and_the_longest_unused_dropped)
{
	struct table_cache c = {0};
	struct loop_sites sites = {0};
	for (unsigned i = 0; i < TABLE_CACHE_OBJECTS_MAX + 2; i++) {
		struct object_key key = key_of(i + 1, 1);
		table_cache_put(&c, &sites, share(&c, &key));
	}
	ck_assert_uint_eq(c.n_unused, TABLE_CACHE_OBJECTS_MAX);
	ck_assert_uint_eq(c.unused_bytes, 1000 * TABLE_CACHE_OBJECTS_MAX);
	struct object_key gone = key_of(2, 1), kept = key_of(3, 1);
	ck_assert_ptr_null(table_cache_get(&c, &gone));
	struct object_tables *t = table_cache_get(&c, &kept);
	ck_assert_ptr_nonnull(t);
	ck_assert_uint_eq(c.n_unused, TABLE_CACHE_OBJECTS_MAX - 1);
	table_cache_put(&c, &sites, t);
	table_cache_clear(&c, &sites);
	ck_assert_uint_eq(c.unused_bytes, 0);
}

TEST(tables_larger_than_all_that_are_kept_drop_no_others)
{
	struct table_cache c = {0};
	struct loop_sites sites = {0};
	struct object_key key = key_of(1, 1), large = key_of(1, 2);
	table_cache_put(&c, &sites, share(&c, &key));
	struct object_tables *t = share(&c, &large);
	t->memory = TABLE_CACHE_BYTES_MAX + 1;
	table_cache_put(&c, &sites, t);
	ck_assert_ptr_null(table_cache_get(&c, &large));
	ck_assert_uint_eq(c.n_unused, 1);
	table_cache_clear(&c, &sites);
}
