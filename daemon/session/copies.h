/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* How much of each stack a session copies: as little as suffices
 *
 * Most stacks have less than 4 KiB, those of interpreters and of some compilers more than 32. A record takes room for
 * the whole copy in its ring, however deep its stack is, so copies are large only while stacks are deep.
 */

#include "daemon/attribute/attribute.h"

struct copies {
	struct copy_depths sum;    /* since the last decision for more */
	uint64_t deepest;          /* since less was last thought of */
	uint64_t more_ns, less_ns; /* the next times for either */
};

/* The bytes of each copy from now on, by what was found since the last call. Now: those in force; least: what the
 * session began with. */
uint32_t copies_next(struct copies *c, const struct copy_depths *found, uint32_t now_bytes,
	uint32_t least_bytes, uint64_t now_ns);
