/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* uthash, by a hash whose key nobody knows; nobody includes it otherwise (a test looks). */

#include "proto/hash.h"

#define HASH_FUNCTION(keyptr, keylen, hashv)                                                       \
	do {                                                                                       \
		(hashv) = (unsigned)hash_bytes((keyptr), (keylen));                                \
	} while (0)

#include <uthash.h>
