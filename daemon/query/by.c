/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The list of keys as a table.
 */
#include "daemon/query/by.h"

#include <string.h>

const struct query_by_kind query_by_kinds[N_QUERY_BY] = {
#define BY(id, ...) [QUERY_BY_##id] = {__VA_ARGS__},
#include "daemon/query/by.inc"
#undef BY
};

int query_by_parse(const char *name)
{
	for (int i = 0; i < N_QUERY_BY; i++)
		if (strcmp(query_by_kinds[i].name, name) == 0)
			return i;
	return -1;
}

const char *query_by_name(enum query_by by)
{
	return by >= 0 && by < N_QUERY_BY ? query_by_kinds[by].name : NULL;
}
