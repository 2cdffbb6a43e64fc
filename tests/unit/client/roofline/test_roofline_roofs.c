/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Kept roofs as plots take them: which of them, by which names, and what is said where there are
 * none.
 */
#include <errno.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/roofline/roofline_roofs.h"
#include "client/roofs/keep.h"
#include "tests/unit/test.h"

#define SET(member, text) snprintf(member, sizeof(member), "%s", text)

static char folder[] = "/tmp/test-roofline-roofs-XXXXXX";
static struct machine machine;
static struct roof roof[16];
static struct roofs roofs;
static struct roofline_roofs found;

static void begin(void)
{
	ck_assert_ptr_nonnull(mkdtemp(folder));
	ck_assert_int_eq(setenv("XDG_STATE_HOME", folder, 1), 0);
	ck_assert_int_eq(setenv("MPERF_SOCKET", "", 1), 0); /* no service */
	ck_assert_int_eq(machine_look(&machine), 0);
	roofs = (struct roofs){.kinds = machine.kind, .n_kinds = machine.n_kinds, .roof = roof};
	SET(roofs.machine, machine.id);
	SET(roofs.kernel, machine.kernel);
	SET(roofs.architecture, "any");
}

static int remove_one(const char *path, const struct stat *s, int kind, struct FTW *at)
{
	(void)s;
	(void)kind;
	(void)at;
	return remove(path);
}

static void end(void)
{
	roofline_roofs_clear(&found);
	machine_clear(&machine);
	nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

EACH_TEST(.begin = begin, .end = end);

static struct roof *add(const char *first, const char *second, const char *unit, double giga)
{
	bool is_memory = *first == 'L' || *first == 'D';
	struct roof *r = &roof[roofs.n++];
	*r = (struct roof){.limit = is_memory ? ROOF_MEMORY : ROOF_COMPUTE,
		.scope = ROOF_HART,
		.n_harts = 1,
		.value = giga * 1e9,
		.low = giga * 0.9e9,
		.high = giga * 1.1e9,
		.repeats = 9};
	SET(r->kind, machine.kind[0].id);
	SET(r->unit, unit);
	if (is_memory) {
		SET(r->level, first);
		SET(r->pattern, second);
	} else {
		SET(r->precision, first);
		SET(r->operation, second);
	}
	return r;
}

static void keep_and_find(void)
{
	ck_assert_int_eq(keep_own(&roofs), 0);
	ck_assert_int_eq(roofline_roofs_find(ROOFLINE_NO_PEAKS, &found), 0);
}

static const struct plot_roof *named(const char *name)
{
	for (size_t i = 0; i < found.n; i++)
		if (strcmp(found.roof[i].name, name) == 0)
			return &found.roof[i];
	return NULL;
}

TEST(without_roofs_it_is_said_how_to_measure_them)
{
	ck_assert_int_eq(roofline_roofs_find(ROOFLINE_NO_PEAKS, &found), 0);
	ck_assert_uint_eq(found.n, 0);
	ck_assert(strstr(found.none, "mperfctl roofs measure") != NULL);
	ck_assert_str_eq(found.stale, "");
}

TEST(roofs_of_one_hart_have_names_rates_and_intervals)
{
	add("f64", "fma", "avx2", 50);
	add("i32", "add", "scalar", 8);
	SET(add("L1", "2:1", "avx2", 200)->note, "disturbed");
	add("DRAM", "load", "avx2", 12)->scope = ROOF_KIND;
	add("i32", "add", "scalar", 8)->scope = ROOF_CLUSTER;
	keep_and_find();
	ck_assert_uint_eq(found.n, 3);
	ck_assert_str_eq(found.none, "");
	ck_assert_str_eq(found.stale, "");
	const struct plot_roof *fma = named("vector fma"), *l1 = named("L1");
	ck_assert(fma && l1 && named("scalar add"));
	ck_assert(!fma->is_memory && fma->precision == PLOT_F64 && fma->value == 50);
	ck_assert_double_eq_tol(fma->low, 45, 1e-9);
	ck_assert_double_eq_tol(fma->high, 55, 1e-9);
	ck_assert_str_eq(fma->how, "avx2");
	ck_assert(l1->is_memory && l1->value == 200);
	ck_assert_str_eq(l1->how, "avx2 2:1; disturbed");
	ck_assert_int_eq(named("scalar add")->precision, PLOT_I32);
	ck_assert_str_eq(l1->hart_kind, ""); /* all are alike */
}

TEST(multiply_and_add_stand_for_fma_where_there_is_none)
{
	add("f64", "fma", "avx2", 50);
	add("f64", "mul+add", "avx2", 30);
	add("f32", "mul+add", "avx2", 60);
	add("f32", "mul", "avx2", 31);
	keep_and_find();
	ck_assert_uint_eq(found.n, 2);
	ck_assert_int_eq(named("vector mul+add")->precision, PLOT_F32);
}

TEST(whole_numbers_have_mac_for_fma)
{
	add("i32", "add", "neon", 30);
	add("i32", "mul", "neon", 28);
	add("i32", "mac", "neon", 55);
	add("i32", "mul+add", "neon", 29);
	add("i64", "mul+add", "avx512", 20);
	keep_and_find();
	ck_assert_uint_eq(found.n, 3);
	ck_assert_int_eq(named("vector mac")->precision, PLOT_I32);
	ck_assert_int_eq(named("vector mul+add")->precision, PLOT_I64);
}

TEST(kinds_of_harts_are_named)
{
	static struct roofs_kind kinds[2];
	kinds[0] = machine.kind[0];
	SET(kinds[1].id, "arm-little");
	SET(kinds[1].name, "Little");
	SET(kinds[1].harts, "8");
	roofs.kinds = kinds;
	roofs.n_kinds = 2;
	add("f64", "fma", "avx2", 50);
	SET(add("f64", "fma", "neon", 5)->kind, "arm-little");
	keep_and_find();
	ck_assert_uint_eq(found.n, 2);
	ck_assert_str_eq(found.roof[1].hart_kind, "Little");
	ck_assert_int_gt(strlen(found.roof[0].hart_kind), 0);
}

TEST(roofs_of_another_kernel_are_stale)
{
	add("f64", "fma", "avx2", 50);
	SET(roofs.kernel, "2.6.32-old");
	keep_and_find();
	ck_assert_uint_eq(found.n, 1);
	ck_assert(strstr(found.stale, "2.6.32-old") != NULL);
	ck_assert(strstr(found.stale, "mperfctl roofs measure") != NULL);
}

TEST(roofs_of_a_disturbed_run_say_so)
{
	add("f64", "fma", "avx2", 50);
	SET(roofs.disturbed, "other programs used 1.30 of 2 harts meanwhile");
	keep_and_find();
	ck_assert_str_eq(found.stale, "");
	ck_assert_msg(strstr(found.disturbed, "1.30 of 2 harts") != NULL, "%s", found.disturbed);
	ck_assert(strstr(found.disturbed, "mperfctl roofs measure") != NULL);
}

TEST(roofs_of_no_single_hart_are_none)
{
	add("f64", "fma", "avx2", 50)->scope = ROOF_KIND;
	keep_and_find();
	ck_assert_uint_eq(found.n, 0);
	ck_assert(strstr(found.none, "single hart") != NULL);
}

TEST(a_file_that_is_none_is_named)
{
	char path[ROOFS_PATH_BYTES];
	add("f64", "fma", "avx2", 50);
	keep_and_find();
	roofline_roofs_clear(&found);
	ck_assert_int_eq(keep_path(&roofs, path), 0);
	FILE *f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	fputs("{\"version\": 1, \"roofs\": 7}", f);
	fclose(f);
	ck_assert_int_eq(roofline_roofs_find(ROOFLINE_NO_PEAKS, &found), 0);
	ck_assert_uint_eq(found.n, 0);
	ck_assert(strstr(found.none, "cannot be read: ") != NULL);
	ck_assert_ptr_null(strstr(found.none, "cannot be read: . "));
}

TEST(a_theoretical_peak_is_that_of_the_highest_clock)
{
	struct machine_hart hart[] = {
		{.number = 3, .kind = 0, .khz = 2400000}, {.number = 7, .kind = 1}};
	struct machine m = {.hart = hart, .n_harts = 2, .n_kinds = 2, .kind = {{.name = "big"}}};
	struct peak peak = {.hart = 3,
		.precision = "fp64",
		.unit = "vector",
		.source = "A guide",
		.ops_per_cycle = 8};
	struct plot_roof r;
	ck_assert(roofline_roofs_peak(&m, &peak, &r));
	ck_assert(r.is_theoretical && !r.is_memory && r.precision == PLOT_F64);
	ck_assert_double_eq_tol(r.value, 19.2, 1e-9);
	ck_assert_str_eq(r.name, "theoretical vector");
	ck_assert_str_eq(r.hart_kind, "big");
	ck_assert_str_eq(r.how, "8 a cycle at 2.4 GHz, A guide");
	SET(peak.precision, "int8");
	ck_assert(roofline_roofs_peak(&m, &peak, &r) && r.precision == PLOT_I8);

	SET(peak.precision, "bf16");
	ck_assert(!roofline_roofs_peak(&m, &peak, &r));
	SET(peak.precision, "");
	ck_assert(!roofline_roofs_peak(&m, &peak, &r));
	SET(peak.precision, "fp64");
	peak.hart = 7; /* no clock is known */
	ck_assert(!roofline_roofs_peak(&m, &peak, &r));
	peak.hart = 99;
	ck_assert(!roofline_roofs_peak(&m, &peak, &r));
}
