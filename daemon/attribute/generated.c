/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Code that the kernel generates, as a walk knows it
 *
 * Records report code that was loaded after the events were opened. We list earlier code when a sample
 * first is outside the kernel's text and its modules, since most machines run no BPF that is ever sampled.
 * We take from the list only code that was loaded by the time of that sample: records of later code are
 * yet to be read.
 */

#include "daemon/attribute/attribute_private.h"
#include "daemon/kernel/kernel.h"

static int add(struct attribute *a, uint64_t start, uint64_t bytes, const char *name)
{
	int r = kernel_code_add(&a->code, start, bytes, name);

	if (r == KERNEL_CODE_FULL)
		lose(a, 0, LOSS_ROOM, 1);
	return r < 0 ? r : 0;
}

int generated_change(struct attribute *a, const struct record *r)
{
	if (a->o.hide_kernel)
		return 0;
	a->kernel_generation++;
	if (!r->ksymbol.unregister)
		return add(a, r->ksymbol.addr, r->ksymbol.bytes, r->ksymbol.name);
	kernel_code_drop(&a->code, r->ksymbol.addr, r->ksymbol.bytes);
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

	if (p->loaded_ns <= l->time_ns && !kernel_code_find(&l->a->code, p->start))
		(void)add(l->a, p->start, p->bytes, p->name); /* without memory it has no name */
}

static bool is_elsewhere(const struct attribute *a, uint64_t addr)
{
	return a->kernel.base &&
	       (addr < a->kernel.base || addr - a->kernel.base >= FILE_KERNEL_TEXT_BYTES);
}

const struct kernel_code_piece *generated_find(struct attribute *a, uint64_t addr, uint64_t time_ns)
{
	const struct kernel_code_piece *piece = kernel_code_find(&a->code, addr);
	const struct kernel *k = a->o.kernel;

	if (piece || a->code_listed || !k || !k->list_programs || !is_elsewhere(a, addr) ||
		kernel_map_has_module(&a->kernel, addr))
		return piece;
	a->code_listed = true;
	/* without the right, or BTF, there is no list */
	(void)k->list_programs(k->userdata, take, &(struct listing){a, time_ns});
	return kernel_code_find(&a->code, addr);
}
