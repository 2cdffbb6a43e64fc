/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Spaces: what code is mapped where in a process
 *
 * A sorted array of disjoint mappings, looked up by bisection for each frame of each sample, and
 * changed only when a program maps code. The kernel does not report unmapping, so a new mapping
 * simply cuts whatever it lies over. fork would copy the array for a child that mostly execs right
 * away; instead both processes hold the same array, and the first of them to map something makes
 * one of its own. The generation lets others keep what they computed from a space.
 */

#include <errno.h>
#include <string.h>

#include "daemon/attribute/task.h"
#include "proto/memory.h"

#define SPACE_MAPS_FIRST 16 /* a small C program has about six executable mappings */

/* Index of the first mapping that ends above addr. */
static uint32_t space_after(const struct space *s, uint64_t addr)
{
	uint32_t low = 0, high = s->n_maps;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (s->map[middle].end > addr)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

const struct map *space_find(const struct space *s, uint64_t addr)
{
	if (!s)
		return NULL;

	uint32_t i = space_after(s, addr);
	return i < s->n_maps && s->map[i].start <= addr ? &s->map[i] : NULL;
}

static int space_reserve(struct space *s, uint32_t n_maps)
{
	if (n_maps <= s->size)
		return 0;

	uint32_t size = s->size ? s->size : SPACE_MAPS_FIRST;
	while (size < n_maps)
		size *= 2;
	struct map *map = reallocarray(s->map, size, sizeof(*map));
	if (!map)
		return -ENOMEM;

	s->map = map;
	s->size = size;
	return 0;
}

/* Give the process a space that nobody else holds, with what it had. */
static int space_own(struct task *process)
{
	struct space *former = process->space;
	if (former && former->n_users == 1)
		return 0;

	_cleanup_(freep) struct space *own = calloc(1, sizeof(*own));
	if (!own)
		return -ENOMEM;
	if (former && former->n_maps) {
		int r = space_reserve(own, former->n_maps);
		if (r < 0)
			return r;
		memcpy(own->map, former->map, former->n_maps * sizeof(*own->map));
		own->n_maps = former->n_maps;
	}

	own->n_users = 1;
	own->uid = task_files_uid(process);
	space_drop(process);
	process->space = TAKE_PTR(own);
	return 0;
}

/* Replace [start, end) by one mapping. Of those that it lies over, at most the first keeps a piece
 * before it and the last a piece behind it:
 *
 *      |---first---|   |--|   |---last---|
 *             |------- new ------|
 *      |--head-|                 |--tail--|
 */
static int space_insert(struct space *s, const struct map *m)
{
	uint32_t from = space_after(s, m->start), to = from;
	struct map piece[3];
	uint32_t n_pieces = 0;

	while (to < s->n_maps && s->map[to].start < m->end)
		to++;

	if (from < to && s->map[from].start < m->start) {
		piece[n_pieces] = s->map[from];
		piece[n_pieces++].end = m->start;
	}
	piece[n_pieces++] = *m;
	if (from < to && s->map[to - 1].end > m->end) {
		piece[n_pieces] = s->map[to - 1];
		piece[n_pieces].file_offset += m->end - piece[n_pieces].start;
		piece[n_pieces++].start = m->end;
	}

	uint32_t n_maps = s->n_maps - (to - from) + n_pieces;
	if (n_maps > MAPS_MAX)
		return SPACE_FULL;
	int r = space_reserve(s, n_maps);
	if (r < 0)
		return r;

	memmove(s->map + from + n_pieces, s->map + to, (s->n_maps - to) * sizeof(*s->map));
	memcpy(s->map + from, piece, n_pieces * sizeof(*piece));
	s->n_maps = n_maps;
	return 0;
}

int space_map(struct task_table *t, struct task *task, uint64_t start, uint64_t bytes,
	uint64_t file_offset, struct file *file)
{
	struct task *process = task->process;
	struct map m = {
		.start = start,
		.end = bytes > UINT64_MAX - start ? UINT64_MAX : start + bytes,
		.file_offset = file_offset,
		.file = file,
	};

	if (m.start >= m.end)
		return 0;

	/* What /proc showed at the start comes again as a record: not a change. */
	const struct map *known = space_find(process->space, start);
	if (known && !memcmp(known, &m, sizeof(m)))
		return 0;

	int r = space_own(process);
	if (r < 0)
		return r;
	r = space_insert(process->space, &m);
	process->space->generation = ++t->last_generation;
	return r;
}

void space_change_user(struct task_table *t, struct task *process)
{
	struct space *space = process->space;

	if (!space || space->uid == task_files_uid(process))
		return;
	space->uid = task_files_uid(process);
	if (space->generation)
		space->generation = ++t->last_generation;
}

void space_share(struct task *child, const struct task *parent)
{
	struct space *space = parent->process->space;

	if (child->process->space == space)
		return;

	space_drop(child->process);
	if (space)
		space->n_users++;
	child->process->space = space;
}

void space_drop(struct task *task)
{
	struct space *space = TAKE_PTR(task->space);

	if (!space || --space->n_users > 0)
		return;

	free(space->map);
	free(space);
}
