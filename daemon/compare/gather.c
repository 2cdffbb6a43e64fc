/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The rows of all runs are kept as (run, key, samples) until all runs are there, since most functions of most runs
 * have so few samples that a table of all would be nearly empty.
 */
#include "daemon/compare/gather_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "daemon/query/loops/loop_sums.h"

/* Lines move from build to build, so a loop is identified by its position in its function. */
#define LOOP_LINE 3

int gather_by_parse(const char *name)
{
	const int by = query_by_parse(name);
	if (strcmp(name, "loop") == 0)
		return GATHER_BY_LOOP;
	return by >= 0 && query_by_kinds[by].n_names > 0 ? by : -1;
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
	callers_clear(&g->callers);
	gathered_table_clear(&g->table);
	free(g->values.cell);
	free(g->row);
	free(g->run);
	free(g->line);
	free(g);
	return NULL;
}

size_t gather_columns(const struct gather *g, const struct answer_column **ret_columns)
{
	*ret_columns = g->name;
	return g->n_names;
}

/* --- names ------------------------------------------------------------------------------------ */

static const char *without_folder(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash && slash[1] ? slash + 1 : path;
}

/* The text of a name in that column; build as in struct sums. 0, KEY_TABLE_FULL, -ENOMEM. */
static int name_text(struct gather *g, const char *column, const struct answer_value *name,
	const char *build, uint32_t *ret_id)
{
	char digits[24];
	if (name->kind == ANSWER_INTEGER) {
		snprintf(digits, sizeof(digits), "%lld", (long long)name->integer);
		return text_get(&g->texts, digits, ret_id);
	}
	const char *text = name->kind == ANSWER_TEXT ? name->text : NULL;
	if (strcmp(column, "function") == 0)
		return gather_function_text(
			&g->texts, text, build, g->run[g->n_runs - 1].candidate, ret_id);
	if (text && (strcmp(column, "module") == 0 || strcmp(column, "source") == 0))
		text = without_folder(text);
	return text_get(&g->texts, text, ret_id);
}

/* The key of a row's names. 0, KEY_TABLE_FULL, -ENOMEM. */
static int get_key(struct gather *g, const struct sums *s, uint32_t *ret_key)
{
	struct key key = {{0}};
	uint32_t text, line = 0;
	int r = 0;
	for (size_t i = 0; i < g->n_names && r == 0; i++) {
		r = name_text(g, g->name[i].name, &s->name[i], s->build, &text);
		key.part[i] = text;
	}
	/* only its first digits are in the function's name */
	if (r == 0 && s->build && (r = text_get(&g->texts, s->build, &text)) == 0)
		key.part[0] |= (uint64_t)text << 32;
	if (g->by == GATHER_BY_LOOP) {
		line = (uint32_t)key.part[LOOP_LINE];
		key.part[LOOP_LINE] = 0;
	}
	if (r == 0)
		r = key_get(&g->keys, &key, ret_key);
	if (r == 0 && g->by == GATHER_BY_LOOP)
		r = array_grow(&g->line, &g->size_lines, *ret_key + 1, sizeof(*g->line));
	if (r == 0 && line)
		g->line[*ret_key] = line;
	return r;
}

/* --- the sums of a run ------------------------------------------------------------------------ */

static int take_columns(void *userdata, const struct answer_column *name, size_t n_names,
	const struct sums_column *value, size_t n_values)
{
	struct gather *g = userdata;
	g->n_names = n_names;
	memcpy(g->name, name, n_names * sizeof(*name));
	gathered_values_begin(&g->values, value, n_values);
	return 0;
}

static int take_row(void *userdata, const struct sums *s)
{
	struct gather *g = userdata;
	struct run *run = &g->run[g->n_runs - 1];
	struct row row = {.run = g->n_runs - 1,
		.samples = s->samples,
		.ns = s->ns,
		.cycles = s->cycles,
		.instructions = s->instructions};
	run->cpu_ns += row.ns;
	gather_add_count(&run->cycles, row.cycles);
	gather_add_count(&run->instructions, row.instructions);
	if (row.samples <= 0 && g->by != GATHER_BY_LOOP) /* a loop's counts need none */
		return 0;
	if (g->n_rows == GATHER_ROWS_MAX)
		return GATHER_FULL;
	int r = get_key(g, s, &row.key);
	if (r == KEY_TABLE_FULL)
		return GATHER_FULL;
	if (r == 0)
		r = array_grow(&g->row, &g->size_rows, g->n_rows + 1, sizeof(*g->row));
	if (r == 0)
		r = gathered_values_add(&g->values, &row, s->value);
	if (r == 0)
		g->row[g->n_rows++] = row;
	return r;
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
		return 0; /* the query will report the error */
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

struct sums_reader gather_reader(struct gather *g)
{
	return (struct sums_reader){take_columns, take_row, take_provenance, g};
}

int gather_begin(struct gather *g, bool candidate, int64_t begin_ns)
{
	int r = array_grow(&g->run, &g->size_runs, g->n_runs + 1, sizeof(*g->run));
	if (r == 0)
		g->run[g->n_runs++] = (struct run){.candidate = candidate,
			.begin_ns = begin_ns,
			.cycles = -1,
			.instructions = -1};
	return r;
}

static int ask(struct gather *g, const struct query_question *question, struct query_source *source,
	size_t n_sources, struct query_error *ret_error)
{
	const struct sums_reader reader = gather_reader(g);
	struct query_question of = *question;
	if (g->by == GATHER_BY_LOOP)
		return query_loop_sums(source, n_sources, question->filter, &reader, ret_error);
	of.by = (enum query_by)g->by;
	return query_hotspot_sums(source, n_sources, &of, &reader, ret_error);
}

int gather_run(struct gather *g, bool candidate, sqlite3 *db, const struct query_question *question,
	struct query_error *ret_error)
{
	int64_t begin_ns = 0;
	int r = read_begin(db, &begin_ns, ret_error);
	if (r == 0)
		r = gather_begin(g, candidate, begin_ns);
	if (r != 0)
		return r;
	struct run *run = &g->run[g->n_runs - 1];
	r = read_meta(g, db, "arch", &run->arch);
	if (r == 0)
		r = read_meta(g, db, "host", &run->host);
	if (r == 0)
		r = ask(g, question, &(struct query_source){.db = db}, 1, ret_error);
	if (r == 0 && g->by == QUERY_BY_FUNCTION)
		r = callers_read(&g->callers, &g->texts, candidate, db, ret_error);
	return r;
}

int gather_store_run(struct gather *g, bool candidate, int64_t begin_ns,
	struct query_source *source, size_t n_sources, const struct query_question *question,
	struct query_error *ret_error)
{
	struct utsname u = {"", "", "", "", "", ""};
	int r = gather_begin(g, candidate, begin_ns);
	(void)uname(&u);
	if (r == 0)
		r = text_get(&g->texts, u.machine, &g->run[g->n_runs - 1].arch);
	if (r == 0)
		r = text_get(&g->texts, u.nodename, &g->run[g->n_runs - 1].host);
	return r == 0 ? ask(g, question, source, n_sources, ret_error) : -ENOMEM;
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
