/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * What both walks read of a sample, and the frames that they find
 */
#include <string.h>

#include "daemon/namer/unwind_private.h"

const struct unwind_map *unwind_find_map(const struct unwinder *u, uint64_t addr)
{
	size_t low = 0, high = u->n_maps;

	while (low < high) { /* the first map that starts above addr */
		size_t middle = low + (high - low) / 2;
		if (u->map[middle].start <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 || addr >= u->map[low - 1].end)
		return NULL;
	return &u->map[low - 1];
}

bool unwind_register(const struct unwinder *u, unsigned int bit, uint64_t *ret_value)
{
	uint64_t mask = 1ull << bit;

	if (!(u->regs_mask & mask))
		return false;
	size_t i = (size_t)__builtin_popcountll(u->regs_mask & (mask - 1));
	memcpy(ret_value, (const uint8_t *)u->regs + i * sizeof(*ret_value), sizeof(*ret_value));
	if (u->registers->class == ELFCLASS32)
		*ret_value = (uint32_t)*ret_value;
	return true;
}

bool unwind_stack_word(const struct unwinder *u, uint64_t addr, uint64_t *ret_word)
{
	const size_t n_word = u->registers->class == ELFCLASS32 ? 4 : 8;
	const uint64_t at = addr - u->stack_start;

	if (addr < u->stack_start || at >= u->n_stack || u->n_stack - at < n_word)
		return false;
	*ret_word = 0; /* these machines put the lowest byte first */
	memcpy(ret_word, u->stack + at, n_word);
	return true;
}

bool unwind_take_frame(struct unwinder *u, uint64_t address, uint64_t sp, uint64_t fp)
{
	struct unwound *out = &u->unwound;
	const bool is_first = out->n_frames == 0;
	const struct unwind_map *m = unwind_find_map(u, address);

	if (out->n_frames == UNWIND_FRAMES_MAX ||
		(!is_first && (sp < u->last_sp || (sp == u->last_sp && out->n_frames > 1) || !m))) {
		out->truncated = true;
		return false;
	}
	const bool known = m && m->file;
	out->frame[out->n_frames].file = known ? m->file : 0;
	out->frame[out->n_frames].offset = known ? m->file_offset + (address - m->start) : address;
	out->n_frames++;
	u->last_address = address;
	u->last_sp = sp;
	u->last_fp = fp;
	return true;
}
