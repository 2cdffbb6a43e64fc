/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* The sections of merge.sql: found in its text, prepared once for each side, and run with the merge's parameters */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/aggregate/seconds.h"
#include "daemon/sampler/stream.h"
#include "daemon/store/rollup/merge.h"

static const char text[] =
#include "daemon/store/rollup/merge.sql.inc"
	;

/* The meaning of SQLite's result, by the side that is read or written. A value that a column refuses comes from the
 * source, whichever side it is written to. */
int merge_outcome(struct merge *m, int rc)
{
	const bool no_value = rc == SQLITE_CONSTRAINT_NOTNULL || (rc & 0xff) == SQLITE_TOOBIG;
	const bool target = m->side == MERGE_MAIN && !no_value;
	return target || (rc & 0xff) == SQLITE_FULL ? rollup_target_outcome(m->rollup, rc)
						    : rollup_source_outcome(m->rollup, m->db, rc);
}

/* A section's text, with each @table replaced by the side's table. The caller frees. */
static char *section_text(const char *name, enum merge_side side)
{
	char head[64], *made = NULL;
	size_t n = 0;
	snprintf(head, sizeof(head), "\n-- [%s] ", name);
	const char *from = strstr(text, head), *end;
	if (!from)
		return NULL;
	from += strlen(head);
	end = strstr(from, "\n-- [");
	end = end ? end : from + strlen(from);
	FILE *f = open_memstream(&made, &n);
	if (!f)
		return NULL;
	for (from += strcspn(from, "\n"); from < end; from++) {
		if (*from == '@')
			fputs(side == MERGE_MAIN ? "main." : "source.", f);
		else
			fputc(*from, f);
	}
	return fclose(f) == 0 ? made : (free(made), NULL);
}

static int prepare(struct merge *m, struct merge_section *s)
{
	_cleanup_(freep) char *sql = section_text(s->name, s->side);
	int rc = SQLITE_OK;
	if (!sql)
		return SQLITE_NOMEM;
	for (const char *at = sql; rc == SQLITE_OK && *at;) {
		sqlite3_stmt *st = NULL;
		rc = sqlite3_prepare_v3(m->db, at, -1, SQLITE_PREPARE_PERSISTENT, &st, &at);
		if (rc == SQLITE_OK && st)
			s->statement[s->n++] = st;
		if (s->n == MERGE_STATEMENTS_MAX)
			return SQLITE_NOMEM;
		/* its tables must be there before the statements that use them are prepared */
		if (rc == SQLITE_OK && st && strcmp(s->name, "make") == 0) {
			rc = sqlite3_step(st) == SQLITE_DONE ? SQLITE_OK : SQLITE_ERROR;
			sqlite3_reset(st);
		}
	}
	return rc;
}

static void bind(struct merge *m, sqlite3_stmt *st)
{
	const struct {
		const char *name;
		int64_t value;
	} number[] = {{":tier", m->rollup->tier}, {":step", (int64_t)tier_step_ns(m->rollup->tier)},
		{":run", m->run}, {":first", m->first}, {":last", m->last}, {":start", m->start_ns},
		{":end", m->end_ns}, {":realtime", m->realtime_ns}, {":after", m->after},
		{":upto", m->upto}, {":window", m->window}, {":base", m->base}, {":room", m->room},
		{":fold", m->fold}, {":hour_rows", ROLLUP_HOUR_ROWS},
		{":hour_loops", ROLLUP_HOUR_LOOPS}, {":harts", HARTS_MAX},
		{":metrics", MERGE_METRICS_MAX}, {":sample_bytes", SHARE_SAMPLE_BYTES},
		{":reading_bytes", SHARE_READING_BYTES}, {":hide", m->rollup->hide_kernel},
		{":seconds", SECONDS_MAX},
		{":narrow", m->rollup->choice && m->rollup->choice->task}};
	for (int i = 1; i <= sqlite3_bind_parameter_count(st); i++) {
		const char *name = sqlite3_bind_parameter_name(st, i);
		for (size_t k = 0; k < sizeof(number) / sizeof(*number); k++)
			if (strcmp(name, number[k].name) == 0)
				sqlite3_bind_int64(st, i, number[k].value);
		if (strcmp(name, ":only") == 0)
			sqlite3_bind_text(st, i, m->rollup->only, -1, SQLITE_STATIC);
		if (strcmp(name, ":not_stored") == 0)
			sqlite3_bind_text(st, i, loss_kinds[LOSS_STORE].name, -1, SQLITE_STATIC);
		if (strcmp(name, ":truncated") == 0)
			sqlite3_bind_text(
				st, i, loss_kinds[LOSS_STACK_TRUNCATED].name, -1, SQLITE_STATIC);
		if (strcmp(name, ":over_share") == 0)
			sqlite3_bind_text(st, i, loss_kinds[LOSS_SHARE].name, -1, SQLITE_STATIC);
	}
}

/* The section, whose statements are prepared at its first use. */
static int find_section(
	struct merge *m, const char *name, enum merge_side side, struct merge_section **ret_section)
{
	struct merge_section *s = m->section;
	while (s < m->section + m->n_sections && (s->side != side || strcmp(s->name, name) != 0))
		s++;
	*ret_section = s;
	m->side = side;
	if (s < m->section + m->n_sections)
		return 0;
	m->n_sections++;
	*s = (struct merge_section){.name = name, .side = side};
	return merge_outcome(m, prepare(m, s));
}

int merge_step(struct merge *m, sqlite3_stmt *st)
{
	int rc;
	do
		rc = sqlite3_step(st);
	while (rc == SQLITE_ROW);
	int reset = sqlite3_reset(st);
	return merge_outcome(m, rc == SQLITE_DONE ? SQLITE_OK : reset);
}

int merge_section(struct merge *m, const char *name, enum merge_side side)
{
	struct merge_section *s;
	int outcome = find_section(m, name, side, &s);
	for (size_t i = 0; outcome == 0 && i < s->n; i++) {
		bind(m, s->statement[i]);
		outcome = merge_step(m, s->statement[i]);
	}
	return outcome;
}

int merge_make(struct merge *m)
{
	struct merge_section *made;
	return find_section(m, "make", MERGE_MAIN, &made);
}

int merge_statement(struct merge *m, const char *name, sqlite3_stmt **ret_statement)
{
	struct merge_section *s;
	int outcome = find_section(m, name, MERGE_THEIRS, &s);
	if (outcome == 0) {
		*ret_statement = s->statement[0];
		bind(m, *ret_statement);
	}
	return outcome;
}

/* The first row's first column. */
int merge_number(struct merge *m, const char *sql, int64_t *ret_n)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(m->db, sql, -1, &st, NULL);
	if (rc == SQLITE_OK) {
		bind(m, st);
		rc = sqlite3_step(st);
	}
	*ret_n = rc == SQLITE_ROW ? sqlite3_column_int64(st, 0) : 0;
	sqlite3_finalize(st);
	return merge_outcome(m, rc);
}
