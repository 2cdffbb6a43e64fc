/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Images of files that grow, whatever their format. */

#include "daemon/namer/image_private.h"

int image_read_on(struct image *i, int fd)
{
	if (i->elf || i->kernel)
		return IMAGE_MALFORMED;
	return i->dump ? jitdump_read_on(i, fd) : perf_map_read_on(i, fd);
}

uint32_t image_order(const struct image *i)
{
	return i->history.n;
}

uint32_t image_n_rewrites(const struct image *i)
{
	return i->read.n_anew;
}

struct image_mark image_mark(const struct image *i)
{
	return (struct image_mark){i->read.at, read_mark_hash(&i->read)};
}

bool image_goes_on(struct image *i, int fd, const struct image_mark *mark)
{
	bool was_known = i->is_known;

	i->is_known = true;
	return was_known || mark->at == 0 || read_mark_holds(fd, mark->at, mark->hash);
}

uint32_t image_changes(
	const struct image *i, uint32_t after, struct image_change *ret_change, uint32_t max)
{
	uint32_t n = 0;

	for (uint32_t k = after; k < i->history.n && n < max; k++) {
		const struct generated *code = &i->history.code[k];
		if (code->covers)
			ret_change[n++] =
				(struct image_change){code->start, code->end, code->from_ns, k + 1};
	}
	return n;
}
