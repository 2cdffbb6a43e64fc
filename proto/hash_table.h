/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* uthash with a keyed hash. Do not include uthash.h directly (a test checks that). */

#include "proto/hash.h"

#define HASH_FUNCTION(keyptr, keylen, hashv)                                                       \
	do {                                                                                       \
		(hashv) = (unsigned)hash_bytes((keyptr), (keylen));                                \
	} while (0)

#include <uthash.h>
