/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Files are not synced: a power failure may lose a line, and the last seconds of its recording. */

#include "daemon/jobs/runs_log.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/store/key.h"
#include "proto/base/array.h"
#include "proto/base/memory.h"

/* The file is rewritten if it has more than this many lines per run, and more than the second
 * limit. */
#define LINES_PART 2
#define LINES_SPARE 64
/* Limit of lines to read: once a file is longer, the next change rewrites it. */
#define LINES_MAX (LINES_PART * RUNS_MAX + LINES_SPARE + 1)

const char *run_outcome_says(enum run_outcome outcome)
{
	static const char *const says[N_RUN_OUTCOMES] = {
		"goes on", "recorded", "ended early", "skipped", "failed"};
	return says[outcome];
}

/* --- one run as a line ------------------------------------------------------------------------ */

static json_t *pack(const struct run_entry *e, const char *job, const char *why)
{
	return json_pack("{s:I s:s s:s s:I s:s s:s s:s s:I s:I s:I s:I s:I s:I}", "id",
		(json_int_t)e->id, "schedule", e->schedule, "job", job, "uid", (json_int_t)e->uid,
		"outcome", run_outcome_says(e->outcome), "why", why, "file", e->file, "start_ns",
		(json_int_t)e->start_ns, "end_ns", (json_int_t)e->end_ns, "hz", (json_int_t)e->hz,
		"samples", (json_int_t)e->n_samples, "bytes", (json_int_t)e->bytes, "times",
		(json_int_t)e->times);
}

/* NULL: no memory. Only texts that are not UTF-8 are left out. */
static char *line_of(const struct run_entry *e)
{
	json_t *o = pack(e, e->job, e->why);
	if (!o)
		o = pack(e, "", "");
	char *text = o ? json_dumps(o, JSON_COMPACT) : NULL;
	json_decref(o);
	return text;
}

static bool take_text(const json_t *o, const char *key, char *to, size_t size)
{
	const char *text = json_string_value(json_object_get(o, key));
	if (!text || strlen(text) >= size)
		return false;
	strcpy(to, text);
	return true;
}

static bool take_outcome(const json_t *o, enum run_outcome *ret_outcome)
{
	const char *text = json_string_value(json_object_get(o, "outcome"));
	for (int i = 0; text && i < N_RUN_OUTCOMES; i++)
		if (strcmp(text, run_outcome_says((enum run_outcome)i)) == 0) {
			*ret_outcome = (enum run_outcome)i;
			return true;
		}
	return false;
}

static int64_t number(const json_t *o, const char *key)
{
	return json_integer_value(json_object_get(o, key));
}

/* We never write a path that leads out of the folder. */
static bool is_ours(const char *file)
{
	return !*file || (*file != '/' && !strstr(file, ".."));
}

static bool parse_line(const char *line, struct run_entry *e)
{
	json_t *o = json_loads(line, 0, NULL);
	*e = (struct run_entry){
		.id = (uint64_t)number(o, "id"),
		.uid = (uid_t)number(o, "uid"),
		.start_ns = number(o, "start_ns"),
		.end_ns = number(o, "end_ns"),
		.hz = (uint32_t)number(o, "hz"),
		.n_samples = (uint64_t)number(o, "samples"),
		.bytes = (uint64_t)number(o, "bytes"),
		.times = (uint32_t)number(o, "times"),
	};
	bool is = json_is_object(o) && e->id > 0 && e->id < INT64_MAX &&
		  json_is_integer(json_object_get(o, "uid")) &&
		  take_text(o, "schedule", e->schedule, sizeof(e->schedule)) &&
		  take_text(o, "job", e->job, sizeof(e->job)) &&
		  take_text(o, "why", e->why, sizeof(e->why)) &&
		  take_text(o, "file", e->file, sizeof(e->file)) && is_ours(e->file) &&
		  take_outcome(o, &e->outcome);
	json_decref(o);
	return is;
}

/* --- in memory -------------------------------------------------------------------------------- */

struct run_entry *runs_log_find(struct runs_log *log, uint64_t id)
{
	size_t from = 0, to = log->n;
	while (from < to) {
		size_t middle = from + (to - from) / 2;
		if (log->entry[middle].id == id)
			return &log->entry[middle];
		if (log->entry[middle].id < id)
			from = middle + 1;
		else
			to = middle;
	}
	return NULL;
}

static void remove_at(struct runs_log *log, size_t i)
{
	memmove(&log->entry[i], &log->entry[i + 1], (log->n - i - 1) * sizeof(*log->entry));
	log->n--;
}

/* Append a run with a higher id than all. 0 or -ENOMEM. */
static int append(struct runs_log *log, const struct run_entry *e)
{
	int r = array_grow(&log->entry, &log->size, (uint32_t)log->n + 1, sizeof(*log->entry));
	if (r < 0)
		return r;
	log->entry[log->n++] = *e;
	log->last_id = e->id;
	return 0;
}

/* A kind of runs, selected by is_kind with `of`: the weight of each, and the users to skip. */
struct runs_kind {
	bool (*is_kind)(const struct run_entry *e, const void *of);
	const void *of;
	enum runs_bound bound;
	bool without_root;
};

static bool is_of(const struct runs_kind *k, const struct run_entry *e)
{
	return k->is_kind(e, k->of) && !(k->without_root && e->uid == 0);
}

static uint64_t weight(const struct runs_kind *k, const struct run_entry *e)
{
	return k->bound == RUNS_BYTES ? e->bytes : 1;
}

/* The weight of one user's runs of that kind. */
static uint64_t weight_of(const struct runs_log *log, const struct runs_kind *k, uid_t uid)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < log->n; i++)
		if (log->entry[i].uid == uid && is_of(k, &log->entry[i]))
			sum += weight(k, &log->entry[i]);
	return sum;
}

/* The oldest of the user who has most; -1: there is none. */
static ssize_t oldest_of_most(const struct runs_log *log, const struct runs_kind *k)
{
	ssize_t found = -1;
	uint64_t most = 0;
	for (size_t i = 0; i < log->n; i++) {
		if (!is_of(k, &log->entry[i]) ||
			(found >= 0 && log->entry[found].uid == log->entry[i].uid))
			continue;
		uint64_t sum = weight_of(log, k, log->entry[i].uid);
		if (found < 0 || sum > most) {
			most = sum;
			found = (ssize_t)i;
		}
	}
	return found;
}

static bool is_without_file(const struct run_entry *e, const void *of)
{
	(void)of;
	return !*e->file && e->outcome != RUN_GOES_ON;
}

static bool is_kept(const struct run_entry *e, const void *of)
{
	return *e->file && e->outcome != RUN_GOES_ON && strcmp(e->schedule, of) == 0;
}

struct runs_kept runs_log_kept(const struct runs_log *log, const char *schedule, const uid_t *uid)
{
	struct runs_kept kept = {.n = 0};
	for (size_t i = 0; i < log->n; i++)
		if (is_kept(&log->entry[i], schedule) && (!uid || log->entry[i].uid == *uid)) {
			kept.n++;
			kept.bytes += log->entry[i].bytes;
		}
	return kept;
}

uint64_t runs_log_first_to_go(
	const struct runs_log *log, const char *schedule, enum runs_bound bound)
{
	struct runs_kind k = {is_kept, schedule, bound, false};
	const struct runs_kept kept = runs_log_kept(log, schedule, NULL);
	const uint64_t all = bound == RUNS_BYTES ? kept.bytes : kept.n;
	k.without_root = weight_of(log, &k, 0) <= all / 2;
	ssize_t i = oldest_of_most(log, &k);
	if (i < 0) { /* there are only root's */
		k.without_root = false;
		i = oldest_of_most(log, &k);
	}
	return i < 0 ? 0 : log->entry[i].id;
}

uint64_t runs_log_oldest_of(const struct runs_log *log, const char *schedule, uid_t uid)
{
	for (size_t i = 0; i < log->n; i++)
		if (log->entry[i].uid == uid && is_kept(&log->entry[i], schedule))
			return log->entry[i].id;
	return 0;
}

/* --- the file --------------------------------------------------------------------------------- */

static int write_line(int fd, const struct run_entry *e)
{
	_cleanup_(freep) char *text = line_of(e);
	if (!text)
		return ENOMEM;
	/* in one write, so that a full disc leaves no incomplete line before a later one */
	size_t n = strlen(text);
	text[n] = '\n';
	ssize_t done = write(fd, text, n + 1);
	return done == (ssize_t)n + 1 ? 0 : done < 0 ? errno : ENOSPC;
}

/* Replace the file by the current runs. */
static void rewrite(struct runs_log *log)
{
	_cleanup_(freep) char *part = NULL;
	if (log->is_unread)
		return;
	if (asprintf(&part, "%s.part", log->path) < 0) {
		part = NULL;
		return;
	}
	int fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC | O_APPEND, 0640);
	int error = fd < 0 ? errno : 0;
	for (size_t i = 0; i < log->n && error == 0; i++)
		error = write_line(fd, &log->entry[i]);
	/* if the run with the last id was dropped, write it as a dropped one */
	const bool is_gone = log->last_id > (log->n > 0 ? log->entry[log->n - 1].id : 0);
	const struct run_entry gone = {.id = log->last_id};
	if (error == 0 && is_gone)
		error = write_line(fd, &gone);
	if (error == 0 && rename(part, log->path) < 0)
		error = errno;
	log->error = error;
	if (error != 0) {
		if (fd >= 0)
			close(fd);
		(void)unlink(part);
		return;
	}
	if (log->fd >= 0)
		close(log->fd);
	log->fd = fd;
	log->n_lines = log->n + is_gone;
}

void runs_log_changed(struct runs_log *log, const struct run_entry *run)
{
	if (log->fd < 0 || log->n_lines > LINES_PART * log->n + LINES_SPARE) {
		rewrite(log);
		return;
	}
	log->error = write_line(log->fd, run);
	log->n_lines++;
	if (log->error != 0) { /* the file may end with an incomplete line */
		close(log->fd);
		log->fd = -1;
	}
}

/* A later line of the same run replaces it; times 0 means that it was dropped. */
static int take_line(struct runs_log *log, const char *line)
{
	struct run_entry e, *before;
	if (!parse_line(line, &e))
		return 0;
	before = runs_log_find(log, e.id);
	if (before && e.times == 0)
		remove_at(log, (size_t)(before - log->entry));
	else if (before)
		*before = e;
	else if (e.times > 0 && e.id > log->last_id && log->n < RUNS_MAX)
		return append(log, &e);
	else if (e.times == 0 && e.id > log->last_id)
		log->last_id = e.id;
	return 0;
}

static int read_lines(struct runs_log *log, FILE *f)
{
	_cleanup_(freep) char *line = malloc(RUN_LINE_BYTES);
	int r = line ? 0 : -ENOMEM;
	for (size_t n = 0; r == 0 && n < LINES_MAX && fgets(line, RUN_LINE_BYTES, f); n++)
		r = take_line(log, line);
	return r;
}

int runs_log_open(const char *path, struct runs_log *ret_log)
{
	struct runs_log log = {.fd = -1, .path = strdup(path)};
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 && errno != ENOENT)
		log.error = errno;
	_cleanup_(fclosep) FILE *f = fd >= 0 ? fdopen(fd, "r") : NULL;
	int r = log.path ? 0 : -ENOMEM;
	if (fd >= 0 && !f)
		log.error = errno;
	if (f)
		fd = -1;
	if (r == 0 && f)
		r = read_lines(&log, f);
	if (f && ferror(f))
		log.error = EIO;
	log.is_unread = log.error != 0;
	if (r < 0) {
		runs_log_close(&log);
		return r;
	}
	for (size_t i = 0; i < log.n; i++)
		if (log.entry[i].outcome == RUN_GOES_ON) {
			log.entry[i].outcome = RUN_FAILED;
			*log.entry[i].file = '\0';
			strcpy(log.entry[i].why, "mperfd was killed while it recorded");
		}
	rewrite(&log);
	*ret_log = log;
	return 0;
}

void runs_log_close(struct runs_log *log)
{
	if (log->fd >= 0)
		close(log->fd);
	free(log->entry);
	free(log->path);
	*log = (struct runs_log){.fd = -1};
}

/* --- changes ---------------------------------------------------------------------------------- */

/* The last run of the same schedule, if it was skipped for the same reason. */
static struct run_entry *same_as_last(struct runs_log *log, const struct run_entry *e)
{
	for (size_t i = log->n; i-- > 0 && e->outcome == RUN_SKIPPED;) {
		struct run_entry *last = &log->entry[i];
		if (strcmp(last->schedule, e->schedule) != 0 || last->uid != e->uid)
			continue;
		return last->outcome == RUN_SKIPPED && strcmp(last->why, e->why) == 0 ? last : NULL;
	}
	return NULL;
}

void runs_log_drop(struct runs_log *log, uint64_t id)
{
	struct run_entry *e = runs_log_find(log, id), gone;
	if (!e)
		return;
	gone = *e;
	gone.times = 0;
	remove_at(log, (size_t)(e - log->entry));
	runs_log_changed(log, &gone);
}

void runs_log_drop_if(struct runs_log *log, bool (*is)(const struct run_entry *run, void *userdata),
	void *userdata)
{
	size_t n = 0;
	for (size_t i = 0; i < log->n; i++)
		if (!is(&log->entry[i], userdata))
			log->entry[n++] = log->entry[i];
	if (n == log->n)
		return;
	log->n = n;
	rewrite(log);
}

uint64_t runs_log_add(struct runs_log *log, const struct run_entry *run)
{
	struct run_entry *last = same_as_last(log, run), e = *run;
	if (last) {
		memcpy(last->job, run->job, sizeof(last->job));
		last->end_ns = run->end_ns;
		last->times++;
		runs_log_changed(log, last);
		return last->id;
	}
	e.id = log->last_id + 1;
	e.times = 1;
	const struct runs_kind without_file = {is_without_file, NULL, RUNS_NUMBER, false};
	size_t n_without = 0;
	for (size_t i = 0; i < log->n; i++)
		n_without += is_without_file(&log->entry[i], NULL);
	if (n_without >= RUNS_WITHOUT_FILE_MAX)
		runs_log_drop(log, log->entry[oldest_of_most(log, &without_file)].id);
	if (append(log, &e) < 0)
		return 0;
	runs_log_changed(log, &log->entry[log->n - 1]);
	return e.id;
}
