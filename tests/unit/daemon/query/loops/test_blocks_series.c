/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The bandwidth of threads over time, from a stored session: what came from memory is that of
 * outermost regions, and absent where nobody counted it.
 */
#include "daemon/query/loops/blocks.h"
#include "tests/unit/stored.h"
#include "tests/unit/test.h"

#define MINUTE 60000000000ull

static struct stored s;
static struct loop_sites sites;
static struct task *task;

static void begin(void)
{
	stored_begin_clock(&s);
	s.realtime_ns = 277777 * 60 * MINUTE;
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

static struct loop_site *site(uint8_t kind, const char *name, struct loop_site *parent)
{
	const struct loop_site_key key = {.kind = kind,
		.line = 1,
		.subprogram = name,
		.source = "a.c",
		.nest = "",
		.inlined_at = ""};
	const struct loop_site_more more = {.line_last = 5};
	struct loop_site *found;
	ck_assert_int_eq(loop_site_get(&sites, &key, parent, &more, &found), 0);
	return found;
}

static void add(struct loop_site *where, struct loop_site *region, const uint64_t *value,
	const struct loop_granted *granted)
{
	const struct loop_counts c = {.site = where,
		.region = region,
		.value = value,
		.granted = granted,
		.was_granted = granted ? 3 : 0};
	ck_assert_int_eq(loop_window_add(&s.window.loops, &sites, task, &c), 0);
}

/* A region counts misses of that event in 4 us, and one inside it a quarter of both. */
static void ask(const char *event, uint64_t misses, struct stored_answer *ret_answer)
{
	struct loop_granted granted = {.name = {"task-clock", ""}, .is_time = {true}};
	snprintf(granted.name[1], sizeof(granted.name[1]), "%s", event);
	struct loop_site *outer = site(LOOP_SITE_REGION, "solve", NULL),
			 *inner = site(LOOP_SITE_REGION, "step", outer),
			 *function = site(LOOP_SITE_FUNCTION, "walk", NULL),
			 *outside = site(LOOP_SITE_REGION, "", NULL); /* has threads' spans */
	uint64_t value[N_LOOP_VALUES] = {[LOOP_VALUE(LOOP_GRANTED_NS, false)] = 4000,
		[LOOP_VALUE(LOOP_GRANTED, false)] = 4000,
		[LOOP_VALUE(LOOP_GRANTED + 1, false)] = misses};
	add(outer, outer, value, &granted);
	value[LOOP_VALUE(LOOP_GRANTED_NS, false)] = 1000;
	value[LOOP_VALUE(LOOP_GRANTED + 1, false)] = misses / 4;
	add(inner, inner, value, &granted);
	const uint64_t moved[N_LOOP_VALUES] = {[LOOP_VALUE(LOOP_BYTES_LOADED, false)] = 8000},
		       span[N_LOOP_VALUES] = {[LOOP_VALUE(LOOP_SPAN_NS, false)] = 8000};
	add(function, NULL, moved, NULL);
	add(outside, NULL, span, NULL);
	struct frame *frame = stored_function(&s, "/bin/prog", "walk");
	stored_add(&s, &(struct stored_sample){.task = task, .frame = {frame}});
	ck_assert_int_eq(stored_flush(&s, 0, MINUTE), 0);
	loop_site_unref(&sites, outer);
	loop_site_unref(&sites, inner);
	loop_site_unref(&sites, function);
	loop_site_unref(&sites, outside);

	const struct blocks_question question = {.series = true, .every_ns = MINUTE};
	const struct answer answer = stored_answer(ret_answer);
	struct query_error error;
	ck_assert_int_eq(query_blocks(&(struct query_source){.db = stored_seal(&s)}, 1, &question,
				 &answer, &error),
		0);
}

TEST(traffic_of_memory_is_that_of_outermost_regions)
{
	static struct stored_answer a;
	ask("LLC-load-misses:u", 100, &a);
	ck_assert_double_eq(stored_real(&a, 0, "loaded"), 1);
	ck_assert_double_eq(stored_real(&a, 0, "dram_bytes"), 6400);
	ck_assert_double_eq(stored_real(&a, 0, "dram_ns"), 4000);
}

TEST(where_no_misses_were_counted_their_traffic_is_absent)
{
	static struct stored_answer a;
	ask("LLC-load-misses-of-others", 100, &a);
	ck_assert_double_eq(stored_real(&a, 0, "loaded"), 1);
	ck_assert(stored_absent(&a, 0, "dram_bytes"));
	ck_assert(stored_absent(&a, 0, "dram_ns"));
}

/* --- loops that add their counts at once ------------------------------------------------------ */

struct minute {
	uint64_t time_s, entries, iterations, mib; /* of the loop, in this minute */
};

/* A loop, or one around another that has the counts, over minutes; the thread's span is all of each. */
static void over_minutes(
	const struct minute *of, size_t n, bool nested, struct stored_answer *ret_answer)
{
	const struct loop_site_key key = {.kind = LOOP_SITE_LOOP,
		.line = 4,
		.subprogram = "one",
		.source = "a.c",
		.nest = "1",
		.inlined_at = ""};
	struct loop_site *loop, *outside = site(LOOP_SITE_REGION, "", NULL);
	const struct loop_site_more more = {.line_last = 5, .flags = MPERF_SCOPE_HOISTED};
	ck_assert_int_eq(loop_site_get(&sites, &key, NULL, &more, &loop), 0);
	struct loop_site *inner = nested ? site(LOOP_SITE_LOOP, "one", loop) : loop;
	struct frame *frame = stored_function(&s, "/bin/prog", "one");
	for (size_t i = 0; i < n; i++) {
		const uint64_t own[N_LOOP_VALUES] =
			{
				[LOOP_VALUE(LOOP_TIME_NS, false)] = of[i].time_s * 1000000000,
				[LOOP_VALUE(LOOP_ENTRIES, false)] = of[i].entries,
				[LOOP_VALUE(LOOP_TIMED_ENTRIES, false)] = of[i].entries,
				[LOOP_VALUE(LOOP_ITERATIONS, false)] = of[i].iterations,
			},
			       counts[N_LOOP_VALUES] =
				       {
					       [LOOP_VALUE(LOOP_INSTRUCTIONS, false)] = of[i].mib
											<< 20,
					       [LOOP_VALUE(LOOP_BYTES_LOADED, false)] = of[i].mib
											<< 20,
				       },
			       span[N_LOOP_VALUES] = {[LOOP_VALUE(LOOP_SPAN_NS, false)] = MINUTE};
		add(loop, NULL, own, NULL);
		add(inner, NULL, counts, NULL);
		add(outside, NULL, span, NULL);
		stored_add(&s, &(struct stored_sample){.task = task, .frame = {frame}});
		ck_assert_int_eq(stored_flush(&s, i * MINUTE, (i + 1) * MINUTE), 0);
	}
	if (nested)
		loop_site_unref(&sites, inner);
	loop_site_unref(&sites, loop);
	loop_site_unref(&sites, outside);
	const struct blocks_question question = {.series = true, .every_ns = MINUTE};
	const struct answer answer = stored_answer(ret_answer);
	struct query_error error;
	ck_assert_int_eq(query_blocks(&(struct query_source){.db = stored_seal(&s)}, 1, &question,
				 &answer, &error),
		0);
}

TEST(a_loop_that_runs_for_minutes_has_no_rate_in_any)
{
	static struct stored_answer a;
	const struct minute of[] = {{58, 0, 6000, 6000}, {60, 0, 0, 0}, {40, 1, 0, 0}};
	over_minutes(of, 3, false, &a);
	ck_assert_uint_eq(a.n_rows, 3);
	for (size_t i = 0; i < 3; i++) {
		ck_assert(stored_absent(&a, i, "loaded") && stored_absent(&a, i, "stored") &&
			  stored_absent(&a, i, "gflops"));
		ck_assert_double_eq(stored_real(&a, i, "span_ns"), MINUTE);
	}
	ck_assert_double_eq(stored_real(&a, 0, "bytes_loaded"), 6000.0 * (1 << 20));
}

/* One ended and another began in each minute. */
TEST(loops_that_follow_one_another_across_minutes_have_no_rates)
{
	static struct stored_answer a;
	const struct minute of[] = {{60, 0, 0, 6000}, {60, 1, 1, 6000}, {60, 1, 1, 6000}};
	over_minutes(of, 3, true, &a);
	for (size_t i = 0; i < 3; i++)
		ck_assert(stored_absent(&a, i, "loaded"));
}

TEST(loops_that_end_within_their_minute_have_rates)
{
	static struct stored_answer a;
	const struct minute of[] = {{30, 1, 100, 600}, {59, 20, 2000, 600}, {1, 1, 5, 1}};
	over_minutes(of, 3, false, &a);
	ck_assert_double_eq(stored_real(&a, 0, "loaded"), 600.0 * (1 << 20) / MINUTE);
	ck_assert_double_eq(stored_real(&a, 1, "loaded"), 600.0 * (1 << 20) / MINUTE);
}

TEST(nests_of_many_iterations_have_rates_while_they_run)
{
	static struct stored_answer a;
	const struct minute of[] = {{60, 0, 40, 600}, {60, 0, 40, 600}};
	over_minutes(of, 2, true, &a);
	ck_assert_double_eq(stored_real(&a, 0, "loaded"), 600.0 * (1 << 20) / MINUTE);
	ck_assert_double_eq(stored_real(&a, 1, "loaded"), 600.0 * (1 << 20) / MINUTE);
}

TEST(a_loop_that_ran_alone_and_ended_has_its_rate)
{
	static struct stored_answer a;
	over_minutes((const struct minute[]){{59, 1, 6000, 6000}}, 1, false, &a);
	ck_assert_double_eq(stored_real(&a, 0, "loaded"), 6000.0 * (1 << 20) / MINUTE);
}
