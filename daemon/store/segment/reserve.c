/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Ids are keys in the file for as long as it is written: if an id were given to another task
 * meanwhile, that task would be taken for the one that has a row already.
 */

#include "daemon/store/segment/reserve.h"
#include "daemon/store/segment/write.h"

static void reserve(
	const struct marks *m, void (*reserve_id)(struct sweep *s, uint32_t id), struct sweep *s)
{
	for (size_t page = 0; page < m->n_pages; page++)
		for (uint32_t i = 0; m->page[page] && i < 1u << MARKS_PAGE_BITS; i++)
			if (m->page[page][i] != MARK_NONE)
				reserve_id(s, (uint32_t)(page << MARKS_PAGE_BITS) + i);
}

void segment_reserve(const struct segment *g, struct sweep *s)
{
	reserve(&g->tasks, sweep_reserve_task, s);
	reserve(&g->files, sweep_reserve_file, s);
	reserve(&g->frames, sweep_reserve_frame, s);
}
