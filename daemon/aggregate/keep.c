/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* A row points at its task, a node at its frame; both hold until the window or the tree is cleared,
 * so a sweep in between must not free them.
 */

#include "daemon/aggregate/keep.h"

void window_keep(const struct window *w, struct sweep *s)
{
	for (const struct window_row *row = w->rows; row; row = row->hh.next)
		sweep_keep_task(s, row->who);
}

void stack_tree_keep(const struct stack_tree *t, struct sweep *s)
{
	for (uint32_t i = 0; i < t->n_nodes; i++)
		if (t->node[i])
			sweep_keep_frame(s, t->node[i]->frame);
}
