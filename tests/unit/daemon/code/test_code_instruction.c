/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "daemon/code/instruction.h"
#include "tests/unit/test.h"

#define N(table) (sizeof(table) / sizeof((table)[0]))

static struct table table;

static void setup(void)
{
	ck_assert_int_eq(table_load(&table), 0);
}

static void teardown(void)
{
	table_clear(&table);
}

EACH_TEST(.begin = setup, .end = teardown);

/* Counted by hand from the manuals. */
struct expected {
	const char *text;
	double loaded, stored, fp32, fp64, integer;
};

static struct instruction read_one(enum isa isa, const char *text, struct vector_state *v)
{
	struct instruction i = {.address = 0x1000, .length = 4};
	instruction_read(&table, isa, text, v, &i);
	return i;
}

static void check(enum isa isa, const struct expected *e, size_t n)
{
	struct vector_state v = {.sew_bits = 0};
	for (size_t k = 0; k < n; k++) {
		struct instruction i = read_one(isa, e[k].text, &v);
		bool same = (double)i.count[COUNT_LOADED] == e[k].loaded &&
			    (double)i.count[COUNT_STORED] == e[k].stored &&
			    (double)i.count[COUNT_FP32] == e[k].fp32 &&
			    (double)i.count[COUNT_FP64] == e[k].fp64 &&
			    (double)i.count[COUNT_INT] == e[k].integer && !i.unknown;
		ck_assert_msg(same, "%s: %g loaded, %g stored, %g fp32, %g fp64, %g int%s",
			e[k].text, (double)i.count[COUNT_LOADED], (double)i.count[COUNT_STORED],
			(double)i.count[COUNT_FP32], (double)i.count[COUNT_FP64],
			(double)i.count[COUNT_INT], i.unknown ? ", unknown" : "");
	}
}

TEST(x86_instructions_count_by_their_operands)
{
	static const struct expected e[] = {
		{"\tvmovsd\txmm1, qword ptr [rdi + 8*rcx]", .loaded = 8},
		{"\tvfmadd231sd\txmm0, xmm1, qword ptr [rdx + 8*rsi]", .loaded = 8, .fp64 = 2},
		{"\tvfmadd213pd\tymm0, ymm1, ymmword ptr [rdx]", .loaded = 32, .fp64 = 8},
		{"\tvmulps\tzmm0, zmm1, zmm2", .fp32 = 16},
		{"\tvaddpd\tymm0, ymm1, qword ptr [rax]{1to4}", .loaded = 8, .fp64 = 4},
		{"\taddsd\txmm0, xmm1", .fp64 = 1},
		{"\tmulps\txmm0, xmmword ptr [rax]", .loaded = 16, .fp32 = 4},
		{"\tvmovupd\tymmword ptr [rdi + 8*rcx], ymm0", .stored = 32},
		{"\tadd\tdword ptr [rax], 3", .loaded = 4, .stored = 4, .integer = 1},
		{"\tadd\trax, qword ptr [rcx]", .loaded = 8, .integer = 1},
		{"\tlock\t\tadd\tqword ptr [rax], rcx", .loaded = 8, .stored = 8, .integer = 1},
		{"\tcmp\tbyte ptr [rdi + rax], 0", .loaded = 1},
		{"\tlea\trax, [rdi + 8*rcx]"},
		{"\tnop\tword ptr [rax + rax]"},
		{"\tvxorpd\txmm0, xmm0, xmm0"},
		{"\tpaddd\txmm0, xmmword ptr [rax]", .loaded = 16, .integer = 4},
		{"\tvcvtsi2sd\txmm0, xmm0, dword ptr [rax]", .loaded = 4},
		{"\tmov\tqword ptr [rsp + 8], rdi", .stored = 8},
		{"\tmovaps\txmm0, xmmword ptr [rax]", .loaded = 16},
		{"\tpush\trbx"},
	};
	check(ISA_X86_64, e, N(e));
}

TEST(arm_instructions_count_by_their_registers)
{
	static const struct expected e[] = {
		{"\tldp\td1, d3, [x9, #-8]", .loaded = 16},
		{"\tldp\tq2, q3, [x9, #-16]", .loaded = 32},
		{"\tldr\tw0, [x1, x2, lsl #2]", .loaded = 4},
		{"\tldrb\tw0, [x1], #1", .loaded = 1},
		{"\tldrsw\tx0, [x1]", .loaded = 4},
		{"\tstr\txzr, [sp, #8]", .stored = 8},
		{"\tstp\tx29, x30, [sp, #-16]!", .stored = 16},
		{"\tfmadd\td0, d1, d2, d0", .fp64 = 2},
		{"\tfmla\tv0.4s, v1.4s, v2.4s", .fp32 = 8},
		{"\tfmul\tv1.2d, v1.2d, v2.d[0]", .fp64 = 2},
		{"\tadd\tv1.16b, v1.16b, v2.16b", .integer = 16},
		{"\tadd\tx9, x9, #16", .integer = 1},
		{"\tmadd\tx0, x1, x2, x3", .integer = 2},
		{"\tld2\t{ v0.4s, v1.4s }, [x0], #32", .loaded = 32},
		{"\tld1\t{ v0.s }[1], [x0]", .loaded = 4},
		{"\tld1r\t{ v0.2d }, [x0]", .loaded = 8},
		{"\tst1\t{ v0.16b }, [x0]", .stored = 16},
		{"\tld1d\t{ z1.d }, p0/z, [x0, x10, lsl #3]", .loaded = 16},
		{"\tld1b\t{ z1.d }, p0/z, [x0]", .loaded = 2},
		{"\tst1w\t{ z0.s }, p0, [x0]", .stored = 16},
		{"\tfmul\tz1.d, z1.d, z2.d", .fp64 = 2},
		{"\tfadda\td0, p0, d0, z1.d", .fp64 = 2},
		{"\tmov\tx8, xzr"},
		{"\tcmp\tx8, x2"},
	};
	check(ISA_AARCH64, e, N(e));
}

TEST(riscv_instructions_count_by_what_vsetvli_set)
{
	static const struct expected e[] = {
		{"\tfld\tft0, 0(a0)", .loaded = 8},
		{"\tsw\ta0, 4(sp)", .stored = 4},
		{"\tfmadd.d\tfa0, ft0, ft1, fa0", .fp64 = 2},
		{"\tfadd.s\tfa0, ft0, ft1", .fp32 = 1},
		{"\tamoadd.w\ta0, a1, (a2)", .loaded = 4, .stored = 4, .integer = 1},
		{"\taddi\ta0, a0, 8", .integer = 1},
		{"\tvsetvli\ta4, zero, e64, m2, ta, ma"},
		{"\tvle64.v\tv9, (a4)", .loaded = 32},
		{"\tvfmacc.vv\tv10, v8, v9", .fp64 = 8},
		{"\tvse64.v\tv10, (a4)", .stored = 32},
		{"\tvl1re64.v\tv9, (a4)", .loaded = 16},
		{"\tvs4r.v\tv8, (a4)", .stored = 64},
		{"\tvsetivli\tzero, 4, e32, m1, ta, ma"},
		{"\tvle32.v\tv9, (a4)", .loaded = 16},
		{"\tvfwmul.vv\tv10, v8, v9", .fp64 = 4},
		{"\tvadd.vi\tv8, v8, 1", .integer = 4},
		{"\tvsetvli\ta4, a5, e32, mf2, ta, ma"},
		{"\tvfadd.vv\tv8, v8, v9", .fp32 = 2},
	};
	check(ISA_RISCV64, e, N(e));
}

TEST(vectors_of_unknown_length_and_masked_ones_are_marked)
{
	struct vector_state v = {.sew_bits = 0};
	ck_assert(read_one(ISA_RISCV64, "\tvle64.v\tv9, (a4)", &v).unknown);
	ck_assert(!read_one(ISA_RISCV64, "\tvsetvli\ta4, a5, e64, m1, ta, ma", &v).unknown);
	struct instruction i = read_one(ISA_RISCV64, "\tvle64.v\tv9, (a4), v0.t", &v);
	ck_assert(i.masked && i.scalable && !i.unknown);
	i = read_one(ISA_AARCH64, "\tld1d\t{ z1.d }, p0/z, [x0]", &v);
	ck_assert(i.masked && i.scalable);
	i = read_one(ISA_X86_64, "\tvmovupd\tzmm0 {k1} {z}, zmmword ptr [rdi]", &v);
	ck_assert(i.masked && !i.scalable);
}

TEST(what_the_table_does_not_have_is_unknown)
{
	struct vector_state v = {.sew_bits = 0};
	ck_assert(read_one(ISA_AARCH64, "\tnosuch\tx0, x1", &v).unknown);
	ck_assert(read_one(ISA_X86_64, "\trep\t\tmovsb\tbyte ptr es:[rdi], byte ptr [rsi]", &v)
			.unknown);
	ck_assert(read_one(ISA_X86_64, "", &v).unknown);
}

TEST(branches_have_their_targets)
{
	struct vector_state v = {.sew_bits = 0};
	struct instruction i = read_one(ISA_X86_64, "\tjne\t-59", &v);
	ck_assert(i.flow == FLOW_BRANCH && i.has_target);
	ck_assert_uint_eq(i.target, 0x1004 - 59);
	i = read_one(ISA_AARCH64, "\ttbz\tw0, #3, #-20", &v);
	ck_assert(i.flow == FLOW_BRANCH && i.has_target);
	ck_assert_uint_eq(i.target, 0x1000 - 20);
	i = read_one(ISA_RISCV64, "\tbnez\ta2, 16", &v);
	ck_assert(i.flow == FLOW_BRANCH && i.has_target);
	ck_assert_uint_eq(i.target, 0x1010);
	i = read_one(ISA_X86_64, "\tjmp\tqword ptr [rax + 8*rcx]", &v);
	ck_assert(i.flow == FLOW_JUMP && !i.has_target);
	ck_assert_int_eq(read_one(ISA_RISCV64, "\tret", &v).flow, FLOW_RETURN);
}

static void refused(const char *text, unsigned line)
{
	struct table t;
	unsigned found = 0;
	ck_assert_int_eq(table_parse(&t, text, strlen(text), &found), TABLE_MALFORMED);
	ck_assert_uint_eq(found, line);
}

TEST(a_malformed_table_names_the_line)
{
	refused("sparc add int:1\n", 1);
	refused("x86-64 add\n", 1);
	refused("# fine\nx86-64 add int:0\n", 2);
	refused("x86-64 add quux\n", 1);
	refused("x86-64 add int:1 fp64:1\n", 1);
	refused("x86-64 add b4 b8\n", 1);
	refused("aarch64 add int:1\nx86-64 add int:1\n", 2);
	refused("x86-64 a_mnemonic_that_is_longer_than_any_pattern int:1\n", 1);
}

/* In the order of a listing: what made a mask says whether all lanes are let through. */
struct masked {
	enum isa isa;
	const char *text;
	bool masked;
};

TEST(a_mask_that_lets_all_lanes_through_is_none)
{
	static const struct masked e[] = {
		{ISA_X86_64, "\tvgatherdpd\tymm0, ymmword ptr [rdi + 8*xmm1], ymm2", true},
		{ISA_X86_64, "\tvpcmpeqd\tymm2, ymm2, ymm2", false},
		{ISA_X86_64, "\tvgatherdpd\tymm0, ymmword ptr [rdi + 8*xmm1], ymm2", false},
		{ISA_X86_64, "\tvgatherdpd\tymm0, ymmword ptr [rdi + 8*xmm1], ymm2", true},
		{ISA_X86_64, "\tkxnorw\tk1, k0, k0", false},
		{ISA_X86_64, "\tvmovupd\tzmm0 {k1}, zmmword ptr [rdi]", false},
		{ISA_X86_64, "\tvcmpltpd\tk1, zmm1, zmm2", false},
		{ISA_X86_64, "\tvmovupd\tzmmword ptr [rdi] {k1}, zmm0", true},
		{ISA_X86_64, "\tvmaskmovps\tymmword ptr [rdi], ymm1, ymm0", true},
		{ISA_AARCH64, "\tld1d\t{ z0.d }, p0/z, [x0, x1, lsl #3]", true},
		{ISA_AARCH64, "\twhilelo\tp0.d, x1, x2", false},
		{ISA_AARCH64, "\tld1d\t{ z0.d }, p0/z, [x0, x1, lsl #3]", false},
		{ISA_AARCH64, "\tfcmgt\tp1.d, p0/z, z0.d, #0.0", false},
		{ISA_AARCH64, "\tfadd\tz1.d, p1/m, z1.d, z0.d", true},
		{ISA_AARCH64, "\tst1d\t{ z1.d }, p0, [x0, x1, lsl #3]", false},
		{ISA_AARCH64, "\tst1d\t{ z1.d }, p1, [x0, x1, lsl #3]", true},
		{ISA_AARCH64, "\tadd\tx0, x0, x1", false},
	};
	struct vector_state v = {.sew_bits = 0};
	for (size_t k = 0; k < N(e); k++) {
		struct instruction i = read_one(e[k].isa, e[k].text, &v);
		ck_assert_msg(i.masked == e[k].masked && !i.unknown, "%zu: %s", k, e[k].text);
	}
}

TEST(masked_moves_are_stored_or_loaded)
{
	static const struct expected e[] = {
		{"\tvmaskmovps\tymmword ptr [rdi], ymm1, ymm0", .stored = 32},
		{"\tvmaskmovpd\txmm0, xmm1, xmmword ptr [rdi]", .loaded = 16},
		{"\tvpmaskmovd\tymm0, ymm1, ymmword ptr [rdi]", .loaded = 32},
	};
	check(ISA_X86_64, e, N(e));
}
