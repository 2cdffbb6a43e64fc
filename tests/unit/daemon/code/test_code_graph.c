/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <math.h>
#include <stdlib.h>

#include "daemon/code/estimate.h"
#include "tests/unit/test.h"

/* Listings have an instruction of 4 bytes a line, and targets as riscv64 prints them. */
#define LINES_MAX 32

static struct table table;
static struct instruction instruction[LINES_MAX];
static uint32_t n_instructions;
static struct graph graph;
static struct vectors vectors = {1, 1};

static void setup(void)
{
	ck_assert_int_eq(table_load(&table), 0);
}

static void teardown(void)
{
	table_clear(&table);
	graph_clear(&graph);
}

EACH_TEST(.begin = setup, .end = teardown);

static void listing(const char *const *line)
{
	struct vector_state v = {.sew_bits = 0};
	for (n_instructions = 0; line[n_instructions]; n_instructions++) {
		struct instruction *i = &instruction[n_instructions];
		*i = (struct instruction){.address = 4 * n_instructions, .length = 4};
		instruction_read(&table, ISA_RISCV64, line[n_instructions], &v, i);
	}
	graph_clear(&graph);
	ck_assert_int_eq(graph_make(&graph, instruction, n_instructions), 0);
}

static uint32_t loop_of(uint32_t line)
{
	return graph.block[graph_block_of(&graph, line)].loop;
}

static const char *const dot_product[] = {
	"blez\ta2, 36",
	"fld\tft0, 0(a0)",
	"fld\tft1, 0(a1)",
	"fmadd.d\tfa0, ft0, ft1, fa0",
	"addi\ta2, a2, -1",
	"addi\ta1, a1, 8",
	"addi\ta0, a0, 8",
	"bnez\ta2, -24",
	"nop",
	"ret",
	NULL,
};

TEST(a_loop_is_found_by_its_edge_back)
{
	listing(dot_product);
	ck_assert_uint_eq(graph.n_loops, 1);
	ck_assert_uint_eq(loop_of(0), GRAPH_NONE);
	ck_assert_uint_eq(loop_of(1), 0);
	ck_assert_uint_eq(loop_of(7), 0);
	ck_assert_uint_eq(loop_of(8), GRAPH_NONE);
}

TEST(loops_nest)
{
	static const char *const nest[] = {
		"li\ta3, 0", /* outer head: 1 */
		"li\ta4, 0", /* inner head: 2 */
		"addi\ta4, a4, 1",
		"bne\ta4, a1, -4",
		"addi\ta3, a3, 1",
		"bne\ta3, a2, -16",
		"ret",
		NULL,
	};
	listing(nest);
	ck_assert_uint_eq(graph.n_loops, 2);
	ck_assert_uint_eq(graph.loop[loop_of(1)].depth, 1);
	ck_assert_uint_eq(graph.loop[loop_of(2)].depth, 2);
	ck_assert_uint_eq(graph.loop[loop_of(2)].parent, loop_of(4));
}

/* gcc fills the place behind a jump up with nops, which lead into the loop. */
TEST(padding_before_a_block_does_not_hide_a_loop)
{
	static const char *const rotated[] = {
		"j\t16", /* to 4 */
		"nop",
		"addi\ta5, a5, 3", /* 2 */
		"beq\ta4, a1, 20", /* to 8 */
		"lw\ta2, 0(a0)",   /* 4: head */
		"bnez\ta2, -12",   /* to 2 */
		"addi\ta4, a4, 1",
		"bne\ta4, a1, -12", /* to 4 */
		"ret",
		NULL,
	};
	listing(rotated);
	ck_assert_uint_eq(graph.n_loops, 1);
	for (uint32_t line = 2; line <= 7; line++)
		ck_assert_uint_eq(loop_of(line), 0);
}

TEST(a_loop_that_is_entered_in_two_places_is_none)
{
	static const char *const irreducible[] = {
		"bnez\ta0, 12", /* to 3 */
		"addi\ta1, a1, 1",
		"nop",
		"addi\ta1, a1, 2",
		"bnez\ta1, -12", /* to 1 */
		"ret",
		NULL,
	};
	listing(irreducible);
	ck_assert_uint_eq(graph.n_loops, 0);
}

static struct code_loop one_loop(const struct code_sample *sample, uint32_t n)
{
	struct code_loop loop[LINES_MAX];
	uint32_t n_loops;
	const struct estimate_question q = {
		instruction, n_instructions, &graph, sample, n, vectors, NULL};
	ck_assert_int_eq(estimate_loops(&q, loop, &n_loops), 0);
	ck_assert_uint_eq(n_loops, 1);
	return loop[0];
}

TEST(a_loop_without_branches_has_exact_operations_per_byte)
{
	const struct code_sample sample = {
		.offset = 12, .samples = 3, .ns = 3e6, .instructions = -1};
	listing(dot_product);
	struct code_loop l = one_loop(&sample, 1);
	ck_assert_double_eq(l.intensity[CODE_OPS_DP].value, 2 / 16.0);
	ck_assert_double_eq(l.intensity[CODE_OPS_FP].low, 2 / 16.0);
	ck_assert_double_eq(l.intensity[CODE_OPS_FP].high, 2 / 16.0);
	ck_assert_double_eq(l.intensity[CODE_OPS_INT].value, 3 / 16.0);
	ck_assert_double_eq_tol(l.operations[CODE_OPS_FP].value, 2 / 7.0, 1e-9);
	ck_assert_uint_eq(l.start, 4);
	ck_assert_uint_eq(l.last, 28);
	ck_assert_uint_eq(l.samples, 3);
	ck_assert(l.instructions < 0);
}

/* 4 bytes are loaded in each round, and 8 are stored in those that are sampled at the store. */
static const char *const diamond[] = {
	"lw\ta2, 0(a0)", /* head */
	"bnez\ta2, 12",  /* to 4 */
	"sd\ta2, 8(a3)",
	"sd\ta2, 16(a3)",
	"fadd.d\tfa0, fa0, fa1", /* 4 */
	"bne\ta4, a1, -20",
	"ret",
	NULL,
};

TEST(a_branch_makes_an_interval)
{
	const struct code_sample sample[] = {
		{.offset = 0, .samples = 200, .ns = 2e8, .instructions = -1},
		{.offset = 8, .samples = 50, .ns = 5e7, .instructions = -1},
		{.offset = 16, .samples = 200, .ns = 2e8, .instructions = -1},
	};
	listing(diamond);
	struct code_loop l = one_loop(sample, 3);
	const struct code_estimate *e = &l.intensity[CODE_OPS_FP];
	/* a quarter of the rounds, by samples: 25 per instruction, of 100; 4 + 16 / 4 bytes */
	ck_assert_double_eq_tol(e->value, 1 / 8.0, 0.01);
	ck_assert(e->low < e->value && e->high > e->value);
	ck_assert(e->low > 1 / 20.0 && e->high < 1 / 4.0);
}

/* The head is slow, and the branch still goes one way in half of the rounds. */
TEST(a_slow_block_does_not_run_more_often)
{
	static const char *const slow[] = {
		"fld\tft0, 0(a0)", /* head */
		"beqz\ta2, 12",    /* to 4 */
		"sd\ta2, 8(a3)",
		"j\t8",           /* to 5 */
		"sd\ta2, 16(a3)", /* 4 */
		"fadd.d\tfa0, fa0, fa1",
		"bne\ta4, a1, -24",
		"ret",
		NULL,
	};
	const struct code_sample sample[] = {
		{.offset = 0, .samples = 2000, .ns = 2e9, .instructions = -1},
		{.offset = 8, .samples = 100, .ns = 1e8, .instructions = -1},
		{.offset = 16, .samples = 50, .ns = 5e7, .instructions = -1},
		{.offset = 20, .samples = 200, .ns = 2e8, .instructions = -1},
	};
	listing(slow);
	struct code_loop l = one_loop(sample, 4);
	ck_assert_double_eq_tol(l.intensity[CODE_OPS_FP].value, 1 / 16.0, 1e-9);
	ck_assert(l.intensity[CODE_OPS_FP].high < 1 / 15.9);
	/* bytes stored per instruction: 8 in each round of 6 or 7 instructions */
	ck_assert(l.bytes_stored.low > 8 / 7.0 && l.bytes_stored.high < 8 / 5.0);
}

/* What of it is sampled in the loop inside does not say how often that is entered. */
TEST(a_loop_inside_is_not_counted_in_the_one_around_it)
{
	static const char *const nest[] = {
		"fld\tft0, 0(a0)", /* outer head */
		"li\ta4, 0",
		"fadd.d\tfa0, fa0, fa1", /* inner head: 2 */
		"addi\ta4, a4, 1",
		"bne\ta4, a1, -8",
		"fmul.d\tfa0, fa0, fa1",
		"bne\ta3, a2, -24",
		"ret",
		NULL,
	};
	const struct code_sample sample[] = {
		{.offset = 0, .samples = 10, .ns = 1e7, .instructions = -1},
	};
	listing(nest);
	struct code_loop l = one_loop(sample, 1);
	ck_assert_uint_eq(l.depth, 1);
	ck_assert_double_eq(l.intensity[CODE_OPS_FP].value, 1 / 8.0);
	ck_assert_double_eq(l.intensity[CODE_OPS_FP].high, 1 / 8.0);
}

/* Cases of a switch in a loop, which a computed jump leads to: those that are sampled are run. */
static const char *const cases[] = {
	"lw\ta2, 0(a0)", /* head */
	"jr\ta2",
	"fld\tft0, 0(a1)", /* 2: a case */
	"j\t20",           /* to 8 */
	"fld\tft0, 0(a1)", /* 4: another */
	"fadd.d\tfa0, fa0, ft0",
	"j\t8", /* to 8 */
	"nop",
	"addi\ta0, a0, 4", /* 8 */
	"bne\ta0, a3, -36",
	"ret",
	NULL,
};

TEST(cases_of_a_switch_are_in_the_loop_with_the_jump_that_leads_to_them)
{
	listing(cases);
	ck_assert_uint_eq(graph.n_loops, 1);
	for (uint32_t line = 0; line <= 9; line++)
		if (line != 7)
			ck_assert_uint_eq(loop_of(line), 0);
	ck_assert_uint_eq(loop_of(7), GRAPH_NONE);
}

TEST(cases_share_the_rounds)
{
	const struct code_sample sample[] = {
		{.offset = 0, .samples = 1000, .ns = 1e9, .instructions = -1},
		{.offset = 8, .samples = 750, .ns = 7.5e8, .instructions = -1},
		{.offset = 16, .samples = 375, .ns = 3.75e8, .instructions = -1},
		{.offset = 32, .samples = 1000, .ns = 1e9, .instructions = -1},
	};
	listing(cases);
	struct code_loop l = one_loop(sample, 4);
	/* 375 an instruction in one, 125 in the other, 500 elsewhere: a quarter adds, of 12 bytes in each round */
	ck_assert_double_eq_tol(l.intensity[CODE_OPS_FP].value, 0.25 / 12, 0.002);
	ck_assert_double_eq_tol(l.bytes_loaded.value, 12 / (6 + 0.25), 0.01);
}

/* Operations of an interpreter each jump to the next one: all of them are one loop. */
TEST(an_interpreter_is_one_loop)
{
	static const char *const interpreter[] = {
		"lw\ta2, 0(a0)",
		"jr\ta2",
		"addi\ta4, a4, 1", /* 2 */
		"lw\ta2, 4(a0)",
		"jr\ta2",
		"fadd.d\tfa0, fa0, fa1", /* 5 */
		"lw\ta2, 4(a0)",
		"jr\ta2",
		"fmul.d\tfa0, fa0, fa1", /* 8 */
		"lw\ta2, 4(a0)",
		"jr\ta2",
		NULL,
	};
	listing(interpreter);
	ck_assert_uint_eq(graph.n_loops, 1);
	ck_assert_uint_eq(loop_of(1), GRAPH_NONE);
	for (uint32_t line = 2; line <= 10; line++)
		ck_assert_uint_eq(loop_of(line), 0);
}

/* A loop of which every second round ends in its middle. */
TEST(what_stands_behind_an_exit_runs_less_often)
{
	static const char *const search[] = {
		"lw\ta2, 0(a0)",
		"fld\tft0, 0(a1)", /* head: 1 */
		"bnez\ta2, 16",    /* out, to 6 */
		"fadd.d\tfa0, fa0, ft0",
		"addi\ta1, a1, 8",
		"bne\ta1, a3, -16", /* to 1 */
		"ret",
		NULL,
	};
	const struct code_sample seldom[] = {
		{.offset = 4, .samples = 1000, .ns = 1e9, .instructions = -1},
	};
	const struct code_sample often[] = {
		{.offset = 0, .samples = 100, .ns = 1e8, .instructions = -1},
		{.offset = 4, .samples = 1000, .ns = 1e9, .instructions = -1},
	};
	struct code_loop loop[LINES_MAX];
	uint32_t n_loops;
	listing(search);
	struct code_loop l = one_loop(seldom, 1);
	ck_assert_double_eq_tol(l.intensity[CODE_OPS_FP].value, 1 / 8.0, 0.001);
	const struct estimate_question q = {
		instruction, n_instructions, &graph, often, 2, vectors, NULL};
	ck_assert_int_eq(estimate_loops(&q, loop, &n_loops), 0);
	ck_assert_uint_eq(n_loops, 2);
	/* entered once in two rounds: one exit of two has half of that */
	ck_assert_double_eq_tol(loop[0].intensity[CODE_OPS_FP].value, 0.75 / 8, 1e-4);
	ck_assert(loop[0].intensity[CODE_OPS_FP].low < 0.75 / 8);
}

/* Masked instructions may do nothing, and vectors of an unknown length do more. */
TEST(masks_and_lengths_of_vectors_are_bounds)
{
	static const char *const masked[] = {
		"vsetvli\ta4, a0, e64, m1, ta, ma",
		"vle64.v\tv8, (a1)",
		"fld\tft0, 0(a2)",
		"vfadd.vv\tv8, v8, v9, v0.t",
		"vse64.v\tv8, (a1)",
		"sub\ta0, a0, a4",
		"bnez\ta0, -24",
		"ret",
		NULL,
	};
	const struct code_sample sample = {
		.offset = 12, .samples = 3, .ns = 3e6, .instructions = -1};
	listing(masked);
	vectors = (struct vectors){1, 4};
	struct code_loop l = one_loop(&sample, 1);
	vectors = (struct vectors){2, 2};
	struct code_loop known = one_loop(&sample, 1);
	vectors = (struct vectors){1, 1};
	ck_assert_uint_eq(l.flags & (CODE_MASKED | CODE_SCALABLE), CODE_MASKED | CODE_SCALABLE);
	ck_assert_double_eq(l.intensity[CODE_OPS_FP].value, 2 / 40.0);
	ck_assert_double_eq(l.intensity[CODE_OPS_FP].low, 0);
	ck_assert_double_eq(l.intensity[CODE_OPS_FP].high, 8 / 136.0);
	ck_assert_double_eq(l.bytes_stored.low, 16 / 7.0);
	ck_assert_double_eq(l.bytes_stored.high, 64 / 7.0);
	ck_assert_double_eq(known.intensity[CODE_OPS_FP].value, 4 / 72.0);
	ck_assert_double_eq(known.bytes_stored.low, known.bytes_stored.high);
}

TEST(samples_outside_the_code_are_in_no_loop)
{
	const struct code_sample sample = {.offset = 4000, .samples = 3};
	struct code_loop loop[1];
	uint32_t n_loops;
	listing(dot_product);
	const struct estimate_question q = {
		instruction, n_instructions, &graph, &sample, 1, vectors, NULL};
	ck_assert_int_eq(estimate_loops(&q, loop, &n_loops), 0);
	ck_assert_uint_eq(n_loops, 0);
}

TEST(a_reply_that_cannot_be_is_refused)
{
	struct {
		struct code_reply reply;
		struct code_loop loop;
	} m = {.reply = {CODE_MAGIC, CODE_VERSION, CODE_READ, 1, 5, 0}, .loop = {.samples = 5}};
	ck_assert(code_reply_check(&m, sizeof(m), 1));
	ck_assert(!code_reply_check(&m, sizeof(m) - 1, 1));
	ck_assert(!code_reply_check(&m, sizeof(m), 0));
	m.loop.samples = 6;
	ck_assert(!code_reply_check(&m, sizeof(m), 1));
	m.loop.samples = 5;
	m.loop.ns = NAN;
	ck_assert(!code_reply_check(&m, sizeof(m), 1));
	m.loop.ns = 1;
	m.loop.intensity[0].low = 1;
	ck_assert(!code_reply_check(&m, sizeof(m), 1));
}
