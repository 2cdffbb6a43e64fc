/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "daemon/namer/unwind_private.h"

const struct unwind_map *unwind_find_map(const struct unwinder *u, uint64_t addr)
{
	size_t low = 0, high = u->n_maps;

	while (low < high) { /* the first map that starts above addr */
		size_t middle = low + (high - low) / 2;
		if (u->map[middle].start <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 || addr >= u->map[low - 1].end)
		return NULL;
	return &u->map[low - 1];
}
