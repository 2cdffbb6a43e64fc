/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Every metric of Neoverse cores against the formula that Arm publishes for that core and revision, on made
 * counts. The formulas below are Arm's own text; they are evaluated by the same parser as ours, which its own
 * tests compare with perf's, and ours are written otherwise: with #slots, without the factor of percent.
 * Source: ARM-software telemetry-solution, topdown_tool, methodology data of Neoverse N1 r4p1, N2 r0p2 and
 * r0p3, N3 r0p0, V1 r1p2, V2 r0p0 and V3 r0p0.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "platform-db/expression.h"
#include "platform-db/pool.h"
#include "tests/unit/platform-db/platform_made.h"
#include "tests/unit/test.h"

#define N(table) (sizeof(table) / sizeof((table)[0]))
#define ALL "n1 n2-early n2 n3 v1 v2 v3"
#define ROUNDS 5

static const struct published {
	const char *metric, *formula;
	bool is_ratio; /* Arm gives it from 0 to 1, and we in percent */
	const char *cores;
} published[] = {
	/* clang-format off */
	{"backend_stalled_cycles", "STALL_BACKEND / CPU_CYCLES * 100", false, ALL},
	{"branch_misprediction_ratio", "BR_MIS_PRED_RETIRED / BR_RETIRED", true, ALL},
	{"branch_mpki", "BR_MIS_PRED_RETIRED / INST_RETIRED * 1000", false, ALL},
	{"branch_percentage", "(BR_IMMED_SPEC + BR_INDIRECT_SPEC) / INST_SPEC * 100", false, "n1 n2-early n2 v1 v2 v3"},
	{"branch_percentage", "PC_WRITE_SPEC / INST_SPEC * 100", false, "n3"},
	{"crypto_percentage", "CRYPTO_SPEC / INST_SPEC * 100", false, ALL},
	{"dtlb_mpki", "DTLB_WALK / INST_RETIRED * 1000", false, ALL},
	{"dtlb_walk_ratio", "DTLB_WALK / L1D_TLB", true, ALL},
	{"frontend_stalled_cycles", "STALL_FRONTEND / CPU_CYCLES * 100", false, ALL},
	{"integer_dp_percentage", "DP_SPEC / INST_SPEC * 100", false, "n1 n2-early n2 v1 v2 v3"},
	{"integer_dp_percentage", "(DP_SPEC - DSB_SPEC) / INST_SPEC * 100", false, "n3"},
	{"ipc", "INST_RETIRED / CPU_CYCLES", false, ALL},
	{"itlb_mpki", "ITLB_WALK / INST_RETIRED * 1000", false, ALL},
	{"itlb_walk_ratio", "ITLB_WALK / L1I_TLB", true, ALL},
	{"l1d_cache_miss_ratio", "L1D_CACHE_REFILL / L1D_CACHE", true, ALL},
	{"l1d_cache_mpki", "L1D_CACHE_REFILL / INST_RETIRED * 1000", false, ALL},
	{"l1d_tlb_miss_ratio", "L1D_TLB_REFILL / L1D_TLB", true, ALL},
	{"l1d_tlb_mpki", "L1D_TLB_REFILL / INST_RETIRED * 1000", false, ALL},
	{"l1i_cache_miss_ratio", "L1I_CACHE_REFILL / L1I_CACHE", true, ALL},
	{"l1i_cache_mpki", "L1I_CACHE_REFILL / INST_RETIRED * 1000", false, ALL},
	{"l1i_tlb_miss_ratio", "L1I_TLB_REFILL / L1I_TLB", true, ALL},
	{"l1i_tlb_mpki", "L1I_TLB_REFILL / INST_RETIRED * 1000", false, ALL},
	{"l2_cache_miss_ratio", "L2D_CACHE_REFILL / L2D_CACHE", true, ALL},
	{"l2_cache_mpki", "L2D_CACHE_REFILL / INST_RETIRED * 1000", false, ALL},
	{"l2_tlb_miss_ratio", "L2D_TLB_REFILL / L2D_TLB", true, ALL},
	{"l2_tlb_mpki", "L2D_TLB_REFILL / INST_RETIRED * 1000", false, ALL},
	{"ll_cache_read_hit_ratio", "(LL_CACHE_RD - LL_CACHE_MISS_RD) / LL_CACHE_RD", true, ALL},
	{"ll_cache_read_miss_ratio", "LL_CACHE_MISS_RD / LL_CACHE_RD", true, ALL},
	{"ll_cache_read_mpki", "LL_CACHE_MISS_RD / INST_RETIRED * 1000", false, ALL},
	{"load_percentage", "LD_SPEC / INST_SPEC * 100", false, ALL},
	{"scalar_fp_percentage", "VFP_SPEC / INST_SPEC * 100", false, ALL},
	{"simd_percentage", "ASE_SPEC / INST_SPEC * 100", false, ALL},
	{"store_percentage", "ST_SPEC / INST_SPEC * 100", false, ALL},
	{"backend_bound", "100 * (STALL_SLOT_BACKEND / (CPU_CYCLES * 5) - BR_MIS_PRED * 3 / CPU_CYCLES)", false, "n2-early n2"},
	{"backend_bound", "STALL_SLOT_BACKEND / (5 * CPU_CYCLES) * 100", false, "n3"},
	{"backend_bound", "STALL_SLOT_BACKEND / (8 * CPU_CYCLES) * 100", false, "v1"},
	{"backend_bound", "100 * (STALL_SLOT_BACKEND / (CPU_CYCLES * 8) - BR_MIS_PRED * 3 / CPU_CYCLES)", false, "v2"},
	{"backend_bound", "STALL_SLOT_BACKEND / (10 * CPU_CYCLES) * 100", false, "v3"},
	{"bad_speculation", "100 * ((1 - OP_RETIRED / OP_SPEC) * (1 - (STALL_SLOT - CPU_CYCLES) / (CPU_CYCLES * 5)) + BR_MIS_PRED * 4 / CPU_CYCLES)", false, "n2-early"},
	{"bad_speculation", "100 * ((1 - OP_RETIRED / OP_SPEC) * (1 - STALL_SLOT / (CPU_CYCLES * 5)) + BR_MIS_PRED * 4 / CPU_CYCLES)", false, "n2"},
	{"bad_speculation", "(1 - STALL_SLOT / (5 * CPU_CYCLES)) * (1 - OP_RETIRED / OP_SPEC) * 100 + STALL_FRONTEND_FLUSH / CPU_CYCLES * 100", false, "n3"},
	{"bad_speculation", "100 * ((1 - OP_RETIRED / OP_SPEC) * (1 - STALL_SLOT / (CPU_CYCLES * 8)) + BR_MIS_PRED * 4 / CPU_CYCLES)", false, "v1 v2"},
	{"bad_speculation", "(1 - STALL_SLOT / (10 * CPU_CYCLES)) * (1 - OP_RETIRED / OP_SPEC) * 100 + STALL_FRONTEND_FLUSH / CPU_CYCLES * 100", false, "v3"},
	{"frontend_bound", "100 * ((STALL_SLOT_FRONTEND - CPU_CYCLES) / (5 * CPU_CYCLES) - BR_MIS_PRED / CPU_CYCLES)", false, "n2-early"},
	{"frontend_bound", "100 * (STALL_SLOT_FRONTEND / (CPU_CYCLES * 5) - BR_MIS_PRED / CPU_CYCLES)", false, "n2"},
	{"frontend_bound", "(STALL_SLOT_FRONTEND / (5 * CPU_CYCLES) - STALL_FRONTEND_FLUSH / CPU_CYCLES) * 100", false, "n3"},
	{"frontend_bound", "100 * (STALL_SLOT_FRONTEND / (CPU_CYCLES * 8) - BR_MIS_PRED * 4 / CPU_CYCLES)", false, "v1"},
	{"frontend_bound", "100 * (STALL_SLOT_FRONTEND / (CPU_CYCLES * 8) - BR_MIS_PRED / CPU_CYCLES)", false, "v2"},
	{"frontend_bound", "(STALL_SLOT_FRONTEND / (10 * CPU_CYCLES) - STALL_FRONTEND_FLUSH / CPU_CYCLES) * 100", false, "v3"},
	{"retiring", "100 * (OP_RETIRED / OP_SPEC * (1 - (STALL_SLOT - CPU_CYCLES) / (CPU_CYCLES * 5)))", false, "n2-early"},
	{"retiring", "(1 - STALL_SLOT / (CPU_CYCLES * 5)) * (OP_RETIRED / OP_SPEC) * 100", false, "n2 n3"},
	{"retiring", "(1 - STALL_SLOT / (CPU_CYCLES * 8)) * (OP_RETIRED / OP_SPEC) * 100", false, "v1"},
	{"retiring", "100 * (OP_RETIRED / OP_SPEC * (1 - STALL_SLOT / (CPU_CYCLES * 8)))", false, "v2"},
	{"retiring", "(1 - STALL_SLOT / (CPU_CYCLES * 10)) * (OP_RETIRED / OP_SPEC) * 100", false, "v3"},
	{"sve_all_percentage", "SVE_INST_SPEC / INST_SPEC * 100", false, "n2-early n2 n3 v1 v2 v3"},
	{"backend_busy_bound", "STALL_BACKEND_BUSY / STALL_BACKEND * 100", false, "n3 v3"},
	{"backend_cache_l1d_bound", "STALL_BACKEND_L1D / (STALL_BACKEND_L1D + STALL_BACKEND_MEM) * 100", false, "n3 v3"},
	{"backend_cache_l2d_bound", "STALL_BACKEND_MEM / (STALL_BACKEND_L1D + STALL_BACKEND_MEM) * 100", false, "n3 v3"},
	{"backend_core_bound", "STALL_BACKEND_CPUBOUND / STALL_BACKEND * 100", false, "n3 v3"},
	{"backend_core_rename_bound", "STALL_BACKEND_RENAME / STALL_BACKEND_CPUBOUND * 100", false, "n3 v3"},
	{"backend_mem_bound", "STALL_BACKEND_MEMBOUND / STALL_BACKEND * 100", false, "n3 v3"},
	{"backend_mem_cache_bound", "(STALL_BACKEND_L1D + STALL_BACKEND_MEM) / STALL_BACKEND_MEMBOUND * 100", false, "n3 v3"},
	{"backend_mem_store_bound", "STALL_BACKEND_ST / STALL_BACKEND_MEMBOUND * 100", false, "n3 v3"},
	{"backend_mem_tlb_bound", "STALL_BACKEND_TLB / STALL_BACKEND_MEMBOUND * 100", false, "n3 v3"},
	{"barrier_percentage", "(ISB_SPEC + DSB_SPEC + DMB_SPEC) / INST_SPEC * 100", false, "n3 v2 v3"},
	{"branch_direct_ratio", "BR_IMMED_RETIRED / BR_RETIRED", true, "n3 v3"},
	{"branch_indirect_ratio", "BR_IND_RETIRED / BR_RETIRED", true, "n3 v3"},
	{"branch_return_ratio", "BR_RETURN_RETIRED / BR_RETIRED", true, "n3 v3"},
	{"fp16_percentage", "FP_HP_SPEC / INST_SPEC * 100", false, "n3 v2 v3"},
	{"fp32_percentage", "FP_SP_SPEC / INST_SPEC * 100", false, "n3 v2 v3"},
	{"fp64_percentage", "FP_DP_SPEC / INST_SPEC * 100", false, "n3 v2 v3"},
	{"fp_ops_per_cycle", "(FP_SCALE_OPS_SPEC + FP_FIXED_OPS_SPEC) / CPU_CYCLES", false, "n3 v2 v3"},
	{"frontend_cache_l1i_bound", "STALL_FRONTEND_L1I / (STALL_FRONTEND_L1I + STALL_FRONTEND_MEM) * 100", false, "n3 v3"},
	{"frontend_cache_l2i_bound", "STALL_FRONTEND_MEM / (STALL_FRONTEND_L1I + STALL_FRONTEND_MEM) * 100", false, "n3 v3"},
	{"frontend_core_bound", "STALL_FRONTEND_CPUBOUND / STALL_FRONTEND * 100", false, "n3 v3"},
	{"frontend_core_flow_bound", "STALL_FRONTEND_FLOW / STALL_FRONTEND_CPUBOUND * 100", false, "n3 v3"},
	{"frontend_core_flush_bound", "STALL_FRONTEND_FLUSH / STALL_FRONTEND_CPUBOUND * 100", false, "n3 v3"},
	{"frontend_mem_bound", "STALL_FRONTEND_MEMBOUND / STALL_FRONTEND * 100", false, "n3 v3"},
	{"frontend_mem_cache_bound", "(STALL_FRONTEND_L1I + STALL_FRONTEND_MEM) / STALL_FRONTEND_MEMBOUND * 100", false, "n3 v3"},
	{"frontend_mem_tlb_bound", "STALL_FRONTEND_TLB / STALL_FRONTEND_MEMBOUND * 100", false, "n3 v3"},
	{"nonsve_fp_ops_per_cycle", "FP_FIXED_OPS_SPEC / CPU_CYCLES", false, "n3 v2 v3"},
	{"sve_fp_ops_per_cycle", "FP_SCALE_OPS_SPEC / CPU_CYCLES", false, "n3 v2 v3"},
	{"sve_predicate_empty_percentage", "SVE_PRED_EMPTY_SPEC / SVE_PRED_SPEC * 100", false, "n3 v2 v3"},
	{"sve_predicate_full_percentage", "SVE_PRED_FULL_SPEC / SVE_PRED_SPEC * 100", false, "n3 v2 v3"},
	{"sve_predicate_partial_percentage", "SVE_PRED_PARTIAL_SPEC / SVE_PRED_SPEC * 100", false, "n3 v2 v3"},
	{"sve_predicate_percentage", "SVE_PRED_SPEC / INST_SPEC * 100", false, "n3 v2 v3"},
	/* clang-format on */
};

static struct platform_db *db;
static struct pool *pool;

static void setup(void)
{
	db = made_load_data();
	pool = pool_new();
}

static void teardown(void)
{
	db = platform_db_free(db);
	pool = pool_free(pool);
}

EACH_TEST(.begin = setup, .end = teardown);

/* A count between 1,000 and 1,000,999, made of the event's name and the round. */
static int count_of(void *userdata, enum expression_kind kind, const char *name, double *ret_value)
{
	const unsigned *round = userdata;
	unsigned hash = 2166136261u + *round;
	if (kind != EXPRESSION_NAME)
		return EXPRESSION_MISSING;
	for (const char *at = name; *at; at++)
		hash = (hash ^ (unsigned char)*at) * 16777619u;
	*ret_value = 1000 + hash % 1000000;
	return 0;
}

static double published_value(const struct published *m, const struct expression_source *counts)
{
	const struct expression *e = NULL, *at;
	struct expression_error error;
	double value = NAN;
	ck_assert_msg(expression_parse(pool, m->formula, &e, &error) == 0, "%s: %s", m->formula,
		error.text);
	ck_assert_int_eq(expression_value(e, counts, &value, &at), 0);
	return value;
}

static void compare(const struct published *m, const char *core, unsigned round)
{
	char name[64];
	const char *missing = "";
	double ours = NAN;
	snprintf(name, sizeof(name), "arm-neoverse-%s", core);
	const struct platform *p = platform_db_find(db, name);
	ck_assert_msg(p != NULL, "%s", name);
	const struct platform_metric *metric = platform_metric_find(p, m->metric);
	ck_assert_msg(metric != NULL, "%s has no %s", name, m->metric);
	const struct expression_source counts = {count_of, &round};
	ck_assert_int_eq(platform_metric_value(p, metric, &counts, &ours, &missing), 0);
	double theirs = published_value(m, &counts) * (m->is_ratio ? 100 : 1);
	ck_assert_msg(fabs(ours - theirs) <= 1e-9 * fabs(theirs),
		"%s of %s: %.12g, and Arm's is %.12g", m->metric, name, ours, theirs);
}

TEST(each_metric_of_each_core_is_as_arm_publishes_it)
{
	size_t n = 0;
	for (size_t i = 0; i < N(published); i++) {
		char cores[sizeof(ALL)], *rest = cores, *core;
		snprintf(cores, sizeof(cores), "%s", published[i].cores);
		while ((core = strsep(&rest, " "))) {
			for (unsigned round = 0; round < ROUNDS; round++)
				compare(&published[i], core, round);
			n++;
		}
	}
	ck_assert_uint_eq(n, 320);
}

static bool is_published(const char *metric, const char *core)
{
	for (size_t i = 0; i < N(published); i++) {
		char cores[sizeof(ALL)], *rest = cores, *one;
		snprintf(cores, sizeof(cores), "%s", published[i].cores);
		while (strcmp(published[i].metric, metric) == 0 && (one = strsep(&rest, " ")))
			if (strcmp(one, core) == 0)
				return true;
	}
	return false;
}

static bool is_of_roofline(const struct platform_metric *m)
{
	for (size_t i = 0; i < m->n_groups; i++)
		if (strncmp(m->group[i], "Roofline", strlen("Roofline")) == 0)
			return true;
	return false;
}

/* What Arm does not have is what the learning path prints, and what a roofline is made of, each in groups of
 * its own. */
TEST(no_metric_of_a_neoverse_is_from_elsewhere)
{
	char cores[] = ALL, *rest = cores, *core;
	while ((core = strsep(&rest, " "))) {
		char name[64];
		snprintf(name, sizeof(name), "arm-neoverse-%s", core);
		const struct platform *p = platform_db_find(db, name);
		for (size_t i = 0; i < p->n_metrics; i++)
			ck_assert_msg(is_published(p->metric[i].name, core) ||
					      platform_metric_is_in(&p->metric[i], "topdown-004") ||
					      is_of_roofline(&p->metric[i]),
				"%s of %s", p->metric[i].name, name);
	}
}
