/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of proto/base/hash.h: what others publish, and that nobody who lacks the key finds keys that
 * fall together.
 */

#include "proto/base/hash.h"

#include "daemon/loops/site.h"
#include "tests/unit/test.h"

EACH_TEST(.seconds = 60);

/* Source: the reference vectors of SipHash-2-4, vectors.h of veorq/SipHash: bytes 0, 1, 2, … under
 * the key 00 01 … 0f, as 64-bit numbers. */
TEST(it_is_siphash)
{
	static const struct {
		size_t n;
		uint64_t hash;
	} known[] = {
		{0, 0x726fdb47dd0e0e31u},
		{1, 0x74f839c593dc67fdu},
		{8, 0x93f5f5799a932462u},
		{15, 0xa129ca6149be45e5u},
	};
	const struct hash_secret key = {{0x0706050403020100u, 0x0f0e0d0c0b0a0908u}};
	uint8_t bytes[16];

	for (unsigned i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)i;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		ck_assert_uint_eq(hash_sip(&key, 2, 4, bytes, known[i].n), known[i].hash);
}

TEST(each_process_has_a_key)
{
	ck_assert(hash_secret.word[0] && hash_secret.word[1]);
	ck_assert_uint_ne(hash_secret.word[0], hash_secret.word[1]);
}

static int order(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return x < y ? -1 : x > y;
}

#define KEYS 65536u
static uint32_t slot[KEYS];

/* As many keys as slots: the fullest has some ten, by bad luck 33, not hundreds. */
static unsigned fullest(void)
{
	unsigned most = 0, run = 0;

	qsort(slot, KEYS, sizeof(slot[0]), order);
	for (uint32_t i = 0; i < KEYS; i++) {
		run = i && slot[i] == slot[i - 1] ? run + 1 : 1;
		most = run > most ? run : most;
	}
	return most;
}

/* Numbers that an attacker would choose: neighbours, ones that differ in their upper bits alone. */
TEST(numbers_spread_whatever_their_stride)
{
	for (int shift = 0; shift < 48; shift += 3) {
		for (uint64_t i = 0; i < KEYS; i++)
			slot[i] = (uint32_t)hash_words(i << shift, 7) % KEYS;
		ck_assert_uint_lt(fullest(), 64);
		for (uint64_t i = 0; i < KEYS; i++)
			slot[i] = (uint32_t)hash_words(7, i << shift) % KEYS;
		ck_assert_uint_lt(fullest(), 64);
	}
}

TEST(texts_spread_of_all_lengths)
{
	char text[64];

	for (size_t n = 3; n < sizeof(text); n += 5) {
		memset(text, 'a', sizeof(text));
		for (uint32_t i = 0; i < KEYS; i++) {
			uint32_t low = i & 0xffffff;
			memcpy(text + (i % 2 ? 0 : n - 3), &low, 3);
			slot[i] = (uint32_t)hash_bytes(text, n) % KEYS;
		}
		ck_assert_uint_lt(fullest(), 64);
	}
}

/* --- names of loops that fall together under the hash that sites once had --------------------- */

/* FNV-1a, of 64 bits: its low 20 bits depend on no others, so such names are a matter of a moment.
 * Source: RFC 9923. */
static uint64_t fnv(uint64_t hash, const void *bytes, size_t n)
{
	for (const uint8_t *at = bytes; n > 0; n--)
		hash = (hash ^ *at++) * 0x100000001b3u;
	return hash;
}

#define NAMES 12000u
#define LOW 0xffu /* of the bits that choose a slot; of 65,536 slots, 256 then had 46 names each */

static uint64_t site_was(const char *name)
{
	const uint8_t kind = LOOP_SITE_LOOP;
	const uint32_t line = 0;
	const void *around = NULL;
	uint64_t hash = fnv(0xcbf29ce484222325u, &kind, 1);
	hash = fnv(hash, &line, sizeof(line));
	hash = fnv(hash, name, strlen(name) + 1);
	for (int i = 0; i < 3; i++)
		hash = fnv(hash, "", 1);
	return fnv(hash, &around, sizeof(around));
}

static size_t longest_chain(const struct loop_sites *t)
{
	size_t longest = 0;

	for (uint32_t i = 0; i < t->n_slots; i++) {
		size_t n = 0;
		for (const struct loop_site *s = t->slot[i]; s; s = s->next)
			n++;
		longest = n > longest ? n : longest;
	}
	return longest;
}

TEST(names_that_fell_together_do_so_no_more)
{
	struct loop_sites sites = {0};
	const struct loop_site_more more = {0};
	char name[16];
	uint32_t n = 0;

	for (uint32_t i = 0; n < NAMES; i++) {
		snprintf(name, sizeof(name), "%x", i);
		if ((site_was(name) & LOW) != 0)
			continue;
		const struct loop_site_key key = {.kind = LOOP_SITE_LOOP,
			.subprogram = name,
			.source = "",
			.nest = "",
			.inlined_at = ""};
		struct loop_site *site;
		ck_assert_int_eq(loop_site_get(&sites, &key, NULL, &more, &site), 0);
		n++;
	}
	ck_assert_uint_lt(longest_chain(&sites), 32);
	loop_sites_clear(&sites);
}
