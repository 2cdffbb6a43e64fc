/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Callers of a copied stack by the tables of the files that it passes through.
 */
#include "daemon/naming/namer_private.h"

#include <linux/perf_event.h>

uint16_t callers_machine(uint64_t regs_abi)
{
	return regs_abi == PERF_SAMPLE_REGS_ABI_64   ? UNWIND_MACHINE
	       : regs_abi == PERF_SAMPLE_REGS_ABI_32 ? UNWIND_MACHINE_32
						     : EM_NONE;
}

/* The mappings that a walk passes through. */
struct territory {
	struct namer *namer;
	const struct space *space;
	uint64_t came_ns; /* of the stack */
};

static bool has_table_of_its_own(const struct file *f)
{
	return f && (f->kind == FILE_ELF || f->kind == FILE_VDSO);
}

static enum unwind_described described(struct namer *n, struct slot *s)
{
	if (!s)
		return UNWIND_MISSING;
	switch (s->table_state) {
	case TABLE_UNASKED:
	case TABLE_WANTED:
		return UNWIND_MISSING;
	case TABLE_HELD:
		slot_use_table(n, s);
		return UNWIND_TABLE;
	case TABLE_FOREIGN:
		return UNWIND_LEFT;
	default:
		return UNWIND_BARE;
	}
}

/* Generated code has frame pointers, unless a jitdump says otherwise. */
static enum unwind_described described_generated(
	const struct territory *t, struct slot *s, uint64_t address)
{
	if (s && slot_table_describes(s, address)) {
		slot_use_table(t->namer, s);
		return UNWIND_TABLE;
	}
	if (!s || s->table_state == TABLE_UNASKED || s->table_state == TABLE_WANTED)
		return UNWIND_MISSING;
	return slot_table_is_old(s, t->came_ns) ? UNWIND_MISSING : UNWIND_BARE;
}

/* Code of a JIT, and of a file that cannot be read, is in a mapping, too. */
static bool code_at(const void *userdata, uint64_t address, struct unwind_code *ret_code)
{
	const struct territory *t = userdata;
	const struct map *m = space_find(t->space, address);

	if (!m)
		return false;
	*ret_code = (struct unwind_code){.file = (uintptr_t)m->file, .offset = address};
	if (has_table_of_its_own(m->file)) {
		struct slot *s = m->file->namer_slot;
		ret_code->offset = address - m->start + m->file_offset;
		ret_code->described = described(t->namer, s);
		ret_code->table = s ? s->table : NULL;
	} else if (m->file && m->file->kind == FILE_JITDUMP) {
		struct slot *s = m->file->namer_slot;
		ret_code->described = described_generated(t, s, address);
		ret_code->table = s ? s->table : NULL;
	}
	return true;
}

static void fill_result(
	struct namer *n, const struct unwind_walk *w, struct unwind_result *ret_result)
{
	const struct unwound *u = w->unwound;

	ret_result->failed = unwound_is_nothing(u);
	ret_result->truncated = u->truncated;
	ret_result->deep = u->deep;
	ret_result->depth = w->last_sp - w->sample.stack_start;
	ret_result->n_frames = ret_result->failed ? 0 : u->n_frames;
	for (size_t i = 0; i < ret_result->n_frames; i++) {
		ret_result->frame[i].file = (struct file *)u->frame[i].file;
		ret_result->frame[i].offset = u->frame[i].offset;
		ret_result->frame[i].address = u->frame[i].address;
	}
	n->walking.n += !ret_result->failed;
}

enum unwind_outcome callers_find(struct namer *n, const struct space *space,
	const struct unwind_sample *sample, uint64_t came_ns, struct unwind_result *ret_result,
	struct file **ret_missing)
{
	const struct territory territory = {.namer = n, .space = space, .came_ns = came_ns};
	struct unwind_walk w = {.sample = *sample,
		.code_at = code_at,
		.userdata = &territory,
		.unwound = &n->walking.unwound};
	const enum unwind_outcome outcome = unwind_by_tables(&w);

	*ret_missing = (struct file *)w.code.file;
	if (outcome == UNWIND_WALKED)
		fill_result(n, &w, ret_result);
	return outcome;
}

bool namer_unwind_now(
	struct namer *n, const struct unwind_job *job, struct unwind_result *ret_result)
{
	const struct unwind_sample sample = {
		.registers = unwind_registers_of(callers_machine(job->regs_abi)),
		.regs = job->regs,
		.regs_mask = job->regs_mask,
		.stack = job->stack,
		.n_stack = job->n_stack};
	struct file *missing;

	ret_result->ticket = job->ticket;
	return sample.registers && job->space &&
	       callers_find(n, job->space, &sample, n->now_ns, ret_result, &missing) ==
		       UNWIND_WALKED;
}

uint64_t callers_found(const struct namer *n)
{
	return n->walking.n;
}
