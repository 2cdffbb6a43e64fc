/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "daemon/query/run_keys.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct run_key *run_keys_find(struct run_key *table, const char *key)
{
	const size_t n = strlen(key);
	struct run_key *at;
	HASH_FIND(hh, table, key, n, at);
	return at;
}

int run_keys_add(struct run_key **table, char *key, uint32_t index)
{
	const size_t n = strlen(key);
	struct run_key *at = calloc(1, sizeof(*at));
	if (at) {
		*at = (struct run_key){.key = key, .index = index};
		HASH_ADD_KEYPTR(hh, *table, at->key, n, at);
	}
	if (at && at->hh.tbl)
		return 0;
	free(at);
	free(key);
	return -ENOMEM;
}

void run_keys_clear(struct run_key **table)
{
	struct run_key *at, *next;
	HASH_ITER (hh, *table, at, next) {
		HASH_DEL(*table, at);
		free(at->key);
		free(at);
	}
}
