/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * top: live frames. A frame has the samples that its feed gathered in the last interval. It is sent
 * if the client has read the frame before, and skipped otherwise, so that a slow client sees fewer
 * frames and never old ones. The rate is raised while a client reads frames.
 */
#include <errno.h>
#include <linux/sockios.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/pidfd.h>

#include "daemon/conf/conf.h"
#include "daemon/control/cost_hold.h"
#include "daemon/control/peer.h"
#include "daemon/control/question.h"
#include "daemon/control/request.h"
#include "daemon/control/top_harts.h"
#include "daemon/query/samples/live.h"
#include "daemon/service/service.h"
#include "daemon/session/offcpu_looks.h"
#include "daemon/session/targets.h"
#include "daemon/session/top_feed.h"
#include "proto/base/memory.h"

#define TOP_INTERVAL_MS 1000
/* the shortest that people can read; frames of less cost more than sampling */
#define TOP_INTERVAL_MS_MIN 100
#define TOP_INTERVAL_MS_MAX 3600000
#define TOP_HZ 999    /* of a private daemon; of a service conf/conf.h: top_rate */
#define TOP_LIMIT 200 /* rows of a frame unless asked otherwise */
#define TOP_LIMIT_MAX 10000
/* If many names are still missing, the first frame is delayed by up to one interval: on a board
 * names take seconds at first. Limits of that delay, and the share of missing names: */
#define TOP_NAMES_NS_MIN 200000000u
#define TOP_NAMES_NS_MAX 2000000000u
#define TOP_NAMES_LOOK_NS 20000000u
#define TOP_UNNAMED_MAX 0.3
/* Interval of checks whether a client has read the last frame: a client that does not read must not
 * keep the higher rate, for which others pay. */
#define TOP_READ_LOOK_NS 100000000u
#define TOP_UNREAD_NS 30000000000u
#define TOP_LATE_LOOK_NS 5000000u /* if the walk is late with a frame */
/* Processes that --pid and its descendants may mean in one frame. */
#define TOP_PIDS_MAX 4096

struct top_job {
	struct job job;
	struct service *service; /* NULL: a walk of our own */
	struct user *user;       /* the user charged for this top; NULL: none */
	struct walk *walk;
	struct top_feed *feed, *feeds; /* feeds: the list of our own */
	Mperf__TopRequest *request;    /* copied */
	enum query_by by;
	struct targets targets;
	int pidfd[TARGETS_MAX]; /* of the targets that live, with a walk of our own */
	size_t n_pidfds;
	bool endless;          /* a target is a thread, whose end cannot be watched */
	uint64_t told;         /* number of the last slice that was sent or skipped */
	uint64_t names_ns;     /* until when the first frame waits; 0: it does not */
	uint64_t looked_ns;    /* the last dispatch */
	uint64_t look_ns;      /* last attempt to send a frame that is ready */
	uint64_t read_ns;      /* when the peer had last read all */
	bool wants_rate;       /* the service samples faster for us */
	struct cost_hold cost; /* of a walk of our own */
};

static void top_free(struct job *job)
{
	struct top_job *j = (struct top_job *)job;
	for (size_t i = 0; i < j->n_pidfds; i++)
		close(j->pidfd[i]);
	top_feed_put(j->feed);
	user_give(j->user, USER_TOPS, 1);
	if (j->service)
		(void)service_want_rate(j->service, j, (uid_t)-1, 0,
			0); /* a lower rate can wait for the next change */
	else
		walk_free(j->walk);
	cost_hold_end(&j->cost);
	if (j->request)
		mperf__top_request__free_unpacked(j->request, NULL);
	free(j);
}

static size_t top_fds(struct job *job, struct pollfd *fds, size_t n)
{
	struct top_job *j = (struct top_job *)job;
	return j->service ? 0 : walk_fds(j->walk, fds, n);
}

static uint64_t top_deadline_ns(struct job *job, const struct request *q)
{
	struct top_job *j = (struct top_job *)job;
	/* the walk wakes others, not us: check at its pace once a frame is due */
	uint64_t own = top_feed_deadline_ns(j->feed), again = j->looked_ns + TOP_LATE_LOOK_NS;
	own = own > again ? own : again;
	(void)q;
	if (j->told < j->feed->n_cuts)
		own = j->look_ns + (j->names_ns ? TOP_NAMES_LOOK_NS : TOP_READ_LOOK_NS);
	uint64_t walk = j->service ? UINT64_MAX : walk_deadline_ns(j->walk);
	return cost_hold_deadline_ns(&j->cost, walk < own ? walk : own);
}

/* --- the frame -------------------------------------------------------------------------------- */

/* Find the pids of named processes and of all that they started, as far as they ran. */
static size_t find_pids(const struct top_job *j, int32_t *pid)
{
	const struct window_row *row = j->feed->last.window.rows;
	size_t n = 0;
	for (; row && n < TOP_PIDS_MAX; row = row->hh.next) {
		size_t i = 0;
		if (!row->who || !targets_want(&j->targets, row->who))
			continue;
		while (i < n && pid[i] != row->who->pid)
			i++;
		if (i == n)
			pid[n++] = row->who->pid;
	}
	return n;
}

/* Filter of the request, without its times: live rows are always of the present. */
static struct query_filter filter_of(const struct top_job *j, const struct request *q)
{
	struct query_filter f = query_filter_of(q, j->request->filter);
	f.since_ns = f.until_ns = 0;
	return f;
}

static int tell_rows(struct top_job *j, const struct query_filter *filter,
	const struct answer *answer, struct query_error *error)
{
	const struct top_feed *f = j->feed;
	const Mperf__TopRequest *m = j->request;
	struct live live = {
		.window = &f->last.window,
		.stacks = &f->last.stacks,
		.tasks = &j->walk->tasks,
		.sampler = j->walk->sampler,
		.lost = f->last.lost,
		.realtime_ns = f->last.window.start_ns + j->walk->realtime_offset_ns,
		.hz = top_feed_rate(f),
	};
	uint32_t limit = m->limit ? m->limit : TOP_LIMIT;
	if (*m->callers_of)
		return query_live_callers(&live, m->callers_of,
			*m->callers_module ? m->callers_module : NULL, limit, filter, answer,
			error);
	return query_live_hotspots(&live, j->by, limit, filter, answer, error);
}

/* 0; QUERY_FAILED with *error; ANSWER_FULL or -errno. */
static int tell_tables(
	struct top_job *j, struct request *q, struct row_stream *stream, struct query_error *error)
{
	struct answer answer = row_stream_answer(stream, q);
	struct query_filter filter = filter_of(j, q);
	_cleanup_(freep) int32_t *pid = NULL;
	if (j->service && j->targets.n_pids > 0) {
		pid = calloc(TOP_PIDS_MAX, sizeof(*pid));
		if (!pid)
			return -ENOMEM;
		filter.pid = pid;
		filter.n_pids = find_pids(j, pid);
		if (filter.n_pids == 0)
			pid[filter.n_pids++] = -1; /* nobody's */
	}
	int r = top_tell_harts(j->feed, q->peer->sees_all, &answer);
	if (r == 0)
		r = row_stream_table(stream, query_by_name(j->by));
	return r == 0 ? tell_rows(j, &filter, &answer, error) : r;
}

/* 0, JOB_DONE after a refusal was sent, -errno. */
static int tell_frame(struct top_job *j, struct request *q)
{
	struct query_error error = {"", "", 0};
	struct row_stream stream;
	int r = tell_tables(j, q, &stream, &error);
	int ended = row_stream_end(&stream);
	if (r == QUERY_FAILED && *error.text) {
		r = request_fail(q, error.kind, error.remedy, "%s", error.text);
		return r < 0 ? r : JOB_DONE;
	}
	return r < 0 ? r : ended < 0 ? ended : 0;
}

/* Has the peer read all that it was sent? Source: net/unix/af_unix.c of Linux 6.12, unix_ioctl:
 * SIOCOUTQ of a stream socket is what the other end has not taken yet. */
static bool has_read(const struct request *q)
{
	int unread = 0;
	return frame_buffer_filled(&q->peer->out) == 0 &&
	       (ioctl(q->peer->fd, SIOCOUTQ, &unread) < 0 || unread == 0);
}

/* --- its life --------------------------------------------------------------------------------- */

static uint64_t names_wait_ns(uint64_t interval_ns)
{
	return interval_ns < TOP_NAMES_NS_MIN   ? TOP_NAMES_NS_MIN
	       : interval_ns > TOP_NAMES_NS_MAX ? TOP_NAMES_NS_MAX
						: interval_ns;
}

/* A frame full of addresses is of no use, so the first frame waits a little for names. */
static bool waits_for_names(struct top_job *j, uint64_t now_ns)
{
	if (j->told > 0 || (j->names_ns && now_ns >= j->names_ns) ||
		top_feed_unnamed(j->feed) <= TOP_UNNAMED_MAX)
		return false;
	if (j->names_ns == 0)
		j->names_ns = now_ns + names_wait_ns(j->feed->interval_ns);
	return true;
}

/* Request the higher rate while frames are read, and for a short time if they are not. */
static int wish(struct top_job *j, const struct request *q, uint64_t now_ns, bool read)
{
	if (read)
		j->read_ns = now_ns;
	bool wants = now_ns - j->read_ns < TOP_UNREAD_NS;
	if (!j->service || wants == j->wants_rate)
		return 0;
	uint32_t hz = j->request->hz ? j->request->hz : q->peer->options->conf->top_rate;
	j->wants_rate = wants;
	return service_want_rate(
		j->service, j, request_raise_uid(q), wants ? hz : 0, j->request->overhead_ppm);
}

static int watch_targets(struct top_job *j)
{
	for (size_t i = 0; i < j->targets.n_pids; i++) {
		int fd = pidfd_open(j->targets.pid[i], 0);
		if (fd >= 0)
			j->pidfd[j->n_pidfds++] = fd;
		else if (errno == EMFILE || errno == ENFILE)
			return -errno;
		else if (errno != ESRCH)
			j->endless = true;
	}
	return 0;
}

/* With a walk of our own, which is bound to its targets: have all targets exited? */
static bool targets_gone(struct top_job *j)
{
	if (j->service || j->targets.n_pids == 0 || j->endless)
		return false;
	for (size_t i = 0; i < j->n_pidfds;) {
		struct pollfd p = {.fd = j->pidfd[i], .events = POLLIN};
		if (poll(&p, 1, 0) <= 0) {
			i++;
			continue;
		}
		close(j->pidfd[i]);
		j->pidfd[i] = j->pidfd[--j->n_pidfds];
	}
	return j->n_pidfds == 0;
}

static int top_finish(struct job *job, struct request *q)
{
	(void)job;
	int r = request_done(q, 0);
	return r < 0 ? r : JOB_DONE;
}

static int top_dispatch(struct job *job, struct request *q, uint64_t now_ns)
{
	struct top_job *j = (struct top_job *)job;
	int r = j->service ? 0 : walk_dispatch(j->walk, now_ns);
	if (r == 0 && !j->service) /* frames name the work given up (annotate.h) */
		r = cost_hold_dispatch(&j->cost, j->walk, now_ns);
	j->looked_ns = now_ns;
	if (r < 0 || j->told == j->feed->n_cuts)
		return r;
	bool read = has_read(q);
	r = wish(j, q, now_ns, read);
	j->look_ns = now_ns;
	if (r < 0 || waits_for_names(j, now_ns) || !read)
		return r;
	j->told = j->feed->n_cuts;
	j->names_ns = 0;
	r = tell_frame(j, q);
	return r == 0 && targets_gone(j) ? top_finish(job, q) : r;
}

static const struct job_kind top_kind = {
	.fds = top_fds,
	.deadline_ns = top_deadline_ns,
	.dispatch = top_dispatch,
	.finish = top_finish,
	.free = top_free,
};

/* --- beginning -------------------------------------------------------------------------------- */

/* Refuse options that make no sense. 0; positive after an error was sent; -errno. */
static int check(struct top_job *j, struct request *q)
{
	const Mperf__TopRequest *m = j->request;
	int by = query_by_parse(*m->by ? m->by : "function"), r = 0;
	size_t n_pids = m->target ? request_drop_twins(m->target->pid, m->target->n_pid) : 0;
	if (m->target)
		m->target->n_pid = n_pids;
	if (m->filter)
		m->filter->n_pid = request_drop_twins(m->filter->pid, m->filter->n_pid);
	if (by < 0 || by == QUERY_BY_LINE || by == QUERY_BY_ADDRESS)
		r = request_fail(q, MPERF__FAILURE_KIND__FAILURE_USAGE,
			"Use function, module, process, comm, thread, cgroup, job or hart.",
			"there is no way to group by '%s'", m->by);
	else if (m->hz > SAMPLER_HZ_MAX)
		r = request_fail(q, MPERF__FAILURE_KIND__FAILURE_USAGE, "Ask for less with -F.",
			"%u samples a second are more than the %u that mperfd accepts", m->hz,
			SAMPLER_HZ_MAX);
	else if (m->interval_ms != 0 &&
		 (m->interval_ms < TOP_INTERVAL_MS_MIN || m->interval_ms > TOP_INTERVAL_MS_MAX))
		r = request_fail(q, MPERF__FAILURE_KIND__FAILURE_USAGE, "Give another with -d.",
			"an interval of %u ms is not between %u and %u", m->interval_ms,
			TOP_INTERVAL_MS_MIN, TOP_INTERVAL_MS_MAX);
	else if (m->limit > TOP_LIMIT_MAX)
		r = request_fail(q, MPERF__FAILURE_KIND__FAILURE_USAGE, "Ask for fewer with -n.",
			"%u rows are more than the %u that one frame can have", m->limit,
			TOP_LIMIT_MAX);
	else if (n_pids > TARGETS_MAX)
		r = request_fail(q, MPERF__FAILURE_KIND__FAILURE_LIMIT, "",
			"%zu processes are more than the %d that top can have", n_pids,
			TARGETS_MAX);
	else {
		j->by = *m->callers_of ? QUERY_BY_FUNCTION : (enum query_by)by;
		return 0;
	}
	return r < 0 ? r : 1;
}

static void set_targets(struct top_job *j)
{
	const Mperf__Target *m = j->request->target;
	j->targets.all = !m || m->all || m->n_pid == 0;
	j->targets.since_ns = kernel_real.now_ns(NULL);
	for (size_t i = 0; !j->targets.all && i < m->n_pid; i++)
		j->targets.pid[j->targets.n_pids++] = m->pid[i];
}

/* A tap on the service's walk. 0; positive after a refusal was sent; -errno. */
static int join_service(struct top_job *j, struct request *q)
{
	struct service *s = q->peer->options->service;
	const Mperf__Filter *filter = j->request->filter;
	int r;
	if (!s->walk) {
		r = request_fail(q, MPERF__FAILURE_KIND__FAILURE_REFUSED,
			"mperfctl doctor says what this machine can do.",
			"mperfd cannot sample at present: %s", s->trouble);
		return r < 0 ? r : 1;
	}
	r = cost_hold_check(q, j->request->overhead_ppm, false, false);
	if (r == 0)
		r = request_check_pids(q, j->targets.pid, j->targets.n_pids, true);
	if (r == 0 && filter && !q->peer->sees_all)
		r = request_check_pids(q, filter->pid, filter->n_pid, true);
	if (r != 0)
		return r;
	r = request_take(q, USER_TOPS, 1);
	if (r != 0)
		return r;
	j->user = q->peer->user;
	j->walk = s->walk;
	j->service = s;
	return wish(j, q, kernel_real.now_ns(NULL), true);
}

static int fail_start(struct request *q, int outcome, const char *why)
{
	if (outcome == WALK_GONE)
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_MISSING,
			"Find its pid with ps.", "%s", *why ? why : "there is no such process");
	if (outcome == WALK_REFUSED)
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_REFUSED,
			"mperfctl doctor says what this machine can do.", "%s", why);
	if (outcome == WALK_FULL || outcome == -EMFILE || outcome == -ENFILE)
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_LIMIT,
			"Raise it with ulimit -n, or LimitNOFILE= in a unit.",
			"the limit of open descriptors (RLIMIT_NOFILE, fs.file-max) is too low for "
			"top");
	if (outcome == -ENOENT)
		return request_fail_namer(q);
	return request_fail(q, MPERF__FAILURE_KIND__FAILURE_INTERNAL, "",
		"top could not be started: %s", strerror(-outcome));
}

/* Users who may not see the whole system see their own processes, task by task. 0; positive after a
 * refusal; -errno. */
static int choose_scope(struct top_job *j, struct request *q, struct sampler_options *o)
{
	struct machine machine;
	int r = request_read_machine(q, &machine);
	if (r != 0)
		return r;
	o->per_task = !machine.may_see_all;
	o->user_only = !machine.may_see_kernel;
	if ((r = cost_hold_check(q, j->request->overhead_ppm, false, o->per_task)) != 0)
		return r;
	if (!j->targets.all)
		return request_check_pids(
			q, j->targets.pid, j->targets.n_pids, machine.may_see_all);
	if (machine.may_see_all)
		return 0;
	struct refusal refusal = refusal_explain(NULL, EACCES, true, &machine);
	r = request_fail(q, MPERF__FAILURE_KIND__FAILURE_REFUSED, refusal.remedy,
		"the whole system cannot be looked at: %s", refusal.says);
	return r < 0 ? r : 1;
}

/* A walk of our own. 0; positive after a refusal was sent; -errno. */
static int walk_alone(struct top_job *j, struct request *q)
{
	struct walk_options o = {
		.sampler =
			{
				.hz = j->request->hz ? j->request->hz : TOP_HZ,
				.stacks = SAMPLER_STACKS_FP,
				.switches = q->peer->options->switches,
				.some_tasks = !j->targets.all,
				.pids = j->targets.pid,
				.n_pids = j->targets.n_pids,
				.cores = q->peer->options->cores,
			},
		.all = j->targets.all,
		.offcpu_ppm = OFFCPU_PPM,
		.own = q->peer->options->private,
		.namer = q->peer->options->namer,
		.graves = q->peer->options->graves,
		.starts = q->peer->options->starts,
		.reader = q->peer->options->reader,
	};
	struct event_error error = {""};
	int r = choose_scope(j, q, &o.sampler);
	if (r != 0)
		return r;
	r = watch_targets(j);
	if (r == 0)
		r = cost_hold_begin(&j->cost, o.sampler.hz, j->request->overhead_ppm);
	if (r == 0)
		r = walk_new(&o, &j->walk, &error);
	if (r == 0)
		r = walk_start(j->walk, j->targets.pid, j->targets.n_pids);
	if (r == 0 || r == -ENOMEM)
		return r;
	r = fail_start(q, r, error.text);
	return r < 0 ? r : 1;
}

static int begin(struct top_job *j, struct request *q)
{
	int r = check(j, q);
	if (r != 0)
		return r;
	set_targets(j);
	r = q->peer->options->service ? join_service(j, q) : walk_alone(j, q);
	if (r != 0)
		return r;
	uint32_t interval_ms = j->request->interval_ms ? j->request->interval_ms : TOP_INTERVAL_MS;
	const struct top_feed_options feed = {
		.walk = j->walk,
		.interval_ns = (uint64_t)interval_ms * 1000000u,
		.uid = j->service ? request_raise_uid(q) : (uid_t)-1,
		.pool = q->peer->options->pool,
		.pool_uid = q->peer->uid,
	};
	r = top_feed_get(j->service ? &j->service->top_feeds : &j->feeds, &feed, &j->feed);
	if (r < 0)
		return r;
	/* a new user of a feed gets its last slice at once */
	j->told = j->feed->n_cuts > 0 ? j->feed->n_cuts - 1 : 0;

	r = request_ready_to_sample(q, j->walk->sampler);
	return r < 0 ? r : 0;
}

int control_top(struct request *q, const Mperf__Request *request)
{
	struct top_job *j = calloc(1, sizeof(*j));
	if (!j)
		return -ENOMEM;
	j->job.kind = &top_kind;
	j->request = request_copy(&request->top->base);
	int r = j->request ? begin(j, q) : -ENOMEM;
	if (r != 0) {
		top_free(&j->job);
		return r < 0 ? r : 0;
	}
	q->job = &j->job;
	return 0;
}
