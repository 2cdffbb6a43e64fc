/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* The line of an address in JIT code, from the lines in its jitdump. */

#include "daemon/namer/jit_lines.h"

#include <stdlib.h>

void jit_lines_find(
	const struct jit_lines *j, uint32_t index, uint64_t addr, struct image_place *place)
{
	const struct jit_code *code = &j->code[index];
	const struct jit_line *line = code->n_lines ? j->line + code->first_line : NULL;
	size_t low = 0, high = code->n_lines;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (line[middle].offset <= addr - code->start)
			low = middle + 1;
		else
			high = middle;
	}
	if (low) {
		place->source = line[low - 1].source;
		place->line = line[low - 1].line;
	}
}

struct jit_lines *jit_lines_free(struct jit_lines *j)
{
	if (!j)
		return NULL;

	free(j->code);
	free(j->line);
	free(j);
	return NULL;
}

void jitdump_forget(struct jitdump *d)
{
	struct moved *moved, *next;

	HASH_ITER (hh, d->by_index, moved, next) {
		HASH_DEL(d->by_index, moved);
		free(moved);
	}
}

struct jitdump *jitdump_free(struct jitdump *d)
{
	if (!d)
		return NULL;
	jitdump_forget(d);
	free(d);
	return NULL;
}
