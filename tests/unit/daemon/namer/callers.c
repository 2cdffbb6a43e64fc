/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "tests/unit/daemon/namer/callers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/namer/table_file.h"
#include "daemon/namer/unwind_private.h"
#include "proto/base/memory.h"

#define TABLE_BYTES_MAX ((size_t)32 << 20)

struct table_of_map {
	bool tried;
	int error;
	struct unwind_table *table;
};

struct callers {
	struct unwinder *unwinder;
	uint16_t machine;
	struct table_of_map *table; /* of the unwinder's maps */
};

int callers_new(const struct unwind_map *maps, size_t n_maps, uint16_t machine,
	struct callers **ret_callers)
{
	struct unwinder *unwinder;
	int r = unwinder_new(maps, n_maps, machine, &unwinder);

	if (r < 0)
		return r;
	struct callers *c = calloc(1, sizeof(*c));
	*c = (struct callers){.unwinder = unwinder,
		.machine = machine,
		.table = calloc(n_maps + 1, sizeof(*c->table))};
	*ret_callers = c;
	return 0;
}

static bool code_at(const void *userdata, uint64_t address, struct unwind_code *ret_code)
{
	const struct callers *c = userdata;
	const struct unwind_map *m = unwind_find_map(c->unwinder, address);

	if (!m)
		return false;
	*ret_code = (struct unwind_code){.file = m->file,
		.offset = m->file ? m->file_offset + (address - m->start) : address};
	struct table_of_map *t = &c->table[m - c->unwinder->map];
	if (m->fd < 0)
		return true;
	if (!t->tried)
		t->error = table_of_file(m->fd, c->machine, NULL, 0, TABLE_BYTES_MAX, &t->table);
	t->tried = true;
	ret_code->table = t->table;
	ret_code->described = t->error == 0          ? UNWIND_TABLE
			      : t->error == -EBADMSG ? UNWIND_BARE
						     : UNWIND_LEFT;
	return true;
}

bool callers_by_tables(struct callers *c, const struct unwind_sample *s, struct unwound *ret)
{
	struct unwind_walk w = {.sample = *s, .code_at = code_at, .userdata = c, .unwound = ret};

	w.sample.registers = unwind_registers_of(c->machine);
	return unwind_by_tables(&w) == UNWIND_WALKED;
}

int callers_by_elfutils(struct callers *c, const struct unwind_sample *s, struct unwound *ret)
{
	return unwinder_unwind(c->unwinder, s, ret);
}

int callers_of(struct callers *c, const uint64_t *regs, uint64_t regs_mask, const uint8_t *stack,
	size_t n_stack, struct unwound *ret_unwound)
{
	static struct unwound found;
	const struct unwind_sample s = {
		.regs = regs, .regs_mask = regs_mask, .stack = stack, .n_stack = n_stack};
	int r = 0;

	if (callers_by_tables(c, &s, &found))
		r = unwound_is_nothing(&found) ? UNWIND_FAILED : 0;
	else
		r = callers_by_elfutils(c, &s, &found);
	if (r == 0)
		*ret_unwound = found;
	return r;
}

struct callers *callers_free(struct callers *c)
{
	if (!c)
		return NULL;
	for (size_t i = 0; i < c->unwinder->n_maps; i++)
		free(c->table[i].table);
	free(c->table);
	unwinder_free(c->unwinder);
	free(c);
	return NULL;
}
