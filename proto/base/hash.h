/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Hashes of keys that outsiders choose
 *
 * Names of loops, paths, arguments, addresses: an outsider who knows a table's hash can send keys
 * that all fall into one bucket, and each lookup then walks past all of them. So every hash has a
 * secret key, which the process takes from getrandom(2) when it starts. The same bytes have a
 * different hash in each process, so never store a hash.
 */

#include <stddef.h>
#include <stdint.h>

/* The key; set before main, constant afterwards. */
struct hash_secret {
	uint64_t word[2];
};
extern struct hash_secret hash_secret;

/* Hash any bytes: 4, 8 and 16 bytes as numbers (hash_words), other lengths by SipHash-1-3. Source:
 * J.-P. Aumasson, D. J. Bernstein, "SipHash: a fast short-input PRF", 2012. */
uint64_t hash_bytes(const void *bytes, size_t n);

/* SipHash with these numbers of rounds per word and at the end, to test published vectors. */
uint64_t hash_sip(
	const struct hash_secret *key, int rounds, int rounds_last, const void *bytes, size_t n);

/* Hash two words, for hot paths: one multiplication, whose halves are folded. Without the key
 * nobody can predict collisions; it is no PRF, so do not show its value. */
static inline uint64_t hash_words(uint64_t a, uint64_t b)
{
	__extension__ typedef unsigned __int128 wide;
	wide product = (wide)(a ^ hash_secret.word[0]) * (b ^ hash_secret.word[1]);
	return (uint64_t)product ^ (uint64_t)(product >> 64);
}
