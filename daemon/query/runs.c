/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A file has few labels, so these are matched first. Only a file with requested labels is read
 * through, to find the windows with their samples. Files are read from the newest on, so that the
 * last runs are found without reading the whole store.
 */
#include "daemon/query/runs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/query/filter.h"
#include "daemon/query/job_label.h"
#include "daemon/query/run_keys.h"
#include "daemon/query/sources.h"
#include "proto/base/hash_table.h"
#include "proto/base/memory.h"

/* A run while files are read. */
struct running {
	struct found_run found;
	/* of this file: does the run have samples there; its first window, on the monotonic
	 * clock */
	bool here;
	int64_t first_ns, first_end_ns, begin_ns;
};

struct search {
	const struct runs_wish *wish;
	bool by_cgroup; /* the request has labels of control groups */
	struct running *run;
	uint32_t n, size;
	struct run_key *at; /* by key */
	/* difference of the clocks in the newest file of each boot */
	struct {
		char id[KERNEL_BOOT_ID_BYTES];
		int64_t offset_ns;
	} boot[64];
	size_t n_boots;
	struct run_key *alive; /* by key: runs that have not ended */
	/* of this file */
	const struct query_source *source;
	struct part *file;
};

struct span {
	int64_t start_ns, end_ns, realtime_ns;
};

/* Parts of one file that the search needs. Run is one more than its index; 0: none. */
struct part {
	/* without_…: the times that pins have */
	uint32_t *run_of_set, *run_of_task, *without_of_set, *without_of_task;
	int64_t *start_of_task;
	struct span *window;
	uint32_t n_sets, n_tasks, n_windows;
	int64_t offset_ns;
	enum tier tier;
};

static void part_clear(struct part *f)
{
	free(f->run_of_set);
	free(f->run_of_task);
	free(f->without_of_set);
	free(f->without_of_task);
	free(f->start_of_task);
	free(f->window);
	*f = (struct part){0};
}

/* --- statements ------------------------------------------------------------------------------- */

static int fail(sqlite3 *db, struct query_error *error)
{
	return query_fail_sqlite(error, "the file", db, sqlite3_errcode(db));
}

/* Call take for each row. 0; take's value; QUERY_FAILED. */
static int each(sqlite3 *db, const char *sql, int (*take)(struct search *s, sqlite3_stmt *row),
	struct search *s, struct query_error *error)
{
	sqlite3_stmt *statement;
	int r = 0, step = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);
	while ((step == SQLITE_OK || step == SQLITE_ROW) && r == 0)
		if ((step = sqlite3_step(statement)) == SQLITE_ROW)
			r = take(s, statement);
	if (r == 0 && step != SQLITE_DONE)
		r = fail(db, error);
	sqlite3_finalize(statement);
	return r;
}

/* An id of a dictionary that ends at n; 0: it is none. */
static uint32_t id_of(sqlite3_stmt *row, int column, uint32_t n)
{
	int64_t id = sqlite3_column_int64(row, column);
	return id > 0 && id <= (int64_t)n ? (uint32_t)id : 0;
}

static const char *text_at(sqlite3_stmt *row, int column)
{
	const char *text = (const char *)sqlite3_column_text(row, column);
	return text ? text : "";
}

/* --- labels ----------------------------------------------------------------------------------- */

static const char *value_of(const struct label *label, size_t n, const char *key)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(label[i].key, key) == 0)
			return label[i].value;
	return NULL;
}

/* Do these n labels include all requested ones? If `open`, requested labels of control groups may
 * still come with the tasks. */
static bool labels_wished(const struct runs_wish *w, const struct label *label, size_t n, bool open)
{
	bool all = true;
	for (size_t i = 0; i < w->n_labels && all; i++) {
		struct label wanted;
		struct label_fault fault;
		all = label_parse(w->label[i], &wanted, &fault) == 0 &&
		      (label_matches(&wanted, label, n) ||
			      (open && label_is_of_cgroup(wanted.key) &&
				      !value_of(label, n, wanted.key)));
	}
	return all;
}

static bool is_users(const struct runs_wish *w, uint32_t uid)
{
	for (size_t i = 0; i < w->n_uids; i++)
		if (w->uid[i] == uid)
			return true;
	return false;
}

static bool is_by_cgroup(const struct runs_wish *w)
{
	for (size_t i = 0; i < w->n_labels; i++)
		if (label_is_of_cgroup(w->label[i]))
			return true;
	return false;
}

/* NULL if memory ran out. */
static char *key_of(uint32_t uid, const struct label *label, size_t n, const char *json)
{
	const char *job = value_of(label, n, LABEL_JOB), *run = value_of(label, n, LABEL_RUN);
	char *key;
	/* values have no control characters */
	int bytes = job && run ? asprintf(&key, "%u\n%s\n%s", uid, job, run)
			       : asprintf(&key, "%u %s", uid, json);
	return bytes < 0 ? NULL : key;
}

static int add_job(struct found_run *run, uint32_t uid, const char *json)
{
	for (size_t i = 0; i < run->n_jobs; i++)
		if (strcmp(run->job[i].labels, json) == 0)
			return 0;
	struct query_job *grown = reallocarray(run->job, run->n_jobs + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	run->job = grown;
	run->job[run->n_jobs] = (struct query_job){uid, strdup(json)};
	return run->job[run->n_jobs].labels ? (int)(run->n_jobs++, 0) : -ENOMEM;
}

static int make_alive(struct search *s)
{
	const struct runs_wish *w = s->wish;
	struct label label[LABELS_MAX];
	int r = 0;
	for (size_t i = 0; i < w->n_alive && r == 0; i++) {
		const size_t n = labels_read(w->alive[i].labels, label);
		char *key = key_of(w->alive[i].uid, label, n, w->alive[i].labels);
		if (key && run_keys_find(s->alive, key))
			free(key);
		else
			r = key ? run_keys_add(&s->alive, key, 0) : -ENOMEM;
	}
	return r;
}

enum { RUNS_FULL = 2 };

/* A new run of these labels; takes key. */
static int add_run(struct search *s, uint32_t uid, const struct label *label, size_t n, char *key)
{
	char says[LABELS_BYTES_MAX];
	int r = s->n == RUNS_MAX ? RUNS_FULL
				 : array_grow(&s->run, &s->size, s->n + 1, sizeof(*s->run));
	if (r != 0) {
		free(key);
		return r;
	}
	labels_say(label, n, says, sizeof(says));
	struct running *run = &s->run[s->n];
	*run = (struct running){.found = {.uid = uid,
					.says = strdup(says),
					.unfinished = run_keys_find(s->alive, key) != NULL}};
	r = run_keys_add(&s->at, key, s->n++);
	return r == 0 && !run->found.says ? -ENOMEM : r;
}

/* The first time that pins have of this job; 0: none, or this source is a pin. */
static uint32_t find_without(const struct search *s, uint32_t uid, const char *json)
{
	const struct query_without *without = s->wish->without;
	for (size_t i = 0; i < s->wish->n_without && !s->source->pin; i++)
		if (without[i].uid == uid && strcmp(without[i].labels, json) == 0)
			return (uint32_t)i + 1;
	return 0;
}

static int take_set(struct search *s, sqlite3_stmt *row)
{
	const uint32_t id = id_of(row, 0, s->file->n_sets);
	const uint32_t uid = (uint32_t)sqlite3_column_int64(row, 1);
	const char *json = text_at(row, 2);
	struct label label[LABELS_MAX];
	/* of other users, not even the labels are read */
	if (id == 0 || !is_users(s->wish, uid))
		return 0;
	const size_t n = labels_read(json, label);
	if (!labels_wished(s->wish, label, n, true))
		return 0;
	char *key = key_of(uid, label, n, json);
	const struct run_key *at = key ? run_keys_find(s->at, key) : NULL;
	const uint32_t index = at ? at->index : s->n;
	int r = key ? 0 : -ENOMEM;
	if (at)
		free(key);
	else if (r == 0)
		r = add_run(s, uid, label, n, key);
	if (r != 0)
		return r;
	s->file->run_of_set[id] = index + 1;
	s->file->without_of_set[id] = find_without(s, uid, json);
	return add_job(&s->run[index].found, uid, json);
}

/* --- one file --------------------------------------------------------------------------------- */

static int take_size(struct search *s, sqlite3_stmt *row)
{
	for (int i = 0; i < 3; i++)
		if (sqlite3_column_int64(row, i) > QUERY_IDS_MAX ||
			sqlite3_column_int64(row, i) < 0)
			return QUERY_FAILED;
	s->file->n_sets = (uint32_t)sqlite3_column_int64(row, 0);
	s->file->n_tasks = (uint32_t)sqlite3_column_int64(row, 1);
	s->file->n_windows = (uint32_t)sqlite3_column_int64(row, 2);
	return 0;
}

static int take_tier(struct search *s, sqlite3_stmt *row)
{
	for (int tier = 0; tier < N_TIERS; tier++)
		if (strcmp(text_at(row, 0), tier_name((enum tier)tier)) == 0)
			s->file->tier = (enum tier)tier;
	return 0;
}

/* Difference of the clocks, as in the boot's newest file. */
static int take_boot(struct search *s, sqlite3_stmt *row)
{
	const char *id = text_at(row, 0);
	int64_t offset_ns = 0;
	for (size_t i = 0; i < s->n_boots; i++)
		if (strncmp(s->boot[i].id, id, sizeof(s->boot[i].id) - 1) == 0) {
			s->file->offset_ns = s->boot[i].offset_ns;
			return 0;
		}
	if (__builtin_sub_overflow(
		    sqlite3_column_int64(row, 2), sqlite3_column_int64(row, 1), &offset_ns))
		return QUERY_FAILED;
	s->file->offset_ns = offset_ns;
	/* beyond this number of boots, each file uses its own */
	if (s->n_boots == sizeof(s->boot) / sizeof(s->boot[0]))
		return 0;
	snprintf(s->boot[s->n_boots].id, sizeof(s->boot[0].id), "%s", id);
	s->boot[s->n_boots++].offset_ns = offset_ns;
	return 0;
}

static int take_window(struct search *s, sqlite3_stmt *row)
{
	const uint32_t id = id_of(row, 0, s->file->n_windows);
	s->file->window[id] = (struct span){sqlite3_column_int64(row, 1),
		sqlite3_column_int64(row, 2), sqlite3_column_int64(row, 3)};
	return 0;
}

static int take_task(struct search *s, sqlite3_stmt *row)
{
	struct part *f = s->file;
	const uint32_t id = id_of(row, 0, f->n_tasks), set = id_of(row, 1, f->n_sets);
	f->run_of_task[id] = id ? f->run_of_set[set] : 0;
	if (s->by_cgroup && f->run_of_task[id]) {
		struct label label[JOB_LABELS_MAX];
		const size_t n = labels_with_cgroup(text_at(row, 3), text_at(row, 4), label);
		if (!labels_wished(s->wish, label, n, false))
			f->run_of_task[id] = 0;
	}
	f->without_of_task[id] = id ? f->without_of_set[set] : 0;
	f->start_of_task[id] = sqlite3_column_int64(row, 2);
	return 0;
}

static int take_sample(struct search *s, sqlite3_stmt *row)
{
	const struct part *f = s->file;
	const uint32_t task = id_of(row, 0, f->n_tasks), run_at = f->run_of_task[task];
	const struct span *w = &f->window[id_of(row, 1, f->n_windows)];
	if (run_at == 0 || w->end_ns <= w->start_ns ||
		(s->source->since_ns && w->realtime_ns < s->source->since_ns) ||
		(s->source->until_ns && w->realtime_ns >= s->source->until_ns) ||
		without_has(s->wish->without, f->without_of_task[task], w->realtime_ns, f->tier))
		return 0;
	struct running *run = &s->run[run_at - 1];
	struct found_run *found = &run->found;
	if (!run->here || w->start_ns < run->first_ns) {
		run->first_ns = w->start_ns;
		run->first_end_ns = w->end_ns;
	}
	run->here = true;
	if (found->until_ns == 0 || w->realtime_ns < found->first_ns)
		found->first_ns = w->realtime_ns;
	if (w->realtime_ns >= found->until_ns)
		found->until_ns = w->realtime_ns + 1;
	return 0;
}

/* Find when runs began, by this file. */
static void settle_runs(struct search *s)
{
	const struct part *f = s->file;
	for (uint32_t i = 0; i < s->n; i++)
		s->run[i].begin_ns = INT64_MAX;
	for (uint32_t i = 1; i <= f->n_tasks; i++) {
		struct running *run = f->run_of_task[i] ? &s->run[f->run_of_task[i] - 1] : NULL;
		const int64_t start_ns = f->start_of_task[i];
		if (run && run->here && start_ns >= run->first_ns && start_ns < run->first_end_ns &&
			start_ns < run->begin_ns)
			run->begin_ns = start_ns;
	}
	for (uint32_t i = 0; i < s->n; i++) {
		struct running *run = &s->run[i];
		const int64_t begin_boot_ns =
			run->begin_ns == INT64_MAX ? run->first_ns : run->begin_ns;
		const int64_t begin_ns = begin_boot_ns + f->offset_ns;
		if (!run->here)
			continue;
		if (run->found.begin_ns == 0 || begin_ns < run->found.begin_ns) {
			run->found.begin_ns = begin_ns;
			run->found.begin_boot_ns = begin_boot_ns;
		}
		if (f->tier > run->found.coarsest)
			run->found.coarsest = f->tier;
		run->here = false;
	}
}

static bool has_sets(const struct part *f)
{
	for (uint32_t i = 1; i <= f->n_sets; i++)
		if (f->run_of_set[i])
			return true;
	return false;
}

static int read_times(struct search *s, sqlite3 *db, struct query_error *error)
{
	static const char tasks[] = "SELECT t.id, label_set, t.start_ns, s.labels, c.path "
				    "FROM task t JOIN task_label_set l ON l.task = t.process "
				    "JOIN label_set s ON s.id = l.label_set "
				    "LEFT JOIN cgroup c ON c.id = t.cgroup";
	int r = each(db, "SELECT value FROM meta WHERE key = 'tier'", take_tier, s, error);
	if (r == 0)
		r = each(db,
			"SELECT b.value, m.value, r.value FROM meta b JOIN meta m JOIN meta r "
			"WHERE b.key = 'boot_id' AND m.key = 'monotonic_ns' AND "
			"r.key = 'realtime_ns'",
			take_boot, s, error);
	if (r == 0)
		r = each(db, "SELECT id, start_ns, end_ns, realtime_ns FROM window", take_window, s,
			error);
	if (r == 0)
		r = each(db, tasks, take_task, s, error);
	if (r == 0)
		r = each(db, "SELECT task, window FROM sample", take_sample, s, error);
	if (r == 0)
		settle_runs(s);
	return r;
}

static int make_file(struct search *s, sqlite3 *db, struct query_error *error)
{
	struct part *f = s->file;
	int r = each(db,
		"SELECT coalesce((SELECT max(id) FROM label_set), 0), "
		"coalesce((SELECT max(id) FROM task), 0), "
		"coalesce((SELECT max(id) FROM window), 0)",
		take_size, s, error);
	if (r == QUERY_FAILED && !*error->text)
		r = fail(db, error);
	if (r != 0)
		return r;
	f->run_of_set = calloc((size_t)f->n_sets + 1, sizeof(*f->run_of_set));
	f->run_of_task = calloc((size_t)f->n_tasks + 1, sizeof(*f->run_of_task));
	f->without_of_set = calloc((size_t)f->n_sets + 1, sizeof(*f->without_of_set));
	f->without_of_task = calloc((size_t)f->n_tasks + 1, sizeof(*f->without_of_task));
	f->start_of_task = calloc((size_t)f->n_tasks + 1, sizeof(*f->start_of_task));
	f->window = calloc((size_t)f->n_windows + 1, sizeof(*f->window));
	bool all = f->run_of_set && f->run_of_task && f->without_of_set && f->without_of_task;
	return all && f->start_of_task && f->window ? 0 : -ENOMEM;
}

static int add_file(
	void *query, sqlite3 *db, const struct query_source *source, struct query_error *error)
{
	struct search *s = query;
	struct part file = {.tier = TIER_WINDOW};
	s->file = &file;
	s->source = source;
	int r = make_file(s, db, error);
	if (r == 0)
		r = each(db, "SELECT id, uid, labels FROM label_set", take_set, s, error);
	if (r == 0 && has_sets(&file))
		r = read_times(s, db, error);
	part_clear(&file);
	if (r != RUNS_FULL)
		return r;
	return query_fail(error, MPERF__FAILURE_KIND__FAILURE_LIMIT,
		"Name more labels, or a time with since=.", "more than %u jobs have these labels",
		RUNS_MAX);
}

/* --- all files -------------------------------------------------------------------------------- */

static int keep(void *query)
{
	(void)query;
	return 0;
}

/* Forget that runs have samples in a damaged file. Wrong times that the file gave to runs remain,
 * which is harmless: a query finds no samples for them, since the file is set aside. */
static void take_back(void *query)
{
	struct search *s = query;
	for (uint32_t i = 0; i < s->n; i++)
		s->run[i].here = false;
}

static int64_t end_of(const struct query_source *s)
{
	return s->until_ns ? s->until_ns : INT64_MAX;
}

static int by_end(const void *a, const void *b, void *userdata)
{
	const struct query_source *source = userdata;
	const int64_t x = end_of(&source[*(const size_t *)a]);
	const int64_t y = end_of(&source[*(const size_t *)b]);
	return (x < y) - (x > y);
}

static bool is_in_time(const struct runs_wish *w, const struct found_run *run)
{
	return run->until_ns != 0 && (!w->since_ns || run->begin_ns >= w->since_ns) &&
	       (!w->until_ns || run->begin_ns < w->until_ns);
}

/* Are the requested last runs found, if the remaining files end there? */
static bool is_enough(const struct search *s, int64_t end_ns)
{
	const struct runs_wish *w = s->wish;
	uint32_t n = 0;
	if (w->since_ns && end_ns <= w->since_ns - RUNS_BEFORE_NS)
		return true;
	for (uint32_t i = 0; w->last && i < s->n; i++) {
		const struct found_run *run = &s->run[i].found;
		n += (!run->unfinished || w->unfinished) && is_in_time(w, run) &&
		     run->begin_ns > end_ns && run->first_ns > end_ns;
	}
	return w->last && n >= w->last;
}

static int read_all(
	struct search *s, struct query_source *source, size_t n, struct query_error *ret_error)
{
	_cleanup_(freep) struct provenance *p = calloc(1, sizeof(*p));
	_cleanup_(freep) size_t *order = calloc(n + 1, sizeof(*order));
	const struct source_reader reader = {s, add_file, keep, take_back, p};
	int r = p && order ? 0 : -ENOMEM;
	for (size_t i = 0; i < n && r == 0; i++)
		order[i] = i;
	if (r == 0)
		qsort_r(order, n, sizeof(*order), by_end, source);
	for (size_t i = 0; i < n && r == 0 && !is_enough(s, end_of(&source[order[i]])); i++) {
		struct query_source *of = &source[order[i]];
		struct query_error error = {"", "", 0};
		r = sources_read(&reader, of, 1, &error);
		if (r == QUERY_FAILED && of->outcome != QUERY_READ)
			r = 0; /* the others answer */
		else if (r == QUERY_FAILED)
			*ret_error = error;
	}
	return r;
}

void found_run_clear(struct found_run *run)
{
	for (size_t i = 0; i < run->n_jobs; i++)
		free((char *)run->job[i].labels);
	free(run->job);
	free(run->says);
	*run = (struct found_run){0};
}

static int by_begin(const void *a, const void *b)
{
	const struct found_run *x = a, *y = b;
	return x->begin_ns != y->begin_ns ? (x->begin_ns < y->begin_ns ? -1 : 1)
					  : strcmp(x->says, y->says);
}

/* Move the requested runs into ret; free the others. 0 or -ENOMEM. */
static int take_wished(struct search *s, struct found_runs *ret)
{
	ret->run = calloc((size_t)s->n + 1, sizeof(*ret->run));
	if (!ret->run)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->n; i++) {
		struct found_run *run = &s->run[i].found;
		if (!is_in_time(s->wish, run))
			continue;
		if (!run->unfinished || s->wish->unfinished) {
			ret->run[ret->n++] = *run;
			*run = (struct found_run){0};
		} else if (ret->n_unfinished++ == 0) {
			ret->unfinished = TAKE_PTR(run->says);
		}
	}
	qsort(ret->run, ret->n, sizeof(*ret->run), by_begin);
	const size_t over = s->wish->last && ret->n > s->wish->last ? ret->n - s->wish->last : 0;
	for (size_t i = 0; i < over; i++)
		found_run_clear(&ret->run[i]);
	ret->n -= over;
	memmove(ret->run, ret->run + over, ret->n * sizeof(*ret->run));
	return 0;
}

int runs_find(struct query_source *source, size_t n_sources, const struct runs_wish *wish,
	struct found_runs *ret_runs, struct query_error *ret_error)
{
	struct search s = {.wish = wish, .by_cgroup = is_by_cgroup(wish)};
	struct found_runs found = {0};
	int r = make_alive(&s);
	if (r == 0)
		r = read_all(&s, source, n_sources, ret_error);
	if (r == 0)
		r = take_wished(&s, &found);
	for (uint32_t i = 0; i < s.n; i++)
		found_run_clear(&s.run[i].found);
	run_keys_clear(&s.at);
	run_keys_clear(&s.alive);
	free(s.run);
	if (r == 0)
		*ret_runs = found;
	else
		found_runs_clear(&found);
	return r;
}

void found_runs_clear(struct found_runs *r)
{
	for (size_t i = 0; i < r->n; i++)
		found_run_clear(&r->run[i]);
	free(r->run);
	free(r->unfinished);
	*r = (struct found_runs){0};
}
