/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Tables of unwinding, one a file, in bounded memory.
 */
#include "daemon/naming/namer_private.h"

#include <stdlib.h>
#include <sys/sysinfo.h>

void tables_begin(struct tables *t)
{
	struct sysinfo s;

	t->n_bytes_max = NAMER_TABLES_BYTES_MAX;
	if (sysinfo(&s) == 0 &&
		(uint64_t)s.totalram * s.mem_unit / NAMER_TABLES_SHARE < NAMER_TABLES_BYTES_MAX)
		t->n_bytes_max = (size_t)((uint64_t)s.totalram * s.mem_unit / NAMER_TABLES_SHARE);
}

size_t tables_bytes_max(const struct namer *n)
{
	return n->tables.n_bytes_max;
}

bool tables_have_room(const struct namer *n, size_t n_bytes)
{
	return n->tables.n_bytes + n_bytes <= n->tables.n_bytes_max;
}

void tables_note(struct namer *n)
{
	n->tables.changed = true;
	queue_note(n);
}

bool tables_take_change(struct namer *n)
{
	bool changed = n->tables.changed;

	n->tables.changed = false;
	return changed;
}

void slot_settle_table(struct namer *n, struct slot *s, enum table_state state)
{
	if (s->table)
		n->tables.n_bytes -= unwind_table_bytes(s->table);
	free(s->table);
	s->table = NULL;
	s->table_state = state;
	n->tables.changed = true;
}

void slot_hold_table(struct namer *n, struct slot *s, struct unwind_table *t)
{
	slot_settle_table(n, s, TABLE_HELD);
	s->table = t;
	n->tables.n_bytes += unwind_table_bytes(t);
}
