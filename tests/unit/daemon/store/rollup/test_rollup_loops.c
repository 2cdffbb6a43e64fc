/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * What roll-ups make of loops: no sum is lost, what is the same is one, an hour of very many keeps
 * the heaviest; and sources whose tables lie are refused.
 */
#include <unistd.h>

#include "daemon/loops/table.h"
#include "daemon/store/rollup/rollup.h"
#include "tests/unit/stored.h"
#include "tests/unit/test.h"

#define MINUTE 60000000000ull

static struct stored s;
static struct loop_sites sites;
static struct store_error error;
static char target[192];
static sqlite3 *rolled;
static struct task *task;

static void begin(void)
{
	stored_begin_clock(&s);
	s.realtime_ns = 277777 * 60 * MINUTE;
	task = stored_task(&s, 100, 100, "prog");
	snprintf(target, sizeof(target), "%s/target", s.folder);
}

static void end(void)
{
	sqlite3_close(rolled);
	rolled = NULL;
	loop_window_clear(&s.window.loops);
	stored_end(&s);
	memset(&s, 0, sizeof(s));
	loop_sites_clear(&sites);
}

EACH_TEST(.begin = begin, .end = end);

static struct loop_site *site(
	uint8_t kind, const char *function, uint32_t line, struct loop_site *parent)
{
	const struct loop_site_key key = {.kind = kind,
		.line = line,
		.subprogram = function,
		.source = "a.c",
		.nest = kind == LOOP_SITE_LOOP ? "1" : "",
		.inlined_at = ""};
	const struct loop_site_more more = {.line_last = line + 5};
	struct loop_site *found;
	ck_assert_int_eq(loop_site_get(&sites, &key, parent, &more, &found), 0);
	return found;
}

static const struct loop_granted granted = {
	.name = {"task-clock", "LLC-load-misses"}, .is_time = {true}};

static void count(struct loop_site *where, struct loop_site *region, unsigned metric, uint64_t n)
{
	uint64_t value[N_LOOP_VALUES] = {0};
	value[LOOP_VALUE(metric, false)] = n;
	const struct loop_counts c = {
		.site = where, .region = region, .value = value, .granted = &granted};
	ck_assert_int_eq(loop_window_add(&s.window.loops, &sites, task, &c), 0);
}

static void flush(uint64_t minute)
{
	struct frame *frame = stored_function(&s, "/bin/prog", "walk");
	stored_add(&s, &(struct stored_sample){.task = task, .frame = {frame}});
	ck_assert_int_eq(stored_flush(&s, minute * MINUTE, (minute + 1) * MINUTE), 0);
}

static void roll(enum tier tier)
{
	if (!s.db)
		stored_seal(&s);
	unlink(target);
	int r = rollup_add(s.path, target, tier, &error);
	ck_assert_msg(r == 0, "%d: %s", r, error.text);
	sqlite3_close(rolled);
	ck_assert_int_eq(sqlite3_open(target, &rolled), SQLITE_OK);
}

static void same(const char *sql)
{
	char before[512];
	snprintf(before, sizeof(before), "%s", stored_string(s.db, sql));
	ck_assert_msg(*before && strcmp(before, stored_string(rolled, sql)) == 0,
		"%s: %s became %s", sql, before, stored_string(rolled, sql));
}

TEST(every_sum_is_kept_with_what_it_is_of)
{
	struct loop_site *walk = site(LOOP_SITE_FUNCTION, "walk", 9, NULL);
	struct loop_site *loop = site(LOOP_SITE_LOOP, "walk", 10, walk);
	struct loop_site *solve = site(LOOP_SITE_REGION, "solve", 1, NULL);
	for (uint64_t minute = 0; minute < 3; minute++) {
		count(loop, solve, LOOP_ITERATIONS, 7 + minute);
		count(loop, NULL, LOOP_BYTES_LOADED, 1000);
		count(walk, NULL, LOOP_ENTRIES, 1);
		count(solve, solve, LOOP_TIME_NS, 50);
		flush(minute);
	}
	loop_site_unref(&sites, walk);
	loop_site_unref(&sites, loop);
	loop_site_unref(&sites, solve);
	for (int tier = TIER_MINUTE; tier <= TIER_HOUR; tier++) {
		roll((enum tier)tier);
		same("SELECT group_concat(t, ' ') FROM (SELECT kind || subprogram || nest || "
		     "ifnull(line_last, '') || name || unit || sum(value) t FROM loop_count c JOIN "
		     "loop_site s ON s.id = c.loop JOIN loop_metric m ON m.id = c.metric GROUP BY "
		     "s.kind, s.subprogram, nest, name ORDER BY 1)");
		same("SELECT sum(value) FROM loop_count c JOIN loop_site r ON r.id = c.region "
		     "WHERE r.subprogram = 'solve'");
		same("SELECT p.subprogram || p.kind FROM loop_site s JOIN loop_site p ON p.id = "
		     "s.parent WHERE s.kind = 1");
		same("SELECT DISTINCT t.comm FROM loop_count c JOIN task t ON t.id = c.task");
		ck_assert_int_eq(
			stored_number(rolled, "SELECT count(DISTINCT window) FROM loop_count"),
			tier == TIER_MINUTE ? 3 : 1);
	}
}

TEST(events_of_regions_keep_their_names_and_their_zeros)
{
	struct loop_site *solve = site(LOOP_SITE_REGION, "solve", 1, NULL);
	uint64_t value[N_LOOP_VALUES] = {
		[LOOP_VALUE(LOOP_GRANTED_NS, false)] = 70, [LOOP_VALUE(LOOP_GRANTED, false)] = 60};
	const struct loop_counts c = {.site = solve,
		.region = solve,
		.value = value,
		.granted = &granted,
		.was_granted = 3};
	ck_assert_int_eq(loop_window_add(&s.window.loops, &sites, task, &c), 0);
	flush(0);
	loop_site_unref(&sites, solve);
	for (int tier = TIER_MINUTE; tier <= TIER_HOUR; tier++) {
		roll((enum tier)tier);
		same("SELECT group_concat(t) FROM (SELECT name || unit || value t FROM loop_count "
		     "c "
		     "JOIN loop_metric m ON m.id = c.metric ORDER BY name)");
		ck_assert_str_eq(
			stored_string(rolled, "SELECT group_concat(t) FROM (SELECT name || ' ' || "
					      "value || ' ' || unit t FROM loop_count c JOIN "
					      "loop_metric m ON m.id = c.metric ORDER BY name)"),
			"granted:LLC-load-misses 0 count,granted:task-clock 60 ns,granted_ns 70 "
			"ns");
	}
}

TEST(an_hour_of_very_many_keeps_the_heaviest)
{
	const uint32_t n = ROLLUP_HOUR_LOOPS + 100;
	for (uint32_t i = 0; i < n; i++) {
		struct loop_site *loop = site(LOOP_SITE_LOOP, "walk", i + 1, NULL);
		count(loop, NULL, LOOP_INSTRUCTIONS, n - i);
		count(loop, NULL, LOOP_ITERATIONS, 1);
		loop_site_unref(&sites, loop);
	}
	flush(0);
	roll(TIER_MINUTE);
	same("SELECT count(*) FROM loop_count");
	roll(TIER_HOUR);
	same("SELECT sum(value) FROM loop_count c JOIN loop_metric m ON m.id = c.metric WHERE name "
	     "= 'instructions'");
	same("SELECT sum(value) FROM loop_count c JOIN loop_metric m ON m.id = c.metric WHERE name "
	     "= 'iterations'");
	ck_assert_int_eq(
		stored_number(rolled, "SELECT sum(value) FROM loop_count c JOIN loop_site s "
				      "ON s.id = c.loop JOIN loop_metric m ON m.id = "
				      "c.metric WHERE subprogram = '[other]' AND name = "
				      "'iterations'"),
		100);
	ck_assert_int_eq(
		stored_number(rolled, "SELECT max(line) FROM loop_site"), ROLLUP_HOUR_LOOPS);
}

/* Functions in each other from that line on; one entry of the innermost. */
static void count_nest(uint32_t first, uint32_t n)
{
	struct loop_site *nest[LOOP_DEPTH_MAX], *around = NULL;
	for (uint32_t i = 0; i < n; i++)
		around = nest[i] = site(LOOP_SITE_FUNCTION, "f", first + i, around);
	count(around, NULL, LOOP_ENTRIES, 1);
	while (n > 0)
		loop_site_unref(&sites, nest[--n]);
}

TEST(nests_of_two_programs_that_make_a_deep_one_are_no_damage)
{
	count_nest(1, 100);
	flush(0);
	ck_assert_uint_eq(sites.n_sites, 0);
	count_nest(100, 100); /* its outermost has the names of the first one's innermost */
	flush(1);
	for (enum tier tier = TIER_MINUTE; tier <= TIER_HOUR; tier++) {
		roll(tier);
		same("SELECT sum(value), count(*) FROM loop_count");
		same("SELECT max(line) FROM loop_site WHERE subprogram = 'f'");
	}
}

static void is_refused(const char *sql)
{
	char *message = NULL;
	sqlite3 *db;
	struct loop_site *walk = site(LOOP_SITE_FUNCTION, "walk", 9, NULL);
	count(walk, NULL, LOOP_ENTRIES, 1);
	loop_site_unref(&sites, walk);
	flush(0);
	stored_seal(&s);
	ck_assert_int_eq(sqlite3_open(s.path, &db), SQLITE_OK);
	ck_assert_msg(sqlite3_exec(db, sql, NULL, NULL, &message) == SQLITE_OK, "%s", message);
	sqlite3_close(db);
	ck_assert_int_eq(rollup_add(s.path, target, TIER_MINUTE, &error), ROLLUP_SOURCE_BROKEN);
	ck_assert_str_ne(error.text, "");
}

TEST(a_source_that_lies_is_refused, .times = 8)
{
	static const char *const lies[] = {
		"UPDATE loop_count SET value = -1",
		"UPDATE loop_count SET loop = 99",
		"UPDATE loop_count SET region = 99",
		"UPDATE loop_count SET metric = 99",
		"UPDATE loop_count SET window = 99",
		"UPDATE loop_count SET loop = 0",
		"UPDATE loop_site SET parent = id",
		"UPDATE loop_site SET parent = 99",
	};
	is_refused(lies[_i]);
}
