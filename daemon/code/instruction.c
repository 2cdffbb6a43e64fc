/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The mnemonic's row gives the operation; the operands give the amount of data. Each ISA prints
 * operands in its own way: x86-64 names the width of memory ("ymmword ptr"), aarch64 that of its
 * registers ("q0", "v1.4s", "z2.d"), riscv64 neither, since the mnemonic gives the width, or an
 * earlier vsetvli.
 */
#include "daemon/code/instruction.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MNEMONIC_BYTES 32

static unsigned element_bits(enum element e, unsigned register_bits)
{
	static const uint8_t bits[] = {
		[ELEMENT_FP16] = 16,
		[ELEMENT_FP32] = 32,
		[ELEMENT_FP64] = 64,
		[ELEMENT_FP80] = 80,
		[ELEMENT_INT8] = 8,
		[ELEMENT_INT16] = 16,
		[ELEMENT_INT32] = 32,
		[ELEMENT_INT64] = 64,
	};
	return e == ELEMENT_FP || e == ELEMENT_INT ? register_bits : bits[e];
}

static enum count count_of(enum element e, unsigned bits)
{
	if (e >= ELEMENT_INT8)
		return COUNT_INT;
	return bits == 16   ? COUNT_FP16
	       : bits == 32 ? COUNT_FP32
	       : bits == 64 ? COUNT_FP64
			    : COUNT_FP80;
}

static void access(struct instruction *i, unsigned flags, double bytes)
{
	if (flags & ROW_LOAD)
		i->count[COUNT_LOADED] += (float)bytes;
	if (flags & ROW_STORE)
		i->count[COUNT_STORED] += (float)bytes;
}

static void operate(struct instruction *i, const struct row *row, unsigned bits, double lanes)
{
	if (row->element)
		i->count[count_of(row->element, bits)] += (float)(row->operations * lanes);
}

/* The last number of the operands, if the last operand is one: "-59", "#-36", "0x10". */
static bool last_number(const char *operands, int64_t *ret_n)
{
	const char *comma = strrchr(operands, ','), *at = comma ? comma + 1 : operands;
	at += strspn(at, " #");
	char *end;
	*ret_n = strtoll(at, &end, 0);
	return end > at && !*end;
}

static void jump(struct instruction *i, enum isa isa, const char *operands)
{
	int64_t n;
	i->has_target = i->flow != FLOW_NEXT && i->flow != FLOW_RETURN && last_number(operands, &n);
	/* Source: how LLVM prints targets: of x86 from the end of the instruction */
	if (i->has_target)
		i->target = i->address + (uint64_t)n + (isa == ISA_X86_64 ? i->length : 0);
}

/* --- x86-64 ----------------------------------------------------------------------------------- */

/* Bytes of "… ptr [", 0: no operand in memory. *ret_first: it is the first operand. */
static unsigned x86_memory(const char *operands, bool *ret_first)
{
	static const struct {
		const char *word;
		unsigned bytes;
	} widths[] = {{"zmmword ptr", 64}, {"ymmword ptr", 32}, {"xmmword ptr", 16},
		{"tbyte ptr", 10}, {"qword ptr", 8}, {"dword ptr", 4}, {"byte ptr", 1},
		{"word ptr", 2}};
	for (size_t w = 0; w < sizeof(widths) / sizeof(*widths); w++) {
		const char *at = strstr(operands, widths[w].word);
		if (!at)
			continue;
		const char *comma = strchr(operands, ',');
		*ret_first = !comma || at < comma;
		return widths[w].bytes;
	}
	return 0;
}

static unsigned x86_register_bytes(const char *operands)
{
	/* "xmmword ptr" has no such word */
	static const char *const names[] = {"zmm", "ymm", "xmm"};
	for (unsigned n = 0; n < 3; n++)
		for (const char *at = operands; (at = strstr(at, names[n])); at += 3)
			if (isdigit((unsigned char)at[3]))
				return 64 >> n;
	return 16;
}

/* Bit of the register in "ymm13", "k1", "p0.d", "p0/m": 1 << its number; 0: no such register. */
static uint32_t register_bit(const char *at, const char *kind)
{
	size_t n = strlen(kind);
	if (strncmp(at, kind, n) != 0 || !isdigit((unsigned char)at[n]))
		return 0;
	return 1u << (strtoul(at + n, NULL, 10) & 31);
}

static uint32_t x86_vector_bit(const char *at)
{
	return register_bit(at, "xmm") | register_bit(at, "ymm") | register_bit(at, "zmm");
}

static const char *last_operand(const char *operands)
{
	const char *comma = strrchr(operands, ',');
	return comma ? comma + 1 + strspn(comma + 1, " ") : operands;
}

/* A comparison of a register with itself sets all lanes, and so does kxnor; a gather clears its mask. */
static void x86_set_masks(
	const char *mnemonic, const char *operands, bool gathers, struct vector_state *v)
{
	const char *last = last_operand(operands);
	uint32_t vector = x86_vector_bit(operands), mask = register_bit(operands, "k");
	const char *second = strchr(operands, ',');
	bool same = second && x86_vector_bit(last) &&
		    x86_vector_bit(second + 1 + strspn(second + 1, " ")) == x86_vector_bit(last);
	bool ones = (strncmp(mnemonic, "vpcmpeq", 7) == 0 && same) ||
		    strncmp(mnemonic, "kxnor", 5) == 0;
	v->full_vectors = ones ? v->full_vectors | vector : v->full_vectors & ~vector;
	v->full_masks = ones ? v->full_masks | mask : v->full_masks & ~mask;
	if (gathers)
		v->full_vectors &= ~x86_vector_bit(last);
}

static bool x86_is_masked(const struct row *row, const char *operands, const struct vector_state *v)
{
	const char *brace = strstr(operands, "{k");
	if (brace)
		return !(register_bit(brace + 1, "k") & v->full_masks);
	if (row->flags & ROW_GATHER)
		return !(x86_vector_bit(last_operand(operands)) & v->full_vectors);
	return row->flags & ROW_MASKED;
}

static void read_x86(const struct row *row, const char *mnemonic, const char *operands,
	struct vector_state *v, struct instruction *i)
{
	bool first = false;
	unsigned bytes = x86_memory(operands, &first), width = x86_register_bytes(operands);
	unsigned flags = row->flags, bits = element_bits(row->element, 64);
	i->masked = x86_is_masked(row, operands, v);
	x86_set_masks(mnemonic, operands, flags & ROW_GATHER, v);
	if (flags & ROW_GATHER)
		bytes = width;
	else if (!first)
		flags = bytes ? ROW_LOAD : 0;
	if (!(row->flags & ROW_ADDRESS) && row->flow == FLOW_NEXT)
		access(i, flags, bytes);
	else if (row->flow == FLOW_JUMP || row->flow == FLOW_CALL)
		access(i, ROW_LOAD, bytes); /* the target is read from there */
	operate(i, row, bits, bits && row->flags & ROW_PACKED ? width * 8.0 / bits : 1);
}

/* --- aarch64 ---------------------------------------------------------------------------------- */

struct arm_register {
	unsigned bits;  /* of an element */
	double lanes;   /* at 128 bits, where it is scalable */
	unsigned count; /* of registers in a list */
	bool scalable, known;
};

static unsigned arm_letter_bits(char c)
{
	switch (c) {
	case 'b':
		return 8;
	case 'h':
		return 16;
	case 's':
	case 'w':
		return 32;
	case 'd':
	case 'x':
		return 64;
	case 'q':
		return 128;
	default:
		return 0;
	}
}

/* "x3", "d0", "v1.4s", "v1.s", "z2.d", "z3". */
static struct arm_register arm_register_of(const char *at)
{
	struct arm_register r = {.lanes = 1, .count = 1};
	char kind = *at++;
	if (kind == 's' && *at == 'p')
		return (struct arm_register){.bits = 64, .lanes = 1, .count = 1, .known = true};
	if ((kind == 'w' || kind == 'x') && *at == 'z')
		return (struct arm_register){
			.bits = arm_letter_bits(kind), .lanes = 1, .count = 1, .known = true};
	if (!isdigit((unsigned char)*at))
		return r;
	at += strspn(at, "0123456789");
	r.scalable = kind == 'z';
	if (kind != 'v' && kind != 'z') {
		r.bits = arm_letter_bits(kind);
	} else if (*at == '.') {
		unsigned long lanes = strtoul(at + 1, (char **)&at, 10);
		r.bits = arm_letter_bits(*at == '.' ? at[1] : *at);
		if (lanes > 64)
			return r;
		r.lanes = lanes ? (double)lanes : r.scalable && r.bits ? 128.0 / r.bits : 1;
	} else {
		r.bits = 128;
	}
	r.known = r.bits > 0;
	return r;
}

/* The first operand, which may be a list in braces. */
static struct arm_register arm_first(const char *operands)
{
	bool list = *operands == '{';
	struct arm_register r = arm_register_of(operands + (list ? strspn(operands, "{ ") : 0));
	if (list) {
		const char *close = strchr(operands, '}');
		for (const char *at = operands; close && at < close; at++)
			r.count += *at == ',' ? 1 : 0;
		if (close && close[1] == '[')
			r.lanes = 1; /* of one lane */
	}
	return r;
}

/* The predicate that governs an instruction: "p0/z", "p0/m", or a bare "p0" behind the first operand. */
static bool arm_is_masked(const char *operands, bool scalable, const struct vector_state *v)
{
	for (const char *at = strchr(operands, ','); at && scalable; at = strchr(at + 1, ',')) {
		uint32_t bit = register_bit(at + 1 + strspn(at + 1, " "), "p");
		if (bit)
			return !(bit & v->full_masks);
	}
	return false;
}

/* ptrue activates all lanes, and while… all lanes in all rounds but the last. */
static void arm_set_masks(const char *mnemonic, const char *operands, struct vector_state *v)
{
	uint32_t bit = register_bit(operands, "p");
	bool full = strncmp(mnemonic, "ptrue", 5) == 0 || strncmp(mnemonic, "while", 5) == 0;
	v->full_masks = full ? v->full_masks | bit : v->full_masks & ~bit;
}

static void read_aarch64(const struct row *row, const char *mnemonic, const char *operands,
	struct vector_state *v, struct instruction *i)
{
	struct arm_register first = arm_first(operands);
	bool replicates = strncmp(mnemonic, "ld1r", 4) == 0 || strncmp(mnemonic, "ld2r", 4) == 0;
	const char *comma = strchr(operands, ',');
	if (strncmp(mnemonic, "fadd", 4) == 0 && strchr("av", mnemonic[4]) && mnemonic[4] &&
		comma) {
		const char *last = strrchr(operands, ',');
		first = arm_register_of(last + strspn(last, ", ")); /* its lanes are summed up */
	}
	i->scalable = first.scalable;
	i->masked = arm_is_masked(operands, first.scalable, v);
	arm_set_masks(mnemonic, operands, v);
	if (row->element) {
		operate(i, row, element_bits(row->element, first.bits), first.lanes);
		i->unknown = !first.known;
	}
	if (row->flags & (ROW_LOAD | ROW_STORE)) {
		unsigned each = row->bytes ? row->bytes : first.bits / 8;
		double n = first.lanes * first.count * (row->flags & ROW_PAIR ? 2 : 1);
		if (replicates)
			n = first.count;
		access(i, row->flags, each * n);
		i->unknown = !first.known;
	}
}

/* --- riscv64 ---------------------------------------------------------------------------------- */

/* "a4, zero, e64, m1, ta, ma", "zero, 4, e32, mf2, ta, ma" */
static void set_vector(const char *mnemonic, const char *operands, struct vector_state *v)
{
	const char *e = strstr(operands, ", e"), *m = strstr(operands, ", m");
	*v = (struct vector_state){.lmul = 1};
	if (!e || !m || strcmp(mnemonic, "vsetvl") == 0)
		return;
	v->sew_bits = (unsigned)strtoul(e + 3, NULL, 10);
	bool fraction = m[3] == 'f';
	double n = (double)strtoul(m + 3 + fraction, NULL, 10);
	if (n < 1 || n > 8 || v->sew_bits > 64)
		v->sew_bits = 0;
	else
		v->lmul = fraction ? 1 / n : n;
	const char *comma = strchr(operands, ',');
	if (strcmp(mnemonic, "vsetivli") == 0 && comma)
		v->vl = (unsigned)strtoul(comma + 1, NULL, 10) & 31;
}

static void read_riscv64(const struct row *row, const char *mnemonic, const char *operands,
	struct vector_state *v, struct instruction *i)
{
	unsigned sew = row->flags & ROW_WIDE ? 2 * v->sew_bits : v->sew_bits;
	double lanes = 1;
	if (strncmp(mnemonic, "vset", 4) == 0)
		set_vector(mnemonic, operands, v);
	if (row->flags & ROW_VECTOR) {
		if (v->sew_bits == 0) {
			i->unknown = true;
			return;
		}
		lanes = v->vl ? v->vl : 8.0 * SCALABLE_BYTES_LEAST * v->lmul / v->sew_bits;
		i->scalable = v->vl == 0;
		i->masked = strstr(operands, "v0.t") != NULL;
	}
	unsigned each = row->bytes ? row->bytes : v->sew_bits / 8;
	if (row->flags & ROW_WHOLE) { /* vl4re64.v, vs1r.v */
		lanes = mnemonic[2] - '0';
		if (lanes < 1 || lanes > 8) {
			i->unknown = true;
			return;
		}
		each = SCALABLE_BYTES_LEAST;
		i->scalable = true;
	}
	access(i, row->flags, each * lanes);
	operate(i, row, element_bits(row->element, sew ? sew : 64), lanes);
}

/* --- all of them ------------------------------------------------------------------------------ */

/* Words before the mnemonic, as the disassembler prints them. */
static const char *skip_prefixes(const char *text)
{
	static const char *const prefixes[] = {"lock\t", "lock ", "notrack\t", "notrack ",
		"data16\t", "data16 ", "bnd\t", "bnd ", "xacquire\t", "xrelease\t"};
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++)
		while (strncmp(text, prefixes[i], strlen(prefixes[i])) == 0)
			text += strlen(prefixes[i]) + strspn(text + strlen(prefixes[i]), " \t");
	return text;
}

void instruction_read(const struct table *t, enum isa isa, const char *text, struct vector_state *v,
	struct instruction *i)
{
	char mnemonic[MNEMONIC_BYTES];
	*i = (struct instruction){.address = i->address, .length = i->length};
	text += strspn(text, " \t");
	text = skip_prefixes(text);
	size_t n = strcspn(text, " \t");
	snprintf(mnemonic, sizeof(mnemonic), "%.*s", (int)(n < 31 ? n : 31), text);
	const char *operands = text + n + strspn(text + n, " \t");
	const struct row *row = table_find(t, isa, mnemonic);
	if (!row) {
		i->unknown = true;
		return;
	}
	i->flow = row->flow;
	i->padding = strncmp(mnemonic, "nop", 3) == 0;
	i->unknown = row->flags & ROW_UNKNOWN;
	jump(i, isa, operands);
	if (i->unknown)
		return;
	if (isa == ISA_X86_64)
		read_x86(row, mnemonic, operands, v, i);
	else if (isa == ISA_AARCH64)
		read_aarch64(row, mnemonic, operands, v, i);
	else
		read_riscv64(row, mnemonic, operands, v, i);
}
