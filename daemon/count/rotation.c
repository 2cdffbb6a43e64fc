/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * We can take a group off its counters and put it on again, by a system call each. The time of these calls, less
 * their time for an event that needs no counter, is the longest time by which a count can be off. We take the
 * least of some tries, since all other work on the hart only adds to it.
 */
#include "daemon/count/rotation.h"

#include <errno.h>
#include <stdio.h>

#include "daemon/pmu/event/event_on_core.h"

#define TRIES 7
/* The interval of rotation of a cores' PMU; if harts have several kinds, of the first one's. */
#define MUX_PATH "/sys/bus/event_source/devices/%s/perf_event_mux_interval_ms"
#define TICK_HZ_DEFAULT 250 /* of most kernels */

uint64_t rotation_ns(const struct kernel *k)
{
	static const char *const pmus[] = {"cpu", "cpu_core"};
	for (size_t i = 0; i < sizeof(pmus) / sizeof(pmus[0]); i++) {
		char path[96], text[32];
		unsigned ms = 0;
		snprintf(path, sizeof(path), MUX_PATH, pmus[i]);
		if (k->read_text(k->userdata, path, text, sizeof(text)) >= 0 &&
			sscanf(text, "%u", &ms) == 1)
			return ms * UINT64_C(1000000);
	}
	return 0;
}

/* The kernel's default is a tick. */
static double rotation_or_tick_ns(const struct kernel *k)
{
	const uint64_t ns = rotation_ns(k);
	const uint32_t hz = k->tick_hz ? k->tick_hz(k->userdata) : 0;
	return ns ? (double)ns : 1e9 / (hz ? hz : TICK_HZ_DEFAULT);
}

double rotations_per_second(const struct kernel *k)
{
	return 1e9 / rotation_or_tick_ns(k);
}

struct group {
	const struct kernel *kernel;
	int fd[EVENTS_MAX];
	int n;
};

/* Open an event of this thread; the first leads. Members that do not open are left out. */
static void open_member(struct group *g, const struct platform *p, const struct event *e)
{
	struct perf_event_attr attr = {.size = sizeof(attr)};
	const struct event_place place = {
		.kernel = g->kernel,
		.platform = p,
		.hart = -1,
		.group_fd = g->n ? g->fd[0] : -1,
	};
	event_to_attr(e, &attr);
	attr.precise_ip = 0;
	int fd = event_open_at(&place, e, &attr);
	if (fd == -EACCES || fd == -EPERM) {
		attr.exclude_kernel = attr.exclude_hv = 1;
		fd = event_open_at(&place, e, &attr);
	}
	if (fd >= 0)
		g->fd[g->n++] = fd;
}

static void close_group(struct group *g)
{
	while (g->n > 0)
		g->kernel->event_close(g->kernel->userdata, g->fd[--g->n]);
}

/* Take a group off its counters, and put it on again. 0 or -errno. */
static int switch_group(const struct group *g, uint64_t *ret_ns)
{
	const struct kernel *k = g->kernel;
	uint64_t least_ns = UINT64_MAX;
	for (int i = 0; i < TRIES; i++) {
		uint64_t before_ns = k->now_ns(k->userdata);
		int r = k->event_ioctl(k->userdata, g->fd[0], PERF_EVENT_IOC_DISABLE, 0);
		if (r == 0)
			r = k->event_ioctl(k->userdata, g->fd[0], PERF_EVENT_IOC_ENABLE, 0);
		if (r < 0)
			return r;
		uint64_t took_ns = k->now_ns(k->userdata) - before_ns;
		least_ns = took_ns < least_ns ? took_ns : least_ns;
	}
	*ret_ns = least_ns;
	return 0;
}

/* Measure the group that begins at `first`. Returns the first event behind it; *ret_ns is 0 if it does not open. */
static int measure(const struct kernel *k, const struct platform *p,
	const struct event_list *events, int first, uint64_t *ret_ns)
{
	struct group g = {.kernel = k};
	int i = first;
	*ret_ns = 0;
	do
		open_member(&g, p, &events->event[i++]);
	while (i < events->n_events && events->event[i].group >= 0 &&
		events->event[i].group == events->event[first].group);
	if (g.n > 0)
		(void)switch_group(&g, ret_ns);
	close_group(&g);
	return i;
}

void rotation_parts(const struct kernel *k, const struct platform *p,
	const struct event_list *events, double ret_part[static EVENTS_MAX])
{
	static const struct event_list dummy = {.n_events = 1,
		.event = {{.name = "dummy",
			.type = PERF_TYPE_SOFTWARE,
			.config = PERF_COUNT_SW_DUMMY,
			.group = -1}}};
	const double each_ns = rotation_or_tick_ns(k);
	uint64_t call_ns, took_ns;
	(void)measure(k, p, &dummy, 0, &call_ns);
	for (int i = 0; i < events->n_events;) {
		int first = i;
		i = measure(k, p, events, first, &took_ns);
		for (int e = first; e < i; e++)
			ret_part[e] = 0;
		if (took_ns > call_ns)
			ret_part[first] = (double)(took_ns - call_ns) / each_ns;
	}
}
