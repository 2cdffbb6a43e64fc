/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Reported execs: three lists, and a hash of processes */

#include "daemon/attribute/exec_table.h"

#include <stdlib.h>
#include <utlist.h>

#include "daemon/attribute/task.h"

struct exec_chain *exec_chain_find(const struct exec_table *t, pid_t pid)
{
	struct exec_chain *c = NULL;

	HASH_FIND(hh, t->chains, &pid, sizeof(pid), c);
	return c;
}

static struct exec_chain *chain_get(struct exec_table *t, pid_t pid)
{
	struct exec_chain *c = exec_chain_find(t, pid);

	if (c)
		return c;
	c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->pid = pid;
	HASH_ADD(hh, t->chains, pid, sizeof(pid), c);
	if (!c->hh.tbl) {
		free(c);
		return NULL;
	}
	return c;
}

struct exec *exec_chain_before(const struct exec_chain *c, uint64_t time_ns)
{
	struct exec *e = c && c->first ? c->first->prev : NULL;

	while (e && e->time_ns > time_ns)
		e = e == c->first ? NULL : e->prev;
	return e;
}

/* Memory of an exec. While its arguments are still to be read, they count as the longest. */
static size_t exec_bytes(const struct exec *e)
{
	size_t n_argv = e->text.argv ? e->text.n_argv : 0;

	return EXEC_BYTES + (e->open ? TASK_ARGV_BYTES_MAX : n_argv);
}

void exec_table_close(struct exec_table *t, struct exec *e)
{
	if (!e->open)
		return;
	DL_DELETE2(t->open, e, open_prev, open_next);
	e->open = false;
	t->bytes -= e->bytes;
	e->bytes = exec_bytes(e);
	t->bytes += e->bytes;
}

bool exec_table_add(struct exec_table *t, const struct exec *from)
{
	struct exec *e = malloc(sizeof(*e));

	if (!e)
		return false;
	*e = *from;
	e->open = e->due_ns != EXEC_NEVER;
	e->bytes = exec_bytes(e);
	struct exec_chain *c = t->bytes + e->bytes <= EXECS_BYTES_MAX ? chain_get(t, e->pid) : NULL;
	if (!c) {
		free(e);
		return false;
	}
	struct exec *before = exec_chain_before(c, e->time_ns);
	if (before)
		DL_APPEND_ELEM(c->first, before, e);
	else
		DL_PREPEND(c->first, e);
	DL_APPEND2(t->all, e, all_prev, all_next);
	if (e->open)
		DL_APPEND2(t->open, e, open_prev, open_next);
	t->n++;
	t->bytes += e->bytes;
	return true;
}

void exec_table_remove(struct exec_table *t, struct exec *e)
{
	struct exec_chain *c = exec_chain_find(t, e->pid);

	exec_table_close(t, e);
	DL_DELETE2(t->all, e, all_prev, all_next);
	DL_DELETE(c->first, e);
	if (!c->first) {
		HASH_DEL(t->chains, c);
		free(c);
	}
	t->n--;
	t->bytes -= e->bytes;
	free(e->text.argv);
	free(e);
}
