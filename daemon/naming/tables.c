/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Tables of unwinding, one for each file, in bounded memory. To make room, the author whose files have most gives up
 * half of it, what was not used for longest first. So an author of thousands of small files costs the same few passes
 * over the list as one of a few large files.
 */
#include "daemon/naming/namer_private.h"

#include <stdlib.h>
#include <sys/sysinfo.h>

size_t part_of_memory(size_t most, uint64_t part)
{
	struct sysinfo s;

	if (sysinfo(&s) < 0 || (uint64_t)s.totalram * s.mem_unit / part >= most)
		return most;
	return (size_t)((uint64_t)s.totalram * s.mem_unit / part);
}

void tables_begin(struct tables *t)
{
	TAILQ_INIT(&t->held);
	t->n_bytes_max = part_of_memory(NAMER_TABLES_BYTES_MAX, NAMER_TABLES_SHARE);
}

void tables_end(struct tables *t)
{
	quota_clear(&t->authors);
}

size_t tables_bytes_max(const struct namer *n)
{
	return n->tables.n_bytes_max;
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
	struct tables *t = &n->tables;

	if (s->table) {
		TAILQ_REMOVE(&t->held, s, tabled);
		quota_give(&t->authors, s->table_author, unwind_table_bytes(s->table));
		t->n_bytes -= unwind_table_bytes(s->table);
	}
	free(s->table);
	s->table = NULL;
	s->table_state = state;
	s->table_order = s->growth.order;
	s->table_ns = n->now_ns;
	s->replaced_from = s->replaced_to = 0;
	s->all_replaced = false;
	t->changed = true;
}

/* --- room ------------------------------------------------------------------------------------- */

static bool has_room(const struct tables *t, size_t n_bytes)
{
	return t->n_bytes + n_bytes <= t->n_bytes_max;
}

/* The author who has most. There is a table. */
static uid_t author_of_most(struct tables *t)
{
	uid_t author = TAILQ_FIRST(&t->held)->table_author;
	uint64_t most = 0;

	for (const struct slot *s = TAILQ_FIRST(&t->held); s; s = TAILQ_NEXT(s, tabled)) {
		const uint64_t n_bytes = quota_held(&t->authors, s->table_author);
		if (n_bytes > most) {
			most = n_bytes;
			author = s->table_author;
		}
	}
	return author;
}

/* Free the author's tables until there is room, or half of them is gone. */
static void free_some(struct namer *n, uid_t author, size_t n_bytes)
{
	struct tables *t = &n->tables;
	const uint64_t half = quota_held(&t->authors, author) / 2;
	struct slot *next;

	for (struct slot *s = TAILQ_FIRST(&t->held);
		s && !has_room(t, n_bytes) && quota_held(&t->authors, author) >= half; s = next) {
		next = TAILQ_NEXT(s, tabled);
		if (s->table_author == author)
			slot_settle_table(n, s, TABLE_UNASKED);
	}
}

/* --- generated code --------------------------------------------------------------------------- */

bool slot_table_is_old(const struct slot *s, uint64_t since_ns)
{
	const bool grew = s->growth.unread || s->growth.order != s->table_order || s->all_replaced;

	if (since_ns < s->table_ns + NAMER_RETRY_NS)
		return false;
	switch (s->table_state) {
	case TABLE_HELD:
	case TABLE_EMPTY:
		return grew;
	case TABLE_FOREIGN:
		return s->all_replaced;
	default:
		return false;
	}
}

bool slot_table_describes(const struct slot *s, uint64_t address)
{
	const bool is_replaced = address >= s->replaced_from && address < s->replaced_to;

	return s->table && !s->all_replaced && !is_replaced && unwind_table_at(s->table, address);
}

void slot_outdate_table(struct slot *s, uint64_t from, uint64_t to)
{
	if (s->replaced_from == s->replaced_to)
		s->replaced_from = from;
	s->replaced_from = from < s->replaced_from ? from : s->replaced_from;
	s->replaced_to = to > s->replaced_to ? to : s->replaced_to;
}

void slot_outdate_whole_table(struct slot *s)
{
	s->all_replaced = true;
}

/* --- use -------------------------------------------------------------------------------------- */

void slot_hold_table(struct namer *n, struct slot *s, struct unwind_table *table, uid_t author)
{
	struct tables *t = &n->tables;
	const size_t n_bytes = unwind_table_bytes(table);

	slot_settle_table(n, s, TABLE_HELD);
	while (!has_room(t, n_bytes) && !TAILQ_EMPTY(&t->held))
		free_some(n, author_of_most(t), n_bytes);
	s->table = table;
	s->table_author = author;
	TAILQ_INSERT_TAIL(&t->held, s, tabled);
	(void)quota_take(
		&t->authors, s->table_author, UINT64_MAX, n_bytes); /* which has no limit */
	t->n_bytes += n_bytes;
}

void slot_use_table(struct namer *n, struct slot *s)
{
	TAILQ_REMOVE(&n->tables.held, s, tabled);
	TAILQ_INSERT_TAIL(&n->tables.held, s, tabled);
}
