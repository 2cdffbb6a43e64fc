/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Values of the metrics that we ship, from counts that were published or made.
 */
#include <math.h>
#include <string.h>
#include <strings.h>

#include "platform-db/expression.h"
#include "tests/unit/platform-db/platform_made.h"
#include "tests/unit/test.h"

#define N(table) (sizeof(table) / sizeof((table)[0]))

struct count {
	const char *name;
	double value;
};

struct counts {
	const struct count *count;
	size_t n;
};

static struct platform_db *db;

static void setup(void)
{
	db = made_load_data();
}

static void teardown(void)
{
	db = platform_db_free(db);
}

EACH_TEST(.begin = setup, .end = teardown);

static int count_of(void *userdata, enum expression_kind kind, const char *name, double *ret_value)
{
	const struct counts *c = userdata;
	for (size_t i = 0; kind == EXPRESSION_NAME && i < c->n; i++)
		if (strcmp(c->count[i].name, name) == 0) {
			*ret_value = c->count[i].value;
			return 0;
		}
	return EXPRESSION_MISSING;
}

static int evaluate(const char *platform, const char *metric, const struct counts *c,
	double *ret_value, const char **ret_missing)
{
	const struct platform *p = platform_db_find(db, platform);
	ck_assert_msg(p != NULL, "no %s", platform);
	const struct platform_metric *m = platform_metric_find(p, metric);
	ck_assert_msg(m != NULL, "%s has no %s", platform, metric);
	const struct expression_source source = {count_of, (void *)c};
	return platform_metric_value(p, m, &source, ret_value, ret_missing);
}

static double value(const char *platform, const char *metric, const struct counts *c)
{
	const char *missing = "";
	double v = NAN;
	int result = evaluate(platform, metric, c, &v, &missing);
	ck_assert_msg(result == 0, "%s of %s: %d, %s", metric, platform, result, missing);
	return v;
}

struct expected {
	const char *metric;
	double value;
	int n_digits; /* behind the point */
};

static void must_be(
	const char *platform, const struct counts *c, const struct expected *e, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		double v = value(platform, e[i].metric, c), unit = pow(10, -e[i].n_digits);
		ck_assert_msg(fabs(v - e[i].value) <= unit / 2 + 1e-9, "%s of %s: %.9g, not %.9g",
			e[i].metric, platform, v, e[i].value);
	}
}

/* CoreMark on CVA6. Source: "Supporting RISC-V Performance Counters through Perf", CARRV 2021,
 * section 4 (counts) and table 3 (values). */
TEST(a_published_run_of_cva6_has_its_published_values)
{
	static const struct count count[] = {
		{"BRANCH_INSTRUCTIONS_RETIRED", 236011286},
		{"CALL_INSTRUCTIONS_RETIRED", 5312578},
		{"BRANCH_MISPREDICTS", 44038701},
		{"RETURN_INSTRUCTIONS_RETIRED", 1406812},
		{"DTLB_MISSES", 1118},
		{"ITLB_MISSES", 6869722},
		{"L1_D_CACHE_MISSES", 2786559},
		{"L1_I_CACHE_MISSES", 8443755},
		{"LOAD_INSTRUCTIONS_RETIRED", 229104327},
		{"STORE_INSTRUCTIONS_RETIRED", 64628214},
		{"INSTRUCTION_FETCH_EMPTY", 239773306},
		{"MSB_FULL", 9094173},
		{"cycles", 2368685119},
		{"instructions", 1467339227},
	};
	static const struct expected expected[] = {
		{"paper_branch_miss_rate", 18.14, 2},
		{"l1d_miss_rate", 0.95, 2},
		{"l1i_miss_rate", 0.58, 2},
		{"scoreboard_full", 0.38, 2},
		{"fetch_empty", 10.12, 2},
		{"ipc", 0.6195, 4},
		{"dtlb_miss_rate", 0.00, 2},
		{"itlb_miss_rate", 0.47, 2},
	};
	must_be("cva6", &(const struct counts){count, N(count)}, expected, N(expected));
}

/* Made: 1,000 cycles of six slots. Each value by hand. */
TEST(the_tree_of_kunminghu)
{
	static const struct count count[] = {
		{"cycles", 1000},
		{"instructions", 2400},
		{"Front_Bubble", 1200},
		{"Fetch_Latency_Bound", 150},
		{"INST_SPEC_AND_RECOVERY", 3000}, /* 2,900 and 100 */
		{"BR_MIS_PRED", 9},
		{"TOTAL_FLUSH", 12},
		{"EXEC_STALL_CYCLE", 500},
		{"MEMSTALL_ANY_LOAD", 250},
		{"MEMSTALL_STORE", 50},
		{"MEMSTALL_L1MISS", 130},
		{"MEMSTALL_L2MISS", 60},
		{"MEMSTALL_L3MISS", 20},
	};
	static const struct expected expected[] = {
		{"retiring", 40, 6},           /* 2400 / 6000 */
		{"frontend_bound", 20, 6},     /* 1200 / 6000 */
		{"bad_speculation", 10, 6},    /* (3000 - 2400) / 6000 */
		{"backend_bound", 30, 6},      /* the rest */
		{"fetch_latency", 15, 6},      /* 150 / 1000 */
		{"fetch_bandwidth", 5, 6},     /* 20 - 15 */
		{"branch_mispredict", 7.5, 6}, /* 10 * 9 / 12 */
		{"machine_clears", 2.5, 6},
		{"core_bound", 20, 6},   /* (500 - 250 - 50) / 1000 */
		{"memory_bound", 30, 6}, /* (250 + 50) / 1000 */
		{"l1_bound", 12, 6},
		{"l2_bound", 7, 6},
		{"l3_bound", 4, 6},
		{"mem_bound", 2, 6},
		{"store_bound", 5, 6},
	};
	must_be("xiangshan-kunminghu", &(const struct counts){count, N(count)}, expected,
		N(expected));
}

/* Made: 1,000 cycles, 40 mispredictions (M = 0.04), four in five operations retire. */
static const struct count neoverse[] = {
	{"CPU_CYCLES", 1000},
	{"STALL_SLOT", 3000},
	{"STALL_SLOT_FRONTEND", 1200},
	{"STALL_SLOT_BACKEND", 1800},
	{"OP_RETIRED", 4000},
	{"OP_SPEC", 5000},
	{"BR_MIS_PRED", 40},
	{"STALL_FRONTEND_FLUSH", 60},
	{"STALL_FRONTEND", 300},
	{"STALL_BACKEND", 450},
	{"INST_RETIRED", 3000},
	{"INST_SPEC", 4000},
	{"BR_RETIRED", 500},
	{"BR_MIS_PRED_RETIRED", 30},
	{"LL_CACHE_RD", 80},
	{"LL_CACHE_MISS_RD", 20},
	{"LD_SPEC", 1000},
};
static const struct counts neoverse_counts = {neoverse, N(neoverse)};

TEST(stage_one_of_each_neoverse)
{
	static const struct {
		const char *platform;
		struct expected expected[4];
	} cores[] = {
		/* 8 slots: 1200/8000 - 4M, 1800/8000, 0.2 · 5000/8000 + 4M, 0.8 · 5000/8000 */
		{"arm-neoverse-v1",
			{{"frontend_bound", 15 - 16, 6}, {"backend_bound", 22.5, 6},
				{"bad_speculation", 12.5 + 16, 6}, {"retiring", 50, 6}}},
		/* 8 slots: - M, - 3M, + 4M */
		{"arm-neoverse-v2",
			{{"frontend_bound", 15 - 4, 6}, {"backend_bound", 22.5 - 12, 6},
				{"bad_speculation", 12.5 + 16, 6}, {"retiring", 50, 6}}},
		/* 5 slots: 24, 36, 0.2 · 0.4, 0.8 · 0.4 */
		{"arm-neoverse-n2", {{"frontend_bound", 24 - 4, 6}, {"backend_bound", 36 - 12, 6},
					    {"bad_speculation", 8 + 16, 6}, {"retiring", 32, 6}}},
		/* 1,000 slots fewer in STALL_SLOT and STALL_SLOT_FRONTEND */
		{"arm-neoverse-n2-early",
			{{"frontend_bound", 4 - 4, 6}, {"backend_bound", 36 - 12, 6},
				{"bad_speculation", 12 + 16, 6}, {"retiring", 48, 6}}},
		/* 5 and 10 slots, 60 cycles of flushes */
		{"arm-neoverse-n3", {{"frontend_bound", 24 - 6, 6}, {"backend_bound", 36, 6},
					    {"bad_speculation", 8 + 6, 6}, {"retiring", 32, 6}}},
		{"arm-neoverse-v3", {{"frontend_bound", 12 - 6, 6}, {"backend_bound", 18, 6},
					    {"bad_speculation", 14 + 6, 6}, {"retiring", 56, 6}}},
	};
	for (size_t i = 0; i < N(cores); i++) {
		double sum = 0;
		must_be(cores[i].platform, &neoverse_counts, cores[i].expected,
			N(cores[i].expected));
		for (size_t j = 0; j < N(cores[i].expected); j++)
			sum += cores[i].expected[j].value;
		ck_assert_msg(fabs(sum - 100) < 1e-9, "%s: %g", cores[i].platform, sum);
	}
	static const struct expected stalled[] = {
		{"frontend_stalled_cycles", 30, 6}, {"backend_stalled_cycles", 45, 6}};
	must_be("arm-neoverse-n1", &neoverse_counts, stalled, N(stalled));
	ck_assert_ptr_null(
		platform_metric_find(platform_db_find(db, "arm-neoverse-n1"), "frontend_bound"));
}

/* The learning path's formulas; its misprint corrected, the shares add up. M / 4 is 1 %. */
TEST(stage_one_as_the_learning_path_prints_it)
{
	static const struct expected expected[] = {
		{"backend_bound_004", 22.5, 6},
		{"frontend_bound_004", 15 - 1, 6},
		{"bad_speculation_004", 12.5 + 1, 6},
		{"retiring_004", 50, 6},
	};
	must_be("arm-neoverse-v1", &neoverse_counts, expected, N(expected));
	must_be("arm-neoverse-v2", &neoverse_counts, expected, N(expected));
}

TEST(stage_two_on_every_neoverse)
{
	static const char *const cores[] = {"arm-neoverse-n1", "arm-neoverse-n2",
		"arm-neoverse-n2-early", "arm-neoverse-n3", "arm-neoverse-v1", "arm-neoverse-v2",
		"arm-neoverse-v3"};
	static const struct expected expected[] = {
		{"ipc", 3, 6},
		{"branch_misprediction_ratio", 6, 6},
		{"branch_mpki", 10, 6},
		{"ll_cache_read_miss_ratio", 25, 6},
		{"ll_cache_read_hit_ratio", 75, 6},
		{"load_percentage", 25, 6},
	};
	static const char *const groups[] = {"Cycle_Accounting", "Branch_Effectiveness",
		"ITLB_Effectiveness", "DTLB_Effectiveness", "L1I_Cache_Effectiveness",
		"L1D_Cache_Effectiveness", "L2_Cache_Effectiveness", "LL_Cache_Effectiveness",
		"Operation_Mix", "MPKI", "Miss_Ratio"};
	for (size_t i = 0; i < N(cores); i++) {
		const struct platform *p = platform_db_find(db, cores[i]);
		must_be(cores[i], &neoverse_counts, expected, N(expected));
		for (size_t g = 0; g < N(groups); g++) {
			size_t n = 0;
			for (size_t m = 0; m < p->n_metrics; m++)
				for (size_t k = 0; k < p->metric[m].n_groups; k++)
					n += strcmp(p->metric[m].group[k], groups[g]) == 0;
			ck_assert_msg(n >= 2, "%s: %s has %zu", cores[i], groups[g], n);
		}
	}
}

static int count_and_constant(
	void *userdata, enum expression_kind kind, const char *name, double *ret_value)
{
	if (kind == EXPRESSION_CONSTANT && strcasecmp(name, "smt_on") == 0)
		name = "#smt_on";
	return count_of(userdata, EXPRESSION_NAME, name, ret_value);
}

static void must_be_on_x86(
	const char *platform, const struct counts *c, const struct expected *e, size_t n)
{
	const struct platform *p = platform_db_find(db, platform);
	const struct expression_source source = {count_and_constant, (void *)c};
	for (size_t i = 0; i < n; i++) {
		const char *missing = "";
		double v = NAN;
		int r = platform_metric_value(
			p, platform_metric_find(p, e[i].metric), &source, &v, &missing);
		ck_assert_msg(r == 0 && fabs(v - e[i].value) < 1e-9, "%s of %s: %.9g (%s), not %g",
			e[i].metric, platform, v, missing, e[i].value);
	}
}

/* Made: 1,000 cycles of four slots; of the sibling's and this thread's together 1,600. */
TEST(level_one_of_four_wide_intel_cores)
{
	static const struct count alone[] = {
		{"#smt_on", 0},
		{"cpu_clk_unhalted.thread", 1000},
		{"idq_uops_not_delivered.core", 800},
		{"uops_issued.any", 2000},
		{"uops_retired.retire_slots", 1600},
		{"int_misc.recovery_cycles", 50},
	};
	static const struct expected expected[] = {
		{"core_slots", 4000, 0},
		{"tma_retiring", 40, 0},        /* 1600 / 4000 */
		{"tma_frontend_bound", 20, 0},  /* 800 / 4000 */
		{"tma_bad_speculation", 15, 0}, /* (2000 - 1600 + 4 * 50) / 4000 */
		{"tma_backend_bound", 25, 0},
	};
	static const struct count shared[] = {
		{"#smt_on", 1},
		{"cpu_clk_unhalted.thread_any", 1600},
		{"idq_uops_not_delivered.core", 800},
		{"uops_issued.any", 1400},
		{"uops_retired.retire_slots", 1280},
		{"int_misc.recovery_cycles_any", 60},
	};
	static const struct expected halved[] = {
		{"core_slots", 3200, 0},
		{"tma_retiring", 40, 0},
		{"tma_frontend_bound", 25, 0},
		{"tma_bad_speculation", 7.5, 0}, /* (1400 - 1280 + 4 * 60 / 2) / 3200 */
		{"tma_backend_bound", 27.5, 0},
	};
	static const char *const cores[] = {"intel-skylake", "intel-haswell"};
	for (size_t i = 0; i < N(cores); i++) {
		must_be_on_x86(
			cores[i], &(const struct counts){alone, N(alone)}, expected, N(expected));
		must_be_on_x86(
			cores[i], &(const struct counts){shared, N(shared)}, halved, N(halved));
	}
}

/* Made: 5,000 slots, whose shares the core keeps. */
TEST(level_one_of_intel_cores_that_keep_shares)
{
	static const struct count count[] = {
		{"slots", 5000},
		{"topdown-retiring", 2000},
		{"topdown-bad-spec", 500},
		{"topdown-fe-bound", 1000},
		{"topdown-be-bound", 1500},
		{"int_misc.uop_dropping", 100},
		{"int_misc.recovery_begins", 20},
	};
	static const struct expected icelake[] = {
		{"tma_retiring", 40, 0},
		{"tma_frontend_bound", 20 - 2, 0}, /* 100 / 5000 are dropped */
		{"tma_backend_bound", 30 + 2, 0},  /* 5 * 20 / 5000 */
		{"tma_bad_speculation", 10, 0},
	};
	static const struct expected sapphire[] = {
		{"tma_retiring", 40, 0},
		{"tma_frontend_bound", 20 - 2, 0},
		{"tma_backend_bound", 30, 0},
		{"tma_bad_speculation", 12, 0},
	};
	const struct counts c = {count, N(count)};
	must_be_on_x86("intel-icelake", &c, icelake, N(icelake));
	must_be_on_x86("intel-sapphirerapids", &c, sapphire, N(sapphire));
}

/* Made: 6,000 slots, whose shares of two levels the core keeps. */
TEST(two_levels_of_intel_p_cores)
{
	static const struct count count[] = {
		{"slots", 6000},
		{"topdown-retiring", 2400},
		{"topdown-bad-spec", 600},
		{"topdown-fe-bound", 1200},
		{"topdown-be-bound", 1800},
		{"topdown-heavy-ops", 300},
		{"topdown-br-mispredict", 480},
		{"topdown-fetch-lat", 900},
		{"topdown-mem-bound", 1500},
		{"int_misc.uop_dropping", 60},
	};
	static const struct expected expected[] = {
		{"tma_retiring", 40, 0},       /* 2400 / 6000 */
		{"tma_frontend_bound", 19, 0}, /* 1200 / 6000 - 60 / 6000 */
		{"tma_backend_bound", 30, 0},
		{"tma_bad_speculation", 11, 0}, /* the rest */
		{"tma_fetch_latency", 14, 0},   /* 900 / 6000 - 60 / 6000 */
		{"tma_fetch_bandwidth", 5, 0},  /* 19 - 14 */
		{"tma_branch_mispredicts", 8, 0},
		{"tma_machine_clears", 3, 0},
		{"tma_memory_bound", 25, 0},
		{"tma_core_bound", 5, 0},
		{"tma_heavy_operations", 5, 0},
		{"tma_light_operations", 35, 0},
	};
	const struct counts c = {count, N(count)};
	must_be_on_x86("intel-goldencove", &c, expected, N(expected));
	must_be_on_x86("intel-redwoodcove", &c, expected, N(expected));
	/* where nothing is dropped from the front end's share, and bad speculation is a share, too */
	static const struct expected lioncove[] = {
		{"tma_retiring", 40, 0},
		{"tma_frontend_bound", 20, 0},
		{"tma_backend_bound", 30, 0},
		{"tma_bad_speculation", 10, 0},
	};
	must_be_on_x86("intel-lioncove", &c, lioncove, N(lioncove));
}

/* Made: 1,000 cycles, of five slots or six. */
TEST(level_one_of_intel_e_cores)
{
	static const struct count count[] = {
		{"cpu_clk_unhalted.core", 1000},
		{"#slots", 5},
		{"topdown_retiring.all", 2000},
		{"topdown_fe_bound.all", 1250},
		{"topdown_be_bound.all", 1500},
		{"topdown_bad_speculation.all", 200},
	};
	static const struct count wider[] = {
		{"cpu_clk_unhalted.core", 1000},
		{"#slots", 6},
		{"topdown_retiring.all", 2400},
		{"topdown_fe_bound.all", 1200},
		{"topdown_be_bound.all", 1800},
		{"topdown_bad_speculation.all", 540},
	};
	static const struct count widest[] = {
		{"cpu_clk_unhalted.core", 1000},
		{"#slots", 8},
		{"topdown_retiring.all_p", 3200},
		{"topdown_fe_bound.all_p", 1600},
		{"topdown_be_bound.all_p", 2400},
		{"topdown_bad_speculation.all_p", 400},
	};
	static const struct expected skymont[] = {
		{"tma_retiring", 40, 0}, /* 3200 / 8000 */
		{"tma_frontend_bound", 20, 0}, {"tma_backend_bound", 30, 0},
		{"tma_bad_speculation", 5, 0}, /* 400 / 8000: half of what is left */
	};
	static const struct expected gracemont[] = {
		{"tma_retiring", 40, 0},       /* 2000 / 5000 */
		{"tma_frontend_bound", 25, 0}, /* 1250 / 5000 */
		{"tma_backend_bound", 30, 0},  /* 1500 / 5000 */
		{"tma_bad_speculation", 5, 0}, /* 5000 - 2000 - 1250 - 1500, not its event */
	};
	static const struct expected crestmont[] = {
		{"tma_retiring", 40, 0}, /* 2400 / 6000 */
		{"tma_frontend_bound", 20, 0}, {"tma_backend_bound", 30, 0},
		{"tma_bad_speculation", 9, 0}, /* 540 / 6000, its event */
	};
	must_be_on_x86(
		"intel-skymont", &(const struct counts){widest, N(widest)}, skymont, N(skymont));
	must_be_on_x86("intel-gracemont", &(const struct counts){count, N(count)}, gracemont,
		N(gracemont));
	must_be_on_x86("intel-crestmont", &(const struct counts){wider, N(wider)}, crestmont,
		N(crestmont));
}

/* Made: 1,000 cycles of six slots, or eight. */
TEST(pipeline_utilization_of_zen)
{
	static const struct count count[] = {
		{"ls_not_halted_cyc", 1000},
		{"ex_ret_ops", 2400},
		{"ex_ret_ucode_ops", 240},
		{"de_src_op_disp.all", 3000},
		{"de_no_dispatch_per_slot.no_ops_from_frontend", 1200},
		{"de_no_dispatch_per_slot.backend_stalls", 1500},
		{"de_no_dispatch_per_slot.smt_contention", 300},
		{"no_dispatch_cycles.no_ops_from_frontend", 90},
		{"ex_no_retire.not_complete", 400},
		{"ex_no_retire.load_not_complete", 100},
		{"ex_ret_brn_misp", 30},
		{"resyncs_or_nc_redirects", 10},
		{"bp_redirects.resync", 10},
	};
	static const struct expected zen4[] = {
		{"retiring", 40, 0},           /* 2400 / 6000 */
		{"frontend_bound", 20, 0},     /* 1200 / 6000 */
		{"bad_speculation", 10, 0},    /* (3000 - 2400) / 6000 */
		{"backend_bound", 25, 0},      /* 1500 / 6000 */
		{"smt_contention", 5, 0},      /* 300 / 6000 */
		{"frontend_latency", 9, 0},    /* 6 * 90 / 6000 */
		{"frontend_bandwidth", 11, 0}, /* 20 - 9 */
		{"backend_memory", 6.25, 0},   /* 25 * 100 / 400 */
		{"backend_core", 18.75, 0},
		{"retiring_microcode", 4, 0}, /* 40 * 240 / 2400 */
		{"retiring_fastpath", 36, 0},
		{"mispredicts", 7.5, 0}, /* 10 * 30 / 40 */
		{"pipeline_restarts", 2.5, 0},
	};
	static const struct expected zen5[] = {
		{"retiring", 30, 0}, /* 2400 / 8000 */
		{"frontend_bound", 15, 0},
		{"bad_speculation", 7.5, 0},
		{"backend_bound", 18.75, 0},
		{"smt_contention", 3.75, 0},
		{"frontend_latency", 9, 0},
		{"mispredicts", 5.625, 0},
	};
	const struct counts c = {count, N(count)};
	must_be_on_x86("amd-zen4", &c, zen4, N(zen4));
	must_be_on_x86("amd-zen5", &c, zen5, N(zen5));
}

TEST(a_count_that_is_not_there_is_named_and_no_value_given)
{
	static const struct count count[] = {{"cycles", 0}, {"instructions", 5}};
	const struct counts some = {count, N(count)};
	const char *missing = NULL;
	double v = -1;
	ck_assert_int_eq(evaluate("xiangshan-kunminghu", "fetch_bandwidth", &some, &v, &missing),
		EXPRESSION_MISSING);
	ck_assert_str_eq(missing, "Front_Bubble");
	ck_assert_int_eq(
		evaluate("spacemit-x60", "ipc", &some, &v, &missing), EXPRESSION_UNDEFINED);
	ck_assert_str_eq(missing, "ipc");
	ck_assert_int_eq(
		evaluate("spacemit-x60", "branch_mpki", &some, &v, &missing), EXPRESSION_MISSING);
	ck_assert_str_eq(missing, "branch-misses");
	ck_assert_double_eq(v, -1);
}

/* All shipped platforms: each has its generic ratios, or Arm's for Neoverse. */
TEST(every_core_has_instructions_per_cycle)
{
	const struct platform *p;
	for (size_t i = 0; (p = platform_db_at(db, i)); i++)
		ck_assert_msg(platform_metric_find(p, "ipc") != NULL, "%s", p->name);
}
