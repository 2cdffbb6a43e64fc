/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "daemon/namer/cfi.h"

#include <dwarf.h>
#include <elf.h>
#include <errno.h>
#include <string.h>

#include "daemon/namer/byte_reader.h"
#include "daemon/namer/cfi_address.h"
#include "daemon/unwind/walk.h"

#define SAVED_MAX 16       /* states that instructions save */
#define CIE_BYTES_MAX 1024 /* real ones have some 20; each entry may have one run again */

/* Instructions that elfutils' dwarf.h lacks, or names otherwise. Source: AADWARF64, 4.1; binutils,
 * include/dwarf2.def. */
#define CFA_NEGATE_RA_STATE 0x2d /* the window of registers of SPARC, otherwise */

int cfi_begin(struct cfi *c, const struct unwind_section *section, size_t n_sections,
	const uint8_t *e_ident, uint16_t machine)
{
	*c = (struct cfi){.e_ident = e_ident, .registers = unwind_registers_of(machine)};
	if (!c->registers || c->registers->class != ELFCLASS64 || e_ident[EI_CLASS] != ELFCLASS64 ||
		e_ident[EI_DATA] != ELFDATA2LSB)
		return -EOPNOTSUPP;
	for (size_t i = 0; i < n_sections && i < CFI_SECTIONS_MAX; i++)
		if (section[i].data && section[i].data->d_buf &&
			section[i].data->d_size < (1u << 31))
			c->section[c->n_sections++] = section[i];
	return 0;
}

/* --- instructions ----------------------------------------------------------------------------- */

struct run {
	const struct unwind_registers *registers;
	const struct unwind_section *section;
	const struct cfi_cie *cie;
	struct cfi_state state, saved[SAVED_MAX];
	uint32_t n_saved;
	uint64_t addr, end;
	int (*on_row)(void *userdata, uint64_t addr, const struct unwind_rule *rule);
	void *userdata;
};

static struct cfi_value *value_of(struct run *r, struct cfi_state *state, uint64_t number)
{
	const struct unwind_registers *n = r->registers;

	return number == n->dwarf_ra     ? &state->ra
	       : number == n->dwarf_sp   ? &state->sp
	       : number == n->dwarf_fp   ? &state->fp
	       : number == n->dwarf_base ? &state->base
					 : NULL;
}

static void set(struct run *r, uint64_t number, struct cfi_value value)
{
	struct cfi_value *v = value_of(r, &r->state, number);

	if (v)
		*v = value;
}

static void set_value(struct run *r, uint64_t number, enum unwind_place place, int64_t offset)
{
	set(r, number, (struct cfi_value){.place = place, .offset = offset});
}

static void set_odd(struct run *r, uint64_t number)
{
	set(r, number, (struct cfi_value){.odd = true});
}

static void set_cfa(struct run *r, uint64_t number, int64_t offset, enum unwind_place place)
{
	r->state.cfa_place = place;
	r->state.cfa_register = number;
	r->state.cfa_offset = offset;
}

/* The entry of a lazily bound function in a PLT pushes 8 bytes on its way: CFA = sp + 8 + (((pc & 15) >= N) << 3).
 * Source: elf_x86_64_eh_frame_plt, bfd/elfxx-x86.h of binutils; lld does not describe its PLT so. */
static bool is_plt(const uint8_t *at, size_t n, uint8_t *ret_first)
{
	static const uint8_t before[] = {DW_OP_breg7, 8, DW_OP_breg16, 0, DW_OP_lit15, DW_OP_and},
			     after[] = {DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus};

	if (n != sizeof(before) + 1 + sizeof(after) || memcmp(at, before, sizeof(before)) ||
		memcmp(at + sizeof(before) + 1, after, sizeof(after)) ||
		at[sizeof(before)] < DW_OP_lit0 || at[sizeof(before)] > DW_OP_lit15)
		return false;
	*ret_first = at[sizeof(before)] - DW_OP_lit0;
	return true;
}

/* An expression of one register and an offset; *ret_deref: and what memory holds there, plus *ret_more. */
static bool is_register_offset(struct byte_reader *r, uint64_t *ret_number, int64_t *ret_offset,
	bool *ret_deref, int64_t *ret_more)
{
	const uint8_t op = (uint8_t)read_number(r, 1);

	if (op < DW_OP_breg0 || op > DW_OP_breg31)
		return false;
	*ret_number = op - DW_OP_breg0;
	*ret_offset = read_signed(r);
	*ret_deref = r->at < r->end && *r->at == DW_OP_deref;
	*ret_more = 0;
	if (*ret_deref)
		r->at++;
	if (*ret_deref && r->at < r->end && *r->at == DW_OP_plus_uconst) {
		r->at++;
		*ret_more = (int64_t)read_unsigned(r);
	}
	return !r->bad && r->at == r->end;
}

static struct byte_reader read_block(struct byte_reader *r)
{
	const uint64_t n = read_unsigned(r);
	const uint8_t *at = r->at;

	read_past(r, n);
	return (struct byte_reader){.at = r->bad ? r->end : at, .end = r->bad ? r->end : at + n};
}

static void take_cfa_expression(struct run *r, struct byte_reader *bytes)
{
	struct byte_reader block = read_block(bytes);
	struct cfi_state *s = &r->state;
	const bool is_x86 = r->registers->machine == EM_X86_64;
	uint64_t number;
	int64_t offset, more;
	bool deref;

	s->cfa_place = UNWIND_UNKNOWN;
	if (is_x86 && is_plt(block.at, (size_t)(block.end - block.at), &s->plt)) {
		s->cfa_place = UNWIND_IN_PLT;
		s->cfa_offset = 8;
	} else if (is_register_offset(&block, &number, &offset, &deref, &more)) {
		if (!deref)
			set_cfa(r, number, offset, UNWIND_SAME);
		else if (number == r->registers->dwarf_sp || number == r->registers->dwarf_fp) {
			s->cfa_place =
				number == r->registers->dwarf_sp ? UNWIND_AT_SP : UNWIND_AT_FP;
			s->cfa_offset = offset;
			s->cfa_more = more;
		}
	}
}

static void take_expression(struct run *r, struct byte_reader *bytes, bool is_value)
{
	const uint64_t number = read_unsigned(bytes);
	struct byte_reader block = read_block(bytes);
	uint64_t from;
	int64_t offset, more;
	bool deref;

	if (!is_value && is_register_offset(&block, &from, &offset, &deref, &more) && !deref &&
		(from == r->registers->dwarf_sp || from == r->registers->dwarf_fp))
		set_value(r, number, from == r->registers->dwarf_sp ? UNWIND_AT_SP : UNWIND_AT_FP,
			offset);
	else
		set_odd(r, number);
}

static bool fits(int64_t offset)
{
	return offset >= INT32_MIN && offset <= INT32_MAX;
}

/* The place of the CFA in terms of a rule; UNWIND_UNKNOWN: it depends on something else. */
static enum unwind_place cfa_place(const struct run *r)
{
	const struct cfi_state *s = &r->state;

	if (s->cfa_place != UNWIND_SAME)
		return s->cfa_place;
	if (s->cfa_register == r->registers->dwarf_sp)
		return UNWIND_IN_SP;
	if (s->cfa_register == r->registers->dwarf_fp)
		return UNWIND_IN_FP;
	return s->cfa_register <= UINT8_MAX ? UNWIND_IN_REGISTER : UNWIND_UNKNOWN;
}

/* The caller's stack pointer is the CFA, unless the entry says where else it is; of a signal's frame it is
 * the same word of memory. */
static bool sp_is_cfa(const struct cfi_state *s)
{
	return !s->sp.odd && (s->sp.place == UNWIND_SAME ||
				     (s->sp.place == s->cfa_place &&
					     s->sp.offset == s->cfa_offset && s->cfa_more == 0));
}

/* The vdso of riscv64 says of sigreturn's code that it is a signal's frame, and not where registers are: in the struct
 * rt_sigframe at sp, behind siginfo (128 bytes) and 176 of ucontext. Source: arch/riscv/kernel/signal.c,
 * include/uapi/asm/ucontext.h and ptrace.h. */
static const struct unwind_rule riscv_signal = {.cfa = UNWIND_AT_SP,
	.cfa_offset = 304 + 2 * 8,
	.ra = UNWIND_AT_SP,
	.ra_offset = 304, /* pc */
	.fp = UNWIND_AT_SP,
	.fp_offset = 304 + 8 * 8,
	.is_signal = true};

static struct unwind_rule rule_of(const struct run *r)
{
	const struct cfi_state *s = &r->state;
	const enum unwind_place cfa = cfa_place(r);
	struct unwind_rule rule = {.is_signal = r->cie->is_signal};

	if (r->cie->cie.return_address_register != r->registers->dwarf_ra || s->ra.odd)
		return rule;
	if (rule.is_signal && r->registers->machine == EM_RISCV && s->ra.place == UNWIND_SAME)
		return riscv_signal;
	if (s->ra.place == UNWIND_UNKNOWN) { /* undefined: no caller, whatever the rest is */
		rule.cfa = UNWIND_IN_SP;
		rule.ra = UNWIND_NONE;
		return rule;
	}
	if (cfa == UNWIND_UNKNOWN || s->fp.odd || !sp_is_cfa(s) || !fits(s->cfa_offset) ||
		!fits(s->cfa_more) || !fits(s->ra.offset) || !fits(s->fp.offset))
		return rule;
	rule.cfa = (uint8_t)cfa;
	rule.cfa_more = cfa == UNWIND_AT_SP || cfa == UNWIND_AT_FP ? (int32_t)s->cfa_more : 0;
	if (cfa == UNWIND_IN_PLT)
		rule.number = s->plt;
	else if (cfa == UNWIND_IN_REGISTER)
		rule.number = (uint8_t)s->cfa_register;
	rule.cfa_offset = (int32_t)s->cfa_offset;
	rule.ra = (uint8_t)s->ra.place;
	rule.ra_offset = (int32_t)s->ra.offset;
	rule.fp = (uint8_t)s->fp.place;
	rule.fp_offset = (int32_t)s->fp.offset;
	if (!s->base.odd && s->base.offset >= INT16_MIN && s->base.offset <= INT16_MAX) {
		rule.base = (uint8_t)s->base.place;
		rule.base_offset = (int16_t)s->base.offset;
	}
	return rule;
}

static int advance(struct run *r, uint64_t delta)
{
	if (!r->on_row || delta == 0)
		return 0;
	const struct unwind_rule rule = rule_of(r);
	const uint64_t from = r->addr;

	r->addr = delta < r->end - from ? from + delta : r->end;
	return r->on_row(r->userdata, from, &rule);
}

static void restore(struct run *r, uint64_t number)
{
	struct cfi_state initial = r->cie->initial;
	struct cfi_value *now = value_of(r, &r->state, number),
			 *then = value_of(r, &initial, number);

	if (now)
		*now = *then;
}

/* An instruction whose first byte has its operand in it. False: it is another one. */
static bool take_short(struct run *r, uint8_t op, struct byte_reader *bytes, int *ret_result)
{
	const Dwarf_CIE *cie = &r->cie->cie;
	const uint8_t operand = op & 0x3f;

	switch (op & 0xc0) {
	case DW_CFA_advance_loc:
		*ret_result = advance(r, operand * cie->code_alignment_factor);
		return true;
	case DW_CFA_offset:
		set_value(r, operand, UNWIND_AT_CFA,
			(int64_t)(read_unsigned(bytes) * (uint64_t)cie->data_alignment_factor));
		return true;
	case DW_CFA_restore:
		restore(r, operand);
		return true;
	default:
		return false;
	}
}

/* vfork has its return address in another register for a while. */
static void take_in_register(struct run *r, uint64_t number, uint64_t in)
{
	if (number == r->registers->dwarf_ra && in <= UINT8_MAX)
		set_value(r, number, UNWIND_IN_REGISTER, (int64_t)in);
	else
		set_odd(r, number);
}

/* Instructions that say where a register of the caller is. False: it is another one. */
static bool take_register(struct run *r, uint8_t op, struct byte_reader *bytes)
{
	const uint64_t align = (uint64_t)r->cie->cie.data_alignment_factor;
	uint64_t number;

	switch (op) {
	case DW_CFA_offset_extended:
		number = read_unsigned(bytes);
		set_value(r, number, UNWIND_AT_CFA, (int64_t)(read_unsigned(bytes) * align));
		return true;
	case DW_CFA_offset_extended_sf:
		number = read_unsigned(bytes);
		set_value(
			r, number, UNWIND_AT_CFA, (int64_t)((uint64_t)read_signed(bytes) * align));
		return true;
	case DW_CFA_GNU_negative_offset_extended:
		number = read_unsigned(bytes);
		set_value(r, number, UNWIND_AT_CFA, -(int64_t)(read_unsigned(bytes) * align));
		return true;
	case DW_CFA_register:
		number = read_unsigned(bytes);
		take_in_register(r, number, read_unsigned(bytes));
		return true;
	case DW_CFA_val_offset:
	case DW_CFA_val_offset_sf:
		set_odd(r, read_unsigned(bytes));
		(void)read_unsigned(bytes);
		return true;
	case DW_CFA_restore_extended:
		restore(r, read_unsigned(bytes));
		return true;
	case DW_CFA_undefined:
		set_value(r, read_unsigned(bytes), UNWIND_UNKNOWN, 0);
		return true;
	case DW_CFA_same_value:
		set_value(r, read_unsigned(bytes), UNWIND_SAME, 0);
		return true;
	case DW_CFA_expression:
	case DW_CFA_val_expression:
		take_expression(r, bytes, op == DW_CFA_val_expression);
		return true;
	default:
		return false;
	}
}

/* Instructions that say what the CFA is. False: it is another one. */
static bool take_cfa(struct run *r, uint8_t op, struct byte_reader *bytes)
{
	const uint64_t align = (uint64_t)r->cie->cie.data_alignment_factor;
	struct cfi_state *s = &r->state;
	const enum unwind_place changed =
		s->cfa_place == UNWIND_SAME ? UNWIND_SAME : UNWIND_UNKNOWN;
	uint64_t number;

	switch (op) {
	case DW_CFA_def_cfa:
		number = read_unsigned(bytes);
		set_cfa(r, number, (int64_t)read_unsigned(bytes), UNWIND_SAME);
		return true;
	case DW_CFA_def_cfa_sf:
		number = read_unsigned(bytes);
		set_cfa(r, number, (int64_t)((uint64_t)read_signed(bytes) * align), UNWIND_SAME);
		return true;
	/* These change one part of a register and an offset; of any other CFA they leave nothing known. */
	case DW_CFA_def_cfa_register:
		set_cfa(r, read_unsigned(bytes), s->cfa_offset, changed);
		return true;
	case DW_CFA_def_cfa_offset:
		set_cfa(r, s->cfa_register, (int64_t)read_unsigned(bytes), changed);
		return true;
	case DW_CFA_def_cfa_offset_sf:
		set_cfa(r, s->cfa_register, (int64_t)((uint64_t)read_signed(bytes) * align),
			changed);
		return true;
	case DW_CFA_def_cfa_expression:
		take_cfa_expression(r, bytes);
		return true;
	default:
		return false;
	}
}

/* 0, 1: an instruction that we do not know; what on_row returned below 0. */
static int take_other(struct run *r, uint8_t op, struct byte_reader *bytes)
{
	const uint64_t align = r->cie->cie.code_alignment_factor;

	switch (op) {
	case DW_CFA_nop:
	case CFA_NEGATE_RA_STATE: /* addresses are stripped of their signature wherever they stand */
		return 0;
	case DW_CFA_GNU_args_size:
		(void)read_unsigned(bytes);
		return 0;
	case DW_CFA_advance_loc1:
		return advance(r, read_number(bytes, 1) * align);
	case DW_CFA_advance_loc2:
		return advance(r, read_number(bytes, 2) * align);
	case DW_CFA_advance_loc4:
		return advance(r, read_number(bytes, 4) * align);
	case DW_CFA_set_loc: {
		const uint64_t to = cfi_read_address(bytes, r->section, r->cie->encoding);
		return to > r->addr ? advance(r, to - r->addr) : 0;
	}
	case DW_CFA_remember_state:
		if (r->n_saved == SAVED_MAX)
			return 1;
		r->saved[r->n_saved++] = r->state;
		return 0;
	case DW_CFA_restore_state:
		if (r->n_saved == 0)
			return 1;
		r->state = r->saved[--r->n_saved];
		return 0;
	default:
		return 1;
	}
}

/* Run instructions. 0, 1: they are malformed, or not known; what on_row returned below 0. */
static int run_instructions(struct run *r, struct byte_reader bytes)
{
	while (bytes.at < bytes.end && (!r->on_row || r->addr < r->end)) {
		const uint8_t op = (uint8_t)read_number(&bytes, 1);
		int result = 0;

		if (!take_short(r, op, &bytes, &result) && !take_register(r, op, &bytes) &&
			!take_cfa(r, op, &bytes))
			result = take_other(r, op, &bytes);
		if (result != 0)
			return result;
		if (bytes.bad)
			return 1;
	}
	return 0;
}

/* --- entries ---------------------------------------------------------------------------------- */

/* Parse the augmentation. False: it has a part that we do not know. */
static bool take_augmentation(struct cfi_cie *c)
{
	struct byte_reader data = {.at = c->cie.augmentation_data,
		.end = c->cie.augmentation_data
			       ? c->cie.augmentation_data + c->cie.augmentation_data_size
			       : NULL};

	c->encoding = DW_EH_PE_absptr;
	for (const char *at = c->cie.augmentation; *at; at++) {
		switch (*at) {
		case 'z':
			break;
		case 'R':
			c->encoding = (uint8_t)read_number(&data, 1);
			break;
		case 'L':
			read_past(&data, 1);
			break;
		case 'P':
			read_past(&data, cfi_encoded_bytes((uint8_t)read_number(&data, 1)));
			break;
		case 'S':
			c->is_signal = true;
			break;
		case 'B': /* return addresses are signed with the second key, on arm64 */
			break;
		default:
			return false;
		}
	}
	return !data.bad && cfi_can_read(c->encoding);
}

/* A CIE at the offset is too long to be run once for each entry. */
static bool is_long(const Elf_Data *data, uint64_t offset)
{
	uint32_t n = 0;

	if (offset < data->d_size && data->d_size - offset >= sizeof(n))
		memcpy(&n, (const uint8_t *)data->d_buf + offset, sizeof(n));
	return n > CIE_BYTES_MAX;
}

/* The CIE at an offset. NULL: its entries cannot be read. */
static const struct cfi_cie *find_cie(struct cfi *c, uint32_t section, uint64_t offset)
{
	struct cfi_cie *cie = &c->cie[offset / 8 % CFI_CIES];
	const struct unwind_section *s = &c->section[section];
	Dwarf_CFI_Entry entry;
	Dwarf_Off next;

	if (cie->known && cie->section == section && cie->offset == offset)
		return cie->readable ? cie : NULL;
	*cie = (struct cfi_cie){.known = true, .section = section, .offset = offset};
	c->is_left |= is_long(s->data, offset);
	if (c->is_left || dwarf_next_cfi(c->e_ident, s->data, s->is_eh, offset, &next, &entry) ||
		!dwarf_cfi_cie_p(&entry))
		return NULL;
	cie->cie = entry.cie;
	cie->readable = take_augmentation(cie);
	c->is_left |= !cie->readable;
	if (!cie->readable)
		return NULL;

	struct run r = {.registers = c->registers, .section = s, .cie = cie};
	r.state.ra.place = c->registers->ra_is_kept ? UNWIND_SAME : UNWIND_UNKNOWN;
	r.state.sp.place = r.state.fp.place = UNWIND_SAME;
	r.state.base.place =
		c->registers->dwarf_base == UNWIND_BASE_NONE ? UNWIND_UNKNOWN : UNWIND_SAME;
	r.state.cfa_place = UNWIND_SAME; /* + 0: entries of riscv64 only say of which register */
	r.state.cfa_register = UINT64_MAX;
	cie->initial = r.state;
	const struct byte_reader bytes = {
		.at = cie->cie.initial_instructions, .end = cie->cie.initial_instructions_end};
	cie->usable = run_instructions(&r, bytes) == 0;
	cie->initial = r.state;
	return cie;
}

/* The code of an entry. False: it is none that can be read. */
static bool read_range(const struct cfi_cie *cie, const struct unwind_section *s,
	const Dwarf_FDE *fde, struct cfi_range *ret_range, struct byte_reader *ret_instructions)
{
	struct byte_reader r = {.at = fde->start, .end = fde->end};

	ret_range->start = cfi_read_address(&r, s, cie->encoding);
	const uint64_t n = cfi_read_encoded(&r, cie->encoding & 0x0f & (uint8_t)~DW_EH_PE_signed);
	if (cie->cie.augmentation[0] == 'z')
		read_past(&r, read_unsigned(&r));
	else
		read_past(&r, cie->cie.fde_augmentation_data_size);
	if (r.bad || n == 0 || n > UINT32_MAX || ret_range->start > UINT64_MAX - n)
		return false;
	ret_range->n = (uint32_t)n;
	*ret_instructions = r;
	return true;
}

int cfi_ranges(struct cfi *c, int (*on_range)(void *userdata, const struct cfi_range *range),
	void *userdata)
{
	for (uint32_t i = 0; i < c->n_sections; i++) {
		const struct unwind_section *s = &c->section[i];
		Dwarf_CFI_Entry entry;
		Dwarf_Off next = 0; /* stays where not even a length can be read */

		for (Dwarf_Off at = 0; at != (Dwarf_Off)-1; at = next) {
			const int r =
				dwarf_next_cfi(c->e_ident, s->data, s->is_eh, at, &next, &entry);
			if (r != 0 && (r > 0 || next <= at)) /* the end, or malformed */
				break;
			if (r != 0 || dwarf_cfi_cie_p(&entry))
				continue;
			const struct cfi_cie *cie = find_cie(c, i, entry.fde.CIE_pointer);
			struct cfi_range range = {.section = i & 1, .offset = at & INT32_MAX};
			struct byte_reader rest;
			if (c->is_left)
				return -EOPNOTSUPP;
			if (!cie || !read_range(cie, s, &entry.fde, &range, &rest))
				continue;
			const int result = on_range(userdata, &range);
			if (result < 0)
				return result;
		}
	}
	return 0;
}

int cfi_run(struct cfi *c, const struct cfi_range *range,
	int (*on_row)(void *userdata, uint64_t addr, const struct unwind_rule *rule),
	void *userdata)
{
	static const struct unwind_rule unknown;
	const struct unwind_section *s = &c->section[range->section];
	struct byte_reader instructions;
	struct cfi_range same;
	Dwarf_CFI_Entry entry;
	Dwarf_Off next;

	if (dwarf_next_cfi(c->e_ident, s->data, s->is_eh, range->offset, &next, &entry))
		return on_row(userdata, range->start, &unknown);
	const struct cfi_cie *cie = find_cie(c, range->section, entry.fde.CIE_pointer);
	if (!cie || !cie->usable || !read_range(cie, s, &entry.fde, &same, &instructions))
		return on_row(userdata, range->start, &unknown);

	struct run r = {
		.registers = c->registers,
		.section = s,
		.cie = cie,
		.state = cie->initial,
		.addr = range->start,
		.end = range->start + range->n,
		.on_row = on_row,
		.userdata = userdata,
	};
	const int result = run_instructions(&r, instructions);
	if (result < 0)
		return result;
	const struct unwind_rule last = result ? unknown : rule_of(&r);
	return r.addr < r.end ? on_row(userdata, r.addr, &last) : 0;
}
