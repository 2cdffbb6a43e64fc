/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * record: a recording whose sealed segment is streamed to the client, which writes the file. The
 * segment is made in a folder of our own, so that a full disc on the client's side, or a client
 * that goes away, leaves nothing half-written anywhere.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "daemon/control/cost_hold.h"
#include "daemon/control/give.h"
#include "daemon/control/peer.h"
#include "daemon/control/record_private.h"
#include "daemon/control/request.h"
#include "daemon/service/service.h"
#include "daemon/session/listener.h"
#include "daemon/session/recording.h"
#include "proto/base/memory.h"

#define PROGRESS_NS 500000000u
/* Limits of a private daemon: the programs are its client's own, so no other user needs a share. */
#define FEED_PROGRAMS_MAX 4096u
#define FEED_BYTES_MAX (1ull << 30)
#define NO_SPACE_REMEDY "Free some space, or set TMPDIR to a disc that has some."
#define FILE_LIMIT_SAYS "the limit of file size is reached before all samples are stored"
#define FILE_LIMIT_REMEDY "Raise it with ulimit -f, or LimitFSIZE= in a unit."
#define UNWRITABLE_REMEDY "Set TMPDIR to a folder on another disc."

struct record_job {
	struct job job;
	struct walk *walk; /* of its own; NULL: the service's, which is shared */
	struct recording *recording;
	struct service *service;  /* the service whose rate was raised; NULL: none */
	struct listener listener; /* of a private daemon, for programs; fd -1: none */
	struct feed *feed;        /* the feed whose programs report more often for us; NULL: none */
	struct record_hold hold;  /* resources charged to its user */
	struct cost_hold cost;    /* limit of its cost */
	char *folder, *path;
	int fd; /* the sealed segment while it is streamed; -1 before */
	uint64_t offset, total;
	uint64_t next_progress_ns;
	uint64_t looked_ns;
	/* Its walk while that scans /proc, in slices; nothing is recorded yet. NULL: recording. */
	Mperf__RecordRequest *request;
	struct walk_options options; /* borrows from the request, and: */
	struct event_list *events;
	bool is_wanted; /* the client wants its results, as soon as there are any */
	bool finishing;
	bool out_of_room; /* the recording ended because its user has no room left */
};

/* Stop sampling for this recording. */
static void end_recording(struct record_job *j)
{
	j->recording = recording_free(j->recording);
	cost_hold_end(&j->cost);
	if (j->feed)
		(void)feed_want_period(j->feed, j, NULL, 0);
	j->feed = NULL;
	j->walk = walk_free(j->walk);
	if (j->service)
		/* a lower rate can wait for the next change */
		(void)service_want_rate(j->service, j, (uid_t)-1, 0, 0);
	j->service = NULL;
}

/* Forget the start's data: the recording has begun, or never will. */
static void end_opening(struct record_job *j)
{
	if (j->request)
		mperf__record_request__free_unpacked(j->request, NULL);
	j->request = NULL;
	free(j->events);
	j->events = NULL;
}

static void record_free(struct job *job)
{
	struct record_job *j = (struct record_job *)job;
	end_opening(j);
	end_recording(j);
	record_hold_end(&j->hold);
	listener_clear_folder(&j->listener);
	if (j->fd >= 0)
		close(j->fd);
	if (j->path)
		unlink(j->path);
	if (j->folder)
		rmdir(j->folder);
	free(j->path);
	free(j->folder);
	free(j);
}

static size_t record_fds(struct job *job, struct pollfd *fds, size_t n)
{
	struct record_job *j = (struct record_job *)job;
	if (!j->recording)
		return 0;
	size_t filled = j->walk ? walk_fds(j->walk, fds, n) : 0;
	return filled + recording_fds(j->recording, fds + filled, n - filled);
}

/* The walk's descriptors do not wake this job, so it polls at the walk's pace. */
static uint64_t shared_deadline_ns(const struct record_job *j)
{
	return j->looked_ns + WALK_DRAIN_NS;
}

static uint64_t record_deadline_ns(struct job *job, const struct request *q)
{
	struct record_job *j = (struct record_job *)job;
	if (j->request)
		return walk_scan_ns(j->walk);
	if (j->recording) {
		uint64_t own = j->walk ? walk_deadline_ns(j->walk) : shared_deadline_ns(j);
		own = cost_hold_deadline_ns(&j->cost, own);
		uint64_t seal = recording_deadline_ns(j->recording);
		return seal < own ? seal : own;
	}
	/* While the peer reads faster than we send, no descriptor would ever wake us. */
	return request_has_room(q) ? 0 : UINT64_MAX;
}

static int report_progress(struct record_job *j, struct request *q, uint64_t now_ns)
{
	if (now_ns < j->next_progress_ns)
		return 0;
	j->next_progress_ns = now_ns + PROGRESS_NS;
	struct recording_state state;
	recording_state(j->recording, &state);
	return j->finishing ? request_progress(q, "names to come", state.waiting, 0)
			    : request_progress(q, "samples", state.n_samples, 0);
}

/* The segment is complete: stop holding events and tables, and begin to stream. */
static int begin_stream(struct record_job *j)
{
	end_recording(j);
	j->fd = open(j->path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	if (j->fd < 0 || fstat(j->fd, &st) < 0)
		return -errno;
	j->total = (uint64_t)st.st_size;
	(void)record_hold_bytes(&j->hold, j->total);
	return 0;
}

/* Tell what the recording has, and why it ended early if it did. 0 or -errno. */
static int send_provenance(struct record_job *j, struct request *q)
{
	struct row_stream rows;
	const struct answer to = row_stream_answer(&rows, q);
	int r = record_tell(j->path, j->fd, &to,
		j->out_of_room ? "it ended early: your recordings have used up your space in "
				 "mperfd's cache"
			       : NULL);
	int ended = row_stream_end(&rows);
	return r < 0 ? r : ended;
}

/* Send chunks while the peer takes them. 0, JOB_DONE, -errno. */
static int stream(struct record_job *j, struct request *q)
{
	int r = give_bytes(q, j->fd, &j->offset, j->total);
	if (r != 0)
		return r < 0 ? r : 0;
	r = send_provenance(j, q);
	if (r >= 0)
		r = request_done(q, 0);
	return r < 0 ? r : JOB_DONE;
}

static int fail_store(struct record_job *j, struct request *q)
{
	struct recording_state state;
	recording_state(j->recording, &state);
	int r = state.outcome == -EFBIG ? request_fail(q, MPERF__FAILURE_KIND__FAILURE_LIMIT,
						  FILE_LIMIT_REMEDY, FILE_LIMIT_SAYS)
		: state.outcome == SEGMENT_NO_SPACE
			? request_fail(q, MPERF__FAILURE_KIND__FAILURE_LIMIT, NO_SPACE_REMEDY,
				  "no space left to store samples in %s", j->folder)
			: request_fail(q, MPERF__FAILURE_KIND__FAILURE_LIMIT, UNWRITABLE_REMEDY,
				  "the samples cannot be stored in %s: %s", j->folder,
				  state.outcome < 0 ? strerror(-state.outcome)
						    : "it no longer accepts writes");
	return r < 0 ? r : JOB_DONE;
}

static bool is_over(struct record_job *j)
{
	struct recording_state state;
	recording_state(j->recording, &state);
	j->out_of_room = !record_hold_bytes(&j->hold, state.bytes > 0 ? (uint64_t)state.bytes : 0);
	return recording_targets_gone(j->recording) || j->out_of_room;
}

/* Watch what the recording costs, as long as it samples. 0 or -errno. */
static int keep_cost(struct record_job *j, uint64_t now_ns)
{
	int r = j->walk      ? cost_hold_dispatch(&j->cost, j->walk, now_ns)
		: j->service ? cost_hold_follow(&j->cost, j->service, j)
			     : 0;
	if (r > 0)
		recording_note(j->recording, j->cost.says);
	return r < 0 ? r : 0;
}

static int finish_recording(struct record_job *j, uint64_t now_ns)
{
	j->finishing = true;
	if (j->walk)
		cost_hold_stop(&j->cost, j->walk, now_ns);
	return recording_finish(j->recording, now_ns);
}

/* 0; positive after a refusal was sent; -errno. */
static int make_folder(struct record_job *j, struct request *q)
{
	const char *parent = getenv("TMPDIR");
	if (asprintf(&j->folder, "%s/mperf-XXXXXX", parent && *parent ? parent : "/tmp") < 0) {
		j->folder = NULL;
		return -ENOMEM;
	}
	if (!mkdtemp(j->folder)) {
		int r = request_fail(q, MPERF__FAILURE_KIND__FAILURE_REFUSED,
			"Set TMPDIR to a folder that exists and that you may write to.",
			"cannot make a folder for the recording in %s: %s",
			parent && *parent ? parent : "/tmp", strerror(errno));
		free(j->folder);
		j->folder = NULL;
		return r < 0 ? r : 1;
	}
	return asprintf(&j->path, "%s/segment.mprf", j->folder) < 0 ? -ENOMEM : 0;
}

static int fail_start(struct request *q, int outcome, const char *why)
{
	switch (outcome) {
	case WALK_GONE:
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_MISSING,
			"Find its pid with ps.", "%s", *why ? why : "there is no such process");
	case WALK_FULL:
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_LIMIT,
			"Raise the limit of open files (ulimit -n).", "%s", why);
	case WALK_REFUSED:
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_REFUSED,
			"mperfctl doctor says what this machine can do.", "%s", why);
	case -EMFILE:
	case -ENFILE:
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_LIMIT,
			"Raise it with ulimit -n, or LimitNOFILE= in a unit.",
			"the limit of open descriptors (RLIMIT_NOFILE, fs.file-max) is too low to "
			"record");
	case -ENOENT:
		return request_fail_namer(q);
	case -EFBIG:
		return request_fail(
			q, MPERF__FAILURE_KIND__FAILURE_LIMIT, FILE_LIMIT_REMEDY, FILE_LIMIT_SAYS);
	default:
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_INTERNAL, "",
			"the recording could not be started: %s", strerror(-outcome));
	}
}

/* Fail because the folder for the samples refuses them; `why` says how. */
static int fail_place(struct request *q, int outcome, const char *why)
{
	return request_fail(q, MPERF__FAILURE_KIND__FAILURE_LIMIT,
		outcome == RECORDING_FULL ? NO_SPACE_REMEDY : UNWRITABLE_REMEDY, "%s", why);
}

/* Targets of the recording: it keeps their samples of all that the walk delivers. A walk of its own
 * delivers only the right processes. */
static struct targets targets_of(const struct request *q, const Mperf__RecordRequest *m,
	const struct sampler_options *o, bool shared)
{
	struct targets t = {
		.all = !shared || m->target->all,
		.after_exec = m->target->after_exec,
		.only_uid = !q->peer->sees_all,
		.uid = q->peer->uid,
		.gid = q->peer->gid,
		.n_pids = o->n_pids,
	};
	if (o->n_pids > 0)
		memcpy(t.pid, o->pids, o->n_pids * sizeof(*t.pid));
	return t;
}

static int refuse_wakers(struct request *q, int error)
{
	const bool is_alone = q->peer->options->private;
	if (error == ENOMEM)
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_REFUSED,
			"Record without --wakers.",
			"wakers cannot be recorded: the machine has too little memory for BPF");
	return request_fail(q, MPERF__FAILURE_KIND__FAILURE_REFUSED,
		is_alone && geteuid() != 0
			? "Start the service (systemctl start mperfd), run mperfctl as root, or "
			  "record without --wakers."
			: "mperfctl status and doctor say what is missing; or record without "
			  "--wakers.",
		"wakers cannot be recorded: BPF cannot be loaded (%s); it needs Linux 5.18 with "
		"BTF, CAP_BPF and CAP_PERFMON",
		strerror(error));
}

/* 0; positive after a refusal was sent; -errno. */
static int open_walk(struct record_job *j, struct request *q, const struct walk_options *o)
{
	struct event_error error = {""};
	int refused = 0, r = walk_open(o, &j->walk, &error);
	if (r != 0)
		r = fail_start(q, r, error.text) ?: 1;
	else if (o->wakers && !walk_has_looks(j->walk)) {
		(void)walk_offcpu(j->walk, &refused);
		r = refuse_wakers(q, refused) ?: 1;
	}
	return r;
}

/* Check the rate for a client of the service, and its cost. 0; positive after a refusal; -errno. */
static int raise_rate(struct record_job *j, struct request *q, uint32_t hz, uint32_t overhead_ppm)
{
	const struct control_options *o = q->peer->options;
	if (o->service && hz > o->conf->rate_max) {
		int r = request_fail(q, MPERF__FAILURE_KIND__FAILURE_USAGE,
			"Ask for less with -F, or raise rate-max in mperf.conf.",
			"%u samples a second are more than the %u that this service allows", hz,
			o->conf->rate_max);
		return r < 0 ? r : 1;
	}
	if (j->walk)
		return cost_hold_begin(&j->cost, hz, overhead_ppm);
	j->service = o->service;
	return service_want_rate(o->service, j, request_raise_uid(q), hz, overhead_ppm);
}

/* Listen for programs. They report only events that can be counted in regions. */
static int listen_at(struct record_job *j, struct walk *walk, const struct feed_limits *limits)
{
	struct conf conf;
	struct event_error error;
	conf_defaults(&conf);
	int r = walk_listen(walk, j->listener.fd, limits, conf.region_events, &error);
	return r < 0 ? r : 0;
}

/* Accept instrumented programs: at a socket that the client chooses, since a private daemon has
 * only that client's rights; or at the service's, whose programs report more often for a while. 0;
 * positive after a refusal; -errno. */
static int listen_to_programs(
	struct record_job *j, struct request *q, const Mperf__RecordRequest *m, struct walk *walk)
{
	const struct feed_limits limits = {
		.programs_max = FEED_PROGRAMS_MAX,
		.programs_per_user_max = FEED_PROGRAMS_MAX,
		.program_bytes_max = FEED_BYTES_MAX / 4,
		.bytes_max = FEED_BYTES_MAX,
		.one_user = q->peer->options->private,
		.period_ms = m->feed_period_ms ? m->feed_period_ms : MPERF_PERIOD_MS,
	};
	if (q->peer->options->private && *m->feed) {
		struct listener_error error = {"", ""};
		int r = listener_bind(&j->listener, LISTENER_FEED, m->feed, &error);
		if (r == 0)
			return listen_at(j, walk, &limits);
		if (r > 0)
			r = request_fail(q, MPERF__FAILURE_KIND__FAILURE_REFUSED,
				    "Set TMPDIR to a folder that you may write to.", "%s",
				    error.text)
				    ?: 1;
		return r;
	}
	if (!walk->feed || m->feed_period_ms == 0)
		return 0;
	j->feed = walk->feed;
	const struct feed_reach reach = request_feed_reach(q);
	return feed_want_period(walk->feed, j, &reach, m->feed_period_ms);
}

/* A walk of our own knows of no jobs: its targets have the labels that the service knows, and pass them on. 0 or
 * -errno. */
static int take_job_labels(const struct record_job *j, const struct request *q)
{
	const struct service *s = q->peer->options->service;
	const struct sampler_options *o = &j->options.sampler;
	const uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
	int r = s && s->walk && j->walk ? walk_catch_up(s->walk, now_ns) : 0;
	for (size_t i = 0; r >= 0 && s && s->walk && j->walk && i < o->n_pids; i++) {
		const struct task *t = task_find(&s->walk->tasks, o->pids[i]);
		const struct label_set *set = t ? t->process->labels : NULL;
		if (set)
			r = attribute_set_labels(
				j->walk->attribute, o->pids[i], set->uid, set->labels, now_ns);
	}
	return r < 0 ? r : 0;
}

/* Begin to record: the walk's scan is complete. 0; RECORD_REFUSED; -errno. */
enum { RECORD_REFUSED = 1, RECORD_MORE };
static int begin(struct record_job *j, struct request *q)
{
	const Mperf__RecordRequest *m = j->request;
	const struct walk_options *o = &j->options;
	struct walk *shared = j->walk ? NULL : record_shared_walk(q, m);
	int r = record_hold_fds(&j->hold, q, o->sampler.n_pids, j->walk);
	if (r == 0)
		r = take_job_labels(j, q);
	if (r == 0)
		r = raise_rate(j, q, o->sampler.hz, m->overhead_ppm);
	if (r == 0)
		r = listen_to_programs(j, q, m, shared ? shared : j->walk);
	if (r != 0)
		return r;
	_cleanup_(freep) char *labels = NULL;
	if (m->n_label > 0 && (r = request_read_labels(q, m->label, m->n_label, &labels)) != 0)
		return r;
	struct recording_options recording = {
		.walk = shared ? shared : j->walk,
		.shared = shared != NULL,
		.targets = targets_of(q, m, &o->sampler, shared != NULL),
		.hide_kernel = !q->peer->sees_all,
		.window_ns = (uint64_t)m->window_ms * 1000000u,
		.command = m->command && *m->command ? m->command : NULL,
		.labels = labels,
		.labels_uid = q->peer->uid,
		.path = j->path,
		.pool = q->peer->options->pool,
		.pool_uid = q->peer->uid,
		.raise_uid = request_raise_uid(q),
		.spent = shared ? record_hold_spend : NULL,
		.owner = &j->hold,
	};
	struct event_error error = {""};
	r = recording_new(&recording, &j->recording, &error);
	if (r == 0 && shared)
		r = walk_raise(shared, recording.raise_uid, o->sampler.pids, o->sampler.n_pids);
	if (r == 0 && j->walk)
		r = walk_start(j->walk, o->sampler.pids, o->sampler.n_pids);
	if (r == 0)
		r = request_ready_to_sample(q, recording.walk->sampler);
	else if (r == RECORDING_FULL || r == RECORDING_UNWRITABLE)
		r = fail_place(q, r, error.text) ?: RECORD_REFUSED;
	else
		r = fail_start(q, r == RECORDING_GONE ? WALK_GONE : r, error.text)
			    ?: RECORD_REFUSED;
	return r;
}

/* Returns as begin does; RECORD_MORE: the walk has not finished its scan. */
static int go_on(struct record_job *j, struct request *q)
{
	int r = j->walk && walk_scan_ns(j->walk) < UINT64_MAX ? walk_scan(j->walk) : 0;
	if (r == 0 && j->walk && walk_scan_ns(j->walk) < UINT64_MAX)
		return RECORD_MORE;
	if (r == 0)
		r = begin(j, q);
	else
		r = fail_start(q, r, "") ?: RECORD_REFUSED;
	if (r != 0)
		return r;
	end_opening(j);
	return j->is_wanted ? finish_recording(j, kernel_real.now_ns(NULL)) : 0;
}

static int copy_request(struct record_job *j, const Mperf__RecordRequest *m)
{
	j->events = calloc(1, sizeof(*j->events));
	j->request = request_copy(&m->base);
	return j->events && j->request ? 0 : -ENOMEM;
}

/* Check the request, and open the walk or the tap that delivers its samples. 0; positive after a
 * refusal; -errno. */
static int open_all(struct record_job *j, struct request *q)
{
	int r = record_options(q, j->request, j->events, &j->options);
	if (r == 0)
		r = make_folder(j, q);
	const bool shared = record_shared_walk(q, j->request);
	if (r == 0)
		r = record_hold_begin(&j->hold, q, shared);
	return r == 0 && !shared ? open_walk(j, q, &j->options) : r;
}

/* --- the job ---------------------------------------------------------------------------------- */

static int record_dispatch(struct job *job, struct request *q, uint64_t now_ns)
{
	struct record_job *j = (struct record_job *)job;
	if (j->request) {
		int r = go_on(j, q);
		return r < 0 ? r : r == RECORD_REFUSED ? JOB_DONE : 0;
	}
	if (j->fd >= 0)
		return stream(j, q);

	j->looked_ns = now_ns;
	int r = j->walk ? walk_dispatch(j->walk, now_ns) : 0;
	if (r == 0 && !j->finishing)
		r = is_over(j) ? finish_recording(j, now_ns) : keep_cost(j, now_ns);
	if (r < 0)
		return r;
	r = recording_dispatch(j->recording, now_ns);
	if (r == RECORDING_LOST_STORE)
		return fail_store(j, q);
	if (r == RECORDING_SEALED) {
		r = begin_stream(j);
		return r < 0 ? r : stream(j, q);
	}
	return r < 0 ? r : report_progress(j, q, now_ns);
}

static int record_finish(struct job *job, struct request *q)
{
	struct record_job *j = (struct record_job *)job;
	(void)q;
	j->is_wanted = true;
	if (j->finishing || !j->recording)
		return 0;
	return finish_recording(j, kernel_real.now_ns(NULL));
}

static const struct job_kind record_kind = {
	.fds = record_fds,
	.deadline_ns = record_deadline_ns,
	.dispatch = record_dispatch,
	.finish = record_finish,
	.free = record_free,
};

int control_record(struct request *q, const Mperf__Request *request)
{
	if (request->record->stored)
		return record_stored(q, request);
	struct record_job *j = calloc(1, sizeof(*j));
	if (!j)
		return -ENOMEM;
	*j = (struct record_job){.job.kind = &record_kind, .fd = -1, .listener.fd = -1};
	int r = copy_request(j, request->record);
	if (r == 0)
		r = open_all(j, q);
	if (r == 0)
		r = go_on(j, q);
	if (r != 0 && r != RECORD_MORE) {
		record_free(&j->job);
		return r < 0 ? r : 0;
	}
	q->job = &j->job;
	return 0;
}
