/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The order of things matters at both ends. At the start /proc is scanned before and after events
 * are enabled, so that nothing falls between: what is told twice is counted once. At the end the rings are emptied first, then names are waited for, then the last
 * window is flushed and the file sealed.
 *
 * Windows are cut in the time of the records, not of the drains: a drain up to the window's end
 * comes first, so a window holds what happened in it and nothing else. Only copied stacks, whose
 * callers come back later, may end up in the window after their own.
 */
#include "daemon/control/recording.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/utsname.h>
#include <time.h>

#include "daemon/control/exec_watch.h"
#include "daemon/decode/merge.h"
#include "proto/memory.h"

/* Records between two looks at the execs: a drain of many samples takes longer than some processes
 * live. */
#define EXEC_LOOK_RECORDS 32

struct recording {
	struct sampler *sampler;
	struct exec_watch execs;
	int rings_fd;                    /* epoll over all rings, but in a session per task */
	struct merge merge;
	struct file_table files;
	struct task_table tasks;
	struct namer *namer;
	struct attribute *attribute;
	struct stack_tree stacks;
	struct window window;
	struct segment *segment;
	char *path;
	uint64_t window_ns;
	uint64_t next_drain_ns, next_tick_ns;
	uint64_t finish_ns;              /* 0: running; else when we stop to wait for names */
	uint64_t realtime_offset_ns;     /* CLOCK_REALTIME - CLOCK_MONOTONIC at the start */
	uint64_t end_ns;
	uint64_t n_samples;
	int pidfd[RECORDING_TARGETS_MAX];
	size_t n_pidfds;
	bool hung[HARTS_MAX];            /* rings whose task is gone: poll would return at once for ever */
	uint64_t n_stacks_refused;       /* of the tree, as far as counted among the losses */
	int trouble;                     /* first of the sink, which cannot return one: -errno, or
	                                    RECORDING_LOST_STORE */
	bool sealed;
};

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int flush(struct recording *g, uint64_t end_ns);

/* attribute's sink: every attribution of the session passes here. */
static void take_attribution(void *userdata, const struct attribution *a)
{
	struct recording *g = userdata;
	int r = g->trouble ? g->trouble : window_add(&g->window, &g->stacks, a);
	if (g->trouble == 0 && r == WINDOW_FULL) {
		/* of two copied stacks the later one may be of the earlier sample */
		r = flush(g, a->time_ns > g->window.start_ns ? a->time_ns : g->window.start_ns);
		if (r == SEGMENT_NO_SPACE)
			r = RECORDING_LOST_STORE;
		if (r == 0)
			r = window_add(&g->window, &g->stacks, a);
	}
	if (r == 0)
		g->n_samples += a->count;
	else
		g->sampler->lost[a->hart][r == RECORDING_LOST_STORE ? LOSS_STORE : LOSS_MEMORY] +=
			a->count;
	if (r < 0 || r == RECORDING_LOST_STORE)
		g->trouble = r;
}

static void take_named(void *userdata, struct frame *frame)
{
	(void)userdata;
	(void)frame; /* the store finds new names by the frame's own mark */
}

static void take_unwound(void *userdata, const struct unwind_result *result)
{
	struct recording *g = userdata;
	attribute_unwound(g->attribute, result);
}

static struct segment_flush segment_view(struct recording *g)
{
	return (struct segment_flush){
		.window = &g->window,
		.stacks = &g->stacks,
		.tasks = &g->tasks,
		.files = &g->files,
		.lost = g->sampler->lost,
		.n_harts = g->sampler->machine.n_harts,
		.realtime_ns = g->window.start_ns + g->realtime_offset_ns,
	};
}

/* In a session per task, a ring's descriptor hangs up when the task that it was opened for and all
 * its heirs have ended; what is left in it is read at the next drain. */
static void notice_hung_rings(struct recording *g)
{
	for (size_t i = 0; i < g->sampler->n_rings; i++) {
		const struct ring *ring = &g->sampler->ring[i];
		struct pollfd p = {.fd = ring->fd, .events = POLLIN};
		if (ring->map && poll(&p, 1, 0) > 0 && p.revents & (POLLHUP | POLLERR))
			g->hung[ring->hart] = true;
	}
}

/* Store the window and begin the next one at end_ns. 0, SEGMENT_NO_SPACE, -errno. */
static int flush(struct recording *g, uint64_t end_ns)
{
	g->window.end_ns = end_ns;
	g->sampler->lost[0][LOSS_STACK_TRUNCATED] += g->stacks.n_refused - g->n_stacks_refused;
	g->n_stacks_refused = g->stacks.n_refused;
	struct segment_flush view = segment_view(g);
	int r = segment_flush(g->segment, &view);
	if (r != 0)
		return r;
	window_clear(&g->window);
	g->window.start_ns = end_ns;
	return 0;
}

static int drain(struct recording *g, uint64_t cut_ns)
{
	g->merge.ring = g->sampler->ring;
	g->merge.n_rings = g->sampler->n_rings;
	exec_watch_resume(&g->execs);
	int r = merge_begin(&g->merge, cut_ns);
	if (r < 0)
		return r;
	for (uint64_t n = 0;; n++) {
		if (n % EXEC_LOOK_RECORDS == 0)
			exec_watch_dispatch(&g->execs, clock_ns(CLOCK_MONOTONIC));
		struct record record;
		int hart;
		r = merge_next(&g->merge, &record, &hart);
		if (r != 0)
			break;
		r = attribute_record(g->attribute, &record, hart);
		if (r < 0)
			break;
	}
	merge_end(&g->merge);
	attribute_drained(g->attribute);
	return r < 0 ? r : 0;
}

static int watch_targets(struct recording *g, const pid_t *pids, size_t n_pids,
	struct event_error *ret_error)
{
	if (n_pids > RECORDING_TARGETS_MAX)
		return -E2BIG;
	for (size_t i = 0; i < n_pids; i++) {
		int fd = pidfd_open(pids[i], 0);
		/* a thread that leads no process: EINVAL, on later kernels ENOENT */
		if (fd < 0 && (errno == ESRCH || errno == ENOENT || errno == EINVAL)) {
			snprintf(ret_error->text, sizeof ret_error->text,
				"there is no process with pid %d", (int)pids[i]);
			return RECORDING_GONE;
		}
		if (fd < 0)
			return -errno;
		g->pidfd[g->n_pidfds++] = fd;
	}
	return 0;
}

static int create_segment(struct recording *g, const struct recording_options *o)
{
	struct utsname name;
	char boot_id[64] = "";
	kernel_real.read_text(NULL, "/proc/sys/kernel/random/boot_id", boot_id, sizeof boot_id);
	boot_id[strcspn(boot_id, "\n")] = '\0';
	uname(&name);

	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	uint64_t realtime = clock_ns(CLOCK_REALTIME);
	g->realtime_offset_ns = realtime - now;
	g->window.start_ns = now;
	struct segment_meta meta = {
		.boot_id = boot_id,
		.monotonic_ns = now,
		.realtime_ns = realtime,
		.host = name.nodename,
		.release = name.release,
		.arch = name.machine,
		.hz = g->sampler->hz,
		.command = o->command,
		.all = o->all,
	};
	return segment_create(o->path, &meta, g->sampler, &g->segment);
}

static int attach_stations(struct recording *g, const struct recording_options *o)
{
	struct namer_options namer = {
		.binary = o->namer,
		.files = &g->files,
		.named = take_named,
		.unwound = take_unwound,
		.userdata = g,
	};
	int r = namer_new(&namer, &g->namer);
	if (r < 0)
		return r;

	g->merge.streams = &g->sampler->streams;
	g->merge.lost = g->sampler->lost;
	struct attribute_options attribute = {
		.namer = g->namer,
		.files = &g->files,
		.tasks = &g->tasks,
		.streams = &g->sampler->streams,
		.lost = g->sampler->lost,
		.n_harts = g->sampler->machine.n_harts,
		.n_events = g->sampler->events.n_events,
		.proc = "/proc",
		.all = o->all,
		.after_exec = o->after_exec,
		.per_task = o->sampler.per_task,
		.sink = take_attribution,
		.userdata = g,
	};
	r = attribute_new(&attribute, &g->attribute);
	g->execs.sampler = g->sampler;
	g->execs.attribute = g->attribute;
	return r;
}

/* Wait for what rings there are now. Gathered below two descriptors, since an exec wakes the loop
 * hundreds of times a second, and each time it is told anew what to wait for. */
static int wait_for_rings(struct recording *g)
{
	if (g->sampler->options.per_task)
		return 0;
	int r = rings_follow(g->rings_fd, g->sampler->ring, g->sampler->n_rings);
	return r < 0 ? r : exec_watch_follow(&g->execs);
}

static int open_waits(struct recording *g)
{
	if (g->sampler->options.per_task)
		return 0;
	g->rings_fd = epoll_create1(EPOLL_CLOEXEC);
	g->execs.fd = epoll_create1(EPOLL_CLOEXEC);
	return g->rings_fd < 0 || g->execs.fd < 0 ? -errno : wait_for_rings(g);
}

static int outcome_of_sampler(int r)
{
	return r == SAMPLER_REFUSED ? RECORDING_REFUSED : r == SAMPLER_GONE ? RECORDING_GONE
		: r == SAMPLER_FULL ? RECORDING_FULL : r;
}

int recording_new(const struct recording_options *o, struct recording **ret_recording,
	struct event_error *ret_error)
{
	struct recording *g = calloc(1, sizeof *g);
	if (!g)
		return -ENOMEM;
	g->window_ns = o->window_ns ? o->window_ns : RECORDING_WINDOW_NS;
	g->path = strdup(o->path);
	g->rings_fd = g->execs.fd = -1;

	int r = g->path ? watch_targets(g, o->sampler.pids, o->sampler.n_pids, ret_error)
			    : -ENOMEM;
	if (r == 0)
		r = outcome_of_sampler(sampler_new(&kernel_real, &o->sampler, &g->sampler, ret_error));
	if (r == 0)
		r = attach_stations(g, o);
	if (r == 0)
		r = open_waits(g);
	if (r == 0) {
		r = create_segment(g, o);
		if (r > 0) {
			snprintf(ret_error->text, sizeof ret_error->text,
				"no space left for %s", o->path);
			r = RECORDING_FULL;
		}
	}
	/* Twice: what is born before the events are enabled and dies during the second scan would
	 * have no name otherwise. */
	if (r == 0)
		r = attribute_scan(g->attribute, o->sampler.pids, o->sampler.n_pids);
	if (r == 0)
		r = sampler_start(g->sampler);
	if (r == 0)
		r = attribute_scan(g->attribute, o->sampler.pids, o->sampler.n_pids);
	if (r != 0) {
		recording_free(g);
		return r;
	}
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	g->next_drain_ns = now + RECORDING_DRAIN_NS;
	g->next_tick_ns = now + 1000000000u;
	*ret_recording = g;
	return 0;
}

size_t recording_fds(const struct recording *g, struct pollfd *fds, size_t n)
{
	size_t filled = 0;
	if (n >= NAMER_FDS_MAX)
		filled += (size_t)namer_fds(g->namer, fds);
	if (g->finish_ns)
		return filled;
	bool each = g->sampler->options.per_task; /* its rings hang up one by one */
	for (size_t i = 0; each && i < g->sampler->n_rings && filled < n; i++)
		if (g->sampler->ring[i].map && !g->hung[g->sampler->ring[i].hart])
			fds[filled++] = (struct pollfd){
				.fd = g->sampler->ring[i].fd, .events = POLLIN};
	if (!each && filled < n)
		fds[filled++] = (struct pollfd){.fd = g->rings_fd, .events = POLLIN};
	if (exec_watch_fd(&g->execs) >= 0 && filled < n)
		fds[filled++] =
			(struct pollfd){.fd = exec_watch_fd(&g->execs), .events = POLLIN};
	for (size_t i = 0; i < g->n_pidfds && filled < n; i++)
		if (g->pidfd[i] >= 0)
			fds[filled++] = (struct pollfd){.fd = g->pidfd[i], .events = POLLIN};
	return filled;
}

uint64_t recording_deadline_ns(const struct recording *g)
{
	uint64_t deadline = namer_deadline_ns(g->namer);
	uint64_t own = g->finish_ns ? g->finish_ns : g->next_drain_ns;
	uint64_t execs = g->finish_ns ? UINT64_MAX : exec_watch_deadline_ns(&g->execs);
	own = execs < own ? execs : own;
	return own < deadline ? own : deadline;
}

/* Seal what there is: the names that came, the last window, the end. */
static int seal(struct recording *g)
{
	attribute_give_up(g->attribute);
	if (g->trouble)
		return g->trouble;
	int r = flush(g, g->end_ns);
	if (r == 0) {
		struct segment_flush view = segment_view(g);
		r = segment_update(g->segment, &view);
	}
	if (r == 0) {
		r = segment_seal(g->segment, g->end_ns);
		g->segment = NULL;
	}
	if (r > 0)
		return RECORDING_LOST_STORE;
	if (r < 0)
		return r;
	g->sealed = true;
	return RECORDING_SEALED;
}

static uint64_t count_hotplugs(const struct sampler *s)
{
	uint64_t n = 0;
	for (int hart = 0; hart < s->machine.n_harts; hart++)
		n += s->lost[hart][LOSS_HOTPLUG];
	return n;
}

/* Once a second. A hart that came was not listened to before: what happened on it is scanned. */
static int tick(struct recording *g)
{
	uint64_t n_hotplugs = count_hotplugs(g->sampler);
	int r = sampler_tick(g->sampler);
	if (r == 0)
		r = wait_for_rings(g);
	return r == 0 && count_hotplugs(g->sampler) > n_hotplugs
		       ? attribute_scan(g->attribute, NULL, 0)
		       : r;
}

/* Store the windows that were over by then; after a stall, as many as one call may. 0,
 * SEGMENT_NO_SPACE, -errno; *ret_all: no other is due. */
static int flush_due(struct recording *g, uint64_t by_ns, bool *ret_all)
{
	*ret_all = false;
	for (int n = 0; n < RECORDING_WINDOWS_DUE_MAX && g->trouble == 0; n++) {
		uint64_t end_ns = g->window.start_ns + g->window_ns;
		if (by_ns < end_ns) {
			*ret_all = true;
			return 0;
		}
		int r = drain(g, end_ns);
		if (r == 0 && g->trouble == 0)
			r = flush(g, end_ns);
		if (r != 0)
			return r;
	}
	return 0;
}

/* What is due while sampling runs. */
static int run(struct recording *g, uint64_t now_ns)
{
	bool all;
	int r = flush_due(g, now_ns - MERGE_SLACK_NS, &all);
	if (r != 0)
		return r;
	if (!all) {
		/* what came later must not get into this window */
		g->next_drain_ns = now_ns;
		return 0;
	}
	r = drain(g, now_ns - MERGE_SLACK_NS);
	if (r == 0 && now_ns >= g->next_tick_ns) {
		g->next_tick_ns = now_ns + 1000000000u;
		r = tick(g);
		memset(g->hung, 0, sizeof g->hung);
	}
	if (g->sampler->options.per_task)
		notice_hung_rings(g);
	g->next_drain_ns = now_ns + RECORDING_DRAIN_NS;
	return r;
}

/* Is it worth a drain? An exec alone is not. A ring wakes us at each half of it, wherever its tail
 * stands, so one that is a quarter full may be full before it wakes again. A ring that hung up wakes
 * us until run() has noticed. */
static bool drain_is_due(struct recording *g, uint64_t now_ns)
{
	if (now_ns >= g->next_drain_ns || g->sampler->options.per_task)
		return true;
	for (size_t i = 0; i < g->sampler->n_rings; i++) {
		struct ring *ring = &g->sampler->ring[i];
		ring_snapshot(ring);
		if (ring->head - ring->tail >= ring->data_bytes / 4)
			return true;
	}
	return false;
}

int recording_dispatch(struct recording *g, uint64_t now_ns)
{
	if (g->sealed)
		return RECORDING_SEALED;
	if (g->trouble)
		return g->trouble;
	int r = namer_dispatch(g->namer, now_ns);
	if (r < 0)
		return r;
	if (g->finish_ns == 0) {
		exec_watch_dispatch(&g->execs, now_ns);
		if (drain_is_due(g, now_ns))
			r = run(g, now_ns);
	} else if (namer_idle(g->namer) || now_ns >= g->finish_ns)
		return seal(g);
	if (r > 0)
		return RECORDING_LOST_STORE;
	return r < 0 ? r : g->trouble;
}

int recording_finish(struct recording *g, uint64_t now_ns)
{
	if (g->finish_ns)
		return 0;
	int r = sampler_stop(g->sampler);
	if (r < 0)
		return r;
	g->finish_ns = now_ns + RECORDING_NAMES_NS;
	g->end_ns = now_ns;
	bool all; /* a longer stall makes the last window a long one */
	r = flush_due(g, now_ns, &all);
	if (r == 0)
		r = drain(g, UINT64_MAX);
	sampler_count_losses(g->sampler);
	if (r == 0)
		r = namer_ask_again(g->namer);
	if (r > 0) {
		g->trouble = RECORDING_LOST_STORE; /* the next dispatch says so */
		r = 0;
	}
	return r;
}

bool recording_targets_gone(struct recording *g)
{
	bool any = false;
	for (size_t i = 0; i < g->n_pidfds; i++) {
		struct pollfd p = {.fd = g->pidfd[i], .events = POLLIN};
		if (g->pidfd[i] >= 0 && poll(&p, 1, 0) > 0) {
			close(g->pidfd[i]);
			g->pidfd[i] = -1;
		}
		any |= g->pidfd[i] >= 0;
	}
	return g->n_pidfds > 0 && !any;
}

void recording_state(const struct recording *g, struct recording_state *ret_state)
{
	uint64_t lost = 0;
	for (int hart = 0; hart < g->sampler->machine.n_harts; hart++)
		for (int cause = 0; cause < N_LOSSES; cause++)
			if (loss_kinds[cause].samples)
				lost += g->sampler->lost[hart][cause];
	*ret_state = (struct recording_state){
		.n_samples = g->n_samples,
		.waiting = namer_waiting(g->namer),
		.lost_samples = lost,
		.path = g->path,
	};
}

const struct sampler *recording_sampler(const struct recording *g)
{
	return g->sampler;
}

struct recording *recording_free(struct recording *g)
{
	if (!g)
		return NULL;
	for (size_t i = 0; i < g->n_pidfds; i++)
		if (g->pidfd[i] >= 0)
			close(g->pidfd[i]);
	closep(&g->rings_fd);
	closep(&g->execs.fd);
	merge_clear(&g->merge);
	attribute_free(g->attribute);
	namer_free(g->namer);
	if (g->segment)
		segment_abandon(g->segment, true);
	window_clear(&g->window);
	stack_tree_clear(&g->stacks);
	sampler_free(g->sampler);
	task_table_clear(&g->tasks);
	file_table_clear(&g->files);
	free(g->path);
	free(g);
	return NULL;
}
