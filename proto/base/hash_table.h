/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* uthash with a keyed hash. Do not include uthash.h directly (a test checks that). */

#include "proto/base/hash.h"

/* Without memory, HASH_ADD does not add the element and leaves its hh.tbl NULL: check hh.tbl after
 * each HASH_ADD. Otherwise uthash would call exit. */
#define HASH_NONFATAL_OOM 1

#define HASH_FUNCTION(keyptr, keylen, hashv)                                                       \
	do {                                                                                       \
		(hashv) = (unsigned)hash_bytes((keyptr), (keylen));                                \
	} while (0)

#include <uthash.h>
