/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Running merge.sql: its sections, in their order, window by window
 *
 * The samples of one minute or hour of the target are added up in temporary tables, folded if there are too
 * many sums, and written with the names that they need. So memory depends on the sums of one minute or hour
 * and on the names, not on the length of the source.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/sampler/stream.h"
#include "daemon/store/rollup/merge.h"
#include "daemon/store/segment/open.h"

/* --- the source ------------------------------------------------------------------------------- */

static int attach(struct merge *m)
{
	sqlite3_stmt *st = NULL;
	m->side = MERGE_THEIRS;
	sqlite3_limit(m->db, SQLITE_LIMIT_ATTACHED, 1);
	_cleanup_(freep) char *uri = segment_uri_of(m->rollup->source);
	if (!uri)
		return -ENOMEM;
	int rc = sqlite3_prepare_v2(m->db, "ATTACH ? AS source", -1, &st, NULL);
	if (rc == SQLITE_OK) {
		sqlite3_bind_text(st, 1, uri, -1, SQLITE_STATIC);
		rc = sqlite3_step(st);
		rc = rc == SQLITE_DONE ? SQLITE_OK : rc;
	}
	sqlite3_finalize(st);
	sqlite3_limit(m->db, SQLITE_LIMIT_ATTACHED, 0);
	return merge_outcome(m, rc);
}

/* Find the last sample of the windows up to :last by bisection, since samples are in the order of their windows. */
static int find_last(struct merge *m, int64_t highest)
{
	sqlite3_stmt *st = NULL;
	m->side = MERGE_THEIRS;
	int rc = sqlite3_prepare_v2(m->db,
		"SELECT id, window FROM source.sample WHERE id > ? ORDER BY id LIMIT 1", -1, &st,
		NULL);
	m->upto = m->after;
	while (rc == SQLITE_OK && m->upto < highest) {
		int64_t middle = m->upto + (highest - m->upto) / 2;
		sqlite3_bind_int64(st, 1, middle);
		rc = sqlite3_step(st);
		/* An id that is no number is above all of them, and reads as 0. */
		if (rc == SQLITE_ROW && sqlite3_column_int64(st, 0) > middle &&
			sqlite3_column_int64(st, 1) <= m->last)
			m->upto = sqlite3_column_int64(st, 0);
		else
			highest = middle;
		int reset = sqlite3_reset(st);
		rc = rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : reset;
	}
	sqlite3_finalize(st);
	return merge_outcome(m, rc);
}

/* --- one window of the target ----------------------------------------------------------------- */

/* Find how many rows this hour may still have; those of its other sources are the last ones in the file. */
static int rows_left(struct merge *m)
{
	int64_t n;
	int outcome = merge_number(m,
		"SELECT count(*) FROM (SELECT window FROM main.sample ORDER BY id DESC "
		"LIMIT :hour_rows) s JOIN main.window w ON w.id = s.window "
		"WHERE w.realtime_ns = :realtime",
		&n);
	n = ROLLUP_HOUR_ROWS - n;
	m->room = n > ROLLUP_HOUR_ROWS / 8 ? n : ROLLUP_HOUR_ROWS / 8;
	return outcome;
}

static int fold(struct merge *m, int64_t n)
{
	int64_t n_kept;
	int outcome = rows_left(m);
	if (outcome != 0 || n <= m->room)
		return outcome;
	for (m->fold = 0; m->fold < 3 && n > m->room && outcome == 0; m->fold++) {
		outcome = merge_section(m, m->fold == 0 ? "order" : "reorder", MERGE_THEIRS);
		if (outcome == 0)
			outcome = merge_section(m, "fold", MERGE_THEIRS);
		if (outcome == 0)
			outcome = merge_number(m,
				"SELECT count(*) FROM temp.moved WHERE into_sum IS NULL", &n_kept);
		if (outcome == 0)
			outcome = merge_number(m,
				"SELECT count(DISTINCT into_sum) FROM temp.tally WHERE NOT kept",
				&n);
		m->room -= n_kept;
	}
	return outcome == 0 ? merge_section(m, "regroup", MERGE_THEIRS) : outcome;
}

static int fold_shares(struct merge *m)
{
	int64_t n = 0;
	struct shares *shares = m->rollup->shares;
	shares_refill(shares, shares->filled_ns);
	m->fold = 3;
	int outcome = merge_section(m, "order", MERGE_THEIRS);
	if (outcome == 0)
		outcome = merge_section(m, "share", MERGE_THEIRS);
	if (outcome == 0)
		outcome = merge_number(
			m, "SELECT count(*) FROM temp.tally WHERE into_sum <> sum", &n);
	return outcome == 0 && n > 0 ? merge_section(m, "regroup", MERGE_THEIRS) : outcome;
}

static int fold_loops(struct merge *m)
{
	int64_t n;
	int outcome = merge_number(m, "SELECT count(DISTINCT at) FROM temp.loop", &n);
	return outcome == 0 && n > ROLLUP_HOUR_LOOPS ? merge_section(m, "loop_fold", MERGE_THEIRS)
						     : outcome;
}

struct step {
	const char *name;
	enum merge_side side;
};

static int take_steps(struct merge *m, const struct step *step, size_t n)
{
	int outcome = 0;
	for (size_t i = 0; i < n && outcome == 0; i++)
		outcome = merge_section(m, step[i].name, step[i].side);
	return outcome;
}

static const struct step names[] = {{"give", MERGE_MAIN}, {"fetch", MERGE_THEIRS},
	{"describe", MERGE_MAIN}, {"files", MERGE_THEIRS}};
#define N_NAMES (sizeof(names) / sizeof(*names))

static int write_window(struct merge *m)
{
	static const struct step rows[] = {
		{"losses", MERGE_THEIRS}, {"write", MERGE_MAIN}, {"loops", MERGE_MAIN}};
	m->window++;
	int outcome = take_steps(m, rows, sizeof(rows) / sizeof(*rows));
	return outcome == 0 ? take_steps(m, names, N_NAMES) : outcome;
}

/* Write the processes of a job that no window has written. */
static int write_job(struct merge *m)
{
	if (!m->rollup->only)
		return 0;
	int outcome = merge_section(m, "job", MERGE_THEIRS);
	if (outcome == 0)
		outcome = take_steps(m, names, N_NAMES);
	return outcome == 0 ? merge_section(m, "end", MERGE_MAIN) : outcome;
}

/* Sums of minutes and hours have no seconds. Files of earlier versions do not, either. */
static int write_seconds(struct merge *m)
{
	int64_t is_there = 0;
	m->side = MERGE_THEIRS;
	int outcome = m->rollup->tier == TIER_WINDOW
			      ? merge_number(m,
					"SELECT 1 FROM source.sqlite_schema WHERE name = 'second'",
					&is_there)
			      : 0;
	if (outcome != 0 || !is_there)
		return outcome;
	outcome = merge_section(m, "seconds_taken", MERGE_THEIRS);
	return outcome == 0 ? merge_section(m, "seconds", MERGE_MAIN) : outcome;
}

/* Pass over a window that an extract does not take. */
static int pass_window(struct merge *m, int64_t highest)
{
	int outcome = find_last(m, highest);
	m->after = m->upto;
	return outcome;
}

static int take_window(struct merge *m, int64_t highest)
{
	int64_t n = 0, n_loops = 0;
	int outcome = find_last(m, highest);
	if (outcome == 0)
		outcome = merge_take_samples(m);
	if (outcome == 0)
		outcome = merge_section(m, "take", MERGE_THEIRS);
	m->side = MERGE_MAIN;
	if (outcome == 0)
		outcome = merge_number(m, "SELECT count(*) FROM temp.tally", &n);
	if (outcome == 0)
		outcome = merge_number(m, "SELECT count(*) FROM temp.loop", &n_loops);
	bool has = !m->rollup->only || n > 0 || n_loops > 0; /* else the job did not run then */
	if (outcome == 0 && m->rollup->tier == TIER_HOUR)
		outcome = fold(m, n);
	if (outcome == 0 && m->rollup->tier == TIER_HOUR)
		outcome = fold_loops(m);
	if (outcome == 0 && m->rollup->shares && n > 0)
		outcome = fold_shares(m);
	if (outcome == 0)
		outcome = merge_number(m, "SELECT count(*) FROM temp.tally", &n);
	if (outcome == 0 && has)
		outcome = write_window(m);
	if (outcome == 0 && has)
		outcome = write_seconds(m);
	if (outcome == 0)
		outcome = merge_section(m, "end", MERGE_MAIN);
	m->base += n;
	m->rollup->n_rows += n + n_loops;
	m->after = m->upto;
	merge_forget(&m->of[MERGE_SUM]);
	merge_forget(&m->of[MERGE_LOOP]);
	return outcome;
}

static int take_windows(struct merge *m)
{
	sqlite3_stmt *st = NULL;
	int64_t highest;
	int outcome = merge_number(m, "SELECT max(id) FROM main.window", &m->window);
	if (outcome == 0)
		outcome = merge_number(m, "SELECT max(id) FROM main.sample", &m->base);
	m->side = MERGE_THEIRS;
	if (outcome == 0)
		outcome = merge_number(m, "SELECT max(id) FROM source.sample", &highest);
	if (outcome != 0)
		return outcome;
	int rc = sqlite3_prepare_v2(m->db,
		"SELECT run, min(id), max(id), min(start_ns), max(end_ns), min(realtime_ns) "
		"FROM temp.window GROUP BY run ORDER BY run",
		-1, &st, NULL);
	while (rc == SQLITE_OK && outcome == 0 && (rc = sqlite3_step(st)) == SQLITE_ROW) {
		m->run = sqlite3_column_int64(st, 0);
		m->first = sqlite3_column_int64(st, 1);
		m->last = sqlite3_column_int64(st, 2);
		m->start_ns = sqlite3_column_int64(st, 3);
		m->end_ns = sqlite3_column_int64(st, 4);
		m->realtime_ns = sqlite3_column_int64(st, 5);
		outcome = extract_takes_window(m->rollup->choice, m->first)
				  ? take_window(m, highest)
				  : pass_window(m, highest);
		rc = SQLITE_OK;
	}
	sqlite3_finalize(st);
	if (outcome == 0)
		outcome = merge_outcome(m, rc);
	if (outcome == 0)
		outcome = write_job(m);
	return outcome == 0 ? merge_section(m, "left", MERGE_THEIRS) : outcome;
}

/* --- all of it -------------------------------------------------------------------------------- */

static void forget_ids(struct merge *m)
{
	for (int i = 0; i < N_MERGE_DICTIONARIES; i++) {
		free(m->of[i].entry);
		m->of[i].entry = NULL;
		m->of[i].n_ids = 0;
	}
}

/* A file has one boot; a new file takes that of its source. */
static int begin(struct merge *m)
{
	int64_t same;
	int outcome = merge_section(m, "said", MERGE_THEIRS);
	if (outcome == 0 && m->rollup->is_new)
		outcome = merge_section(m, "new", MERGE_MAIN);
	m->side = MERGE_MAIN;
	if (outcome == 0)
		outcome = merge_number(m,
			"SELECT s.value IS m.value FROM temp.said s LEFT JOIN main.meta m USING "
			"(key) "
			"WHERE key = 'boot_id'",
			&same);
	if (outcome == 0 && !same)
		outcome = rollup_fail(m->rollup, ROLLUP_OTHER_BOOT, m->rollup->target_path,
			"Each boot needs files of its own",
			"belongs to another boot of the machine");
	return outcome;
}

static int run(struct merge *m)
{
	m->side = MERGE_MAIN;
	int outcome = rollup_exec(m->rollup, "PRAGMA temp.journal_mode = OFF");
	if (outcome == 0)
		outcome = merge_outcome(m, merge_functions(m));
	if (outcome == 0)
		outcome = merge_make(m);
	if (outcome == 0)
		outcome = attach(m);
	if (outcome == 0)
		outcome = begin(m);
	if (outcome == 0)
		outcome = merge_section(m, "dictionaries", MERGE_MAIN);
	if (outcome == 0)
		outcome = merge_section(m, "loops_loaded", MERGE_MAIN);
	forget_ids(m);
	if (outcome == 0)
		outcome = merge_section(m, "dictionaries", MERGE_THEIRS);
	if (outcome == 0)
		outcome = merge_section(m, "translate", MERGE_THEIRS);
	if (outcome == 0)
		outcome = merge_section(m, "begin", MERGE_MAIN);
	return outcome == 0 ? take_windows(m) : outcome;
}

int merge_run(struct rollup *r)
{
	struct merge *m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	m->rollup = r;
	m->db = r->target;
	for (int16_t i = 0; i < HARTS_MAX; i++)
		m->hart_as[i] = i;
	int outcome = run(m);
	for (size_t i = 0; i < m->n_sections; i++)
		for (size_t k = 0; k < m->section[i].n; k++)
			sqlite3_finalize(m->section[i].statement[k]);
	for (int i = 0; i < N_MERGE_DICTIONARIES; i++)
		merge_entries_clear(&m->of[i]);
	text_table_clear(&m->texts);
	free(m->tally);
	free(m->counted);
	free(m->path.entry);
	free(m);
	return outcome;
}
