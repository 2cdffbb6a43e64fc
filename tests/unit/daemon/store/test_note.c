/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Notes go with the figures: into the segment, through roll-ups, into the answers whose events and
 * harts they are about, and into no other.
 */

#include "daemon/store/rollup/rollup.h"
#include "daemon/store/segment/note.h"
#include "tests/unit/stored.h"
#include "tests/unit/test.h"

#define CYCLES_SAY "cycles counts the kernel too"

static struct stored s;
static struct stored_answer a;

static void end(void)
{
	if (*s.folder)
		stored_end(&s);
	memset(&s, 0, sizeof(s));
}

EACH_TEST(.end = end);

/* --- keys ------------------------------------------------------------------------------------- */

TEST(a_note_is_read_as_it_was_written)
{
	struct note note = {.event = 3, .says = "cycles: they count, 50 % of \"all\""}, read;
	char key[NOTE_KEY_BYTES_MAX];
	for (int i = 0; i < 4; i++)
		hart_set_add(&note.harts, i);
	hart_set_add(&note.harts, 8);
	ck_assert_str_eq(note_key(&note, key), "note:0-3,8:3:cycles: they count, 50 % of \"all\"");
	ck_assert(note_parse(key, &read));
	ck_assert_mem_eq(&read.harts, &note.harts, sizeof(note.harts));
	ck_assert_int_eq(read.event, 3);
	ck_assert_str_eq(read.says, note.says);
}

TEST(a_key_of_turns_is_read_as_it_was_written)
{
	struct hart_set harts = {0}, read;
	char key[NOTE_KEY_BYTES_MAX];
	unsigned pass;
	hart_set_add(&harts, 2);
	hart_set_add(&harts, 3);
	ck_assert_str_eq(note_turn_key(&harts, 7, key), "turn:2-3:7");
	ck_assert(note_turn_parse(key, &read, &pass));
	ck_assert_mem_eq(&read, &harts, sizeof(harts));
	ck_assert_uint_eq(pass, 7);
}

TEST(what_is_no_key_of_turns_is_none)
{
	static const char *const keys[] = {"", "turn", "turn:", "turn:0", "turn:0:", "turn::1",
		"turn:x:1", "turn:0:x", "turn:0:-1", "turn:0: 1", "turn:0:1:", "turn:0:240",
		"turn:0:99999999999999999999", "turn:9999:1", "turns:0:1", "note:0:1"};
	struct hart_set harts;
	unsigned pass;
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		ck_assert_msg(!note_turn_parse(keys[i], &harts, &pass), "%s", keys[i]);
}

TEST(a_long_note_is_cut_off)
{
	char says[2 * NOTE_KEY_BYTES_MAX], key[NOTE_KEY_BYTES_MAX];
	memset(says, 'x', sizeof(says) - 1);
	says[sizeof(says) - 1] = '\0';
	struct note note = {.says = says}, read;
	hart_set_add(&note.harts, 0);
	ck_assert_uint_eq(strlen(note_key(&note, key)), sizeof(key) - 1);
	ck_assert(note_parse(key, &read));
}

TEST(what_is_no_note_is_none)
{
	static const char *const keys[] = {"", "note", "note:", "note:0", "note:0:", "note:0:1",
		"note:0:1:", "note::1:text", "note:x:1:text", "note:0:x:text", "note:0:-1:text",
		"note:9999:1:text", "note:0:99999999999999999999:text", "note:3-1:1:text",
		"leader:0:1", "notes:0:1:text", "note:0 :1:text"};
	struct note note;
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		ck_assert_msg(!note_parse(keys[i], &note), "%s", keys[i]);
}

/* --- answers ---------------------------------------------------------------------------------- */

/* The clock leads, cycles ride and count the kernel that they were to leave out. Only hart 0
 * counted them. */
static void begin(void)
{
	stored_folder(&s);
	stored_event(&s, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, "cpu-clock");
	stored_event(&s, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, "cycles");
	s.sampler.limits.unexcluded = 2;
	hart_set_add(&s.sampler.seen, 0);
	stored_begin(&s);
}

static void add(int hart, bool counted)
{
	static struct task *t;
	if (s.window.n_rows == 0)
		t = stored_task(&s, 100, 100, "prog");
	stored_add(&s,
		&(struct stored_sample){
			.task = t, .hart = hart, .n_reads = counted, .read = {{1, 100, 10, 10}}});
}

static bool said(sqlite3 *db, const struct query_filter *filter, const char *text)
{
	memset(&a, 0, sizeof(a));
	int r = stored_hotspots(db, "process", filter, &a);
	ck_assert_msg(r == 0, "%s", a.error.text);
	for (uint32_t i = 0; i < a.n_notes; i++)
		if (strstr(a.note[i], text))
			return true;
	return false;
}

TEST(a_note_is_told_where_its_event_and_harts_are)
{
	begin();
	add(0, true);
	add(1, false);
	stored_seal(&s);
	ck_assert(said(s.db, NULL, CYCLES_SAY));
	ck_assert(said(s.db, &(struct query_filter){.event = "cycles"}, CYCLES_SAY));
}

TEST(a_note_is_not_told_of_other_harts)
{
	begin();
	add(0, true);
	add(1, true);
	stored_seal(&s);
	const uint32_t one[] = {1};
	ck_assert(!said(s.db, &(struct query_filter){.cpu = one, .n_cpus = 1}, CYCLES_SAY));
}

TEST(a_note_is_not_told_without_its_event)
{
	begin();
	add(0, false);
	stored_seal(&s);
	ck_assert(!said(s.db, NULL, CYCLES_SAY));
}

TEST(a_rate_that_was_cut_is_told)
{
	stored_begin_clock(&s);
	add(0, false);
	s.window.start_ns = 0;
	s.window.end_ns = 1000000000;
	struct segment_flush view = stored_view(&s);
	view.hz_lowest = 50;
	ck_assert_int_eq(segment_flush(s.segment, &view), 0);
	window_clear(&s.window);
	stored_seal(&s);
	ck_assert(said(s.db, NULL, "no more than 50 samples"));
}

TEST(a_rate_that_others_wanted_is_not_this_ones)
{
	stored_begin_clock(&s);
	add(0, false);
	s.window.end_ns = 1000000000;
	struct segment_flush view = stored_view(&s);
	view.hz_lowest = 1000; /* this segment has 99 */
	ck_assert_int_eq(segment_flush(s.segment, &view), 0);
	window_clear(&s.window);
	stored_seal(&s);
	ck_assert(!said(s.db, NULL, "samples a second"));
}

TEST(a_rate_that_rose_is_the_label)
{
	stored_begin_clock(&s);
	add(0, false);
	s.window.end_ns = 1000000000;
	struct segment_flush view = stored_view(&s);
	view.hz = 963;
	ck_assert_int_eq(segment_flush(s.segment, &view), 0);
	view.hz = 500;
	ck_assert_int_eq(segment_update(s.segment, &view), 0);
	window_clear(&s.window);
	stored_seal(&s);
	sqlite3_stmt *st;
	ck_assert_int_eq(
		sqlite3_prepare_v2(s.db, "SELECT value FROM meta WHERE key = 'hz'", -1, &st, NULL),
		SQLITE_OK);
	ck_assert_int_eq(sqlite3_step(st), SQLITE_ROW);
	ck_assert_int_eq(sqlite3_column_int(st, 0), 963);
	sqlite3_finalize(st);
}

TEST(damaged_notes_are_left_out)
{
	begin();
	add(0, true);
	stored_seal(&s);
	sqlite3_close(s.db);
	ck_assert_int_eq(sqlite3_open(s.path, &s.db), SQLITE_OK);
	ck_assert_int_eq(sqlite3_exec(s.db,
				 "INSERT INTO meta VALUES ('note:', 1), ('note:0:900:x', 1),"
				 "('note:9999:0:y', 1), ('note:0:0:a sound one', 1)",
				 NULL, NULL, NULL),
		SQLITE_OK);
	ck_assert(said(s.db, NULL, "a sound one"));
	ck_assert(said(s.db, NULL, CYCLES_SAY));
	ck_assert_uint_eq(a.n_notes, 2);
}

TEST(notes_beyond_their_number_are_left_out)
{
	begin();
	add(0, true);
	stored_seal(&s);
	sqlite3_close(s.db);
	ck_assert_int_eq(sqlite3_open(s.path, &s.db), SQLITE_OK);
	ck_assert_int_eq(sqlite3_exec(s.db,
				 "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
				 "WHERE i < 2000) INSERT INTO meta SELECT 'note:0:0:x' || i, 1 "
				 "FROM n",
				 NULL, NULL, NULL),
		SQLITE_OK);
	ck_assert(said(s.db, NULL, "x"));
	ck_assert_uint_le(a.n_notes, ANSWER_NOTES_MAX);
}

/* --- names that had not come ------------------------------------------------------------------ */

/* 100 samples, of which so many have a frame that is in that state. */
static void seal_with(uint64_t n_unread, enum frame_state state)
{
	stored_begin_clock(&s);
	struct task *t = stored_task(&s, 100, 100, "prog");
	struct frame *named = stored_function(&s, "/bin/prog", "work");
	struct frame *unread = stored_frame(&s, FILE_KERNEL, "[kernel]", 0x1000);
	unread->state = state;
	stored_add(
		&s, &(struct stored_sample){.task = t, .count = 100 - n_unread, .frame = {named}});
	stored_add(&s, &(struct stored_sample){.task = t, .count = n_unread, .frame = {unread}});
	stored_seal(&s);
}

TEST(names_that_had_not_come_are_told)
{
	seal_with(81, FRAME_ASKED);
	ck_assert(said(s.db, NULL, "81 samples (81 %) have no names yet"));
	ck_assert_double_eq_tol(a.named_share, 0.19, 1e-9);
}

TEST(names_that_do_not_exist_are_not_waited_for_in_words)
{
	seal_with(81, FRAME_UNNAMED);
	ck_assert(!said(s.db, NULL, "have no names yet"));
}

TEST(an_address_beyond_all_symbols_was_read)
{
	seal_with(81, FRAME_OUT_OF_SYMBOL);
	ck_assert(!said(s.db, NULL, "have no names yet"));
}

TEST(one_name_in_a_hundred_is_not_worth_a_note)
{
	seal_with(1, FRAME_ASKED);
	ck_assert(!said(s.db, NULL, "have no names yet"));
}

TEST(samples_without_a_stack_wait_for_no_name)
{
	stored_begin_clock(&s);
	struct task *t = stored_task(&s, 100, 100, "prog");
	stored_add(&s, &(struct stored_sample){.task = t, .count = 100});
	stored_seal(&s);
	ck_assert(!said(s.db, NULL, "have no names yet"));
}

/* --- roll-ups --------------------------------------------------------------------------------- */

TEST(a_roll_up_has_the_notes_of_its_sources, .from = TIER_MINUTE,
	.times = TIER_HOUR + 1 - TIER_MINUTE)
{
	struct store_error error;
	char target[192];
	begin();
	add(0, true);
	stored_seal(&s);
	snprintf(target, sizeof(target), "%s/%s", s.folder, tier_name((enum tier)_i));
	int r = rollup_add(s.path, target, (enum tier)_i, &error);
	ck_assert_msg(r == 0, "%s", error.text);
	sqlite3 *db;
	ck_assert_int_eq(sqlite3_open_v2(target, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	ck_assert_int_eq(stored_number(db, "SELECT count(*) FROM meta WHERE key LIKE 'note:%'"), 1);
	ck_assert(said(db, NULL, CYCLES_SAY));
	sqlite3_close(db);
}

/* In the hour tier harts are the first of their kind: of what they say the worst holds. */
TEST(a_roll_up_has_the_worst_turns_of_its_sources)
{
	struct store_error error;
	char target[192];
	sqlite3 *db;
	begin();
	add(0, true);
	add(1, true);
	stored_seal(&s);
	ck_assert_int_eq(sqlite3_open_v2(s.path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
	ck_assert_int_eq(sqlite3_exec(db,
				 "INSERT INTO meta VALUES ('turn:0:2', 50), ('turn:1:2', 70), "
				 "('turn:0-1:3', 30), ('turn:1:3', 20), ('turn:1:x', 9)",
				 NULL, NULL, NULL),
		SQLITE_OK);
	sqlite3_close(db);
	ck_assert_int_eq(trailer_write_path(s.path), 0);
	snprintf(target, sizeof(target), "%s/hour", s.folder);
	int r = rollup_add(s.path, target, TIER_HOUR, &error);
	ck_assert_msg(r == 0, "%s", error.text);
	ck_assert_int_eq(sqlite3_open_v2(target, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	ck_assert_str_eq(
		stored_string(db, "SELECT group_concat(key || '=' || value) FROM (SELECT * FROM "
				  "meta WHERE key LIKE 'turn:%' ORDER BY key)"),
		"turn:0:2=70,turn:0:3=30");
	sqlite3_close(db);
}

/* --- harts that were planned anew ------------------------------------------------------------- */

TEST(samples_of_a_rung_that_came_later_are_shared_out)
{
	stored_folder(&s);
	stored_event(&s, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, "cycles");
	stored_event(&s, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, "cpu-clock");
	s.sampler.plan[0] = (struct plan){.rung = RUNG_CYCLES, .leader = s.sampler.events.event[0]};
	stored_begin(&s);
	struct task *t = stored_task(&s, 100, 100, "prog");
	stored_add(&s, &(struct stored_sample){.task = t, .weight_ns = 10});
	/* somebody took the counters: the clock goes on alone */
	s.sampler.plan[0] = (struct plan){.rung = RUNG_CLOCK, .leader = s.sampler.events.event[1]};
	stored_add(&s, &(struct stored_sample){.task = t, .event = 1, .weight_ns = 30});
	stored_seal(&s);
	ck_assert(!said(s.db, NULL, "also sampled"));
	ck_assert_double_eq(stored_real(&a, 0, "self_ns"), 40);
	ck_assert_ptr_nonnull(strstr(a.rung, "a: "));
	ck_assert_ptr_nonnull(strstr(a.rung, "d: "));

	struct store_error error;
	char target[192];
	snprintf(target, sizeof(target), "%s/minute", s.folder);
	ck_assert_int_eq(rollup_add(s.path, target, TIER_MINUTE, &error), 0);
	sqlite3 *db;
	ck_assert_int_eq(sqlite3_open_v2(target, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	ck_assert(!said(db, NULL, "also sampled"));
	ck_assert_double_eq(stored_real(&a, 0, "self_ns"), 40);
	sqlite3_close(db);
}
