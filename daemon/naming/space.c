/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Spaces: the code mappings of a process
 *
 * A sorted array of disjoint mappings, searched by bisection for each frame of each sample, and
 * changed only when a program maps code. The kernel does not report unmapping, so a new mapping
 * simply cuts whatever it overlaps.
 */

#include "daemon/naming/space.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

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

/* The size of memory, at least `size`, that has room for n_maps and an eighth more. */
static uint32_t size_for(uint32_t size, uint32_t n_maps)
{
	if (size < SPACE_MAPS_FIRST)
		size = SPACE_MAPS_FIRST;
	while (size < n_maps + n_maps / 8)
		size *= 2;
	return size;
}

/* Move all mappings into memory of `size`, behind `spare` unused ones. */
static int space_move(struct space *s, uint32_t spare, uint32_t size)
{
	struct map *all = reallocarray(NULL, size, sizeof(*all));
	if (!all)
		return -ENOMEM;

	if (s->n_maps)
		memcpy(all + spare, s->map, s->n_maps * sizeof(*all));
	if (s->map)
		free(s->map - s->spare);
	s->map = all + spare;
	s->spare = spare;
	s->size = size;
	return 0;
}

int space_copy(struct space *s, const struct space *from)
{
	space_clear(s);
	if (from->n_maps == 0)
		return 0;
	int r = space_move(s, 0, size_for(0, from->n_maps));
	if (r < 0)
		return r;
	memcpy(s->map, from->map, from->n_maps * sizeof(*s->map));
	s->n_maps = from->n_maps;
	return 0;
}

void space_clear(struct space *s)
{
	if (s->map)
		free(s->map - s->spare);
	s->map = NULL;
	s->n_maps = s->spare = s->size = 0;
}

/* Replace the mappings from `from` to `to` by the pieces. The mappings before or behind make room,
 * whichever are fewer. The kernel gives out addresses from above, so a program that maps much puts each
 * mapping before all others. 0 or -ENOMEM. */
static int space_replace(
	struct space *s, uint32_t from, uint32_t to, const struct map *piece, uint32_t n_pieces)
{
	int64_t more = (int64_t)n_pieces - (to - from), n_maps = s->n_maps + more;
	bool front = from < s->n_maps - to;

	if (more > 0 && !(front && s->spare >= more) && s->spare + n_maps > s->size) {
		uint32_t size = size_for(s->size, (uint32_t)n_maps);
		int r = space_move(s, front ? size - s->n_maps : 0, size);
		if (r < 0)
			return r;
	}
	if (more > 0 && front && s->spare >= more) {
		memmove(s->map - more, s->map, from * sizeof(*s->map));
		s->map -= more;
		s->spare -= (uint32_t)more;
	} else if (more != 0) {
		memmove(s->map + from + n_pieces, s->map + to, (s->n_maps - to) * sizeof(*s->map));
	}
	memcpy(s->map + from, piece, n_pieces * sizeof(*piece));
	s->n_maps = (uint32_t)n_maps;
	return 0;
}

/* Insert a mapping. Of the mappings that it overlaps, at most the first keeps a piece before it and the
 * last a piece behind it:
 *
 *      |---first---|   |--|   |---last---|
 *             |------- new ------|
 *      |--head-|                 |--tail--|
 */
int space_insert(struct space *s, const struct map *m)
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

	if (s->n_maps - (to - from) + n_pieces > MAPS_MAX)
		return SPACE_FULL;
	return space_replace(s, from, to, piece, n_pieces);
}
