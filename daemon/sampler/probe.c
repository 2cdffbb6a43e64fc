/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Does an event count here? A PMU driver may accept events that its core never counts, so only a
 * changed value proves it. For events that the kernel itself counts (software events and
 * tracepoints) it is enough that the event ran: no page fault is a valid count of 0.
 *
 * Harts may differ. The first and the last online hart are tried, which are of different kinds on
 * every mixed machine that we know.
 */
#include "daemon/sampler/ladder.h"

#include <errno.h>

#include "daemon/pmu/event/event_on_core.h"

#define PROBE_NS 2000000u /* millions of cycles, and ~60 events are still probed in a moment */

struct count {
	uint64_t value, enabled_ns, running_ns;
};
_Static_assert(sizeof(struct count) == 24, "read_format of two times, without a group");

/* Run the opened event on one hart and add up its counts. */
static int count_on(const struct kernel *k, int fd, int hart, struct count *ret_count)
{
	int r = k->event_ioctl(k->userdata, fd, PERF_EVENT_IOC_ENABLE, 0);
	if (r < 0)
		return r;
	/* If the hart went offline or is not in our cpuset, it counts on the current hart. */
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

/* Open the event, and try one hart after the other until one counts. */
struct probing {
	const struct kernel *kernel;
	const struct event *event;
	struct perf_event_attr attr;
};

static int probe_on(const struct probing *p, const struct event_place *place, int first, int last)
{
	struct perf_event_attr attr = p->attr;
	int fd = event_open_at(place, p->event, &attr);
	if (fd < 0)
		return fd;
	struct count c;
	int r = count_on(p->kernel, fd, first, &c);
	if (r == 0 && !counts(p->event, &c) && last != first)
		r = count_on(p->kernel, fd, last, &c);
	p->kernel->event_close(p->kernel->userdata, fd);
	if (r < 0)
		return r;
	return counts(p->event, &c) ? 0 : PROBE_ZERO;
}

/* If cores differ, try one hart of each kind, since the code differs. An event that counts on one
 * of them counts. */
static int probe_kinds(const struct probing *p, const struct cores *c)
{
	int best = -ENOENT;
	for (int hart = cores_kind(c, 0); hart >= 0; hart = cores_kind(c, hart + 1)) {
		const struct event_place place = {
			.kernel = p->kernel,
			.platform = cores_platform(c, hart),
			.hart = hart,
			.group_fd = -1,
		};
		int r = probe_on(p, &place, hart, hart);
		if (r == 0)
			return 0;
		if (r == PROBE_ZERO || best == -ENOENT)
			best = r;
	}
	return best;
}

int event_probe_for(const struct kernel *k, const struct machine *m, const struct cores *c,
	const struct event *e)
{
	struct probing p = {
		.kernel = k,
		.event = e,
		.attr =
			{
				.size = sizeof(p.attr),
				.disabled = 1,
				.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED |
					       PERF_FORMAT_TOTAL_TIME_RUNNING,
			},
	};
	event_to_attr(e, &p.attr);
	p.attr.precise_ip = 0; /* only for samples; some drivers refuse it for counters */
	if (!m->may_see_kernel)
		p.attr.exclude_kernel = p.attr.exclude_hv = 1;
	if (p.attr.exclude_kernel && event_is_kernel_only(e))
		return PROBE_ZERO;
	if (cores_differ(c))
		return probe_kinds(&p, c);

	int first = online_hart(m, false), last = online_hart(m, true);
	const struct event_place place = {
		.kernel = k,
		.platform = cores_platform(c, first),
		.hart = -1,
		.group_fd = -1,
	};
	return probe_on(&p, &place, first, last);
}

int event_probe(const struct kernel *k, const struct machine *m, const struct event *e)
{
	return event_probe_for(k, m, NULL, e);
}
