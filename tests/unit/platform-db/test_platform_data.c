/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The data that we ship: that it is all there and well-formed, and the facts that plans stand on.
 */
#include <linux/perf_event.h>
#include <strings.h>

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

static const struct platform *get(const char *name)
{
	const struct platform *p = platform_db_find(db, name);
	ck_assert_msg(p != NULL, "no %s", name);
	return p;
}

static size_t n_of_topic(const struct platform *p, const char *topic)
{
	size_t n = 0;
	for (size_t i = 0; i < p->n_events; i++)
		n += strcmp(p->event[i].topic, topic) == 0;
	return n;
}

static uint64_t code(const struct platform *p, const char *name)
{
	const struct platform_event *e = platform_event_find(p, name);
	ck_assert_msg(e != NULL, "%s has no %s", p->name, name);
	return e->code;
}

static uint64_t generic_code(const struct platform *p, uint32_t type, uint64_t config)
{
	const struct platform_event *e = platform_event_generic(p, type, config);
	return e ? e->code : UINT64_MAX;
}

#define CACHE(cache, op, result)                                                                   \
	(PERF_COUNT_HW_CACHE_##cache | PERF_COUNT_HW_CACHE_OP_##op << 8 |                          \
		PERF_COUNT_HW_CACHE_RESULT_##result << 16)

TEST(every_core_that_we_promise_is_there)
{
	static const char *const cores[] = {"spacemit-x60", "spacemit-x100", "spacemit-a100",
		"sifive-u74", "sifive-p550", "sifive-bullet", "sifive-bullet-07",
		"sifive-bullet-0d", "thead-c906", "thead-c910", "thead-c920", "thead-c9xx",
		"andes-ax45mp", "starfive-dubhe", "cva6", "xiangshan-kunminghu", "qemu-virt",
		"riscv-generic", "arm-neoverse-n1", "arm-neoverse-v1", "arm-neoverse-n2",
		"arm-neoverse-n2-early", "arm-neoverse-v2", "arm-neoverse-n3", "arm-neoverse-v3",
		"arm-cortex-a53", "arm-cortex-a55", "arm-cortex-a72", "arm-cortex-a76",
		"arm-cortex-a78", "arm64-generic", "x86-intel", "x86-amd", "x86-generic",
		"intel-haswell", "intel-skylake", "intel-icelake", "intel-sapphirerapids",
		"intel-goldencove", "intel-gracemont", "intel-redwoodcove", "intel-crestmont",
		"intel-lioncove", "intel-skymont", "x86-intel-p", "x86-intel-e", "x86-intel-lpe",
		"amd-zen4", "amd-zen5"};
	for (size_t i = 0; i < N(cores); i++)
		get(cores[i]);
	ck_assert_ptr_null(platform_db_at(db, N(cores)));
}

static void must_have_origin(const struct platform_origin *o)
{
	ck_assert(o->source && *o->source && o->verified && *o->verified);
	ck_assert(o->file && *o->file && o->line > 0);
}

TEST(every_statement_says_where_it_is_from_and_whether_it_was_seen)
{
	const struct platform *p;
	for (size_t i = 0; (p = platform_db_at(db, i)); i++) {
		must_have_origin(&p->origin);
		for (size_t j = 0; j < p->n_events; j++)
			must_have_origin(&p->event[j].origin);
		for (size_t j = 0; j < p->n_notes; j++)
			must_have_origin(&p->note[j].origin);
		for (size_t j = 0; j < p->n_caches; j++)
			must_have_origin(&p->cache[j].origin);
		for (size_t j = 0; j < p->n_peaks; j++)
			must_have_origin(&p->peak[j].origin);
		for (size_t j = 0; j < p->n_unfiltered; j++)
			must_have_origin(&p->unfiltered[j].origin);
		for (size_t j = 0; j < p->n_counter_rules; j++)
			must_have_origin(&p->counter_rule[j].origin);
	}
}

static double peak(const struct platform *p, const char *unit, const char *precision)
{
	for (size_t i = 0; i < p->n_peaks; i++)
		if (strcmp(p->peak[i].unit, unit) == 0 &&
			strcmp(p->peak[i].precision, precision) == 0)
			return p->peak[i].ops_per_cycle;
	return 0;
}

TEST(peaks_double_where_the_precision_halves)
{
	static const char *const vectors[] = {"spacemit-x60", "arm-neoverse-n1", "arm-neoverse-n2",
		"arm-neoverse-n2-early", "arm-neoverse-v1", "arm-cortex-a76"};
	for (size_t i = 0; i < N(vectors); i++) {
		const struct platform *p = get(vectors[i]);
		const double fp64 = peak(p, "vector", "fp64");
		ck_assert_double_ge(fp64, 8);
		ck_assert_double_eq(peak(p, "vector", "fp32"), 2 * fp64);
		ck_assert_double_eq(peak(p, "vector", "fp16"), 4 * fp64);
	}
	ck_assert_double_eq(peak(get("spacemit-x60"), "vector", "int8"), 64);
	ck_assert_double_eq(peak(get("arm-neoverse-v1"), "vector", "fp64"), 16);
	ck_assert_double_eq(peak(get("sifive-p550"), "scalar", "fp64"), 4);
	ck_assert_uint_eq(get("sifive-p550")->issue_width, 3);
}

TEST(vectors_and_caches_of_x60_are_those_of_its_chip)
{
	const struct platform *p = get("spacemit-x60");
	ck_assert_uint_eq(p->vector_bits, 256);
	ck_assert_uint_eq(p->n_caches, 3);
	ck_assert(p->cache[2].level == 2 && p->cache[2].bytes == 512u << 10);
	ck_assert_uint_eq(p->cache[2].shared_by, 4);
}

TEST(events_are_found_by_any_of_their_names)
{
	const struct platform *p;
	for (size_t i = 0; (p = platform_db_at(db, i)); i++)
		for (size_t j = 0; j < p->n_events; j++) {
			const struct platform_event *e = &p->event[j];
			ck_assert_ptr_eq(platform_event_find(p, e->name), e);
			for (size_t k = 0; k < e->n_aliases; k++)
				ck_assert_ptr_eq(platform_event_find(p, e->aliases[k]), e);
		}
	const struct platform *x60 = get("spacemit-x60");
	ck_assert_ptr_eq(
		platform_event_find(x60, "U_Mode_Cycle"), platform_event_find(x60, "u_mode_cycle"));
	ck_assert_ptr_null(platform_event_find(x60, "u_mode"));
	ck_assert_ptr_null(platform_event_find(x60, ""));
}

TEST(events_come_by_topic)
{
	const struct platform *p;
	for (size_t i = 0; (p = platform_db_at(db, i)); i++)
		for (size_t j = 1; j < p->n_events; j++)
			ck_assert_int_le(strcmp(p->event[j - 1].topic, p->event[j].topic), 0);
}

TEST(x60_has_its_whole_list)
{
	const struct platform *p = get("spacemit-x60");
	ck_assert_uint_eq(p->n_events - n_of_topic(p, "firmware"), 164);
	ck_assert_uint_eq(code(p, "m_mode_cycle"), 0x20);
	ck_assert_uint_eq(code(p, "s_mode_cycle"), 0x21);
	ck_assert_uint_eq(code(p, "u_mode_cycle"), 0x22);
	for (size_t i = 0; i < p->n_events; i++)
		if (strcmp(p->event[i].topic, "firmware") != 0)
			ck_assert(p->event[i].code >= 1 && p->event[i].code <= 0xbd);
}

TEST(x60_leads_by_what_is_profiled)
{
	const struct platform *p = get("spacemit-x60");
	const unsigned user = PLATFORM_MODE_USER, kernel = PLATFORM_MODE_KERNEL;
	ck_assert_uint_eq(platform_leader(p, user)->code, 0x22);
	ck_assert_uint_eq(platform_leader(p, user | kernel)->code, 0x22);
	ck_assert_uint_eq(platform_leader(p, kernel)->code, 0x21);
	ck_assert_uint_eq(platform_leader(p, PLATFORM_MODE_MACHINE)->code, 0x20);
	ck_assert_ptr_null(platform_leader(p, 0));
	ck_assert_int_eq(p->overflow, PLATFORM_OVERFLOW_PROGRAMMABLE);
	ck_assert(p->fixed_unfiltered);
}

TEST(l2_events_of_x60_ignore_exclude_kernel)
{
	const struct platform *p = get("spacemit-x60");
	for (uint64_t c = 1; c <= 0xbd; c++)
		ck_assert_int_eq(platform_unfiltered(p, c) != NULL, c >= 184 && c <= 189);
	ck_assert(platform_event_find(p, "l2_miss")->ignores_exclude_kernel);
	ck_assert(!platform_event_find(p, "l1d_miss")->ignores_exclude_kernel);
	ck_assert_ptr_nonnull(strstr(platform_unfiltered(p, 184)->says, "L2 events"));
}

TEST(generic_events_of_x60_are_those_of_its_device_tree)
{
	static const struct {
		uint32_t type;
		uint64_t config, code;
	} map[] = {
		{PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS, 1},
		{PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES, 2},
		{PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_FRONTEND, 3},
		{PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_BACKEND, 4},
		{PERF_TYPE_HW_CACHE, CACHE(L1D, READ, ACCESS), 6},
		{PERF_TYPE_HW_CACHE, CACHE(L1D, READ, MISS), 5},
		{PERF_TYPE_HW_CACHE, CACHE(L1D, WRITE, ACCESS), 0xa},
		{PERF_TYPE_HW_CACHE, CACHE(L1D, WRITE, MISS), 9},
		{PERF_TYPE_HW_CACHE, CACHE(L1I, READ, ACCESS), 0xc},
		{PERF_TYPE_HW_CACHE, CACHE(L1I, READ, MISS), 0xb},
		{PERF_TYPE_HW_CACHE, CACHE(L1I, PREFETCH, ACCESS), 0xe},
		{PERF_TYPE_HW_CACHE, CACHE(L1I, PREFETCH, MISS), 0xd},
		{PERF_TYPE_HW_CACHE, CACHE(DTLB, READ, MISS), 0x15},
		{PERF_TYPE_HW_CACHE, CACHE(DTLB, WRITE, MISS), 0x19},
		{PERF_TYPE_HW_CACHE, CACHE(ITLB, READ, MISS), 0x1b},
	};
	const struct platform *p = get("spacemit-x60");
	ck_assert_uint_eq(p->n_generics, N(map));
	for (size_t i = 0; i < N(map); i++)
		ck_assert_uint_eq(generic_code(p, map[i].type, map[i].config), map[i].code);
	ck_assert_uint_eq(
		generic_code(p, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES), UINT64_MAX);
	ck_assert_uint_eq(generic_code(p, PERF_TYPE_RAW, 1), UINT64_MAX);
}

TEST(each_t_head_core_has_its_own_counters)
{
	const struct platform *c906 = get("thead-c906"), *c910 = get("thead-c910");
	ck_assert_uint_eq(platform_counters(c906, 1), 1u << 3);
	ck_assert_uint_eq(platform_counters(c906, 0xc), 1u << 14);
	ck_assert_uint_eq(platform_counters(c906, 0x2a), 0);
	ck_assert_uint_eq(platform_counters(c910, 0x2a), 0x7fff8);
	ck_assert_uint_eq(platform_counters(get("thead-c920"), 0x2a), 0xfffffff8);
	ck_assert_uint_eq(platform_counters(get("thead-c9xx"), 0x2a), 0);
	ck_assert_uint_eq(c910->n_events - n_of_topic(c910, "firmware"), 42);
}

TEST(firmware_counts_its_own_events)
{
	const struct platform *p = get("spacemit-x60");
	const struct platform_event *e = platform_event_find(p, "fw_set_timer");
	ck_assert_ptr_nonnull(e);
	ck_assert_uint_eq(e->code, 0x8000000000000005);
	ck_assert_uint_eq(e->counters, 0);
	ck_assert_uint_eq(n_of_topic(p, "firmware"), 22);
}

TEST(u74_counts_and_cannot_sample)
{
	const struct platform *p = get("sifive-u74");
	ck_assert_int_eq(p->overflow, PLATFORM_OVERFLOW_NONE);
	ck_assert_uint_eq(p->counters, 0x18);
	ck_assert_ptr_null(platform_leader(p, PLATFORM_MODES_ALL));
	/* Linux has 35, and three are sums of their bits. */
	ck_assert_uint_eq(p->n_events - n_of_topic(p, "firmware"), 35 + 3);
	ck_assert_uint_eq(generic_code(p, PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES), 0x6001);
	ck_assert_uint_eq(code(p, "BRANCH_MISPREDICTION"),
		code(p, "BRANCH_DIRECTION_MISPREDICTION") | code(p, "BRANCH_TARGET_MISPREDICTION"));
	ck_assert_uint_eq(code(p, "FP_ONE_OPERATION_RETIRED"),
		code(p, "FP_ADDITION_RETIRED") | code(p, "FP_MULTIPLICATION_RETIRED") |
			code(p, "FP_DIV_SQRT_RETIRED"));
}

TEST(k3_has_two_kinds_of_hart_with_codes_of_their_own)
{
	const struct platform *x = get("spacemit-x100"), *a = get("spacemit-a100");
	ck_assert_uint_eq(code(x, "stall_frontend"), 4);
	ck_assert_uint_eq(code(a, "stall_frontend"), 3);
	ck_assert_uint_eq(code(x, "issued_inst"), code(a, "load_inst"));
	ck_assert_uint_eq(platform_counters(x, 0x1e), 3u << 17);
	ck_assert_uint_eq(platform_counters(x, 0x22), 0x1fff8);
}

TEST(a_kunminghu_index_means_another_event_in_each_bank)
{
	const struct platform *p = get("xiangshan-kunminghu");
	const struct platform_event *spec = platform_event_find(p, "INST_SPEC");
	const struct platform_event *hit = platform_event_find(p, "ifu_req_cacheline_1_hit");
	ck_assert(spec && hit);
	ck_assert_uint_eq(spec->code, hit->code);
	ck_assert_uint_eq(spec->counters, 0x7f800);
	ck_assert_uint_eq(hit->counters, 0x7f8);
	ck_assert_uint_eq(code(p, "Front_Bubble"), 21);
	ck_assert_uint_eq(code(p, "MEMSTALL_L3MISS"), 71);
	ck_assert_uint_eq(code(p, "MEMSTALL_ANY_LOAD"), 44);
	ck_assert_uint_eq(platform_event_find(p, "Slice3_l2_cache_inv")->counters, 0xf8000000);
	ck_assert_uint_eq(p->issue_width, 6);
}

TEST(cva6_has_the_counters_of_its_paper)
{
	static const struct {
		const char *name;
		int counter;
	} table[] = {{"ariane_l1_icache_miss", 3}, {"ariane_l1_dcache_miss", 4},
		{"ariane_itlb_miss", 5}, {"ariane_dtlb_miss", 6}, {"ariane_load", 7},
		{"ariane_store", 8}, {"ariane_exception", 9}, {"ariane_exception_ret", 10},
		{"ariane_branch_jump", 11}, {"ariane_call", 12}, {"ariane_ret", 13},
		{"ariane_mis_predict", 14}, {"ariane_sb_full", 15}, {"ariane_if_empty", 16}};
	const struct platform *p = get("cva6");
	for (size_t i = 0; i < N(table); i++) {
		const struct platform_event *e = platform_event_find(p, table[i].name);
		ck_assert_msg(e != NULL, "%s", table[i].name);
		ck_assert_uint_eq(e->counters, UINT64_C(1) << table[i].counter);
	}
}

TEST(arm_cores_have_their_slots_and_codes)
{
	static const struct {
		const char *name;
		unsigned slots;
	} cores[] = {{"arm-neoverse-n1", 5}, {"arm-neoverse-v1", 8}, {"arm-neoverse-n2", 5},
		{"arm-neoverse-n2-early", 5}, {"arm-neoverse-v2", 8}, {"arm-neoverse-n3", 5},
		{"arm-neoverse-v3", 10}};
	for (size_t i = 0; i < N(cores); i++) {
		const struct platform *p = get(cores[i].name);
		ck_assert_uint_eq(p->slots, cores[i].slots);
		ck_assert_uint_eq(code(p, "CPU_CYCLES"), 0x11);
		ck_assert_uint_eq(code(p, "BR_MIS_PRED"), 0x10);
		ck_assert_uint_eq(
			generic_code(p, PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS), 8);
	}
	ck_assert_ptr_null(platform_event_find(get("arm-neoverse-n1"), "STALL_SLOT"));
	ck_assert_uint_eq(code(get("arm-neoverse-v1"), "STALL_SLOT"), 0x3f);
}
