/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Name set: the functions that counted modules define, by mperf_name_hash
 *
 * A callee that is in no such set is not counted by any module. If a program chooses two names of
 * one hash on purpose, it hides only its own callees.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct name_set {
	uint64_t *slot; /* n_slots, a power of two, at most half of them taken; 0: free */
	uint32_t n_slots, n;
};

/* The bytes of a set after n more hashes are added. */
size_t name_set_bytes(const struct name_set *s, uint32_t n);
/* Add n hashes, of which some may be there. 0, -ENOMEM. */
int name_set_add(struct name_set *s, const uint64_t *hash, uint32_t n);
bool name_set_has(const struct name_set *s, uint64_t hash);
void name_set_clear(struct name_set *s);
