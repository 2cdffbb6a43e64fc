/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * schedule: lists schedules and their runs, begins a run for a timer, and sends recordings to users
 * who may read them. A run belongs to the service: if the client that requested it leaves, the next
 * round of the loop ends the run and stores its samples.
 */
#include "proto/syntax/schedule.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/answer/row.h"
#include "daemon/control/give.h"
#include "daemon/control/peer.h"
#include "daemon/control/request.h"
#include "daemon/jobs/schedules.h"
#include "daemon/service/service.h"
#include "proto/base/clock.h"
#include "proto/base/memory.h"

#define PROGRESS_NS 500000000u
#define STATUS_FAILED 1
#define STATUS_SKIPPED 3
/* Bytes of a schedule in words: units and labels, each of its longest. */
#define SAYS_BYTES 4096

/* --- list ------------------------------------------------------------------------------------- */

/* May the peer see this run? Yes if it recorded the whole system, or a job of the peer's user. Runs of units are only
 * for peers that see all, since they show which programs others run. */
static bool may_know(const struct request *q, const struct run_entry *e)
{
	return q->peer->sees_all || !*e->job || (e->uid != 0 && e->uid == q->peer->uid);
}

static bool may_read(const struct request *q, const struct run_entry *e)
{
	return q->peer->sees_all || (e->uid != 0 && e->uid == q->peer->uid);
}

static const struct run_entry *last_of(
	const struct request *q, const struct runs_log *log, const char *schedule)
{
	for (size_t i = log->n; i-- > 0;)
		if (strcmp(log->entry[i].schedule, schedule) == 0 && may_know(q, &log->entry[i]))
			return &log->entry[i];
	return NULL;
}

#define SCHEDULE_TABLE(COLUMN, KNOWN_IF)                                                           \
	COLUMN(schedule, "Schedule", text, of->name)                                               \
	COLUMN(kind, "Of", text, of->kind == SCHEDULE_CALENDAR ? "time" : "jobs")                  \
	KNOWN_IF(jobs, "Jobs", count, counts, s->count[i].n_jobs)                                  \
	KNOWN_IF(drawn, "Drawn", count, counts, s->count[i].n_drawn)                               \
	KNOWN_IF(kept, "Kept", count, q->peer->sees_all, kept.n)                                   \
	KNOWN_IF(bytes, "Size", bytes, q->peer->sees_all, kept.bytes)                              \
	KNOWN_IF(last, "Last", time, last, last->start_ns)                                         \
	KNOWN_IF(result, "Result", text, last, run_outcome_says(last->outcome))                    \
	COLUMN(records, "Records", text, schedule_says(of, says, sizeof(says)))

static int send_schedule(
	const struct answer *to, const struct request *q, const struct schedules *s, size_t i)
{
	const struct schedule *of = &s->list.schedule[i];
	const struct run_entry *last = last_of(q, &s->log, of->name);
	const struct runs_kept kept = runs_log_kept(&s->log, of->name, NULL);
	const bool counts = of->kind == SCHEDULE_JOBS && q->peer->sees_all;
	char says[SAYS_BYTES];
	return TABLE_ROW(to, SCHEDULE_TABLE);
}

/* 0 if the clock was set back. */
#define RUN_TABLE(COLUMN, KNOWN_IF)                                                                \
	COLUMN(schedule, "Schedule", text, e->schedule)                                            \
	COLUMN(began, "Began", time, e->start_ns)                                                  \
	KNOWN_IF(duration_ns, "For", ns, e->outcome != RUN_SKIPPED && end_ns >= e->start_ns,       \
		end_ns - e->start_ns)                                                              \
	COLUMN(uid, "User", number, e->uid)                                                        \
	COLUMN(hz, "Rate", hz, e->hz)                                                              \
	KNOWN_IF(samples, "Samples", count, recorded || goes_on,                                   \
		recorded ? e->n_samples : schedules_samples(s, e->id))                             \
	KNOWN_IF(bytes, "Size", bytes, recorded, e->bytes)                                         \
	COLUMN(times, "Times", count, e->times)                                                    \
	COLUMN(result, "Result", text, run_outcome_says(e->outcome))                               \
	KNOWN_IF(why, "Why", text, *e->why, e->why)                                                \
	COLUMN(job, "Job", text, *e->job ? e->job : "the whole system")                            \
	KNOWN_IF(recording, "Recording", text, (recorded && may_read(q, e)), e->file)

static int send_run(const struct answer *to, const struct request *q, const struct schedules *s,
	const struct run_entry *e)
{
	const bool recorded = e->outcome == RUN_WHOLE || e->outcome == RUN_ENDED;
	const bool goes_on = e->outcome == RUN_GOES_ON;
	const int64_t end_ns = goes_on ? (int64_t)clock_ns(CLOCK_REALTIME) : e->end_ns;
	return TABLE_ROW(to, RUN_TABLE);
}

#define FAULT_TABLE(COLUMN, KNOWN_IF) COLUMN(fault, "File and line", text, s->list.error[i].text)

static int send_tables(const struct request *q, const struct answer *to, const struct schedules *s)
{
	int r = TABLE_BEGIN(to, "schedule", SCHEDULE_TABLE);
	for (size_t i = 0; i < s->list.n && r == 0; i++)
		r = send_schedule(to, q, s, i);
	if (r == 0)
		r = TABLE_BEGIN(to, "run", RUN_TABLE);
	for (size_t i = 0; i < s->log.n && r == 0; i++)
		if (may_know(q, &s->log.entry[i]))
			r = send_run(to, q, s, &s->log.entry[i]);
	if (r == 0)
		r = TABLE_BEGIN(to, "fault", FAULT_TABLE);
	for (size_t i = 0; i < s->list.n_errors && r == 0; i++)
		r = TABLE_ROW(to, FAULT_TABLE);
	return r;
}

static int list(struct request *q, const struct schedules *s)
{
	struct row_stream stream;
	const struct answer to = row_stream_answer(&stream, q);
	return row_stream_done(&stream, send_tables(q, &to, s));
}

/* --- run -------------------------------------------------------------------------------------- */

struct run_job {
	struct job job;
	struct schedules *schedules;
	uint32_t log_serial; /* the log that contains its id */
	uint64_t id;
	uint64_t next_ns; /* of progress */
};

static uint64_t run_deadline_ns(struct job *job, const struct request *q)
{
	(void)q;
	return ((struct run_job *)job)->next_ns;
}

static int run_over(struct run_job *j, struct request *q, const struct run_entry *e)
{
	struct row_stream stream;
	const struct answer to = row_stream_answer(&stream, q);
	int status = !e || e->outcome == RUN_FAILED ? STATUS_FAILED
		     : e->outcome == RUN_SKIPPED    ? STATUS_SKIPPED
						    : 0;
	int r = TABLE_BEGIN(&to, "run", RUN_TABLE);
	if (r == 0 && e)
		r = send_run(&to, q, j->schedules, e);
	int ended = row_stream_end(&stream);
	if (r == 0)
		r = ended;
	if (r == 0)
		r = request_done(q, status);
	return r < 0 ? r : JOB_DONE;
}

/* A reload may have named another store, whose runs have the same ids. */
static bool is_in_log(const struct run_job *j)
{
	return j->log_serial == j->schedules->log_serial;
}

static int run_moved(struct request *q)
{
	int r = request_fail(q, MPERF__FAILURE_KIND__FAILURE_CANCELLED,
		"Run it again; its samples so far are in the previous store.",
		"the recording was stopped, since mperf.conf names another store");
	return r < 0 ? r : JOB_DONE;
}

static int run_dispatch(struct job *job, struct request *q, uint64_t now_ns)
{
	struct run_job *j = (struct run_job *)job;
	if (!is_in_log(j))
		return run_moved(q);
	const struct run_entry *e = runs_log_find(&j->schedules->log, j->id);
	if (!e || e->outcome != RUN_GOES_ON)
		return run_over(j, q, e);
	j->next_ns = now_ns + PROGRESS_NS;
	return request_progress(q, "samples", schedules_samples(j->schedules, j->id), 0);
}

static int run_finish(struct job *job, struct request *q)
{
	struct run_job *j = (struct run_job *)job;
	(void)q;
	if (is_in_log(j))
		schedules_end(j->schedules, j->id, "it was stopped");
	j->next_ns = 0;
	return 0;
}

static void run_free(struct job *job)
{
	struct run_job *j = (struct run_job *)job;
	if (is_in_log(j))
		schedules_end(j->schedules, j->id, "the client disconnected");
	free(j);
}

static const struct job_kind run_kind = {.deadline_ns = run_deadline_ns,
	.dispatch = run_dispatch,
	.finish = run_finish,
	.free = run_free};

static int refuse_run(struct request *q, int why, const char *name)
{
	switch (why) {
	case SCHEDULES_UNKNOWN:
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_MISSING,
			"See `mperfctl schedule`; after a change, run `systemctl reload mperfd`.",
			"mperfd knows no schedule '%.64s'", name);
	case SCHEDULES_OF_JOBS:
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_USAGE,
			"It starts by itself with the next matching job.",
			"the schedule '%.64s' records jobs, so it has no time to run at", name);
	default:
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_LIMIT,
			"Wait until it has ended.", "schedule '%.64s' is already running", name);
	}
}

static int run(struct request *q, struct service *s, const char *name)
{
	if (!q->peer->sees_all)
		return request_refuse_group(q, "you may not record the whole system");
	struct run_job *j = calloc(1, sizeof(*j));
	if (!j)
		return -ENOMEM;
	*j = (struct run_job){.job.kind = &run_kind, .schedules = s->schedules};
	int r = schedules_begin(s->schedules, s->walk, name, clock_ns(CLOCK_MONOTONIC), &j->id);
	if (r != 0) {
		free(j);
		return r < 0 ? r : refuse_run(q, r, name);
	}
	j->log_serial = s->schedules->log_serial;
	q->job = &j->job;
	return request_ready(q, "");
}

/* --- get -------------------------------------------------------------------------------------- */

/* Find the recording of that name in the log, so that a client cannot pass a path. NULL: none that
 * the peer may see. */
static const struct run_entry *find_recording(
	const struct request *q, const struct runs_log *log, const char *name)
{
	for (size_t i = 0; i < log->n; i++) {
		const struct run_entry *e = &log->entry[i];
		if (may_read(q, e) && *e->file && e->outcome != RUN_GOES_ON &&
			strcmp(e->file, name) == 0)
			return e;
	}
	return NULL;
}

static int get(struct request *q, const struct schedules *s, const char *name)
{
	const struct run_entry *e = find_recording(q, &s->log, name);
	_cleanup_(freep) char *path = NULL;
	struct stat st;
	if (!e)
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_MISSING,
			"See `mperfctl schedule`, column Recording.",
			"there is no recording '%.100s' that you may read", name);
	if (asprintf(&path, "%s/%s", s->path, e->file) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		int error = errno;
		if (fd >= 0)
			close(fd);
		if (error == EMFILE || error == ENFILE)
			return -error;
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_BROKEN,
			"See the folder's permissions.", "%s cannot be read: %s", path,
			strerror(error));
	}
	return give_file(q, fd, (uint64_t)st.st_size);
}

/* ---------------------------------------------------------------------------------------------- */

int control_schedule(struct request *q, const Mperf__Request *m)
{
	struct service *s = q->peer->options->service;
	const Mperf__ScheduleRequest *schedule = m->schedule;
	int r;
	if (!s || !s->schedules)
		r = request_fail(q, MPERF__FAILURE_KIND__FAILURE_MISSING,
			"Run `systemctl start mperfd`, and try again.",
			"this mperfd has no schedules: it serves only one client");
	else if (schedule->action == MPERF__SCHEDULE_ACTION__SCHEDULE_LIST)
		r = list(q, s->schedules);
	else if (schedule->action == MPERF__SCHEDULE_ACTION__SCHEDULE_GET)
		r = get(q, s->schedules, schedule->name);
	else
		r = run(q, s, schedule->name);
	return r < 0 ? r : 0;
}
