/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Generated code, for both formats of files that describe it. */

#include "daemon/namer/growing.h"

#include <errno.h>
#include <stdlib.h>

#include "proto/base/memory.h"

DEFINE_CLEANUP(struct growing *, growing_free)

int growing_read_on(struct growing *g, int fd)
{
	return g->dump ? jitdump_read_on(g, fd) : perf_map_read_on(g, fd);
}

static int growing_open(int fd, bool is_dump, struct growing **ret_growing)
{
	_cleanup_(growing_freep) struct growing *g = calloc(1, sizeof(*g));

	if (!g || (is_dump && !(g->dump = jitdump_new(g))))
		return -ENOMEM;
	int r = growing_read_on(g, fd);
	if (r)
		return r;
	*ret_growing = TAKE_PTR(g);
	return 0;
}

int growing_open_perf_map(int fd, struct growing **ret_growing)
{
	return growing_open(fd, false, ret_growing);
}

int growing_open_jitdump(int fd, struct growing **ret_growing)
{
	return growing_open(fd, true, ret_growing);
}

int growing_table(const struct growing *g, uint16_t machine, size_t n_bytes_max,
	struct unwind_table **ret_table)
{
	return g->dump ? jitdump_table(g->dump, &g->history, machine, n_bytes_max, ret_table)
		       : -EBADMSG;
}

bool growing_has_lines(const struct growing *g)
{
	return g->dump;
}

uint32_t growing_order(const struct growing *g)
{
	return g->history.n;
}

uint32_t growing_n_rewrites(const struct growing *g)
{
	return g->read.n_rewrites;
}

struct image_mark growing_mark(const struct growing *g)
{
	return (struct image_mark){g->read.at, read_mark_hash(&g->read)};
}

bool growing_goes_on(struct growing *g, int fd, const struct image_mark *mark)
{
	bool was_known = g->is_known;

	g->is_known = true;
	return was_known || mark->at == 0 || read_mark_holds(fd, mark->at, mark->hash);
}

uint32_t growing_changes(
	const struct growing *g, uint32_t after, struct image_change *ret_change, uint32_t max)
{
	uint32_t n = 0;

	for (uint32_t k = after; k < g->history.n && n < max; k++) {
		const struct generated *code = &g->history.code[k];
		if (code->covers)
			ret_change[n++] =
				(struct image_change){code->start, code->end, code->from_ns, k + 1};
	}
	return n;
}

void growing_name(struct growing *g, uint64_t addr, uint32_t order, struct image_naming *naming)
{
	const struct generated *code = history_find(&g->history, addr, order);
	if (!code || !code->name)
		return;

	struct image_place *place = &naming->place[naming->n_places++];
	place->function = names_demangle(&g->names, code->name);
	if (g->dump)
		jitdump_find(g->dump, code->tag, addr, place);
}

struct growing *growing_free(struct growing *g)
{
	if (!g)
		return NULL;
	history_clear(&g->history);
	jitdump_free(g->dump);
	names_clear(&g->names);
	free(g);
	return NULL;
}
