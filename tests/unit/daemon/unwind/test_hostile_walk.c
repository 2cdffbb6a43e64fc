/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Walks by tables that lie: around in circles, ever deeper, nowhere. Each ends, and stays within the copied stack. */

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/unwind/walk.h"
#include "tests/unit/test.h"

#define CODE 0x10000u
#define BARE (CODE + 0xf00u) /* from there on nothing describes it */
#define STACK 0x7000000u

static uint64_t stack[1024];
static struct unwind_table *table;
static struct unwound unwound;

static bool code_at(const void *userdata, uint64_t address, struct unwind_code *ret_code)
{
	(void)userdata;
	if (address < CODE || address >= CODE + 0x1000)
		return false;
	*ret_code = (struct unwind_code){
		.file = 1, .offset = address, .described = UNWIND_TABLE, .table = table};
	if (address >= BARE)
		ret_code->described = UNWIND_BARE;
	return true;
}

#define EACH 0x100u /* bytes of code with the same rule */

/* The code of the first rule comes first. */
static enum unwind_outcome walk_with(
	const struct unwind_sample *sample, const struct unwind_rule *rule, uint32_t n)
{
	const struct unwind_table counts = {
		.base = CODE, .n_segments = 1, .n_rules = n + 1, .n_pages = 1, .n_rows = n};

	table = unwind_table_new(&counts);
	ck_assert_ptr_nonnull(table);
	unwind_table_segments(table)[0] =
		(struct unwind_segment){.offset = CODE, .n = 0x1000, .addr = CODE};
	unwind_table_pages(table)[1] = n;
	for (uint32_t i = 0; i < n; i++) {
		unwind_table_rules(table)[i + 1] = rule[i];
		unwind_table_rows(table)[i] =
			(struct unwind_row){.low = (uint16_t)(i * EACH), .rule = (uint16_t)(i + 1)};
	}
	ck_assert_int_eq(unwind_table_check(table), 0);
	struct unwind_walk w = {.sample = *sample, .code_at = code_at, .unwound = &unwound};
	w.sample.stack = (const uint8_t *)stack;
	w.sample.n_stack = sizeof(stack);
	const enum unwind_outcome outcome = unwind_by_tables(&w);
	free(table);
	return outcome;
}

/* Walk from code of the last of these rules. */
static enum unwind_outcome walk_by(const struct unwind_rule *rule, uint32_t n, uint64_t fp)
{
	const uint64_t regs[9] = {[6] = fp, [7] = STACK, [8] = CODE + (n - 1) * EACH + 8};
	const struct unwind_sample sample = {
		.registers = unwind_registers_of(EM_X86_64), .regs = regs, .regs_mask = 0x1ff};

	return walk_with(&sample, rule, n);
}

/* Walk on arm64 from code that nothing describes into code of that rule. */
static enum unwind_outcome walk_from_bare(const struct unwind_rule *rule, uint64_t fp)
{
	const uint64_t regs[33] = {[29] = fp, [31] = STACK, [32] = BARE + 8};
	const struct unwind_sample sample = {.registers = unwind_registers_of(EM_AARCH64),
		.regs = regs,
		.regs_mask = 0x1ffffffff};

	return walk_with(&sample, rule, 1);
}

/* Walk by this rule alone; all of the stack holds that word. */
static enum unwind_outcome walk(const struct unwind_rule *rule, uint64_t word, uint64_t fp)
{
	for (size_t i = 0; i < sizeof(stack) / sizeof(*stack); i++)
		stack[i] = word;
	return walk_by(rule, 1, fp);
}

/* The dynamic linker keeps its frame's address in rbx while it looks for a function. */
TEST(a_base_register_that_was_saved_leads_to_the_caller)
{
	struct unwind_rule rule[] = {
		{.cfa = UNWIND_IN_REGISTER,
			.number = UNWIND_BASE_X86,
			.cfa_offset = 16,
			.ra = UNWIND_AT_CFA,
			.ra_offset = -8,
			.base = UNWIND_SAME},
		{.cfa = UNWIND_IN_SP,
			.cfa_offset = 24,
			.ra = UNWIND_AT_CFA,
			.ra_offset = -8,
			.base = UNWIND_AT_CFA,
			.base_offset = -16},
	};

	memset(stack, 0, sizeof(stack));
	stack[1] = STACK + 64;      /* rbx of the caller */
	stack[2] = CODE + 9;        /* the caller */
	stack[9] = CODE + EACH + 5; /* its caller, below rbx + 16 */
	ck_assert_int_eq(walk_by(rule, 2, 0), UNWIND_WALKED);
	ck_assert_uint_eq(unwound.n_frames, 3);
	ck_assert_uint_eq(unwound.frame[1].offset, CODE + 8);
	ck_assert_uint_eq(unwound.frame[2].offset, CODE + EACH + 4);

	rule[1].base = UNWIND_UNKNOWN;
	ck_assert_int_eq(walk_by(rule, 2, 0), UNWIND_NEEDS_ELFUTILS);
}

TEST(a_return_address_in_a_register_is_known_in_the_sampled_frame_alone)
{
	struct unwind_rule rule[] = {
		{.cfa = UNWIND_IN_SP, .cfa_offset = 8, .ra = UNWIND_IN_REGISTER, .ra_offset = 6},
		{.cfa = UNWIND_IN_SP, .cfa_offset = 8, .ra = UNWIND_IN_REGISTER, .ra_offset = 6},
	};

	rule[0].ra = UNWIND_NONE;
	memset(stack, 0, sizeof(stack));
	ck_assert_int_eq(walk_by(rule, 2, CODE + 9), UNWIND_WALKED);
	ck_assert_uint_eq(unwound.n_frames, 2);
	ck_assert(!unwound.truncated);
	ck_assert_uint_eq(unwound.frame[1].offset, CODE + 8);

	rule[0].ra = UNWIND_IN_REGISTER;
	ck_assert_int_eq(walk_by(rule, 2, CODE + 9), UNWIND_NEEDS_ELFUTILS);
}

/* On arm64 a frame record tells where the next is, and not where its frame ends. */
TEST(after_a_step_by_frame_pointer_on_arm64_records_lead_on)
{
	struct unwind_rule rule = {.cfa = UNWIND_IN_SP,
		.cfa_offset = 96,
		.ra = UNWIND_AT_CFA,
		.ra_offset = -72,
		.fp = UNWIND_AT_CFA,
		.fp_offset = -80};

	memset(stack, 0, sizeof(stack));
	stack[10] = STACK + 40 * 8; /* the record of the code that nothing describes */
	stack[11] = CODE + 8;
	stack[40] = STACK + 60 * 8; /* that of its caller, whose frame ends at 50 */
	stack[41] = CODE + 16;
	ck_assert_int_eq(walk_from_bare(&rule, STACK + 80), UNWIND_WALKED);
	ck_assert_uint_ge(unwound.n_frames, 3);
	ck_assert_uint_eq(unwound.frame[1].offset, CODE + 7);
	ck_assert_uint_eq(unwound.frame[2].offset, CODE + 15);
}

TEST(frames_of_no_size_end_the_walk)
{
	const struct unwind_rule rule = {.cfa = UNWIND_IN_SP, .ra = UNWIND_AT_SP};

	ck_assert_int_eq(walk(&rule, CODE + 8, 0), UNWIND_WALKED);
	ck_assert(unwound.truncated);
	ck_assert_uint_le(unwound.n_frames, 2);
}

TEST(frames_that_lead_back_end_the_walk)
{
	const struct unwind_rule rule = {
		.cfa = UNWIND_IN_SP, .cfa_offset = -8, .ra = UNWIND_AT_SP, .ra_offset = 8};

	ck_assert_int_eq(walk(&rule, CODE + 8, 0), UNWIND_WALKED);
	ck_assert(unwound.truncated);
	ck_assert_uint_eq(unwound.n_frames, 1);
}

TEST(frames_without_end_are_cut_at_their_most)
{
	const struct unwind_rule rule = {
		.cfa = UNWIND_IN_SP, .cfa_offset = 16, .ra = UNWIND_AT_CFA, .ra_offset = -8};

	ck_assert_int_eq(walk(&rule, CODE + 8, 0), UNWIND_WALKED);
	ck_assert(unwound.truncated);
	ck_assert_uint_eq(unwound.n_frames, UNWIND_FRAMES_MAX);
}

TEST(rows_that_lead_into_no_code_end_the_walk)
{
	const struct unwind_rule rule = {
		.cfa = UNWIND_IN_SP, .cfa_offset = 16, .ra = UNWIND_AT_CFA, .ra_offset = -8};

	ck_assert_int_eq(walk(&rule, 0xdead, 0), UNWIND_WALKED);
	ck_assert(unwound.truncated);
	ck_assert_uint_eq(unwound.n_frames, 1);
}

TEST(places_outside_the_copy_end_the_walk, .times = 8)
{
	static const struct unwind_rule rules[] = {
		{.cfa = UNWIND_IN_SP, .cfa_offset = INT32_MAX, .ra = UNWIND_AT_CFA},
		{.cfa = UNWIND_IN_SP, .cfa_offset = INT32_MIN, .ra = UNWIND_AT_CFA},
		{.cfa = UNWIND_IN_SP, .cfa_offset = 8, .ra = UNWIND_AT_SP, .ra_offset = INT32_MIN},
		{.cfa = UNWIND_AT_SP, .cfa_offset = sizeof(stack) - 7, .ra = UNWIND_AT_CFA},
		{.cfa = UNWIND_AT_FP, .cfa_offset = INT32_MIN, .ra = UNWIND_AT_CFA},
		{.cfa = UNWIND_AT_SP, .cfa_more = INT32_MIN, .ra = UNWIND_AT_CFA},
		{.cfa = UNWIND_IN_REGISTER, .number = 255, .ra = UNWIND_AT_CFA},
		{.cfa = UNWIND_IN_FP, .cfa_offset = 1, .ra = UNWIND_AT_FP, .ra_offset = -1}};

	ck_assert_int_eq(walk(&rules[_i], UINT64_MAX, UINT64_MAX), UNWIND_WALKED);
	ck_assert(unwound.truncated);
	ck_assert_uint_eq(unwound.n_frames, 1);
}
