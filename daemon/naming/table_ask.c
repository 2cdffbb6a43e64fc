/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Tables of unwinding on their way from the parser, which makes one when a stack first passes through the file, and
 * sends it in pieces. Nothing in it is used before all is there and checked.
 */
#include "daemon/naming/namer_private.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/naming/reply.h"

void table_drop_arriving(struct namer *n)
{
	free(n->arriving.table);
	n->arriving.table = NULL;
}

int slot_want_table(struct namer *n, struct slot *s, struct naming_user *u)
{
	const bool is_again = slot_grows(s) && slot_table_is_old(s, UINT64_MAX);

	if (s->table_state != TABLE_UNASKED && s->table_state != TABLE_WANTED && !is_again)
		return 0;
	s->table_state = TABLE_WANTED;
	return slot_push_none(n, s, u);
}

int slot_ask_table(struct namer *n, struct slot *s)
{
	const struct file *f = s->file;
	struct message_table m = {
		.file = f->id, .machine = UNWIND_MACHINE, .n_bytes_max = tables_bytes_max(n) / 2};
	struct iovec iov = {&m, sizeof(m)};

	if (f->kind == FILE_ELF && f->n_build_id <= sizeof(m.build_id)) {
		m.n_build_id = f->n_build_id;
		memcpy(m.build_id, f->build_id, sizeof(m.build_id));
	}
	table_drop_arriving(n);
	return parser_ask(n, MESSAGE_TABLE, &iov, 1, -1);
}

static int hold(struct namer *n, struct slot *s)
{
	struct unwind_table *t = n->arriving.table;

	if (unwind_table_check(t) < 0)
		return -EBADMSG;
	n->arriving.table = NULL;
	slot_hold_table(n, s, t, slot_author(s, PART_MAIN));
	return TABLE_MADE;
}

/* --- answers ---------------------------------------------------------------------------------- */

static int take_piece(struct namer *n, const struct message_tabled *m, const uint8_t *piece)
{
	struct arriving *t = &n->arriving;
	const struct unwind_table counts = {.base = m->base,
		.n_segments = m->n_segments,
		.n_rules = m->n_rules,
		.n_pages = m->n_pages,
		.n_rows = m->n_rows};

	if (m->first == 0) {
		if (unwind_table_check_counts(&counts) < 0 ||
			unwind_table_bytes(&counts) > tables_bytes_max(n))
			return -EBADMSG;
		table_drop_arriving(n);
		t->table = unwind_table_new(&counts);
		t->n = 0;
		if (!t->table)
			return -ENOMEM;
	}
	if (!t->table || memcmp(t->table, &counts, sizeof(counts)) != 0 || m->first != t->n ||
		m->n > unwind_table_memory_bytes(&counts) - t->n)
		return -EBADMSG;
	memcpy((uint8_t *)t->table->memory + m->first, piece, m->n);
	t->n += m->n;
	return (t->n == unwind_table_memory_bytes(&counts)) == m->last ? 0 : -EBADMSG;
}

int slot_hear_table(struct namer *n, struct slot *s, const uint8_t *bytes, size_t n_bytes)
{
	struct message_tabled m;
	const uint8_t *piece;

	if (reply_tabled(bytes, n_bytes, &m, &piece) < 0 || m.file != s->file->id)
		return -EBADMSG;
	switch (m.outcome) {
	case TABLE_MADE: {
		int r = take_piece(n, &m, piece);
		return r < 0 ? r : m.last ? hold(n, s) : PARSER_MORE;
	}
	case TABLE_NOTHING:
		slot_settle_table(n, s, TABLE_EMPTY);
		break;
	case TABLE_LEFT:
		slot_settle_table(n, s, TABLE_FOREIGN);
		break;
	case TABLE_OTHER_FILE:
		if (s->file->kind != FILE_ELF)
			return -EBADMSG; /* there is only one vDSO */
		break;
	}
	return (int)m.outcome;
}
