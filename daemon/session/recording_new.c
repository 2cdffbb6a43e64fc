/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* The beginning of a recording: watch its targets, create its segment, add its tap to the walk. */

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/utsname.h>

#include "daemon/session/recording_private.h"
#include "proto/base/clock.h"
#include "proto/base/memory.h"

static int watch_targets(struct recording *g, struct event_error *ret_error)
{
	for (size_t i = 0; i < g->targets.n_pids; i++) {
		pid_t pid = g->targets.pid[i];
		int fd = pidfd_open(pid, 0);
		/* a thread that leads no process: EINVAL, on later kernels ENOENT */
		if (fd < 0 && (errno == ESRCH || errno == ENOENT || errno == EINVAL)) {
			snprintf(ret_error->text, sizeof(ret_error->text),
				"there is no process with pid %d", (int)pid);
			return RECORDING_GONE;
		}
		if (fd < 0)
			return -errno;
		g->pidfd[g->n_pidfds++] = fd;
	}
	return 0;
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

/* Are the times of its threads read? */
static bool takes_times(const struct recording *g)
{
	return g->targets.n_pids > 0 || g->targets.labels || g->targets.cgroup;
}

static int create_segment(struct recording *g, const struct recording_options *o)
{
	struct utsname name;
	char boot_id[KERNEL_BOOT_ID_BYTES];
	kernel_boot_id(&kernel_real, boot_id);
	uname(&name);

	uint64_t now = o->start_ns ? o->start_ns : clock_ns(CLOCK_MONOTONIC);
	g->window = recording_window(g, now);
	recording_sum_losses(g);
	struct segment_meta meta = {
		.boot_id = boot_id,
		.monotonic_ns = now,
		.realtime_ns = now + g->walk->realtime_offset_ns,
		.host = name.nodename,
		.release = name.release,
		.arch = name.machine,
		.hz = recording_rate(g),
		.command = o->command,
		.labels = o->labels,
		.labels_uid = o->labels_uid,
		.all = g->targets.all && !g->targets.labels && !g->targets.cgroup,
		.live = o->live,
		.waits = takes_times(g),
		.lost = g->recorded ? g->recorded
			: g->shared ? g->lost
				    : NULL,
		.n_harts = g->n_harts,
		.counted = g->counts ? hart_counts_events(g->counts) : NULL,
		.counted_serial = g->counts ? hart_counts_serial(g->counts) : 0,
	};
	if (g->counts)
		meta.rotation = hart_counts_rotations(g->counts, &meta.n_rotations);
	return segment_create(o->path, &meta, g->walk->sampler, &g->segment);
}

static int prepare(struct recording *g, const struct recording_options *o)
{
	size_t n = (size_t)g->n_harts;
	g->path = strdup(o->path);
	g->lost = calloc(n, sizeof(*g->lost));
	g->lost_then = calloc(n, sizeof(*g->lost_then));
	g->own = o->lost ? o->lost : (g->mine = calloc(n, sizeof(*g->mine)));
	if (!g->path || !g->lost || !g->lost_then || !g->own)
		return -ENOMEM;
	int e = o->shares ? recording_share_new(o->shares, g->walk, &g->share) : 0;
	if (e == 0 && o->hz)
		e = downsample_new(o->hz, g->n_harts, &g->downsample);
	if (e < 0)
		return e;
	if (!g->hide_kernel)
		return 0;
	struct file *file;
	struct file_key key = {.kind = FILE_KERNEL, .path = "[kernel]"};
	int r = file_get(&g->walk->files, &key, &file);
	if (r == 0) /* no other frame is at the kernel's very first byte */
		r = frame_get(&g->walk->files, file, 0, &g->hidden);
	if (r == 0)
		r = namer_name_as(g->walk->namer, g->hidden, "[kernel]");
	return r > 0 ? -ENOMEM : r;
}

/* Where no looks find threads that wait, switches do; else /proc, in passing. */
static int watch_waits(struct recording *g, const struct recording_options *o)
{
	if (!g->walk->sampler->has_offcpu || walk_has_looks(g->walk))
		return 0;
	int r = WALK_NO_WAITS;
	if (g->targets.n_pids > 0 && !o->no_callers)
		r = walk_watch_waits(g->walk, &g->tap, &g->targets, g->window.start_ns);
	if (r == 0)
		thread_times_watch(g->times, NULL, recording_take_ready, g);
	if (r == WALK_NO_WAITS)
		thread_times_watch(g->times, recording_take_wait, NULL, g);
	return r < 0 ? r : 0;
}

int recording_new(const struct recording_options *o, struct recording **ret_recording,
	struct event_error *ret_error)
{
	struct recording *g = calloc(1, sizeof(*g));
	if (!g)
		return -ENOMEM;
	g->walk = o->walk;
	g->shared = o->shared;
	g->live = o->live;
	g->hide_kernel = o->hide_kernel;
	g->no_callers = o->no_callers;
	g->hz = o->hz;
	g->targets = o->targets;
	g->recorded = o->recorded;
	g->taken = o->taken;
	g->counts = o->counts;
	g->stacks.pool = o->pool;
	g->stacks.pool_uid = o->pool_uid;
	g->n_harts = o->walk->sampler->machine.n_harts;
	g->window_ns = o->window_ns ? o->window_ns : RECORDING_WINDOW_NS;
	g->names_ns = o->names_ns ? o->names_ns : RECORDING_NAMES_NS;
	g->stall_ns = o->stall_ns ? o->stall_ns : RECORDING_STALL_NS;
	g->spent = o->spent;
	g->owner = o->owner;
	g->tap = recording_tap(g);
	g->tap.raise_uid = o->raise_uid;
	g->tap.is_patient = g->tap.is_always = o->live;

	int r = prepare(g, o);
	if (r == 0)
		r = watch_targets(g, ret_error);
	/* earlier samples are not ours */
	if (r == 0 && g->shared && !o->start_ns)
		r = walk_catch_up(g->walk, clock_ns(CLOCK_MONOTONIC));
	if (r == 0 && (g->walk->sampler->options.some_tasks || !targets_are_all(&g->targets)))
		r = recording_part_new(
			g->walk->attribute, g->n_harts, g->walk->sampler->lost, &g->part);
	if (r == 0 && (r = create_segment(g, o)) > 0) {
		snprintf(ret_error->text, sizeof(ret_error->text),
			r == SEGMENT_NO_SPACE ? "no space left for %s" : "%s cannot be written",
			o->path);
		r = r == SEGMENT_NO_SPACE ? RECORDING_FULL : RECORDING_UNWRITABLE;
	}
	g->targets.since_ns = g->window.start_ns;
	if (r == 0 && takes_times(g))
		r = thread_times_new(
			&g->targets, &g->walk->tasks, "/proc", g->window.start_ns, &g->times);
	if (r != 0) {
		recording_free(g);
		return r;
	}
	r = watch_waits(g, o);
	if (r < 0) {
		recording_free(g);
		return r;
	}
	thread_times_look_at_all(g->times, clock_ns(CLOCK_MONOTONIC));
	if (g->counts) /* their earlier counts are from before this recording */
		(void)hart_counts_take(g->counts);
	g->tap.cut_ns = g->window.start_ns + g->window_ns;
	if (g->shared && g->targets.after_exec)
		walk_await_exec(g->walk, g->targets.pid, g->targets.n_pids);
	walk_add(g->walk, &g->tap);
	*ret_recording = g;
	return 0;
}
