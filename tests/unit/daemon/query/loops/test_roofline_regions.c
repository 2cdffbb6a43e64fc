/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * What regions counted of memory: operations per byte that came from there, where misses were counted.
 */
#include <math.h>

#include "daemon/query/loops/roofline.h"
#include "tests/unit/core_case.h"
#include "tests/unit/stored.h"
#include "tests/unit/test.h"

static struct stored s;
static struct loop_sites sites;
static struct task *task;

static void begin(void)
{
	stored_begin_clock(&s);
	task = stored_task(&s, 100, 100, "prog");
}

static void end(void)
{
	loop_window_clear(&s.window.loops);
	stored_end(&s);
	memset(&s, 0, sizeof(s));
	loop_sites_clear(&sites);
}

EACH_TEST(.begin = begin, .end = end);

/* --- answers ---------------------------------------------------------------------------------- */

/* Of a row: what these tests look at; NAN: absent. */
struct seen {
	char column[96][64], title[96][64];
	size_t n_columns, n_rows;
	char dram_note[512];
	struct {
		char region[64];
		double gops, per_byte, dram_gbytes, per_dram_byte;
	} row[8];
};

static int take_columns(void *userdata, const struct answer_column *c, size_t n)
{
	struct seen *seen = userdata;
	ck_assert_uint_le(n, 96);
	for (size_t i = 0; i < n; i++) {
		snprintf(seen->column[i], sizeof(seen->column[i]), "%s", c[i].name);
		snprintf(seen->title[i], sizeof(seen->title[i]), "%s", c[i].title);
	}
	seen->n_columns = n;
	return 0;
}

static int column(const struct seen *seen, const char *name)
{
	for (size_t i = 0; i < seen->n_columns; i++)
		if (strcmp(seen->column[i], name) == 0)
			return (int)i;
	return -1;
}

static double number(const struct seen *seen, const struct answer_value *v, const char *name)
{
	int i = column(seen, name);
	return i < 0 || v[i].kind == ANSWER_ABSENT ? NAN
	       : v[i].kind == ANSWER_INTEGER       ? (double)v[i].integer
						   : v[i].real;
}

static int take_row(void *userdata, const struct answer_value *v, size_t n)
{
	struct seen *seen = userdata;
	ck_assert_uint_lt(seen->n_rows, 8);
	ck_assert_uint_eq(n, seen->n_columns);
	__auto_type row = &seen->row[seen->n_rows++];
	snprintf(row->region, sizeof(row->region), "%s", v[column(seen, "region")].text);
	row->gops = number(seen, v, "gops");
	row->per_byte = number(seen, v, "ops_per_byte");
	row->dram_gbytes = number(seen, v, "dram_gbytes");
	row->per_dram_byte = number(seen, v, "ops_per_dram_byte");
	return 0;
}

static int take_provenance(void *userdata, const struct answer_provenance *p)
{
	struct seen *seen = userdata;
	for (size_t i = 0; i < p->n_notes; i++)
		if (strncmp(p->note[i], "DRAM ", 5) == 0)
			snprintf(seen->dram_note, sizeof(seen->dram_note), "%s", p->note[i]);
	return 0;
}

/* --- a session -------------------------------------------------------------------------------- */

static struct loop_site *site(uint8_t kind, const char *name)
{
	const struct loop_site_key key = {.kind = kind,
		.line = 1,
		.subprogram = name,
		.source = "a.c",
		.nest = "",
		.inlined_at = ""};
	const struct loop_site_more more = {.line_last = 5};
	struct loop_site *found;
	ck_assert_int_eq(loop_site_get(&sites, &key, NULL, &more, &found), 0);
	return found;
}

static void add(struct loop_site *where, struct loop_site *region, const uint64_t *value,
	const struct loop_granted *granted)
{
	const struct loop_counts c = {.site = where,
		.region = region,
		.value = value,
		.granted = granted,
		.was_granted = granted ? 1 + 2 * (granted->name[1][0] != 0) : 0};
	ck_assert_int_eq(loop_window_add(&s.window.loops, &sites, task, &c), 0);
}

/* A region of 4 us with 8000 operations on 16000 bytes; counters saw half of it, with so many misses of that
 * event. */
static void add_region(const char *name, const char *event, uint64_t misses)
{
	static struct loop_granted granted; /* until the session is flushed, as a program's */
	struct loop_site *region = site(LOOP_SITE_REGION, name),
			 *function = site(LOOP_SITE_FUNCTION, "walk");
	uint64_t value[N_LOOP_VALUES] = {
		[LOOP_VALUE(LOOP_ENTRIES, false)] = 4, [LOOP_VALUE(LOOP_TIME_NS, false)] = 4000};
	if (event) {
		granted = (struct loop_granted){.name = {""}};
		snprintf(granted.name[0], sizeof(granted.name[0]), "%s", event);
		value[LOOP_VALUE(LOOP_GRANTED_NS, false)] = 2000;
		value[LOOP_VALUE(LOOP_GRANTED, false)] = misses;
	}
	const uint64_t counted[N_LOOP_VALUES] = {[LOOP_VALUE(LOOP_FP64_OPS, false)] = 8000,
		[LOOP_VALUE(LOOP_INSTRUCTIONS, false)] = 10000,
		[LOOP_VALUE(LOOP_BYTES_LOADED, false)] = 16000};
	add(region, region, value, event ? &granted : NULL);
	add(function, region, counted, NULL);
	loop_site_unref(&sites, region);
	loop_site_unref(&sites, function);
}

static const struct cores *cores; /* of the machine that asks; NULL: it knows none */

static void ask(enum roofline_ops ops, struct seen *seen)
{
	const struct roofline_question question = {
		.by = ROOFLINE_REGION, .ops = ops, .cores = cores, .explains = true};
	const struct answer answer = {take_columns, take_row, take_provenance, seen};
	struct query_error error;
	*seen = (struct seen){.n_columns = 0};
	ck_assert_int_eq(stored_flush(&s, 0, 60000000000ull), 0);
	ck_assert_int_eq(query_roofline(&(struct query_source){.db = stored_seal(&s)}, 1, &question,
				 &answer, &error),
		0);
}

/* 10 misses in 2000 ns are 0.32 bytes per ns, and 2 operations per ns are 6.25 for each of them: the half
 * without counters is taken to be like the other. */
TEST(operations_per_byte_of_memory_compare_rates)
{
	static struct seen seen;
	add_region("solve", "LLC-load-misses:u", 10);
	ask(ROOFLINE_FP, &seen);
	ck_assert_uint_eq(seen.n_rows, 1);
	ck_assert_str_eq(seen.row[0].region, "solve");
	ck_assert_double_eq_tol(seen.row[0].gops, 2, 1e-12);
	ck_assert_double_eq_tol(seen.row[0].per_byte, 0.5, 1e-12);
	ck_assert_double_eq_tol(seen.row[0].dram_gbytes, 0.32, 1e-12);
	ck_assert_double_eq_tol(seen.row[0].per_dram_byte, 6.25, 1e-12);
	ck_assert_str_eq(seen.title[column(&seen, "ops_per_dram_byte")], "FLOP/DRAM B");
}

TEST(other_operations_have_their_own)
{
	static struct seen seen;
	add_region("solve", "LLC-load-misses:u", 10);
	ask(ROOFLINE_INT, &seen);
	ck_assert_double_eq(seen.row[0].per_dram_byte, 0);
	ck_assert_str_eq(seen.title[column(&seen, "ops_per_dram_byte")], "IOP/DRAM B");
}

/* Not looked for is not zero; looked for and not found leaves nothing to divide by. */
TEST(without_misses_there_is_no_intensity)
{
	static struct seen seen;
	add_region("counted", "LLC-load-misses:u", 10);
	add_region("cached", "LLC-load-misses:u", 0);
	add_region("uncounted", NULL, 0);
	ask(ROOFLINE_FP, &seen);
	ck_assert_uint_eq(seen.n_rows, 3);
	for (size_t i = 0; i < 3; i++) {
		bool counted = strcmp(seen.row[i].region, "counted") == 0;
		bool cached = strcmp(seen.row[i].region, "cached") == 0;
		ck_assert_double_eq_tol(seen.row[i].gops, 2, 1e-12);
		ck_assert(isnan(seen.row[i].per_dram_byte) == !counted);
		ck_assert(isnan(seen.row[i].dram_gbytes) == !(counted || cached));
	}
}

TEST(without_the_event_there_is_no_column)
{
	static struct seen seen;
	add_region("solve", "cache-references:u", 10);
	ask(ROOFLINE_FP, &seen);
	ck_assert_int_eq(column(&seen, "dram_gbytes"), -1);
	ck_assert_int_eq(column(&seen, "ops_per_dram_byte"), -1);
}

/* --- by the core's own events ----------------------------------------------------------------- */

/* A session on that machine of tests/platforms, asked for on it. */
static void begin_on(struct core_case *c, const char *machine)
{
	end();
	*c = core_case_of(machine);
	cores = c->cores;
	stored_folder(&s);
	s.sampler.options.cores = c->cores;
	stored_event(&s, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, "cpu-clock");
	stored_begin(&s);
	task = stored_task(&s, 100, 100, "prog");
}

static void add_region_of_two(const char *first, uint64_t n_first, const char *second, uint64_t n)
{
	static struct loop_granted granted;
	struct loop_site *region = site(LOOP_SITE_REGION, "solve"),
			 *function = site(LOOP_SITE_FUNCTION, "walk");
	const uint64_t value[N_LOOP_VALUES] = {[LOOP_VALUE(LOOP_ENTRIES, false)] = 4,
		[LOOP_VALUE(LOOP_TIME_NS, false)] = 4000,
		[LOOP_VALUE(LOOP_GRANTED_NS, false)] = 2000,
		[LOOP_VALUE(LOOP_GRANTED, false)] = n_first,
		[LOOP_VALUE(LOOP_GRANTED + 1, false)] = n};
	const uint64_t counted[N_LOOP_VALUES] = {[LOOP_VALUE(LOOP_FP64_OPS, false)] = 8000};
	granted = (struct loop_granted){.name = {""}};
	snprintf(granted.name[0], sizeof(granted.name[0]), "%s", first);
	snprintf(granted.name[1], sizeof(granted.name[1]), "%s", second);
	add(region, region, value, &granted);
	add(function, region, counted, NULL);
	loop_site_unref(&sites, region);
	loop_site_unref(&sites, function);
}

static void finish(struct core_case *c)
{
	cores = NULL;
	core_case_end(c);
}

#define FILLS "ls_any_fills_from_sys.dram_io_all"
#define PREFETCHED "l2_pf_miss_l2_l3.into_l2"

/* 7 and 3 lines of 64 bytes in 2000 ns: as many as 10 misses are elsewhere. */
TEST(a_core_whose_formula_was_granted_has_bytes_from_memory)
{
	static struct seen seen;
	struct core_case c;
	begin_on(&c, "zen4");
	add_region_of_two(FILLS, 7, PREFETCHED ":u", 3);
	ask(ROOFLINE_FP, &seen);
	ck_assert_uint_eq(seen.n_rows, 1);
	ck_assert_double_eq_tol(seen.row[0].dram_gbytes, 0.32, 1e-12);
	ck_assert_double_eq_tol(seen.row[0].per_dram_byte, 6.25, 1e-12);
	ck_assert_msg(strstr(seen.dram_note, "64 * (" FILLS " + " PREFETCHED ")") != NULL &&
			      strstr(seen.dram_note, "without write-backs") != NULL,
		"%s", seen.dram_note);
	finish(&c);
}

/* Half of the formula is none, and neither is one of cores that are not known. */
TEST(without_all_events_of_the_formula_there_is_no_column)
{
	static struct seen seen;
	struct core_case c;
	begin_on(&c, "zen4");
	add_region_of_two(FILLS, 7, "instructions", 3);
	ask(ROOFLINE_FP, &seen);
	ck_assert_int_lt(column(&seen, "ops_per_dram_byte"), 0);
	ck_assert_str_eq(seen.dram_note, "");
	finish(&c);
	begin_on(&c, "zen4");
	add_region_of_two(FILLS, 7, PREFETCHED, 3);
	cores = NULL;
	ask(ROOFLINE_FP, &seen);
	ck_assert_int_lt(column(&seen, "ops_per_dram_byte"), 0);
	finish(&c);
}

/* Of P and E cores, a formula would be of one of them; the generic event is of both. */
TEST(cores_of_several_kinds_have_the_generic_event_alone)
{
	static struct seen seen;
	struct core_case c;
	begin_on(&c, "alderlake");
	add_region_of_two("longest_lat_cache.miss", 7, "instructions", 3);
	ask(ROOFLINE_FP, &seen);
	ck_assert_int_lt(column(&seen, "ops_per_dram_byte"), 0);
	finish(&c);
	begin_on(&c, "alderlake");
	add_region_of_two("longest_lat_cache.miss", 7, "LLC-load-misses", 10);
	ask(ROOFLINE_FP, &seen);
	ck_assert_double_eq_tol(seen.row[0].dram_gbytes, 0.32, 1e-12);
	ck_assert(strstr(seen.dram_note, "LLC-load-misses") != NULL);
	finish(&c);
}
