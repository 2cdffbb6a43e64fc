/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * From a frame to its caller, by the rule that the table of its file has for it
 */
#include "daemon/namer/unwind_private.h"
#include "daemon/namer/unwind_tables.h"

/* Bits of an address in which arm64 may keep a signature, and that no user's address has. Source:
 * Documentation/arch/arm64/pointer-authentication.rst; with 52 bits of address they begin later, but Linux
 * gives such addresses only on request. */
#define ARM64_ADDRESS_MASK ((1ull << 48) - 1)

/* The registers of a frame that lead to its caller. */
struct frame {
	uint64_t pc, sp, fp, ra;
	bool has_fp, has_ra;
	bool is_exact; /* pc is the next instruction to run: of the sampled frame, and of one that a signal interrupted */
};

enum step { STEP_DONE, STEP_END, STEP_CUT, STEP_UNKNOWN };

static bool first_frame(const struct unwinder *u, struct frame *f)
{
	const struct registers *r = u->registers;
	const int8_t ra = r->machine == EM_RISCV     ? r->perf[1]
			  : r->machine == EM_AARCH64 ? r->perf[30]
						     : -1;

	f->is_exact = true;
	f->has_fp = unwind_register(u, (unsigned int)r->perf[r->dwarf_fp], &f->fp);
	f->has_ra = ra >= 0 && unwind_register(u, (unsigned int)ra, &f->ra);
	return unwind_register(u, r->perf_pc, &f->pc) && unwind_register(u, r->perf_sp, &f->sp);
}

static bool find_cfa(const struct unwinder *u, const struct unwind_rule *rule,
	const struct frame *f, uint64_t *ret_cfa)
{
	const struct registers *r = u->registers;
	const uint64_t offset = (uint64_t)(int64_t)rule->cfa_offset;

	switch (rule->cfa) {
	case UNWIND_IN_SP:
		*ret_cfa = f->sp + offset;
		return true;
	case UNWIND_IN_FP:
		*ret_cfa = f->fp + offset;
		return f->has_fp;
	case UNWIND_IN_PLT:
		*ret_cfa = f->sp + offset + ((f->pc & 15) >= rule->number ? 8 : 0);
		return true;
	case UNWIND_IN_REGISTER:
		if (rule->number >= r->n_registers || r->perf[rule->number] < 0 ||
			!unwind_register(u, (unsigned int)r->perf[rule->number], ret_cfa))
			return false;
		*ret_cfa += offset;
		return true;
	case UNWIND_AT_FP:
		if (!f->has_fp)
			return false;
		/* fall through */
	case UNWIND_AT_SP:
		if (!unwind_stack_word(
			    u, (rule->cfa == UNWIND_AT_FP ? f->fp : f->sp) + offset, ret_cfa))
			return false;
		*ret_cfa += (uint64_t)(int64_t)rule->cfa_more;
		return true;
	default:
		return false;
	}
}

/* A register of the caller. False: unknown. */
static bool find_value(const struct unwinder *u, enum unwind_place place, int64_t offset,
	const struct frame *f, uint64_t cfa, bool has_same, uint64_t same, uint64_t *ret_value)
{
	switch (place) {
	case UNWIND_SAME:
		*ret_value = same;
		return has_same;
	case UNWIND_AT_CFA:
		return unwind_stack_word(u, cfa + (uint64_t)offset, ret_value);
	case UNWIND_AT_SP:
		return unwind_stack_word(u, f->sp + (uint64_t)offset, ret_value);
	case UNWIND_AT_FP:
		return f->has_fp && unwind_stack_word(u, f->fp + (uint64_t)offset, ret_value);
	default:
		return false;
	}
}

static uint64_t strip(const struct unwinder *u, uint64_t address)
{
	return u->registers->machine == EM_AARCH64 ? address & ARM64_ADDRESS_MASK : address;
}

static enum step step_by_rule(
	const struct unwinder *u, const struct unwind_rule *rule, struct frame *f)
{
	struct frame caller = {.is_exact = rule->is_signal};
	uint64_t cfa;

	if (rule->ra == UNWIND_NONE)
		return STEP_END;
	/* Of another register only the sampled frame's value is known; elfutils follows some of them further. */
	if (rule->cfa == UNWIND_UNKNOWN ||
		(rule->cfa == UNWIND_IN_REGISTER && u->unwound.n_frames > 1))
		return STEP_UNKNOWN;
	if (!find_cfa(u, rule, f, &cfa) ||
		!find_value(u, rule->ra, rule->ra_offset, f, cfa, f->has_ra, f->ra, &caller.pc))
		return STEP_CUT;
	caller.pc = strip(u, caller.pc);
	caller.sp = cfa;
	caller.has_fp =
		find_value(u, rule->fp, rule->fp_offset, f, cfa, f->has_fp, f->fp, &caller.fp);
	*f = caller;
	return STEP_DONE;
}

/* Where nothing describes the code: the caller's frame pointer and the return address stand where the frame pointer
 * says, if it is one; riscv64's code does not say whether s0 is one. A frame pointer of zero ends the chain. Source: psABI
 * of x86-64, 3.4.1; AAPCS64, 6.4.6. */
static enum step step_by_frame_pointer(const struct unwinder *u, struct frame *f)
{
	struct frame caller = {.has_fp = true};

	if (u->registers->machine == EM_RISCV)
		return STEP_UNKNOWN;
	if (!f->has_fp)
		return STEP_CUT;
	if (f->fp == 0)
		return STEP_END;
	if (f->fp < f->sp || !unwind_stack_word(u, f->fp, &caller.fp) ||
		!unwind_stack_word(u, f->fp + 8, &caller.pc))
		return STEP_CUT;
	caller.pc = strip(u, caller.pc);
	caller.sp = f->fp + 16;
	*f = caller;
	return STEP_DONE;
}

static enum step step(struct unwinder *u, struct frame *f)
{
	const uint64_t address = f->is_exact ? f->pc : f->pc - 1;
	const struct unwind_map *m = unwind_find_map(u, address);
	const struct unwind_rule *rule = NULL;

	if (m && m->fd >= 0 &&
		unwind_tables_find(u->tables, m->file, m->fd, u->registers->machine,
			m->file_offset + (address - m->start), &rule) < 0)
		return STEP_UNKNOWN;
	return rule ? step_by_rule(u, rule, f) : step_by_frame_pointer(u, f);
}

bool unwind_by_tables(struct unwinder *u)
{
	struct frame f = {};
	enum step s = STEP_DONE;

	if (u->registers->class != ELFCLASS64 || !first_frame(u, &f))
		return false;
	while (s == STEP_DONE) {
		if (!unwind_take_frame(
			    u, f.is_exact ? f.pc : f.pc - 1, f.sp, f.has_fp ? f.fp : UINT64_MAX))
			return true;
		s = step(u, &f);
	}
	if (s == STEP_CUT)
		u->unwound.truncated = true;
	return s != STEP_UNKNOWN;
}
