/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Top-down trees of described cores from made counts: each node by hand, what is missing, what is left,
 * the worst path, errors.
 */
#include <math.h>
#include <string.h>

#include "tests/unit/test.h"
#include "tests/unit/topdown_case.h"

#define N(table) (sizeof(table) / sizeof((table)[0]))

/* 1,000,000 cycles of six slots. */
static const struct topdown_count kunminghu[] = {
	{"cycles", 1e6},
	{"instructions", 2.4e6},
	{"Front_Bubble", 1.2e6},
	{"Fetch_Latency_Bound", 150e3},
	{"INST_SPEC_AND_RECOVERY", 3e6},
	{"BR_MIS_PRED", 9000},
	{"TOTAL_FLUSH", 12000},
	{"EXEC_STALL_CYCLE", 500e3},
	{"MEMSTALL_ANY_LOAD", 250e3},
	{"MEMSTALL_STORE", 50e3},
	{"MEMSTALL_L1MISS", 130e3},
	{"MEMSTALL_L2MISS", 60e3},
	{"MEMSTALL_L3MISS", 20e3},
};

/* As kunminghu, without those of this name. */
static size_t without(const char *name, struct topdown_count *ret_counts)
{
	size_t n = 0;
	for (size_t i = 0; i < N(kunminghu); i++)
		if (strcmp(kunminghu[i].event, name) != 0)
			ret_counts[n++] = kunminghu[i];
	return n;
}

struct expected {
	const char *name, *parent;
	double value;
	int level;
	bool is_worst;
};

static void must_be(const struct topdown_case *c, const struct expected *e, size_t n)
{
	ck_assert_uint_eq(c->tree.n_nodes, n);
	for (size_t i = 0; i < n; i++) {
		const struct topdown_node *node = &c->tree.node[i];
		ck_assert_msg(strcmp(node->name, e[i].name) == 0 &&
				      strcmp(node->parent, e[i].parent) == 0,
			"%zu: %s of '%s'", i, node->name, node->parent);
		ck_assert_msg(
			fabs(node->value - e[i].value) < 1e-6, "%s: %.9g", e[i].name, node->value);
		ck_assert_msg(node->level == e[i].level && node->is_worst == e[i].is_worst, "%s",
			e[i].name);
		ck_assert_str_eq(node->unit, "%");
	}
}

TEST(three_levels_of_kunminghu_by_hand)
{
	static const struct expected tree[] = {
		{"retiring", "", 40, 1, false},                          /* 2.4 / 6 */
		{"frontend_bound", "", 20, 1, false},                    /* 1.2 / 6 */
		{"fetch_latency", "frontend_bound", 15, 2, false},       /* 0.15 / 1 */
		{"fetch_bandwidth", "frontend_bound", 5, 2, false},      /* 20 - 15 */
		{"bad_speculation", "", 10, 1, false},                   /* (3 - 2.4) / 6 */
		{"branch_mispredict", "bad_speculation", 7.5, 2, false}, /* 10 * 9 / 12 */
		{"machine_clears", "bad_speculation", 2.5, 2, false},
		{"backend_bound", "", 30, 1, true},             /* the rest */
		{"core_bound", "backend_bound", 20, 2, false},  /* 500 - 250 - 50 */
		{"memory_bound", "backend_bound", 30, 2, true}, /* 250 + 50 */
		{"l1_bound", "memory_bound", 12, 3, true},      /* 250 - 130 */
		{"l2_bound", "memory_bound", 7, 3, false},      /* 130 - 60 */
		{"l3_bound", "memory_bound", 4, 3, false},      /* 60 - 20 */
		{"mem_bound", "memory_bound", 2, 3, false},     /* 20 */
		{"store_bound", "memory_bound", 5, 3, false},   /* 50 */
		{"residual", "backend_bound", -20, 2, false},   /* 30 - 20 - 30 */
	};
	struct topdown_case c;
	topdown_case_plan(&c, TOPDOWN_KUNMINGHU, NULL, 0);
	topdown_case_count(&c, kunminghu, N(kunminghu), false);
	must_be(&c, tree, N(tree));
	const struct topdown_node *rest = topdown_case_node(&c, "residual", "backend_bound");
	ck_assert_str_eq(rest->formula, "backend_bound - core_bound - memory_bound");
	ck_assert_int_eq(rest->kind, TOPDOWN_RESIDUAL);
	ck_assert_int_eq(topdown_case_node(&c, "retiring", "")->kind, TOPDOWN_USEFUL);
	ck_assert_str_eq(topdown_next(&c.tree), "Cache"); /* of memory_bound: l1_bound has none */
	ck_assert_int_eq(c.tree.passes, 1);
	for (size_t i = 0; i < c.tree.n_nodes; i++)
		ck_assert_double_eq(c.tree.node[i].error, 0); /* nothing was scaled */
	topdown_case_end(&c);
}

/* 1,000,000 cycles of six slots; slots and the shares of them that the core keeps. */
TEST(two_levels_of_an_intel_p_core_by_hand)
{
	static const struct topdown_count count[] = {
		{"slots", 6e6},
		{"topdown-retiring", 2.4e6},
		{"topdown-bad-spec", 0.6e6},
		{"topdown-fe-bound", 1.2e6},
		{"topdown-be-bound", 1.8e6},
		{"topdown-heavy-ops", 0.3e6},
		{"topdown-br-mispredict", 0.48e6},
		{"topdown-fetch-lat", 0.9e6},
		{"topdown-mem-bound", 1.5e6},
		{"int_misc.uop_dropping", 0.06e6},
	};
	static const struct expected tree[] = {
		{"tma_retiring", "", 40, 1, false}, /* 2.4 / 6 */
		{"tma_heavy_operations", "tma_retiring", 5, 2, false},
		{"tma_light_operations", "tma_retiring", 35, 2, false},
		{"tma_frontend_bound", "", 19, 1, false}, /* (1.2 - 0.06) / 6 */
		{"tma_fetch_latency", "tma_frontend_bound", 14, 2, false},
		{"tma_fetch_bandwidth", "tma_frontend_bound", 5, 2, false},
		{"tma_backend_bound", "", 30, 1, true}, /* 1.8 / 6 */
		{"tma_memory_bound", "tma_backend_bound", 25, 2, true},
		{"tma_core_bound", "tma_backend_bound", 5, 2, false},
		{"tma_bad_speculation", "", 11, 1, false}, /* the rest */
		{"tma_branch_mispredicts", "tma_bad_speculation", 8, 2, false},
		{"tma_machine_clears", "tma_bad_speculation", 3, 2, false},
	};
	struct topdown_case c;
	topdown_case_plan(&c, TOPDOWN_INTEL_P("151"), NULL, 0);
	topdown_case_count(&c, count, N(count), false);
	must_be(&c, tree, N(tree));
	ck_assert_int_eq(c.tree.passes, 1);
	ck_assert_ptr_nonnull(strstr(topdown_case_node(&c, "tma_retiring", "")->source,
		"adl-metrics.json, unit cpu_core"));
	topdown_case_end(&c);
}

/* 1,000,000 cycles of five slots, of which an event of its own leaves some lost ones out. */
TEST(level_one_of_gracemont_by_hand)
{
	static const struct topdown_count count[] = {
		{"cpu_clk_unhalted.core", 1e6},
		{"topdown_retiring.all", 2e6},
		{"topdown_fe_bound.all", 1.25e6},
		{"topdown_be_bound.all", 1.5e6},
	};
	static const struct expected tree[] = {
		{"tma_retiring", "", 40, 1, false},       /* 2 / 5 */
		{"tma_frontend_bound", "", 25, 1, false}, /* 1.25 / 5 */
		{"tma_bad_speculation", "", 5, 1, false}, /* (5 - 2 - 1.25 - 1.5) / 5 */
		{"tma_backend_bound", "", 30, 1, true},   /* 1.5 / 5 */
	};
	struct topdown_case c;
	topdown_case_plan(&c, TOPDOWN_INTEL_E("154"), NULL, 0);
	topdown_case_count(&c, count, N(count), false);
	must_be(&c, tree, N(tree));
	ck_assert_int_eq(c.tree.passes, 1);
	topdown_case_end(&c);
}

/* 1,000,000 cycles of six slots, of which the events name all but 1 %. */
TEST(level_one_of_crestmont_by_hand)
{
	static const struct topdown_count count[] = {
		{"cpu_clk_unhalted.core", 1e6},
		{"topdown_retiring.all", 2.4e6},
		{"topdown_bad_speculation.all", 0.54e6},
		{"topdown_fe_bound.all", 1.2e6},
		{"topdown_be_bound.all", 1.8e6},
	};
	static const struct expected tree[] = {
		{"tma_retiring", "", 40, 1, false},
		{"tma_frontend_bound", "", 20, 1, false},
		{"tma_bad_speculation", "", 9, 1, false},
		{"tma_backend_bound", "", 30, 1, true},
		{"residual", "", 1, 1, false},
	};
	struct topdown_case c;
	topdown_case_plan(&c, TOPDOWN_INTEL_E("170"), NULL, 0);
	topdown_case_count(&c, count, N(count), false);
	must_be(&c, tree, N(tree));
	topdown_case_end(&c);
}

/* Without slots, a share is of nothing: no node has a value, and each says why. */
TEST(a_p_core_without_slots_has_no_shares)
{
	static const struct topdown_count count[] = {{"topdown-retiring", 2.4e6},
		{"topdown-bad-spec", 0.6e6}, {"topdown-fe-bound", 1.2e6},
		{"topdown-be-bound", 1.8e6}, {"int_misc.uop_dropping", 0.06e6}};
	struct topdown_case c;
	topdown_case_plan(&c, TOPDOWN_INTEL_P("151"), NULL, 1);
	topdown_case_count(&c, count, N(count), false);
	for (size_t i = 0; i < c.tree.n_nodes; i++)
		ck_assert_msg(isnan(c.tree.node[i].value), "%s", c.tree.node[i].name);
	ck_assert_str_eq(topdown_case_node(&c, "tma_retiring", "")->missing, "slots");
	topdown_case_end(&c);
}

TEST(a_node_says_what_it_is_made_of)
{
	struct topdown_case c;
	topdown_case_plan(&c, TOPDOWN_KUNMINGHU, NULL, 1);
	topdown_case_count(&c, kunminghu, N(kunminghu), false);
	ck_assert_uint_eq(c.tree.n_nodes, 4);
	const struct topdown_node *n = topdown_case_node(&c, "backend_bound", "");
	ck_assert_str_eq(n->formula, "1 - (frontend_bound + bad_speculation + retiring)");
	ck_assert_str_eq(n->inputs, "Front_Bubble, cycles, INST_SPEC_AND_RECOVERY, instructions");
	ck_assert_str_eq(n->passes, "1");
	ck_assert_str_eq(n->verified, "no");
	ck_assert_ptr_nonnull(strstr(n->source, "XiangShan user guide"));
	ck_assert(n->has_more);
	ck_assert_int_eq(c.tree.deepest, 3);
	topdown_case_end(&c);
}

TEST(what_lacks_an_event_has_no_value_and_names_it)
{
	static const char *const affected[][2] = {{"frontend_bound", ""}, {"backend_bound", ""},
		{"fetch_bandwidth", "frontend_bound"}};
	struct topdown_count counts[N(kunminghu)];
	struct topdown_case c;
	topdown_case_plan(&c, TOPDOWN_KUNMINGHU, NULL, 0);
	topdown_case_count(&c, counts, without("Front_Bubble", counts), false);
	for (size_t i = 0; i < N(affected); i++) {
		const struct topdown_node *n =
			topdown_case_node(&c, affected[i][0], affected[i][1]);
		ck_assert_ptr_nonnull(n);
		ck_assert(isnan(n->value) && !n->is_worst);
		ck_assert_str_eq(n->missing, "Front_Bubble");
		ck_assert_msg(strncmp(n->reason, "Front_Bubble was not counted: ", 30) == 0, "%s",
			n->reason);
	}
	ck_assert_double_eq_tol(topdown_case_node(&c, "retiring", "")->value, 40, 1e-6);
	ck_assert_double_eq_tol(topdown_case_node(&c, "l1_bound", "memory_bound")->value, 12, 1e-6);
	/* No residual where the sum is not known. */
	ck_assert_ptr_null(topdown_case_node(&c, "residual", "backend_bound"));
	ck_assert_ptr_null(topdown_case_node(&c, "residual", ""));
	ck_assert_str_eq(topdown_worst(&c.tree)->name, "branch_mispredict");
	topdown_case_end(&c);
}

TEST(an_event_that_never_got_a_counter_is_missing_too)
{
	struct topdown_count counts[N(kunminghu)];
	struct topdown_case c;
	memcpy(counts, kunminghu, sizeof(counts));
	counts[6].value = -1; /* TOTAL_FLUSH */
	topdown_case_plan(&c, TOPDOWN_KUNMINGHU, NULL, 0);
	topdown_case_count(&c, counts, N(counts), false);
	const struct topdown_node *n =
		topdown_case_node(&c, "branch_mispredict", "bad_speculation");
	ck_assert(isnan(n->value));
	ck_assert_str_eq(n->reason,
		"TOTAL_FLUSH was not counted: it opened but never got a counter: "
		"always-on sampling or another program has them");
	topdown_case_end(&c);
}

TEST(a_division_by_zero_is_no_value)
{
	struct topdown_count counts[N(kunminghu)];
	struct topdown_case c;
	memcpy(counts, kunminghu, sizeof(counts));
	counts[6].value = 0; /* TOTAL_FLUSH */
	topdown_case_plan(&c, TOPDOWN_KUNMINGHU, NULL, 0);
	topdown_case_count(&c, counts, N(counts), false);
	const struct topdown_node *n =
		topdown_case_node(&c, "branch_mispredict", "bad_speculation");
	ck_assert(isnan(n->value));
	ck_assert_str_eq(n->missing, "");
	ck_assert_str_eq(n->reason, "nothing to divide by: a count in it is 0");
	topdown_case_end(&c);
}

/* --- Arm -------------------------------------------------------------------------------------- */

/* M = 0.04; four in five operations retire. */
static const struct topdown_count neoverse[] = {
	{"CPU_CYCLES", 1e6},
	{"STALL_SLOT", 3e6},
	{"STALL_SLOT_FRONTEND", 1.2e6},
	{"STALL_SLOT_BACKEND", 1.8e6},
	{"OP_RETIRED", 4e6},
	{"OP_SPEC", 5e6},
	{"BR_MIS_PRED", 40e3},
	{"STALL_FRONTEND", 300e3},
	{"STALL_BACKEND", 450e3},
};

TEST(stage_one_of_neoverse_v2_and_as_the_learning_path_has_it)
{
	static const struct expected arm[] = {
		{"frontend_bound", "", 11, 1, false},   /* 1.2/8 - M */
		{"backend_bound", "", 10.5, 1, false},  /* 1.8/8 - 3M */
		{"bad_speculation", "", 28.5, 1, true}, /* 0.2 · 5/8 + 4M */
		{"retiring", "", 50, 1, false},         /* 0.8 · 5/8 */
	};
	static const struct expected path[] = {
		{"backend_bound_004", "", 22.5, 1, true},
		{"frontend_bound_004", "", 14, 1, false},    /* 15 - M/4 */
		{"bad_speculation_004", "", 13.5, 1, false}, /* 12.5 + M/4 */
		{"retiring_004", "", 50, 1, false},
	};
	struct topdown_case c;
	topdown_case_plan(&c, TOPDOWN_ARM("0x410fd4f1"), NULL, 0);
	topdown_case_count(&c, neoverse, N(neoverse), false);
	must_be(&c, arm, N(arm));
	ck_assert_str_eq(topdown_next(&c.tree), "Branch_Effectiveness");
	topdown_case_end(&c);
	topdown_case_plan(&c, TOPDOWN_ARM("0x410fd4f1"), "topdown-004", 0);
	topdown_case_count(&c, neoverse, N(neoverse), false);
	must_be(&c, path, N(path));
	ck_assert_str_eq(topdown_next(&c.tree), "DTLB_Effectiveness;L1D_Cache_Effectiveness;"
						"L2_Cache_Effectiveness;LL_Cache_Effectiveness");
	topdown_case_end(&c);
}

/* No slots: shares of cycles, and those in which neither stalled are what is left. */
TEST(neoverse_n1_has_shares_of_cycles)
{
	static const struct expected tree[] = {
		{"frontend_stalled_cycles", "", 30, 1, false},
		{"backend_stalled_cycles", "", 45, 1, true},
		{"residual", "", 25, 1, false},
	};
	struct topdown_case c;
	topdown_case_plan(&c, TOPDOWN_ARM("0x413fd0c1"), NULL, 0);
	topdown_case_count(&c, neoverse, N(neoverse), false);
	must_be(&c, tree, N(tree));
	topdown_case_end(&c);
}

/* --- errors ----------------------------------------------------------------------------------- */

/* Six counters and eight metrics of stage two: passes take turns. */
TEST(what_was_scaled_has_an_error_and_says_its_pass)
{
	static const struct topdown_count counts[] = {{"INST_RETIRED", 1e6}, {"BR_RETIRED", 2e5},
		{"BR_MIS_PRED_RETIRED", 1e4}, {"ITLB_WALK", 1000}, {"DTLB_WALK", 2000},
		{"L1I_TLB_REFILL", 3000}, {"L1D_TLB_REFILL", 4000}, {"L2D_TLB_REFILL", 5000},
		{"L1I_CACHE_REFILL", 6000}, {"L1D_CACHE_REFILL", 7000}, {"L2D_CACHE_REFILL", 8000},
		{"LL_CACHE_MISS_RD", 9000}};
	struct topdown_case c;
	topdown_case_plan(&c, TOPDOWN_ARM("0x410fd401"), "MPKI", 0);
	topdown_case_count(&c, counts, N(counts), true);
	ck_assert_int_ge(c.tree.passes, 2);
	const struct topdown_node *n = topdown_case_node(&c, "branch_mpki", "");
	ck_assert_double_eq_tol(n->value, 10, 0.01);
	ck_assert_str_eq(n->unit, "MPKI");
	ck_assert_double_eq_tol(n->running, 1.0 / c.tree.passes, 1e-6);
	ck_assert(isfinite(n->error) && n->error > 0);
	ck_assert_int_eq((int)strlen(n->passes), 1);
	topdown_case_end(&c);
}

/* --- what cannot be --------------------------------------------------------------------------- */

TEST(a_tree_that_is_not_there_is_refused_by_name)
{
	static const struct {
		const char *top;
		int levels, outcome;
		const char *says;
	} rows[] = {
		{NULL, 4, METRIC_NO_LEVEL,
			"the top-down tree of XiangShan Kunminghu has 3 levels, not 4"},
		{"fetch_latency", 2, METRIC_NO_LEVEL,
			"the top-down tree of XiangShan Kunminghu has 1 level, not 2"},
		{"TopdownL9", 0, METRIC_UNKNOWN,
			"XiangShan Kunminghu knows no metric or group named 'TopdownL9'"},
		{"", 0, METRIC_UNKNOWN, "XiangShan Kunminghu knows no metric or group named ''"},
	};
	struct topdown_case c;
	for (size_t i = 0; i < N(rows); i++) {
		topdown_case_plan(&c, TOPDOWN_KUNMINGHU, rows[i].top, rows[i].levels);
		ck_assert_int_eq(c.outcome, rows[i].outcome);
		ck_assert_str_eq(c.error.text, rows[i].says);
		ck_assert_int_eq(c.events.n_events, 0);
		topdown_case_end(&c);
	}
	topdown_case_plan(&c, "riscv64", "",
		"\"mvendorid\":\"0x1\",\"marchid\":\"0x2\",\"mimpid\":\"0x3\"", NULL, 0);
	ck_assert_int_eq(c.outcome, METRIC_NO_TREE);
	ck_assert_ptr_nonnull(strstr(c.error.text, "no top-down tree is known for this core ("));
	topdown_case_end(&c);
}
