/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The order of things matters at both ends. At the start /proc is scanned before and after events
 * are enabled, so that no task is missed in between; a task that is found twice is entered once. At the
 * end sampling stops first, then the rings are emptied.
 *
 * Windows are cut in the time of the records, not of the drains: a drain up to a tap's cut comes
 * first, so its window holds what happened in it and nothing else. Only copied stacks, whose
 * callers come back later, may reach a tap after its cut.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "daemon/kernel/load_child.h"
#include "daemon/sampler/effort.h"
#include "daemon/session/walk_private.h"
#include "proto/base/clock.h"
#include "proto/base/memory.h"

#define TICK_NS 1000000000u
/* Limits of one call of walk_scan: CPU time of the thread, and elapsed time, since processes may not
 * answer. */
#define SCAN_SLICE_NS 5000000u
#define SCAN_WAITS_NS 20000000u
/* A machine with less memory is a small board, on which looks, rows and names of threads that wait would cost as much as
 * all else. */
#define SMALL_KB (1u << 20)
/* The service has a row of each idle thread a minute, and not each time it writes. */
#define OFFCPU_REST_NS 60000000000u

static uint64_t monotonic_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static void take_named(void *userdata, struct frame *frame)
{
	(void)userdata, (void)frame; /* the store finds new names by the frame's own mark */
}

static void take_unwound(void *userdata, const struct unwind_result *result)
{
	struct walk *w = userdata;
	attribute_unwound(w->attribute, result);
}

static int attach_stations(struct walk *w, const struct walk_options *o)
{
	struct namer_options namer = {
		.binary = o->namer,
		.graves = o->graves,
		.files = &w->files,
		.own = o->own,
		.named = take_named,
		.unwound = take_unwound,
		.userdata = w,
	};
	int r = namer_new(&namer, &w->namer);
	if (r < 0)
		return r;

	struct walk_inner *in = w->inner;
	in->merge.streams = &w->sampler->streams;
	in->merge.lost = w->sampler->lost;
	in->merge.now_ns = monotonic_ns;
	struct attribute_options attribute = {
		.namer = w->namer,
		.kernel = w->sampler->kernel,
		.files = &w->files,
		.tasks = &w->tasks,
		.streams = &w->sampler->streams,
		.lost = w->sampler->lost,
		.lost_ahead = w->sampler->lost_ahead,
		.raised_lost = w->sampler->raised_lost,
		.sideband_apart = o->sampler.always,
		.n_harts = w->sampler->machine.n_harts,
		.n_events = w->sampler->events.n_events,
		.starts = o->starts,
		.variables = o->variables,
		.reader = o->reader,
		.proc = "/proc",
		.all = o->all,
		.after_exec = o->after_exec,
		.per_task = o->sampler.per_task,
		.throttles_groups = w->sampler->machine.throttles_groups,
		.hide_kernel = o->hide_kernel,
		.sink = walk_take,
		.ended = walk_take_end,
		.userdata = w,
	};
	r = attribute_new(&attribute, &w->attribute);
	if (r == 0)
		r = stalled_init(&in->stalled, w->sampler->machine.n_harts);
	in->execs.sampler = w->sampler;
	in->execs.attribute = w->attribute;
	/* where records bring the arguments it costs little in any case */
	if (o->always && !sampler_samples_execs(w->sampler))
		in->execs.wakes_max = EXEC_WAKES_ALWAYS;
	return r;
}

/* Wait for the current rings, gathered in two descriptors: execs wake the loop hundreds of times a
 * second, and each time it asks again what to wait for. */
int walk_follow_rings(struct walk *w)
{
	struct walk_inner *in = w->inner;
	if (w->sampler->options.per_task)
		return 0;
	int r = rings_follow(in->rings_fd, w->sampler->ring, w->sampler->n_rings);
	return r < 0 ? r : exec_watch_follow(&in->execs);
}

static int open_waits(struct walk *w)
{
	struct walk_inner *in = w->inner;
	if (w->sampler->options.per_task)
		return 0;
	in->rings_fd = epoll_create1(EPOLL_CLOEXEC);
	in->execs.fd = epoll_create1(EPOLL_CLOEXEC);
	return in->rings_fd < 0 || in->execs.fd < 0 ? -errno : walk_follow_rings(w);
}

/* Where it is refused, only these samples are missing. */
static int begin_offcpu(struct walk *w, const struct walk_options *o)
{
	const struct offcpu_options offcpu = {
		.sampler = w->sampler,
		.attribute = w->attribute,
		.tasks = &w->tasks,
		.all = o->all,
		.part_ppm = o->offcpu_ppm,
		.rest_ns = o->always ? OFFCPU_REST_NS : 0,
		.wakers = o->wakers,
		.take = walk_take_wait,
		.userdata = w,
	};
	const struct machine *m = &w->sampler->machine;
	if (!o->offcpu_ppm)
		return 0;
	int r = 0;
	if (m->memory_kb && m->memory_kb < (o->always ? SMALL_KB : BPF_MEMORY_KB_MIN))
		w->inner->offcpu_error = ENOMEM;
	else if (o->sampler.per_task || !m->may_see_all)
		w->inner->offcpu_error = EPERM;
	else
		r = offcpu_new(&offcpu, &w->inner->offcpu, &w->inner->offcpu_error);
	/* recordings of processes can do without */
	if (!w->inner->offcpu)
		(void)sampler_add_offcpu(w->sampler, true);
	return r < 0 ? r : 0;
}

static int outcome_of_sampler(int r)
{
	return r == SAMPLER_REFUSED ? WALK_REFUSED
	       : r == SAMPLER_GONE  ? WALK_GONE
	       : r == SAMPLER_FULL  ? WALK_FULL
				    : r;
}

uint64_t walk_scan_ns(const struct walk *w)
{
	return attribute_scans(w->attribute) ? w->inner->next_scan_ns : UINT64_MAX;
}

/* After each slice scanning pauses for as long as the slice took, so that the rings are drained. */
int walk_scan(struct walk *w)
{
	const uint64_t began_ns = clock_ns(CLOCK_MONOTONIC);
	const uint64_t until_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) + SCAN_SLICE_NS;
	int r = 0;
	while (r == 0 && attribute_scans(w->attribute) &&
		clock_ns(CLOCK_THREAD_CPUTIME_ID) < until_ns &&
		clock_ns(CLOCK_MONOTONIC) - began_ns < SCAN_WAITS_NS)
		r = attribute_scan_next(w->attribute);
	const uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
	w->inner->next_scan_ns = now_ns + (now_ns - began_ns);
	return r;
}

int walk_new(const struct walk_options *o, struct walk **ret_walk, struct event_error *ret_error)
{
	struct walk *w = NULL;
	int r = walk_open(o, &w, ret_error);
	while (r == 0 && attribute_scans(w->attribute))
		r = attribute_scan_next(w->attribute);
	if (r == 0)
		*ret_walk = w;
	else
		walk_free(w);
	return r;
}

int walk_open(const struct walk_options *o, struct walk **ret_walk, struct event_error *ret_error)
{
	struct walk *w = calloc(1, sizeof(*w));
	struct walk_inner *in = calloc(1, sizeof(*in));
	if (!w || !in) {
		free(w);
		free(in);
		return -ENOMEM;
	}
	w->inner = in;
	in->always = o->always;
	in->rings_fd = in->execs.fd = -1;
	w->realtime_offset_ns = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC);
	w->files.pool = o->pool;
	w->files.pool_uid = o->pool_uid;

	int r = outcome_of_sampler(sampler_new(&kernel_real, &o->sampler, &w->sampler, ret_error));
	if (r == 0)
		r = attach_stations(w, o);
	if (r == 0 && o->always) /* not while the rings fill */
		attribute_list_programs(w->attribute, clock_ns(CLOCK_MONOTONIC));
	if (r == 0)
		r = begin_offcpu(w, o);
	if (r == 0)
		r = open_waits(w);
	/* Scan once before and once after the events are enabled: otherwise a process that starts
	 * before and ends during the second scan would have no name. */
	if (r == 0)
		r = attribute_scan_begin(w->attribute, o->sampler.pids, o->sampler.n_pids);
	if (r != 0) {
		walk_free(w);
		return r;
	}
	*ret_walk = w;
	return 0;
}

static uint64_t drain_every_ns(const struct walk *w, uint64_t now_ns)
{
	const struct walk_inner *in = w->inner;
	uint64_t missed_ns = namer_missed_ns(w->namer);
	uint64_t since_ns = missed_ns > in->started_ns ? missed_ns : in->started_ns;

	return !in->always && now_ns < since_ns + WALK_HURRIES_NS ? WALK_HURRY_NS : WALK_DRAIN_NS;
}

/* Threads are looked at in drains: no program shall be in step with them. From three quarters to five quarters. */
static uint64_t out_of_step(uint64_t ns, uint64_t now_ns)
{
	return ns - ns / 4 + ((now_ns * 2654435761u & 0xffff) * (ns / 2) >> 16);
}

int walk_start(struct walk *w, const pid_t *pids, size_t n_pids)
{
	int r = sampler_start(w->sampler);
	if (r == 0) {
		r = attribute_scan_begin(w->attribute, pids, n_pids);
		if (r == 0)
			r = walk_scan(w);
		w->inner->scan_is_due = r < 0;
	}
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	w->inner->started_ns = now;
	offcpu_begin(w->inner->offcpu, now);
	w->inner->next_drain_ns = now + drain_every_ns(w, now);
	w->inner->next_tick_ns = now + TICK_NS;
	return r;
}

struct walk *walk_free(struct walk *w)
{
	if (!w)
		return NULL;
	struct walk_inner *in = w->inner;
	closep(&in->rings_fd);
	closep(&in->execs.fd);
	merge_clear(&in->merge);
	stalled_clear(&in->stalled);
	offcpu_free(in->offcpu);
	switch_waits_free(in->waits);
	attribute_free(w->attribute);
	namer_free(w->namer);
	sampler_free(w->sampler);
	task_table_clear(&w->tasks);
	file_table_clear(&w->files);
	feed_free(w->feed);
	loop_sites_clear(&w->sites);
	free(in);
	free(w);
	return NULL;
}

size_t walk_fds(const struct walk *w, struct pollfd *fds, size_t n)
{
	const struct walk_inner *in = w->inner;
	const struct sampler *s = w->sampler;
	size_t filled = 0;
	if (n >= NAMER_FDS_MAX)
		filled += (size_t)namer_fds(w->namer, fds);
	if (in->stopped)
		return filled;
	if (w->feed && filled < n)
		fds[filled++] = (struct pollfd){.fd = feed_fd(w->feed), .events = POLLIN};
	bool each = s->options.per_task; /* its rings hang up one by one */
	for (size_t i = 0; each && i < s->n_rings && filled < n; i++)
		if (s->ring[i].map && !in->hung[s->ring[i].hart])
			fds[filled++] = (struct pollfd){.fd = s->ring[i].fd, .events = POLLIN};
	if (!each && filled < n)
		fds[filled++] = (struct pollfd){.fd = in->rings_fd, .events = POLLIN};
	if (exec_watch_fd(&in->execs) >= 0 && filled < n)
		fds[filled++] = (struct pollfd){.fd = exec_watch_fd(&in->execs), .events = POLLIN};
	return filled;
}

uint64_t walk_deadline_ns(const struct walk *w)
{
	const struct walk_inner *in = w->inner;
	uint64_t deadline = namer_deadline_ns(w->namer);
	if (in->stopped)
		return deadline;
	uint64_t execs = exec_watch_deadline_ns(&in->execs);
	uint64_t feed = w->feed ? feed_deadline_ns(w->feed) : UINT64_MAX;
	deadline = execs < deadline ? execs : deadline;
	deadline = feed < deadline ? feed : deadline;
	uint64_t drain = walk_drain_deadline_ns(w), scan = walk_scan_ns(w);
	deadline = scan < deadline ? scan : deadline;
	return drain < deadline ? drain : deadline;
}

static uint64_t count_hotplugs(const struct sampler *s)
{
	uint64_t n = 0;
	for (int hart = 0; hart < s->machine.n_harts; hart++)
		n += s->lost[hart][LOSS_HOTPLUG];
	return n;
}

/* Reopen busy harts without samples. Their rings were drained a moment ago. */
static int mend_blind(struct walk *w, uint64_t now_ns, bool *ret_mended)
{
	struct stalled *b = &w->inner->stalled;
	struct sampler *s = w->sampler;
	struct hart_set mend;
	*ret_mended = false;
	if (now_ns < b->next_look_ns || s->options.per_task)
		return 0;
	int r = stalled_read(b, s, now_ns, &mend);
	for (int hart = 0; hart < b->n_harts && r == 0; hart++)
		if (hart_set_has(&mend, hart)) {
			r = sampler_reopen(s, hart);
			*ret_mended = true;
		}
	return r;
}

/* There are no descriptors: try again at the next tick. */
static int without_descriptors(struct walk *w, int r)
{
	if (r != -EMFILE && r != -ENFILE)
		return r;
	w->inner->scan_is_due = true;
	w->sampler->short_of = -r;
	return 0;
}

/* Check the harts, once a second. Records of a hart that has just come online are missing, so scan
 * for tasks that began on it. */
static int tick(struct walk *w, uint64_t now_ns)
{
	bool mended = false;
	w->realtime_offset_ns = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC);
	uint64_t n_hotplugs = count_hotplugs(w->sampler);
	int r = sampler_tick(w->sampler);
	if (r == 0)
		r = mend_blind(w, now_ns, &mended);
	mended |= count_hotplugs(w->sampler) > n_hotplugs;
	raises_look_at_harts(w, mended);
	if (r == 0)
		r = walk_follow_rings(w);
	if (r == 0)
		r = walk_tend_copies(w, now_ns);
	w->inner->scan_is_due |= mended;
	if (r < 0 || !w->inner->scan_is_due || attribute_scans(w->attribute))
		return r;
	r = attribute_scan_begin(w->attribute, NULL, 0);
	w->inner->scan_is_due = r < 0;
	return without_descriptors(w, r);
}

uint64_t walk_samples(const struct walk *w, int hart)
{
	return w->inner->stalled.hart[hart].n_samples;
}

const char *walk_trouble(const struct walk *w)
{
	return w->inner->stalled.trouble;
}

/* Events for tasks that are to be sampled faster; their rings wake us, too. */
static int open_raised(struct walk *w, uint64_t now_ns)
{
	size_t n_rings = w->sampler->n_rings;
	int r = raises_dispatch(w, now_ns);
	return r == 0 && w->sampler->n_rings > n_rings ? walk_follow_rings(w) : r;
}

int walk_raise(struct walk *w, uid_t uid, const pid_t *pids, size_t n_pids)
{
	raises_name(w, uid, pids, n_pids);
	return open_raised(w, clock_ns(CLOCK_MONOTONIC));
}

/* In a session per task, a ring's descriptor hangs up when the task that it was opened for and all
 * its heirs have ended; what is left in it is read at the next drain. */
static void notice_hung_rings(struct walk *w)
{
	for (size_t i = 0; i < w->sampler->n_rings; i++) {
		const struct ring *ring = &w->sampler->ring[i];
		struct pollfd p = {.fd = ring->fd, .events = POLLIN};
		if (ring->map && poll(&p, 1, 0) > 0 && p.revents & (POLLHUP | POLLERR))
			w->inner->hung[ring->hart] = true;
	}
}

/* Do the work that is due while sampling runs. */
static int run(struct walk *w, uint64_t now_ns)
{
	struct walk_inner *in = w->inner;
	int r = walk_drain_slice(w, now_ns - MERGE_SLACK_NS, now_ns);
	if (r == 0)
		r = open_raised(w, now_ns);
	if (r != 0)
		return r < 0 ? r : 0;
	walk_look(w, now_ns);
	offcpu_dispatch(in->offcpu, now_ns);
	w->cpu_ns[WALK_OFFCPU] = offcpu_state(in->offcpu).cpu_ns;
	if (now_ns >= in->next_tick_ns) {
		in->next_tick_ns = now_ns + TICK_NS;
		in->next_rate_ns = now_ns + WALK_DRAIN_NS; /* a tick reads it too */
		r = tick(w, now_ns);
		memset(in->hung, 0, sizeof(in->hung));
		in->throttled = false;
	} else if (in->throttled && now_ns >= in->next_rate_ns) {
		/* not at each of the frequent drains at the start: events lose the period that has
		 * begun */
		in->next_rate_ns = now_ns + WALK_DRAIN_NS;
		r = sampler_follow_rate(w->sampler);
		in->throttled = false;
	}
	if (w->sampler->options.per_task)
		notice_hung_rings(w);
	in->next_drain_ns = now_ns + out_of_step(drain_every_ns(w, now_ns), now_ns);
	in->looked = false;
	return r;
}

/* Shortly before a drain, so that the parser has reported changes when samples are taken. */
static int look_at_growing(struct walk *w, uint64_t now_ns)
{
	if (!walk_look_is_due(w, now_ns))
		return 0;
	w->inner->looked = true;
	return namer_look(w->namer, now_ns);
}

int walk_dispatch(struct walk *w, uint64_t now_ns)
{
	walk_spend(w, N_WALK_WORKS);
	namer_be_patient(w->namer, walk_is_patient(w));
	int r = namer_dispatch(w->namer, now_ns);
	walk_spend(w, WALK_NAMING);
	switch_waits_dispatch(w->inner->waits, now_ns);
	if (r < 0 || w->inner->stopped)
		return r;
	exec_watch_dispatch(&w->inner->execs, now_ns);
	walk_spend(w, WALK_EXECS);
	r = w->feed ? feed_dispatch(w->feed, now_ns) : 0;
	if (r == 0 && now_ns >= walk_scan_ns(w))
		r = without_descriptors(w, walk_scan(w));
	if (r < 0)
		return r;
	r = look_at_growing(w, now_ns);
	if (r < 0)
		return r;
	if (!walk_drain_is_due(w, now_ns))
		return 0;
	r = run(w, now_ns);
	/* frames that came with the drain are asked for in the same turn */
	return r == 0 && namer_deadline_ns(w->namer) == 0 ? namer_dispatch(w->namer, now_ns) : r;
}

static int catch_up_for_feed(void *userdata)
{
	return walk_drain_all(userdata, clock_ns(CLOCK_MONOTONIC));
}

int walk_listen(struct walk *w, int listen_fd, const struct feed_limits *limits,
	const char *region_events, struct event_error *ret_error)
{
	const struct sampler *s = w->sampler;
	int wrong = grants_make(
		&kernel_real, &s->machine, s->options.cores, region_events, &w->grants, ret_error);
	const struct feed_options o = {
		.grants = &w->grants,
		.listen_fd = listen_fd,
		.limits = *limits,
		.tasks = &w->tasks,
		.sites = &w->sites,
		.lost_tables = &s->lost[0][LOSS_TABLE],
		.take = walk_take_loops,
		.attribute = w->attribute,
		.catch_up = catch_up_for_feed,
		.userdata = w,
	};
	int r = feed_new(&o, &w->feed);
	return r != 0 ? r : wrong > 0 ? WALK_NO_GRANTS : wrong;
}

int walk_catch_up(struct walk *w, uint64_t now_ns)
{
	if (w->inner->stopped)
		return 0;
	int r = w->feed ? feed_settle(w->feed, now_ns, FEED_SETTLE_NS) : 0;
	if (r == 0)
		r = walk_drain_all(w, now_ns);
	if (w->sampler->started && !w->sampler->options.per_task)
		sampler_count_losses(w->sampler);
	return r;
}

int walk_stop(struct walk *w, uint64_t now_ns)
{
	if (w->inner->stopped)
		return 0;
	int r = w->feed ? feed_resume(w->feed) : 0;
	if (r == 0 && w->feed)
		r = feed_settle(w->feed, now_ns, UINT64_MAX);
	/* Check for stalled harts once more, since no later check covers the time since the last one. */
	struct hart_set mend;
	if (r == 0 && w->sampler->started && !w->sampler->options.per_task) {
		r = walk_drain_all(w, now_ns);
		if (r == 0)
			r = stalled_read(&w->inner->stalled, w->sampler, now_ns, &mend);
	}
	if (r == 0)
		r = sampler_stop(w->sampler);
	if (r < 0)
		return r;
	/* the last records have no window of their own */
	r = walk_drain_all(w, now_ns);
	if (r == 0)
		r = walk_drain_uncut(w, UINT64_MAX);
	offcpu_stop(w->inner->offcpu);
	w->inner->stopped = true;
	sampler_count_losses(w->sampler);
	return r == 0 ? namer_ask_again(w->namer) : r;
}

struct offcpu_looks_state walk_offcpu(const struct walk *w, int *ret_error)
{
	if (ret_error)
		*ret_error = w->inner->offcpu_error;
	return offcpu_state(w->inner->offcpu);
}

void walk_await_exec(struct walk *w, const pid_t *pids, size_t n_pids)
{
	attribute_await_exec(w->attribute, pids, n_pids);
}

int walk_sweep(struct walk *w)
{
	int r = attribute_sweep(w->attribute, walk_mark, w);
	return r == -ENOMEM ? 0 : r; /* nothing was freed: try next time */
}

int walk_set_effort(struct walk *w, const struct sampler_effort *effort)
{
	if (effort_is(w->sampler, effort))
		return 0;
	/* drain first, so that few records remain of the events that are about to be closed */
	int r = walk_catch_up(w, clock_ns(CLOCK_MONOTONIC));
	return r < 0 ? r : sampler_set_effort(w->sampler, effort);
}

int walk_set_rate(struct walk *w, uint32_t hz)
{
	if (hz == w->sampler->options.hz)
		return 0;
	/* records in the rings have the old rate and weight */
	int r = walk_catch_up(w, clock_ns(CLOCK_MONOTONIC));
	if (r == 0 && hz > w->sampler->hz) /* rings have less room then */
		r = sampler_set_copy(w->sampler, w->sampler->copy_bytes, hz);
	return r < 0 ? r : sampler_set_rate(w->sampler, hz);
}
