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
	ck_assert_int_eq(query_blocks(&(struct loop_origin){.db = stored_seal(&s)}, &question,
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
