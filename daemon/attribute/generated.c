/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Code that the kernel generates, as known to one walk
 *
 * Records report code that was loaded after the events were opened. We list earlier code only at the first
 * sample outside the kernel's text and its modules, since on most machines no BPF program is ever sampled.
 * We take from the list only code that was loaded by the time of that sample: records of later code are
 * yet to be read.
 */

#include "daemon/attribute/attribute_private.h"
#include "daemon/kernel/kernel.h"

struct generated {
	struct kernel_code code; /* by address */
	bool listed;             /* the code from before the records was listed */
};

struct generated *generated_new(void)
{
	return calloc(1, sizeof(struct generated));
}

struct generated *generated_free(struct generated *g)
{
	if (g)
		kernel_code_clear(&g->code);
	free(g);
	return NULL;
}

static int add(struct attribute *a, uint64_t start, uint64_t bytes, const char *name)
{
	int r = kernel_code_add(&a->generated->code, start, bytes, name);

	if (r == KERNEL_CODE_FULL)
		lose(&a->o, 0, LOSS_ROOM, 1);
	return r < 0 ? r : 0;
}

int generated_change(struct attribute *a, const struct record *r)
{
	if (a->o.hide_kernel)
		return 0;
	place_cache_change_kernel(a->places);
	if (!r->ksymbol.unregister)
		return add(a, r->ksymbol.addr, r->ksymbol.bytes, r->ksymbol.name);
	kernel_code_drop(&a->generated->code, r->ksymbol.addr, r->ksymbol.bytes);
	return 0;
}

struct listing {
	struct attribute *a;
	uint64_t time_ns;
};

/* Pieces that records reported stay: they are newer than the list. */
static void take(void *userdata, const struct kernel_program *p)
{
	struct listing *l = userdata;

	if (p->loaded_ns <= l->time_ns && !kernel_code_find(&l->a->generated->code, p->start))
		(void)add(l->a, p->start, p->bytes, p->name); /* without memory it has no name */
}

void attribute_list_programs(struct attribute *a, uint64_t time_ns)
{
	struct generated *g = a->generated;
	const struct kernel *k = a->o.kernel;

	if (g->listed || a->o.hide_kernel || !k || !k->list_programs)
		return;
	g->listed = true;
	/* without the right, or BTF, there is no list */
	(void)k->list_programs(k->userdata, take, &(struct listing){a, time_ns});
}

const struct kernel_code_piece *generated_find(struct attribute *a, uint64_t addr, uint64_t time_ns)
{
	struct generated *g = a->generated;
	const struct kernel_code_piece *piece = kernel_code_find(&g->code, addr);

	if (piece || !kernel_map_is_outside(&a->kernel, addr))
		return piece;
	attribute_list_programs(a, time_ns);
	return kernel_code_find(&g->code, addr);
}
