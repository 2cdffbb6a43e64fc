/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A constructor gets the key, before any table exists, and before a worker enters its sandbox. If
 * the kernel has no random bytes yet (getrandom would block at boot), we use addresses of this
 * process and its clock: both are hard to guess from outside.
 */
#include "proto/base/hash.h"

#include <string.h>
#include <sys/random.h>

#include "proto/base/clock.h"

struct hash_secret hash_secret;

__attribute__((constructor)) static void hash_secret_take(void)
{
	struct hash_secret key;
	if (getrandom(&key, sizeof(key), GRND_NONBLOCK) != (ssize_t)sizeof(key)) {
		key.word[0] = (uint64_t)(uintptr_t)&key ^ clock_ns(CLOCK_MONOTONIC) << 20;
		key.word[1] = (uint64_t)(uintptr_t)&hash_secret ^ clock_ns(CLOCK_REALTIME) << 20;
	}
	hash_secret = key;
}

struct sip {
	uint64_t v0, v1, v2, v3;
};

static inline uint64_t turn(uint64_t x, int bits)
{
	return x << bits | x >> (64 - bits);
}

static inline void rounds_of(struct sip *s, int n)
{
	for (; n > 0; n--) {
		s->v0 += s->v1;
		s->v2 += s->v3;
		s->v1 = turn(s->v1, 13) ^ s->v0;
		s->v3 = turn(s->v3, 16) ^ s->v2;
		s->v0 = turn(s->v0, 32);
		s->v2 += s->v1;
		s->v0 += s->v3;
		s->v1 = turn(s->v1, 17) ^ s->v2;
		s->v3 = turn(s->v3, 21) ^ s->v0;
		s->v2 = turn(s->v2, 32);
	}
}

/* Up to 8 bytes as one word. */
static inline uint64_t word_of(const uint8_t *at, size_t n)
{
	uint64_t word = 0;
	memcpy(&word, at, n);
	return word;
}

static inline uint64_t sip(
	const struct hash_secret *key, int rounds, int rounds_last, const uint8_t *at, size_t n)
{
	struct sip s = {
		.v0 = key->word[0] ^ 0x736f6d6570736575u,
		.v1 = key->word[1] ^ 0x646f72616e646f6du,
		.v2 = key->word[0] ^ 0x6c7967656e657261u,
		.v3 = key->word[1] ^ 0x7465646279746573u,
	};
	uint64_t last = (uint64_t)n << 56;
	for (; n >= 8; n -= 8, at += 8) {
		uint64_t word = word_of(at, 8);
		s.v3 ^= word;
		rounds_of(&s, rounds);
		s.v0 ^= word;
	}
	last |= word_of(at, n);
	s.v3 ^= last;
	rounds_of(&s, rounds);
	s.v0 ^= last;
	s.v2 ^= 0xff;
	rounds_of(&s, rounds_last);
	return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

uint64_t hash_sip(
	const struct hash_secret *key, int rounds, int rounds_last, const void *bytes, size_t n)
{
	return sip(key, rounds, rounds_last, bytes, n);
}

uint64_t hash_bytes(const void *bytes, size_t n)
{
	const uint8_t *at = bytes;
	if (n == 16)
		return hash_words(word_of(at, 8), word_of(at + 8, 8));
	if (n == 8)
		return hash_words(word_of(at, 8), n);
	if (n == 4)
		return hash_words(word_of(at, 4), n);
	return sip(&hash_secret, 1, 3, at, n);
}
