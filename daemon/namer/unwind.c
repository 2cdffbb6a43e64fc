/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "daemon/namer/unwind.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/namer/unwind_private.h"
#include "proto/base/memory.h"

static int compare_maps(const void *a, const void *b)
{
	const struct unwind_map *x = a, *y = b;
	return (x->start > y->start) - (x->start < y->start);
}

static bool code_at(const void *userdata, uint64_t address, struct unwind_code *ret_code)
{
	const struct unwind_map *m = unwind_find_map(userdata, address);

	if (!m)
		return false;
	*ret_code = (struct unwind_code){.file = m->file,
		.offset = m->file ? m->file_offset + (address - m->start) : address,
		.described = UNWIND_LEFT};
	return true;
}

int unwinder_unwind(
	struct unwinder *u, const struct unwind_sample *sample, struct unwound *ret_unwound)
{
	const struct unwind_registers *registers = u->walk.sample.registers;

	u->walk = (struct unwind_walk){
		.sample = *sample, .code_at = code_at, .userdata = u, .unwound = ret_unwound};
	u->walk.sample.registers = registers;
	if (!unwind_walk_begin(&u->walk))
		return UNWIND_FAILED;
	int r = unwind_by_elfutils(u);
	return r < 0 ? r : unwound_is_nothing(ret_unwound) ? UNWIND_FAILED : 0;
}

/* --- life ------------------------------------------------------------------------------------- */

DEFINE_CLEANUP(struct unwinder *, unwinder_free)

int unwinder_new(const struct unwind_map *maps, size_t n_maps, uint16_t machine,
	struct unwinder **ret_unwinder)
{
	const struct unwind_registers *registers = unwind_registers_of(machine);

	if (n_maps > UNWIND_MAPS_MAX)
		return -E2BIG;
	if (!registers)
		return -EOPNOTSUPP;

	_cleanup_(unwinder_freep) struct unwinder *u = calloc(1, sizeof(*u));
	if (!u)
		return -ENOMEM;
	u->walk.sample.registers = registers;
	u->map = calloc(n_maps ?: 1, sizeof(*u->map));
	if (!u->map)
		return -ENOMEM;
	for (size_t i = 0; i < n_maps; i++)
		if (maps[i].start < maps[i].end)
			u->map[u->n_maps++] = maps[i];
	qsort(u->map, u->n_maps, sizeof(*u->map), compare_maps);
	for (size_t i = 0; i < u->n_maps; i++)
		u->map[i].path = NULL; /* owned by the caller, and not needed */
	*ret_unwinder = TAKE_PTR(u);
	return 0;
}

struct unwinder *unwinder_free(struct unwinder *u)
{
	if (!u)
		return NULL;
	elfutils_free(u->elfutils);
	free(u->map);
	free(u);
	return NULL;
}
