/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A job that begins is drawn by random numbers of the kernel, so nothing about it decides whether it is
 * chosen; a job that ran before mperfd looked is never chosen, since its recording would not be whole.
 * All reasons not to record are asked for before anything is opened, and each leaves a line in the log.
 */
#include "daemon/jobs/schedules.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <syslog.h>

#include "daemon/jobs/schedules_private.h"
#include "proto/base/clock.h"
#include "proto/base/memory.h"

#define FOLDER "schedules"
#define LOG_NAME "runs.log"
#define FOLDER_MODE 0750
#define SECOND_NS 1000000000u
#define PPM_ALL 1000000u
#define PPM_PER_PERCENT 1e4
/* How long mperfd waits for the last rows of runs when it ends; unfinished runs are then removed.
 * */
#define STOP_NS (5ull * SECOND_NS)

static void __attribute__((format(printf, 3, 4))) say(
	const struct schedules *s, int level, const char *format, ...)
{
	char text[1024];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	s->o.say(s->o.userdata, level, text);
}

/* --- drop-ins and the log --------------------------------------------------------------------- */

static int read_drop_ins(struct schedules *s, struct walk *w)
{
	struct schedule_list next;
	struct schedule_count count[SCHEDULES_MAX] = {{0}};
	bool labels = false, units = false;
	int r = schedules_read(s->o.folder, &next);
	if (r < 0)
		return r;
	for (size_t i = 0; i < next.n_errors; i++)
		say(s, LOG_ERR, "%s; this schedule is left out", next.error[i].text);
	for (size_t i = 0; i < next.n; i++) {
		const struct schedule *of = &next.schedule[i];
		for (size_t k = 0; k < s->list.n; k++)
			if (strcmp(s->list.schedule[k].name, of->name) == 0)
				count[i] = s->count[k];
		labels |= of->kind == SCHEDULE_JOBS && !*of->unit;
		units |= *of->unit != '\0';
	}
	schedules_clear(&s->list);
	s->list = next;
	memcpy(s->count, count, sizeof(count));
	job_watch_set(&s->jobs, w, labels, units);
	return 0;
}

static int end_all(struct schedules *s, const char *why);

/* Open the log of the current store; runs of another store end first. 0 or -errno. */
static int open_log(struct schedules *s)
{
	_cleanup_(freep) char *path = NULL, *file = NULL;
	const struct conf *c = s->o.conf;
	if (asprintf(&path, "%s/" FOLDER, c->store_path) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	if (s->path && strcmp(s->path, path) == 0)
		return 0;
	if (asprintf(&file, "%s/" LOG_NAME, path) < 0) {
		file = NULL;
		return -ENOMEM;
	}
	int r = end_all(s, "mperf.conf names another store");
	if (r < 0)
		return r;
	runs_log_close(&s->log);
	free(TAKE_PTR(s->path));
	s->log_serial++;
	/* if it cannot be made, opening the log reports the reason */
	(void)mkdir(path, FOLDER_MODE);
	r = runs_log_open(file, &s->log);
	if (r < 0)
		return r;
	if (!s->log.is_unread)
		runs_folder_tidy(path, &s->log);
	s->path = TAKE_PTR(path);
	return 0;
}

int schedules_new(const struct schedules_options *o, struct schedules **ret_schedules)
{
	struct schedules *s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->o = *o;
	s->log.fd = -1;
	int r = read_drop_ins(s, NULL);
	if (r == 0)
		r = open_log(s);
	if (r < 0) {
		schedules_free(s, NULL);
		return r;
	}
	*ret_schedules = s;
	return 0;
}

static void notice_log(struct schedules *s)
{
	if (s->log.error != 0 && !s->said_full)
		say(s, LOG_WARNING,
			"the list of scheduled recordings cannot be written to %s; recordings that "
			"it does not list are removed at the next start: %s",
			s->log.path, strerror(s->log.error));
	s->said_full = s->log.error != 0;
}

/* --- may it record? --------------------------------------------------------------------------- */

static size_t count_runs(const struct schedules *s, uid_t uid, const char *schedule)
{
	size_t n = 0;
	for (size_t i = 0; i < s->n_runs; i++)
		n += (schedule ? strcmp(s->run[i]->schedule.name, schedule) == 0
			       : s->run[i]->uid == uid);
	return n;
}

static size_t count_users_runs(const struct schedules *s)
{
	size_t n = 0;
	for (size_t i = 0; i < s->n_runs; i++)
		n += s->run[i]->uid != 0;
	return n;
}

/* The reason why it may not record; "": it may. */
static void find_refusal(const struct schedules *s, const struct walk *w, const struct schedule *of,
	uid_t uid, char why[static RUN_WHY_BYTES])
{
	const struct conf *c = s->o.conf;
	char reason[RUN_WHY_BYTES - 64];
	*why = '\0';
	if (!w)
		snprintf(why, RUN_WHY_BYTES, "mperfd is not sampling");
	else if (!c->store)
		snprintf(why, RUN_WHY_BYTES, "mperf.conf says keep = no");
	else if (of->hz > c->rate_max)
		snprintf(why, RUN_WHY_BYTES, "Frequency=%u is more than rate-max of mperf.conf, %u",
			of->hz, c->rate_max);
	else if (s->log.is_unread)
		snprintf(why, RUN_WHY_BYTES, "%.150s cannot be read: %s", s->log.path,
			strerror(s->log.error));
	else if (s->n_runs == RUNS_AT_ONCE_MAX)
		snprintf(why, RUN_WHY_BYTES, "%d scheduled recordings are already running",
			RUNS_AT_ONCE_MAX);
	else if (uid != 0 && count_users_runs(s) >= RUNS_AT_ONCE_USERS_MAX)
		snprintf(why, RUN_WHY_BYTES,
			"%d scheduled recordings of users' jobs are already running",
			RUNS_AT_ONCE_USERS_MAX);
	else if (uid != 0 && count_runs(s, uid, NULL) >= RUNS_AT_ONCE_USER_MAX)
		snprintf(why, RUN_WHY_BYTES,
			"%d scheduled recordings of this user's jobs are already running",
			RUNS_AT_ONCE_USER_MAX);
	else if (runs_folder_is_full(c->store_path, c->min_free_bytes))
		snprintf(why, RUN_WHY_BYTES, "less than min-free of mperf.conf is free in %.150s",
			c->store_path);
	else if (!overhead_allows(s->o.overhead, of->hz, c->overhead_ppm, reason, sizeof(reason)))
		snprintf(why, RUN_WHY_BYTES, "overhead = %g %% does not allow it: %s",
			c->overhead_ppm / PPM_PER_PERCENT, reason);
}

/* --- begin ------------------------------------------------------------------------------------ */

static void say_job(const struct watched_job *job, char *text, size_t size)
{
	*text = '\0';
	if (job && job->labels)
		labels_say_json(job->labels->labels, text, size);
	else if (job)
		snprintf(text, size, "%.*s", (int)job->n_unit, job->unit);
}

/* Begin a run; *why: the reason why it was skipped, or "". 0 or -errno. */
static int start_run(struct schedules *s, struct walk *w, const struct schedule *of,
	struct watched_job *job, struct run_entry *e, uint64_t now_ns)
{
	const struct conf *c = s->o.conf;
	_cleanup_(freep) char *path = NULL;
	struct schedule_run *run = NULL;
	int r = runs_folder_make(s->path, of->name);
	if (r < 0) {
		snprintf(e->why, sizeof(e->why), "%.150s cannot be written: %s", s->path,
			strerror(-r));
		return 0;
	}
	/* remove surplus recordings; room for its own bytes is made when it is kept */
	r = runs_folder_retain(s->path, &s->log, of->name, of->keep, of->max_use);
	if (r < 0) {
		snprintf(e->why, sizeof(e->why),
			"an older recording of it in %.150s cannot be removed: %s", s->path,
			strerror(-r));
		return 0;
	}
	e->id = s->log.last_id + 1; /* the id that the log will assign */
	runs_folder_name(of->name, e->start_ns, e->id, e->file);
	if (asprintf(&path, "%s/%s", s->path, e->file) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	const struct schedule_run_options o = {of, job, w, c, path, e, now_ns};
	r = schedule_run_new(&o, &run);
	if (r != 0)
		return r > 0 ? 0 : r;
	s->run[s->n_runs++] = run;
	run->wants_rate = of->hz > 0;
	return run->wants_rate ? s->o.want_rate(s->o.owner, run, of->hz, c->overhead_ppm) : 0;
}

/* Record, or skip and log the reason. 0 or -errno. */
static int begin(struct schedules *s, struct walk *w, const struct schedule *of,
	struct watched_job *job, uint64_t now_ns, uint64_t *ret_id)
{
	struct run_entry e = {
		.uid = job && job->labels ? job->uid : 0,
		.start_ns = (int64_t)clock_ns(CLOCK_REALTIME),
		.hz = of->hz ? of->hz : s->o.conf->rate,
	};
	int r = open_log(s);
	if (r < 0)
		return r;
	snprintf(e.schedule, sizeof(e.schedule), "%s", of->name);
	say_job(job, e.job, sizeof(e.job));
	if (job && job->is_old)
		snprintf(e.why, sizeof(e.why), "it was already running when mperfd started");
	else
		find_refusal(s, w, of, e.uid, e.why);
	if (!*e.why)
		r = start_run(s, w, of, job, &e, now_ns);
	if (r < 0)
		return r;
	if (*e.why) {
		e.outcome = RUN_SKIPPED;
		e.end_ns = e.start_ns;
		*e.file = '\0';
	}
	uint64_t id = runs_log_add(&s->log, &e);
	notice_log(s);
	if (ret_id)
		*ret_id = id;
	return id == 0 ? -ENOMEM : 0;
}

int schedules_begin(
	struct schedules *s, struct walk *w, const char *name, uint64_t now_ns, uint64_t *ret_id)
{
	size_t i = 0;
	while (i < s->list.n && strcmp(s->list.schedule[i].name, name) != 0)
		i++;
	if (i == s->list.n)
		return SCHEDULES_UNKNOWN;
	if (s->list.schedule[i].kind != SCHEDULE_CALENDAR)
		return SCHEDULES_OF_JOBS;
	if (count_runs(s, 0, name) > 0)
		return SCHEDULES_GOES_ON;
	return begin(s, w, &s->list.schedule[i], NULL, now_ns, ret_id);
}

/* --- jobs ------------------------------------------------------------------------------------- */

/* Does this schedule record this job? label: the n labels of the job. */
static bool is_of(const struct schedule *of, const struct watched_job *job,
	const struct label *label, size_t n)
{
	char unit[SCHEDULE_TEXT_BYTES];
	if (of->kind != SCHEDULE_JOBS || !job->labels != (*of->unit != '\0'))
		return false;
	if (job->labels)
		return labels_match(of->label, of->n_labels, label, n);
	if (job->n_unit >= sizeof(unit))
		return false;
	memcpy(unit, job->unit, job->n_unit);
	unit[job->n_unit] = '\0';
	return fnmatch(of->unit, unit, 0) == 0;
}

/* Draw a random number: is this job in the share? Without random numbers, no job is. */
static bool draw(uint32_t share_ppm)
{
	uint64_t number;
	if (share_ppm >= PPM_ALL)
		return true;
	/* with 64-bit random numbers, the bias of a remainder by a million is negligible */
	return getrandom(&number, sizeof(number), GRND_NONBLOCK) == sizeof(number) &&
	       number % PPM_ALL < share_ppm;
}

static int take_job(struct schedules *s, struct walk *w, struct watched_job *job, uint64_t now_ns)
{
	struct label label[LABELS_MAX];
	const size_t n = job->labels ? labels_read(job->labels->labels, label) : 0;
	int r = 0;
	for (size_t i = 0; i < s->list.n && r == 0; i++) {
		const struct schedule *of = &s->list.schedule[i];
		if (!is_of(of, job, label, n))
			continue;
		bool drawn = job->is_old || draw(of->share_ppm);
		s->count[i].n_jobs += !job->is_old;
		s->count[i].n_drawn += drawn && !job->is_old;
		if (!drawn)
			continue;
		r = begin(s, w, of, job, now_ns, NULL);
	}
	return r;
}

static int look(struct schedules *s, struct walk *w, uint64_t now_ns)
{
	int r = 0;
	if (!job_watch_look(&s->jobs, w, now_ns))
		return 0;
	for (struct watched_job *job = s->jobs.job; job && r == 0; job = job->hh.next)
		if (job->is_new)
			r = take_job(s, w, job, now_ns);
	return r;
}

int schedules_job_began(struct schedules *s, struct walk *w, pid_t pid, uint64_t now_ns)
{
	const struct task *task = task_find(&w->tasks, pid);
	struct watched_job *job = task ? job_watch_meet(&s->jobs, task->process, now_ns) : NULL;
	return job ? take_job(s, w, job, now_ns) : 0;
}

/* --- runs that go on -------------------------------------------------------------------------- */

static void stop_rate(struct schedules *s, struct schedule_run *run)
{
	if (run->wants_rate)
		/* a lower rate can wait for the next change */
		(void)s->o.want_rate(s->o.owner, run, 0, 0);
	run->wants_rate = false;
}

static int finish(struct schedules *s, struct schedule_run *run, enum run_outcome outcome,
	const char *why, uint64_t now_ns)
{
	/* a job ended when its last process was seen, not when we became sure of it */
	uint64_t over_ns = run->job && run->job->gone ? now_ns - run->job->seen_ns : 0;
	stop_rate(s, run);
	run->end_ns = (int64_t)(clock_ns(CLOCK_REALTIME) - over_ns);
	return schedule_run_finish(run, outcome, why, now_ns);
}

/* Follow the rate that the budget allows; also note it in the recording. */
static void follow_rate(struct schedules *s, struct schedule_run *run)
{
	const struct overhead_held *held = run->wants_rate ? s->o.held(s->o.owner, run) : NULL;
	char text[RUN_WHY_BYTES];
	if (!held || held->given_hz >= (run->given_hz ? run->given_hz : held->hz))
		return;
	run->given_hz = held->given_hz;
	snprintf(text, sizeof(text),
		"to keep overhead within %g %%, it sampled at %u Hz instead of %u",
		held->ppm / PPM_PER_PERCENT, held->given_hz, held->hz);
	recording_note(run->recording, text);
}

/* Bytes of all running recordings of its schedule and user, with a reserve for the time until the next look and for
 * sealing. */
static uint64_t bytes_of(const struct schedules *s, const struct schedule_run *of)
{
	struct recording_state state;
	uint64_t bytes = 0;
	for (size_t i = 0; i < s->n_runs; i++) {
		const struct schedule_run *run = s->run[i];
		if (run->uid != of->uid || strcmp(run->schedule.name, of->schedule.name) != 0)
			continue;
		recording_state(run->recording, &state);
		bytes += state.bytes > 0 ? (uint64_t)state.bytes : 0;
	}
	return bytes + bytes / 16;
}

/* Check its user's bytes and the free space once a second. */
static bool is_out_of_room(
	struct schedules *s, struct schedule_run *run, uint64_t now_ns, const char **ret_why)
{
	if (now_ns < run->next_look_ns)
		return false;
	run->next_look_ns = now_ns + SECOND_NS;
	int r = runs_folder_make_room(s->path, &s->log, &run->schedule, run->uid, bytes_of(s, run));
	*ret_why = r < 0 ? "an older recording of its schedule cannot be removed"
		   : r == RUNS_FOLDER_FULL
			   ? "it reached its user's share of MaxUse= of its schedule"
		   : runs_folder_is_full(s->path, s->o.conf->min_free_bytes)
			   ? "less than min-free of mperf.conf was free"
			   : NULL;
	return *ret_why;
}

static int go_on(struct schedules *s, struct schedule_run *run, uint64_t now_ns)
{
	const char *why;
	follow_rate(s, run);
	if (run->job && run->job->gone)
		return finish(s, run, RUN_WHOLE, "", now_ns);
	if (now_ns >= run->until_ns)
		return finish(s, run, run->job ? RUN_ENDED : RUN_WHOLE,
			run->job ? "the job lasted longer than Duration= of its schedule" : "",
			now_ns);
	if (is_out_of_room(s, run, now_ns, &why))
		return finish(s, run, RUN_ENDED, why, now_ns);
	return 0;
}

static void say_given(const struct schedule_run *run, struct run_entry *e)
{
	size_t n = strlen(e->why);
	if (run->given_hz)
		snprintf(e->why + n, sizeof(e->why) - n,
			"%sto keep to overhead, it sampled at only %u Hz", n > 0 ? "; " : "",
			run->given_hz);
}

/* Log a run that was sealed or lost. */
static void settle(struct schedules *s, struct schedule_run *run)
{
	struct recording_state state;
	struct run_entry *e = runs_log_find(&s->log, run->id);
	stop_rate(s, run);
	recording_state(run->recording, &state);
	if (!e)
		return;
	e->outcome = run->outcome;
	e->end_ns = run->end_ns;
	e->n_samples = state.n_stored;
	snprintf(e->why, sizeof(e->why), "%s", run->why);
	say_given(run, e);
	if (run->outcome == RUN_FAILED)
		*e->file = '\0';
	else
		e->bytes = runs_folder_bytes(state.path);
	runs_log_changed(&s->log, e);
	/* if a file cannot be removed, the next run is skipped and says so */
	(void)runs_folder_retain(
		s->path, &s->log, run->schedule.name, run->schedule.keep, run->schedule.max_use);
	notice_log(s);
}

static int dispatch_run(struct schedules *s, size_t i, uint64_t now_ns)
{
	struct schedule_run *run = s->run[i];
	int r = run->finishing ? 0 : go_on(s, run, now_ns);
	if (r == 0)
		r = schedule_run_dispatch(run, now_ns);
	if (r != SCHEDULE_RUN_OVER)
		return r;
	settle(s, run);
	schedule_run_free(run);
	s->run[i] = s->run[--s->n_runs];
	return 0;
}

static int dispatch_runs(struct schedules *s, uint64_t now_ns)
{
	int r = 0;
	for (size_t i = s->n_runs; i-- > 0 && r == 0;)
		r = dispatch_run(s, i, now_ns);
	return r;
}

int schedules_dispatch(struct schedules *s, struct walk *w, uint64_t now_ns)
{
	int r = look(s, w, now_ns);
	return r == 0 ? dispatch_runs(s, now_ns) : r;
}

uint64_t schedules_deadline_ns(const struct schedules *s)
{
	uint64_t deadline_ns = UINT64_MAX;
	for (size_t i = 0; i < s->n_runs; i++) {
		uint64_t run_ns = recording_deadline_ns(s->run[i]->recording);
		deadline_ns = run_ns < deadline_ns ? run_ns : deadline_ns;
	}
	return deadline_ns;
}

static struct schedule_run *run_of(const struct schedules *s, uint64_t id)
{
	for (size_t i = 0; i < s->n_runs; i++)
		if (s->run[i]->id == id)
			return s->run[i];
	return NULL;
}

void schedules_end(struct schedules *s, uint64_t id, const char *why)
{
	struct schedule_run *run = run_of(s, id);
	if (run)
		(void)finish(s, run, RUN_ENDED, why, clock_ns(CLOCK_MONOTONIC));
}

uint64_t schedules_samples(const struct schedules *s, uint64_t id)
{
	const struct schedule_run *run = run_of(s, id);
	struct recording_state state = {.n_samples = 0};
	if (run)
		recording_state(run->recording, &state);
	return state.n_samples;
}

/* --- life ------------------------------------------------------------------------------------- */

/* Runs that could not be sealed in time are lost. Log this now: the next mperfd does not know of
 * them. */
static void lose_all(struct schedules *s, const char *why)
{
	while (s->n_runs > 0) {
		struct schedule_run *run = s->run[--s->n_runs];
		run->outcome = RUN_FAILED;
		snprintf(run->why, sizeof(run->why), "%s before its samples were written", why);
		settle(s, run);
		schedule_run_free(run);
	}
}

static int end_all(struct schedules *s, const char *why)
{
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
	int r = 0;
	for (size_t i = 0; i < s->n_runs && r == 0; i++)
		r = finish(s, s->run[i], RUN_ENDED, why, now_ns);
	/* do not wait for missing names */
	while (r == 0 && s->n_runs > 0 && clock_ns(CLOCK_MONOTONIC) < now_ns + STOP_NS)
		r = dispatch_runs(s, UINT64_MAX);
	lose_all(s, why);
	return r;
}

void schedules_stop(struct schedules *s)
{
	(void)end_all(s, "mperfd ended");
}

int schedules_reload(struct schedules *s, struct walk *w)
{
	int r = read_drop_ins(s, w);
	if (r == 0)
		r = open_log(s);
	/* jobs that are running did not begin under the new schedules */
	return r == 0 && w ? look(s, w, clock_ns(CLOCK_MONOTONIC)) : r;
}

struct schedules *schedules_free(struct schedules *s, struct walk *w)
{
	if (!s)
		return NULL;
	for (size_t i = 0; i < s->n_runs; i++)
		schedule_run_free(s->run[i]);
	job_watch_clear(&s->jobs, w);
	schedules_clear(&s->list);
	runs_log_close(&s->log);
	free(s->path);
	free(s);
	return NULL;
}
