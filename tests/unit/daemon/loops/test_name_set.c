/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Which names a program's modules define, by hash.
 */
#include "daemon/loops/name_set.h"
#include "runtime/abi.h"
#include "tests/unit/test.h"

TEST(names_hash_as_fnv_1a_has_it)
{
	/* Source: RFC 9923, appendix C, test vectors of 64 bits. */
	ck_assert_uint_eq(mperf_name_hash("", 0), 0xcbf29ce484222325);
	ck_assert_uint_eq(mperf_name_hash("a", 1), 0xaf63dc4c8601ec8c);
	ck_assert_uint_eq(mperf_name_hash("foobar", 6), 0x85944171f73967e8);
}

TEST(an_empty_set_has_nothing)
{
	struct name_set s = {0};
	ck_assert(!name_set_has(&s, 0));
	ck_assert_uint_eq(name_set_bytes(&s, 0), 0);
	name_set_clear(&s);
}

TEST(what_was_added_is_there_and_nothing_else)
{
	struct name_set s = {0};
	for (uint64_t i = 0; i < 5000; i += 100) {
		uint64_t hash[100];
		for (uint64_t k = 0; k < 100; k++)
			hash[k] = (i + k) * 2;
		size_t bytes = name_set_bytes(&s, 100);
		ck_assert_int_eq(name_set_add(&s, hash, 100), 0);
		ck_assert_uint_eq(s.n_slots * sizeof(*s.slot), bytes);
		ck_assert_uint_eq(s.n, i + 100);
	}
	for (uint64_t i = 0; i < 5000; i++) {
		ck_assert(name_set_has(&s, i * 2));
		ck_assert(!name_set_has(&s, i * 2 + 3));
	}
	ck_assert_uint_le(2 * s.n, s.n_slots);
	name_set_clear(&s);
}

TEST(what_is_added_twice_is_there_once)
{
	struct name_set s = {0};
	const uint64_t hash[] = {7, 7, 7};
	ck_assert_int_eq(name_set_add(&s, hash, 3), 0);
	ck_assert_int_eq(name_set_add(&s, hash, 3), 0);
	ck_assert_uint_eq(s.n, 1);
	name_set_clear(&s);
}

/* As a program could choose them that knows where slots come from without a key. */
TEST(hashes_with_the_same_low_bits_are_all_found)
{
	struct name_set s = {0};
	for (uint64_t i = 1; i <= 1000; i++)
		ck_assert_int_eq(name_set_add(&s, &(uint64_t){i << 32}, 1), 0);
	for (uint64_t i = 1; i <= 1000; i++)
		ck_assert(name_set_has(&s, i << 32));
	name_set_clear(&s);
}
