/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * What a roofline by counters is made of, on each core: operations and bytes from counts, worked out by hand
 * from what the sources say of each event; or which event is missing.
 */
#include <math.h>
#include <string.h>
#include <strings.h>

#include "platform-db/expression.h"
#include "tests/unit/platform-db/platform_made.h"
#include "tests/unit/test.h"

#define N(table) (sizeof(table) / sizeof((table)[0]))

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

struct count {
	const char *name;
	double value;
};

/* Ended by a row without a name. */
static int count_of(void *userdata, enum expression_kind kind, const char *name, double *ret_value)
{
	for (const struct count *c = userdata; kind == EXPRESSION_NAME && c->name; c++)
		if (strcasecmp(c->name, name) == 0) {
			*ret_value = c->value;
			return 0;
		}
	return EXPRESSION_MISSING;
}

static const struct platform *platform(const char *name)
{
	const struct platform *p = platform_db_find(db, name);
	ck_assert_msg(p != NULL, "no %s", name);
	return p;
}

static double value(const char *core, const char *metric, const struct count *counts)
{
	const struct platform *p = platform(core);
	const struct platform_metric *m = platform_metric_find(p, metric);
	const struct expression_source source = {count_of, (void *)counts};
	const char *missing = "";
	double v = NAN;
	ck_assert_msg(m != NULL, "%s has no %s", core, metric);
	int r = platform_metric_value(p, m, &source, &v, &missing);
	ck_assert_msg(r == 0, "%s of %s: %d, %s", metric, core, r, missing);
	return v;
}

static void must_be(const char *core, const char *metric, const struct count *counts, double wanted)
{
	double v = value(core, metric, counts);
	ck_assert_msg(fabs(v - wanted) <= 1e-12 * fabs(wanted), "%s of %s: %.17g, not %.17g",
		metric, core, v, wanted);
}

/* One of each width: 1 + 1, 2 of doubles, 4 of floats, 4 of doubles, 8, 8, 16. */
TEST(widths_of_intel_are_operations)
{
	static const char *const cores[] = {"intel-skylake", "intel-icelake",
		"intel-sapphirerapids", "intel-goldencove", "intel-redwoodcove"};
#define FP(name) "fp_arith_inst_retired." name
	static const struct count counts[] = {{FP("scalar"), 100 + 10}, {FP("scalar_double"), 100},
		{FP("scalar_single"), 10}, {FP("128b_packed_double"), 7},
		{FP("128b_packed_single"), 5}, {FP("256b_packed_double"), 3},
		{FP("4_flops"), 5 + 3}, {FP("256b_packed_single"), 11},
		{FP("512b_packed_double"), 13}, {FP("8_flops"), 11 + 13},
		{FP("512b_packed_single"), 17}, {FP("any_double"), 100 + 7 + 3 + 13},
		{FP("any_single"), 10 + 5 + 11 + 17}, {"longest_lat_cache.miss", 4},
		{"task-clock", 1000}, {NULL, 0}};
	const double dp = 100 + 2 * 7 + 4 * 3 + 8 * 13, sp = 10 + 4 * 5 + 8 * 11 + 16 * 17;
	for (size_t i = 0; i < N(cores); i++) {
		must_be(cores[i], "dp_ops", counts, dp);
		must_be(cores[i], "sp_ops", counts, sp);
		must_be(cores[i], "fp_gflops", counts, (dp + sp) / 1000);
		must_be(cores[i], "dp_gflops", counts, dp / 1000);
		must_be(cores[i], "sp_gflops", counts, sp / 1000);
		must_be(cores[i], "dram_gbytes", counts, 64 * 4 / 1000.0);
		must_be(cores[i], "fp_per_dram_byte", counts, (dp + sp) / (64 * 4));
		must_be(cores[i], "dp_per_dram_byte", counts, dp / (64 * 4));
		must_be(cores[i], "fp_dp_share", counts, 100.0 * 123 / (123 + 43));
	}
}

/* Each umask of the core's codes is a bit of one width and precision. */
TEST(sums_of_intel_are_the_bits_of_their_parts)
{
	const struct platform *p = platform("intel-icelake");
	static const struct {
		const char *sum, *parts[4];
	} sums[] = {
		{FP("scalar"), {FP("scalar_double"), FP("scalar_single")}},
		{FP("4_flops"), {FP("128b_packed_single"), FP("256b_packed_double")}},
		{FP("8_flops"), {FP("256b_packed_single"), FP("512b_packed_double")}},
		{FP("any_double"), {FP("scalar_double"), FP("128b_packed_double"),
					   FP("256b_packed_double"), FP("512b_packed_double")}},
		{FP("any_single"), {FP("scalar_single"), FP("128b_packed_single"),
					   FP("256b_packed_single"), FP("512b_packed_single")}},
	};
	for (size_t i = 0; i < N(sums); i++) {
		uint64_t code = 0;
		for (size_t k = 0; k < N(sums[i].parts) && sums[i].parts[k]; k++)
			code |= platform_event_find(p, sums[i].parts[k])->code;
		ck_assert_uint_eq(platform_event_find(p, sums[i].sum)->code, code);
	}
}

/* E cores: an event for each precision, or none. */
TEST(operations_of_crestmont_are_counted_by_precision)
{
	static const struct count counts[] = {{"fp_flops_retired.all", 800},
		{"fp_flops_retired.fp64", 600}, {"fp_flops_retired.fp32", 200},
		{"longest_lat_cache.miss", 5}, {"task-clock", 400}, {NULL, 0}};
	must_be("intel-crestmont", "fp_gflops", counts, 2);
	must_be("intel-crestmont", "dp_gflops", counts, 1.5);
	must_be("intel-crestmont", "sp_gflops", counts, 0.5);
	must_be("intel-crestmont", "dram_gbytes", counts, 64 * 5 / 400.0);
	must_be("intel-crestmont", "fp_per_dram_byte", counts, 800 / (64.0 * 5));
	must_be("intel-crestmont", "fp_dp_share", counts, 75);
	must_be("intel-gracemont", "dram_gbytes", counts, 64 * 5 / 400.0);
}

TEST(amd_counts_operations_and_lines)
{
	static const struct count counts[] = {{"fp_ret_sse_avx_ops.all", 3000},
		{"ls_any_fills_from_sys.dram_io_all", 5}, {"l2_pf_miss_l2_l3.into_l2", 2},
		{"task-clock", 1500}, {NULL, 0}};
	must_be("amd-zen4", "fp_gflops", counts, 2);
	must_be("amd-zen4", "dram_gbytes", counts, 64 * 7 / 1500.0);
	must_be("amd-zen4", "fp_per_dram_byte", counts, 3000 / (64.0 * 7));
	must_be("amd-zen5", "fp_gflops", counts, 2);
	must_be("amd-zen5", "fp_per_dram_byte", counts, 3000 / (64.0 * 5));
}

/* Operations of SVE are counted for 128 bits: twice as many on a core with 256. */
TEST(vectors_of_arm_have_their_length)
{
	static const struct count counts[] = {{"FP_FIXED_OPS_SPEC", 100},
		{"FP_SCALE_OPS_SPEC", 1000}, {"LL_CACHE_MISS_RD", 10}, {"FP_DP_SPEC", 60},
		{"FP_SP_SPEC", 30}, {"FP_HP_SPEC", 10}, {"task-clock", 2000}, {NULL, 0}};
	static const struct {
		const char *core;
		double operations;
		bool tells_precisions;
	} cores[] = {
		{"arm-neoverse-n2-early", 1100, true},
		{"arm-neoverse-n2", 1100, true},
		{"arm-neoverse-n3", 1100, true},
		{"arm-neoverse-v1", 2100, false},
		{"arm-neoverse-v2", 1100, true},
		{"arm-neoverse-v3", 1100, true},
	};
	for (size_t i = 0; i < N(cores); i++) {
		must_be(cores[i].core, "fp_gflops", counts, cores[i].operations / 2000);
		must_be(cores[i].core, "dram_gbytes", counts, 0.32);
		must_be(cores[i].core, "fp_per_dram_byte", counts, cores[i].operations / 640);
		if (cores[i].tells_precisions)
			must_be(cores[i].core, "fp_dp_share", counts, 60);
	}
}

TEST(cores_of_risc_v_have_half_of_it)
{
	static const struct count u74[] = {{"FP_ONE_OPERATION_RETIRED", 50},
		{"FP_FUSEDMADD_RETIRED", 25}, {"task-clock", 200}, {NULL, 0}};
	static const struct count ax45[] = {{"float_add_sub_inst", 10}, {"float_mul_inst", 20},
		{"float_fused_muladd_inst", 30}, {"float_div_sqrt_inst", 1}, {"task-clock", 91},
		{NULL, 0}};
	static const struct count c910[] = {{"LL_CACHE_READ_MISS", 3}, {"LL_CACHE_WRITE_MISS", 1},
		{"task-clock", 128}, {NULL, 0}};
	must_be("sifive-u74", "fp_gflops", u74, 0.5);
	must_be("andes-ax45mp", "fp_gflops", ax45, 1);
	must_be("thead-c910", "dram_gbytes", c910, 2);
	must_be("thead-c920", "dram_gbytes", c910, 2);
}

/* Cores that we describe have all three figures, or say why not. */
TEST(what_is_missing_has_a_reason)
{
	static const char *const metrics[] = {"fp_gflops", "dram_gbytes", "fp_per_dram_byte"};
	static const struct {
		const char *core, *metric, *says;
	} missing[] = {
		{"sifive-u74", "dram_gbytes", "no event counts lines from memory"},
		{"andes-ax45mp", "dram_gbytes", "no event counts lines from memory"},
		{"spacemit-x60", "fp_gflops", "fp_inst and vector_inst count instructions"},
		{"spacemit-x60", "dram_gbytes", "every hart that shares it"},
		{"spacemit-x100", "fp_gflops", "count instructions of any width"},
		{"spacemit-a100", "fp_gflops", "counts instructions of any width"},
		{"thead-c906", "fp_gflops", "INST_FP and INST_VECTOR count instructions"},
		{"thead-c910", "fp_gflops", "INST_FP and INST_VECTOR count instructions"},
		{"thead-c920", "fp_gflops", "INST_FP and INST_VECTOR count instructions"},
		{"cva6", "fp_gflops", "FLOATING_POINT_INSTRUCTIONS_RETIRED"},
		{"xiangshan-kunminghu", "fp_gflops", "no event counts floating-point operations"},
		{"arm-cortex-a53", "fp_gflops", "no event counts floating-point operations"},
		{"arm-cortex-a55", "fp_gflops", "VFP_SPEC and ASE_SPEC count instructions"},
		{"arm-cortex-a72", "fp_gflops", "VFP_SPEC and ASE_SPEC count instructions"},
		{"arm-cortex-a76", "fp_gflops", "VFP_SPEC and ASE_SPEC count instructions"},
		{"arm-cortex-a78", "fp_gflops", "VFP_SPEC and ASE_SPEC count instructions"},
		{"arm-neoverse-n1", "fp_gflops", "VFP_SPEC and ASE_SPEC count instructions"},
		{"intel-haswell", "fp_gflops", "came with Broadwell"},
		{"intel-gracemont", "fp_gflops", "came with Crestmont"},
		{"intel-lioncove", "fp_gflops", "fused multiply-add"},
		{"intel-skymont", "dram_gbytes", "a miss of the last cache"},
		{"amd-zen4", "dp_gflops", "of one precision"},
		{"arm-neoverse-v2", "sp_gflops", "of one precision"},
	};
	for (size_t i = 0; i < N(missing); i++) {
		const char *says = platform_lacks(platform(missing[i].core), missing[i].metric);
		ck_assert_msg(says && strstr(says, missing[i].says), "%s of %s: %s",
			missing[i].metric, missing[i].core, says ? says : "no reason");
	}
	/* whoever has the quotient has both counts, and whoever has one has its rate */
	for (size_t i = 0; platform_db_at(db, i); i++) {
		const struct platform *p = platform_db_at(db, i);
		bool has[N(metrics)];
		for (size_t k = 0; k < N(metrics); k++)
			has[k] = platform_metric_find(p, metrics[k]) != NULL;
		ck_assert_msg(has[2] == (has[0] && has[1]), "%s", p->name);
		ck_assert_msg(has[0] == !!platform_metric_find(p, "fp_ops"), "%s", p->name);
		ck_assert_msg(has[1] == !!platform_metric_find(p, "dram_bytes"), "%s", p->name);
	}
	ck_assert_ptr_null(platform_lacks(platform("amd-zen4"), "fp_gflops"));
}
