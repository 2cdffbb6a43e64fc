/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * From a frame to its caller, by the rule that the table of its file has for it
 */
#include <elf.h>

#include "daemon/unwind/walk.h"

/* Bits of an address in which arm64 may keep a signature, and that no user's address has. Source:
 * Documentation/arch/arm64/pointer-authentication.rst; with 52 bits of address they begin later, but Linux
 * gives such addresses only on request. */
#define ARM64_ADDRESS_MASK ((1ull << 48) - 1)

/* The registers of a frame that lead to its caller. */
struct frame {
	uint64_t pc, sp, fp, ra, base;
	bool has_fp, has_ra, has_base;
	bool sp_is_least; /* sp is a lower bound, and right if the callee's frame is its record alone */
	bool is_exact; /* pc is the next instruction to run: of the sampled frame, and of one that a signal interrupted */
};

/* STEP_DEEP: cut at the end of the copy. STEP_WANTS: a table is missing. STEP_LEFT: to elfutils. */
enum step { STEP_DONE, STEP_END, STEP_CUT, STEP_DEEP, STEP_WANTS, STEP_LEFT };

/* The value of a DWARF register when the sample was taken. */
static bool sampled(const struct unwind_sample *s, uint32_t number, uint64_t *ret_value)
{
	const struct unwind_registers *r = s->registers;

	return number < r->n_registers && r->perf[number] >= 0 &&
	       unwind_register(s, (unsigned int)r->perf[number], ret_value);
}

static bool first_frame(const struct unwind_sample *s, struct frame *f)
{
	const struct unwind_registers *r = s->registers;
	const int8_t ra = r->machine == EM_RISCV     ? r->perf[1]
			  : r->machine == EM_AARCH64 ? r->perf[30]
						     : -1;

	f->is_exact = true;
	f->has_fp = unwind_register(s, (unsigned int)r->perf[r->dwarf_fp], &f->fp);
	f->has_ra = ra >= 0 && unwind_register(s, (unsigned int)ra, &f->ra);
	f->has_base = sampled(s, r->dwarf_base, &f->base);
	return unwind_register(s, r->perf_pc, &f->pc) && unwind_register(s, r->perf_sp, &f->sp);
}

/* The frame pointer of a function that saved its caller's beside the return address points there: they are its frame
 * record. Source: AAPCS64, 6.4.6. */
static bool find_cfa_by_record(
	const struct unwind_rule *rule, const struct frame *f, uint64_t *ret_cfa)
{
	*ret_cfa = f->fp - (uint64_t)(int64_t)rule->fp_offset;
	return f->has_fp && rule->fp == UNWIND_AT_CFA && rule->ra == UNWIND_AT_CFA &&
	       rule->ra_offset == rule->fp_offset + 8;
}

static bool find_cfa(const struct unwind_sample *s, const struct unwind_rule *rule,
	const struct frame *f, uint64_t *ret_cfa)
{
	const struct unwind_registers *r = s->registers;
	const uint64_t offset = (uint64_t)(int64_t)rule->cfa_offset;

	switch (rule->cfa) {
	case UNWIND_IN_SP:
		if (f->sp_is_least && find_cfa_by_record(rule, f, ret_cfa))
			return true;
		*ret_cfa = f->sp + offset;
		return true;
	case UNWIND_IN_FP:
		*ret_cfa = f->fp + offset;
		return f->has_fp;
	case UNWIND_IN_PLT:
		*ret_cfa = f->sp + offset + ((f->pc & 15) >= rule->number ? 8 : 0);
		return true;
	case UNWIND_IN_REGISTER:
		*ret_cfa = f->base;
		if (rule->number == r->dwarf_base ? !f->has_base
						  : !sampled(s, rule->number, ret_cfa))
			return false;
		*ret_cfa += offset;
		return true;
	case UNWIND_AT_FP:
		if (!f->has_fp)
			return false;
		/* fall through */
	case UNWIND_AT_SP:
		if (!unwind_stack_word(
			    s, (rule->cfa == UNWIND_AT_FP ? f->fp : f->sp) + offset, ret_cfa))
			return false;
		*ret_cfa += (uint64_t)(int64_t)rule->cfa_more;
		return true;
	default:
		return false;
	}
}

/* A register of the caller. False: unknown. */
static bool find_value(const struct unwind_sample *s, enum unwind_place place, int64_t offset,
	const struct frame *f, uint64_t cfa, bool has_same, uint64_t same, uint64_t *ret_value)
{
	switch (place) {
	case UNWIND_SAME:
		*ret_value = same;
		return has_same;
	case UNWIND_AT_CFA:
		return unwind_stack_word(s, cfa + (uint64_t)offset, ret_value);
	case UNWIND_AT_SP:
		return !f->sp_is_least && unwind_stack_word(s, f->sp + (uint64_t)offset, ret_value);
	case UNWIND_AT_FP:
		return f->has_fp && unwind_stack_word(s, f->fp + (uint64_t)offset, ret_value);
	default:
		return false;
	}
}

static uint64_t strip(const struct unwind_sample *s, uint64_t address)
{
	return s->registers->machine == EM_AARCH64 ? address & ARM64_ADDRESS_MASK : address;
}

/* A frame of the caller that begins there could not be read. */
static enum step cut_at(const struct unwind_sample *s, uint64_t address)
{
	return address >= s->stack_start && address - s->stack_start >= s->n_stack ? STEP_DEEP
										   : STEP_CUT;
}

/* Registers that are not followed are known in the sampled frame alone; elfutils follows some of them further. */
static bool needs_other_register(const struct unwind_sample *s, const struct unwind_rule *rule,
	size_t n_frames, const struct frame *f)
{
	const bool is_base = rule->number == s->registers->dwarf_base && f->has_base;

	return n_frames > 1 &&
	       ((rule->cfa == UNWIND_IN_REGISTER && !is_base) || rule->ra == UNWIND_IN_REGISTER);
}

/* n_frames: found so far. */
static enum step step_by_rule(const struct unwind_sample *s, const struct unwind_rule *rule,
	size_t n_frames, struct frame *f)
{
	struct frame caller = {.is_exact = rule->is_signal};
	uint64_t cfa;

	if (rule->ra == UNWIND_NONE)
		return STEP_END;
	if (rule->cfa == UNWIND_UNKNOWN || needs_other_register(s, rule, n_frames, f))
		return STEP_LEFT;
	if (!find_cfa(s, rule, f, &cfa))
		return STEP_CUT;
	if (rule->ra == UNWIND_IN_REGISTER) {
		if (!sampled(s, (uint32_t)rule->ra_offset, &caller.pc))
			return STEP_CUT;
	} else if (!find_value(
			   s, rule->ra, rule->ra_offset, f, cfa, f->has_ra, f->ra, &caller.pc)) {
		return cut_at(s, cfa);
	}
	caller.pc = strip(s, caller.pc);
	caller.sp = cfa;
	caller.has_fp =
		find_value(s, rule->fp, rule->fp_offset, f, cfa, f->has_fp, f->fp, &caller.fp);
	caller.has_base = find_value(
		s, rule->base, rule->base_offset, f, cfa, f->has_base, f->base, &caller.base);
	*f = caller;
	return STEP_DONE;
}

/* Where nothing describes the code: the caller's frame pointer and the return address stand where the frame pointer
 * says, if it is one; riscv64's code does not say whether s0 is one. A frame pointer of zero ends the chain. Above them
 * the caller's frame begins on x86-64; on arm64 they stand anywhere in the frame, and code in between that keeps none is
 * passed over. Source: psABI of x86-64, 3.4.1; AAPCS64, 6.4.6. */
static enum step step_by_frame_pointer(const struct unwind_sample *s, struct frame *f)
{
	struct frame caller = {.has_fp = true, .sp_is_least = s->registers->machine == EM_AARCH64};

	if (s->registers->machine == EM_RISCV)
		return STEP_LEFT;
	if (!f->has_fp)
		return STEP_CUT;
	if (f->fp == 0)
		return STEP_END;
	if (f->fp < f->sp || !unwind_stack_word(s, f->fp, &caller.fp) ||
		!unwind_stack_word(s, f->fp + 8, &caller.pc))
		return STEP_CUT; /* what is no frame pointer may look like a far one */
	caller.pc = strip(s, caller.pc);
	caller.sp = f->fp + 16;
	*f = caller;
	return STEP_DONE;
}

/* riscv64's handlers return to the first instruction of sigreturn's code, which has an entry, and nothing before it has. */
static const struct unwind_rule *rule_at(const struct unwind_walk *w, const struct frame *f)
{
	const struct unwind_rule *rule = unwind_table_at(w->code.table, w->code.offset), *next;

	if (f->is_exact || w->sample.registers->machine != EM_RISCV)
		return rule;
	next = unwind_table_at(w->code.table, w->code.offset + 1);
	return next && next->is_signal ? next : rule;
}

static enum step step(const struct unwind_walk *w, struct frame *f)
{
	const struct unwind_rule *rule = NULL;

	switch (w->code.described) {
	case UNWIND_MISSING:
		return STEP_WANTS;
	case UNWIND_LEFT:
		return STEP_LEFT;
	case UNWIND_TABLE:
		rule = rule_at(w, f);
		break;
	case UNWIND_BARE:
		break;
	}
	return rule ? step_by_rule(&w->sample, rule, w->unwound->n_frames, f)
		    : step_by_frame_pointer(&w->sample, f);
}

enum unwind_outcome unwind_by_tables(struct unwind_walk *w)
{
	struct frame f = {};
	enum step found = STEP_DONE;

	if (w->sample.registers->class != ELFCLASS64)
		return UNWIND_NEEDS_ELFUTILS;
	if (!unwind_walk_begin(w) || !first_frame(&w->sample, &f))
		return UNWIND_WALKED;
	while (found == STEP_DONE) {
		if (!unwind_take_frame(
			    w, f.is_exact ? f.pc : f.pc - 1, f.sp, f.has_fp ? f.fp : UINT64_MAX))
			return UNWIND_WALKED;
		found = step(w, &f);
	}
	w->unwound->truncated |= found == STEP_CUT || found == STEP_DEEP;
	w->unwound->deep = found == STEP_DEEP;
	return found == STEP_WANTS  ? UNWIND_WANTS
	       : found == STEP_LEFT ? UNWIND_NEEDS_ELFUTILS
				    : UNWIND_WALKED;
}

/* --- frames ----------------------------------------------------------------------------------- */

bool unwind_walk_begin(struct unwind_walk *w)
{
	struct unwind_sample *s = &w->sample;
	uint64_t pc;

	w->unwound->n_frames = 0;
	w->unwound->truncated = w->unwound->deep = false;
	if (!unwind_register(s, s->registers->perf_pc, &pc) ||
		!unwind_register(s, s->registers->perf_sp, &s->stack_start))
		return false;
	/* A stack does not extend beyond the last address. */
	if (s->n_stack > -s->stack_start)
		s->n_stack = (size_t)-s->stack_start;
	return true;
}

bool unwind_take_frame(struct unwind_walk *w, uint64_t address, uint64_t sp, uint64_t fp)
{
	struct unwound *out = w->unwound;
	const bool is_first = out->n_frames == 0;
	struct unwind_code code = {};
	const bool is_mapped = w->code_at(w->userdata, address, &code);

	if (out->n_frames == UNWIND_FRAMES_MAX ||
		(!is_first && (sp < w->last_sp || (sp == w->last_sp && out->n_frames > 1) ||
				      !is_mapped))) {
		out->truncated = true;
		return false;
	}
	if (!is_mapped)
		code = (struct unwind_code){.offset = address};
	out->frame[out->n_frames++] = (struct unwound_frame){
		.file = code.file, .offset = code.offset, .address = address};
	w->code = code;
	w->last_address = address;
	w->last_sp = sp;
	w->last_fp = fp;
	return true;
}
