/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <errno.h>
#include <stdlib.h>

#include "daemon/query/load_part.h"

int load_array(
	struct loaded *l, const char *sql, void *array, uint32_t *ret_n, size_t element_bytes)
{
	struct cursor c;
	int r = cursor_open(&c, l, sql);
	if (r == 0)
		r = cursor_next(&c);
	int64_t n = r == 0 ? cursor_integer(&c, 0) : 0;
	cursor_close(&c);
	if (r != 0)
		return r;
	if (n < 0 || n > QUERY_IDS_MAX)
		return query_fail_damaged(l, "an id is out of bounds");
	void *p = calloc((size_t)n + 1, element_bytes);
	if (!p)
		return -ENOMEM;
	*(void **)array = p;
	*ret_n = (uint32_t)n;
	return 0;
}

int load_each(struct loaded *l, const char *sql, bool pairs, load_take *take)
{
	struct cursor c;
	int r = cursor_open(&c, l, sql);
	c.pairs = pairs;
	while (r == 0) {
		r = cursor_next(&c);
		if (r == 0)
			r = take(l, &c);
	}
	cursor_close(&c);
	return r == CURSOR_END ? 0 : r;
}
