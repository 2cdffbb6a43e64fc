/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Does an event count here? A PMU driver may accept events that its core never counts, so only a
 * value that moved is believed. Where the kernel itself does the counting (software events and
 * tracepoints) to have run is enough: that no page fault came is a count of none.
 *
 * Harts may be unlike one another. The first and the last that are online are asked, which are of
 * different kinds on every mixed machine that we know of.
 */
#include "daemon/pmu/ladder.h"

#include <errno.h>

#define PROBE_NS 2000000u /* millions of cycles, and ~60 events are still probed in a moment */

struct count {
	uint64_t value, enabled_ns, running_ns;
};
_Static_assert(sizeof(struct count) == 24, "read_format of two times, without a group");

/* Run the opened event on one hart and add up what it saw. */
static int count_on(const struct kernel *k, int fd, int hart, struct count *ret_count)
{
	int r = k->event_ioctl(k->userdata, fd, PERF_EVENT_IOC_ENABLE, 0);
	if (r < 0)
		return r;
	/* A hart that went offline or is not in our cpuset: then it counts where we are. */
	k->spin(k->userdata, hart, PROBE_NS);
	r = k->event_ioctl(k->userdata, fd, PERF_EVENT_IOC_DISABLE, 0);
	if (r < 0)
		return r;
	struct count c;
	ssize_t n = k->event_read(k->userdata, fd, &c, sizeof(c));
	if (n != (ssize_t)sizeof(c))
		return n < 0 ? (int)n : -EIO;
	*ret_count = c;
	return 0;
}

static int online_hart(const struct machine *m, bool last)
{
	for (int i = 0; i < m->n_harts; i++) {
		int hart = last ? m->n_harts - 1 - i : i;
		if (hart_set_has(&m->online, hart))
			return hart;
	}
	return 0;
}

static bool counts(const struct event *e, const struct count *c)
{
	if (c->running_ns == 0)
		return false;
	bool by_kernel = e->type == PERF_TYPE_TRACEPOINT ||
			 (e->type == PERF_TYPE_SOFTWARE && e->config != PERF_COUNT_SW_DUMMY);
	return by_kernel || c->value > 0;
}

int event_probe(const struct kernel *k, const struct machine *m, const struct event *e)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.disabled = 1,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
	};
	event_to_attr(e, &attr);
	attr.precise_ip = 0; /* is about samples, and some drivers refuse it to counters */
	if (!m->may_see_kernel)
		attr.exclude_kernel = attr.exclude_hv = 1;
	if (attr.exclude_kernel && event_is_kernel_only(e))
		return PROBE_ZERO;

	int fd = k->event_open(k->userdata, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return fd;
	int first = online_hart(m, false), last = online_hart(m, true);
	struct count c;
	int r = count_on(k, fd, first, &c);
	if (r == 0 && !counts(e, &c) && last != first)
		r = count_on(k, fd, last, &c);
	k->event_close(k->userdata, fd);
	if (r < 0)
		return r;
	return counts(e, &c) ? 0 : PROBE_ZERO;
}
