/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Rows are kept as (run, key, samples) until all runs are there, since most functions of most runs
 * have so few samples that a table of all would be nearly empty.
 */
#include "daemon/compare/gather_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "daemon/query/loops/loop_rows.h"

/* By way of grouping: its parts, which are its columns. */
static const struct answer_column columns_of[N_QUERY_BY + 1][GATHER_PARTS + 1] = {
	[QUERY_BY_FUNCTION] = {{"function", "Function", 0}, {"module", "Module", 0}},
	[QUERY_BY_MODULE] = {{"module", "Module", 0}},
	[QUERY_BY_PROCESS] = {{"comm", "Process", 0}},
	[QUERY_BY_THREAD] = {{"comm", "Thread", 0}},
	[QUERY_BY_CGROUP] = {{"cgroup", "Control group", 0}},
	[QUERY_BY_JOB] = {{"job", "Job", 0}},
	[QUERY_BY_LINE] = {{"function", "Function", 0}, {"source", "Source", 0},
		{"line", "Line", 0}, {"module", "Module", 0}},
	[QUERY_BY_HART] = {{"hart", "Hart", 0}},
	[GATHER_BY_LOOP] = {{"function", "Function", 0}, {"nest", "Nest", 0},
		{"source", "Source", 0}, {"line", "Line", 0}},
};
/* Lines move from build to build: a loop is the same by its place in its function. */
#define LOOP_LINE 3

int gather_by_parse(const char *name)
{
	const int by = strcmp(name, "loop") == 0 ? GATHER_BY_LOOP : query_by_parse(name);
	return by == QUERY_BY_THREAD || by == QUERY_BY_HART || by == QUERY_BY_ADDRESS ? -1 : by;
}

int gather_new(int by, struct gather **ret_gather)
{
	struct gather *g = calloc(1, sizeof(*g));
	if (!g)
		return -ENOMEM;
	g->by = by;
	*ret_gather = g;
	return 0;
}

struct gather *gather_free(struct gather *g)
{
	if (!g)
		return NULL;
	text_table_clear(&g->texts);
	key_table_clear(&g->keys);
	kin_clear(&g->kin);
	free(g->row);
	free(g->run);
	free(g->table);
	free(g->total);
	free(g->weight);
	free(g->time_ns);
	free(g->counts);
	free(g->run_counts);
	free(g->candidate);
	free(g->begin_ns);
	free(g->key);
	free(g->cell);
	free(g->first_cell);
	free(g->line);
	free(g);
	return NULL;
}

size_t gather_columns(const struct gather *g, const struct answer_column **ret_columns)
{
	size_t n = 0;
	*ret_columns = columns_of[g->by];
	while (columns_of[g->by][n].name)
		n++;
	return n;
}

/* --- rows of a run ---------------------------------------------------------------------------- */

static int find_column(const struct answer_column *c, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(c[i].name, name) == 0)
			return (int)i;
	return -1;
}

static int take_columns(void *userdata, const struct answer_column *c, size_t n)
{
	struct gather *g = userdata;
	const struct answer_column *parts;
	const size_t n_parts = gather_columns(g, &parts);

	for (size_t i = 0; i < GATHER_PARTS; i++)
		g->part[i] = i < n_parts ? find_column(c, n, parts[i].name) : -1;
	g->samples = find_column(c, n, "samples");
	g->ns = find_column(c, n, "self_ns");
	g->cycles = find_column(c, n, "cycles");
	g->instructions = find_column(c, n, "instructions");
	gather_find_values(g, c, n);
	return g->samples >= 0 && g->ns >= 0 ? 0 : -EPROTO;
}

static double number_of(const struct answer_value *v)
{
	return v->kind == ANSWER_INTEGER ? (double)v->integer
	       : v->kind == ANSWER_REAL  ? v->real
					 : 0;
}

/* Count of a row; negative: not counted. */
static double count_of(const struct answer_value *v, int column)
{
	return column >= 0 && v[column].kind != ANSWER_ABSENT ? number_of(&v[column]) : -1;
}

static const char *without_folder(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash && slash[1] ? slash + 1 : path;
}

/* The text of a part of a row's name. 0, KEY_TABLE_FULL, -ENOMEM. */
static int text_id(struct gather *g, size_t part, const struct answer_value *v, uint64_t *ret_id)
{
	const char *column = columns_of[g->by][part].name;
	_cleanup_(freep) char *made = NULL;
	const char *text = v->kind == ANSWER_TEXT ? v->text : NULL;
	uint32_t id = 0;

	if (v->kind == ANSWER_INTEGER && asprintf(&made, "%lld", (long long)v->integer) < 0)
		return -ENOMEM;
	if (text && (strcmp(column, "module") == 0 || strcmp(column, "source") == 0))
		text = without_folder(text);
	if (text && strcmp(column, "function") == 0 &&
		!(made = strndup(text, gather_name_length(text))))
		return -ENOMEM;
	int r = text_get(&g->texts, made ? made : text, &id);
	*ret_id = id;
	return r;
}

/* 0, KEY_TABLE_FULL, -ENOMEM. */
static int get_key(struct gather *g, struct key *key, uint32_t *ret_key)
{
	const uint32_t line = (uint32_t)key->part[LOOP_LINE];
	if (g->by != GATHER_BY_LOOP)
		return key_get(&g->keys, key, ret_key);
	key->part[LOOP_LINE] = 0;
	int r = key_get(&g->keys, key, ret_key);
	if (r == 0)
		r = array_grow(&g->line, &g->size_lines, *ret_key + 1, sizeof(*g->line));
	if (r == 0 && line)
		g->line[*ret_key] = line;
	return r;
}

static int take_row(void *userdata, const struct answer_value *v, size_t n)
{
	struct gather *g = userdata;
	struct key key = {{0}};
	struct row row = {.run = g->n_runs - 1};
	int r = 0;

	(void)n;
	row.samples = number_of(&v[g->samples]);
	row.ns = number_of(&v[g->ns]);
	row.cycles = count_of(v, g->cycles);
	row.instructions = count_of(v, g->instructions);
	g->run[row.run].cpu_ns += row.ns;
	gather_add_count(&g->run[row.run].cycles, row.cycles);
	gather_add_count(&g->run[row.run].instructions, row.instructions);
	if (row.samples <= 0 && g->by != GATHER_BY_LOOP) /* a loop's counts need none */
		return 0;
	if (g->n_rows == GATHER_ROWS_MAX)
		return GATHER_FULL;
	for (size_t i = 0; i < GATHER_PARTS && r == 0; i++)
		if (g->part[i] >= 0)
			r = text_id(g, i, &v[g->part[i]], &key.part[i]);
	if (r == 0)
		r = get_key(g, &key, &row.key);
	if (r == KEY_TABLE_FULL)
		return GATHER_FULL;
	if (r == 0)
		r = array_grow(&g->row, &g->size_rows, g->n_rows + 1, sizeof(*g->row));
	if (r == 0)
		g->row[g->n_rows++] = row;
	return r == 0 ? gather_take_values(g, &row, v) : r;
}

static int take_provenance(void *userdata, const struct answer_provenance *p)
{
	struct gather *g = userdata;
	struct run *run = &g->run[g->n_runs - 1];

	run->hz = p->hz;
	run->samples = p->samples;
	for (uint32_t i = 0; i < p->n_losses; i++)
		run->lost += p->loss[i].samples ? p->loss[i].count : 0;
	int r = text_get(&g->texts, p->event, &run->event);
	if (r == 0)
		r = text_get(&g->texts, p->rung, &run->rung);
	return r < 0 ? -ENOMEM : 0;
}

/* A text of meta, 0 if it is not there. */
static int read_meta(struct gather *g, sqlite3 *db, const char *key, uint32_t *ret_text)
{
	sqlite3_stmt *statement;
	int r = 0;
	if (sqlite3_prepare_v2(db, "SELECT value FROM meta WHERE key = ?1", -1, &statement, NULL) !=
		SQLITE_OK)
		return 0; /* the query finds what is wrong */
	sqlite3_bind_text(statement, 1, key, -1, SQLITE_STATIC);
	if (sqlite3_step(statement) == SQLITE_ROW)
		r = text_get(&g->texts, (const char *)sqlite3_column_text(statement, 0), ret_text);
	sqlite3_finalize(statement);
	return r < 0 ? r : 0;
}

/* CLOCK_REALTIME of the first window; 0: there is none. 0 or QUERY_FAILED. */
static int read_begin(sqlite3 *db, int64_t *ret_begin_ns, struct query_error *ret_error)
{
	sqlite3_stmt *statement;
	int r = sqlite3_prepare_v2(
		db, "SELECT realtime_ns FROM window ORDER BY id LIMIT 1", -1, &statement, NULL);
	if (r == SQLITE_OK)
		r = sqlite3_step(statement);
	if (r == SQLITE_ROW)
		*ret_begin_ns = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	if (r == SQLITE_ROW || r == SQLITE_DONE)
		return 0;
	snprintf(ret_error->text, sizeof(ret_error->text), "the file is damaged: %s",
		sqlite3_errmsg(db));
	ret_error->kind = MPERF__FAILURE_KIND__FAILURE_BROKEN;
	return QUERY_FAILED;
}

/* 0 or -ENOMEM. */
static int begin_run(struct gather *g, bool candidate, int64_t begin_ns)
{
	int r = array_grow(&g->run, &g->size_runs, g->n_runs + 1, sizeof(*g->run));
	if (r == 0)
		g->run[g->n_runs++] = (struct run){.candidate = candidate,
			.begin_ns = begin_ns,
			.cycles = -1,
			.instructions = -1};
	return r;
}

/* All rows of a run. */
static int ask(const struct gather *g, const struct query_question *question,
	struct query_source *source, size_t n_sources, const struct answer *answer,
	struct query_error *ret_error)
{
	struct query_question of = *question;
	if (g->by == GATHER_BY_LOOP)
		return query_loop_rows(source, n_sources, question->filter, answer, ret_error);
	of.by = (enum query_by)g->by;
	of.limit = 0;
	return query_hotspots(source, n_sources, &of, answer, ret_error);
}

int gather_run(struct gather *g, bool candidate, sqlite3 *db, const struct query_question *question,
	struct query_error *ret_error)
{
	const struct answer answer = {take_columns, take_row, take_provenance, g};
	int64_t begin_ns = 0;
	int r = read_begin(db, &begin_ns, ret_error);
	if (r == 0)
		r = begin_run(g, candidate, begin_ns);
	if (r != 0)
		return r;
	struct run *run = &g->run[g->n_runs - 1];
	r = read_meta(g, db, "arch", &run->arch);
	if (r == 0)
		r = read_meta(g, db, "host", &run->host);
	if (r == 0)
		r = ask(g, question, &(struct query_source){.db = db}, 1, &answer, ret_error);
	if (r == 0 && g->by == QUERY_BY_FUNCTION)
		r = kin_read(g, candidate, db, ret_error);
	return r;
}

int gather_store_run(struct gather *g, bool candidate, int64_t begin_ns,
	struct query_source *source, size_t n_sources, const struct query_question *question,
	struct query_error *ret_error)
{
	const struct answer answer = {take_columns, take_row, take_provenance, g};
	struct utsname u = {"", "", "", "", "", ""};
	int r = begin_run(g, candidate, begin_ns);
	(void)uname(&u);
	if (r == 0)
		r = text_get(&g->texts, u.machine, &g->run[g->n_runs - 1].arch);
	if (r == 0)
		r = text_get(&g->texts, u.nodename, &g->run[g->n_runs - 1].host);
	return r == 0 ? ask(g, question, source, n_sources, &answer, ret_error) : -ENOMEM;
}

static const char *text_or_none(const struct gather *g, uint32_t text)
{
	const char *t = text_of(&g->texts, text);
	return t ? t : "";
}

struct gathered_source gather_source(const struct gather *g, size_t run)
{
	const struct run *of = &g->run[run];
	return (struct gathered_source){
		.event = text_or_none(g, of->event),
		.rung = text_or_none(g, of->rung),
		.arch = text_or_none(g, of->arch),
		.host = text_or_none(g, of->host),
		.hz = of->hz,
		.samples = of->samples,
		.lost = of->lost,
		.ns = of->cpu_ns,
	};
}
