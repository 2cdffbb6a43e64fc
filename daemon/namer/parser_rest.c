/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* What the parser gives back. Most files are asked for once or twice, when a program is new, and
 * then never again; but a daemon runs for weeks. An image can be made again from its descriptors,
 * in milliseconds, or a tenth of a second for one with much DWARF. So images that lie idle go once
 * they are many, or large together; and when memory is really much, also those that do not lie
 * idle, the one that was asked for longest ago first.
 */

#include <malloc.h>

#include "daemon/namer/parser_private.h"

/* Idle images up to these stay: those of a machine that compiles, without debug information. */
#define KEPT_BYTES ((size_t)24 << 20)
#define KEPT_IMAGES 24u
#define IDLE_NS UINT64_C(5000000000)
/* Above this one image is made room for by the others at once. */
#define CROWDED_BYTES ((size_t)32 << 20)
#define LOOK_NS UINT64_C(1000000000)

static size_t heap_bytes(void)
{
	struct mallinfo2 m = mallinfo2();
	return m.uordblks + m.hblkhd;
}

static struct parsed_file *oldest_image(struct parser *p, uint32_t *ret_n_images)
{
	struct parsed_file *oldest = NULL;
	uint32_t n = 0;

	for (uint32_t i = 0; i < p->n_files; i++) {
		struct parsed_file *f = &p->file[i];
		if (!f->image)
			continue;
		n++;
		if (!oldest || f->used < oldest->used)
			oldest = f;
	}
	*ret_n_images = n;
	return oldest;
}

/* Images that are idle give back what costs little to have again. */
static bool lay_to_rest(struct parser *p, uint64_t now_ns)
{
	bool any = false;

	for (uint32_t i = 0; i < p->n_files; i++) {
		struct parsed_file *f = &p->file[i];
		if (!f->image || f->rests || now_ns - f->used_ns < IDLE_NS)
			continue;
		image_rest(f->image);
		f->rests = any = true;
	}
	return any;
}

bool parser_rest(struct parser *p, uint64_t now_ns)
{
	uint32_t n;

	if (now_ns - p->rested_ns < LOOK_NS)
		return false;
	p->rested_ns = now_ns;
	bool any = lay_to_rest(p, now_ns);
	for (struct parsed_file *f; (f = oldest_image(p, &n)); any = true) {
		size_t bytes = heap_bytes();
		bool idle =
			now_ns - f->used_ns >= IDLE_NS && (bytes > KEPT_BYTES || n > KEPT_IMAGES);
		bool crowded = n > 1 && bytes > CROWDED_BYTES;
		if (!idle && !crowded)
			break;
		parser_forget_spaces_of(p, f->id); /* which may point into it */
		f->image = image_free(f->image);
	}
	if (any)
		malloc_trim(0);
	return any;
}
