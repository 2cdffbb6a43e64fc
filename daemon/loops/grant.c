/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The events of a thread are a group, so that they run at the same times, and a ratio of two counts
 * is of the same code. An event that the kernel refuses in the group (PMUs that do not mix, more
 * events than counters) is opened alone; the times that are read with its count show for how long
 * it ran.
 */
#include "daemon/loops/grant.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/loops/grant_lines.h"
#include "daemon/pmu/cores.h"
#include "daemon/pmu/event/event_on_core.h"

/* Does the event count only user code, and of one thread? Tracepoints are in the kernel. */
static bool is_fit(const struct event *e)
{
	return e->type != PERF_TYPE_TRACEPOINT && e->type != PERF_TYPE_BREAKPOINT &&
	       !e->exclude_user && strlen(e->name) < LOOP_GRANTED_BYTES;
}

static int wrong(struct event_error *e, const char *name, const char *why)
{
	snprintf(e->text, sizeof(e->text), "%.80s cannot be counted in regions: %s", name, why);
	return GRANTS_WRONG;
}

int grants_make(const struct kernel *k, const struct machine *m, const struct cores *c,
	const char *text, struct grants *ret_grants, struct event_error *ret_error)
{
	struct grants g = {.kernel = k, .machine = m, .cores = c};
	struct event_list list = {.n_events = 0};
	if (strcmp(text, GRANTS_NONE) != 0 && event_parse_for(k, c, text, &list, ret_error) != 0)
		return GRANTS_WRONG;
	if (list.n_events > (int)MPERF_GRANTS_MAX)
		return wrong(
			ret_error, list.event[MPERF_GRANTS_MAX].name, "at most four events can be");
	int r = grant_lines_replace(k, c, MPERF_GRANTS_MAX, &list);
	if (r < 0)
		return r;
	for (int i = 0; i < list.n_events; i++) {
		const struct event *e = &list.event[i];
		if (!is_fit(e))
			return wrong(ret_error, e->name,
				"choose an event of user code with a shorter name");
		g.event[i].event = *e;
		snprintf(g.names.name[i], sizeof(g.names.name[i]), "%.*s",
			(int)sizeof(g.names.name[i]) - 1, e->name);
		g.names.is_time[i] = e->type == PERF_TYPE_SOFTWARE &&
				     (e->config == PERF_COUNT_SW_TASK_CLOCK ||
					     e->config == PERF_COUNT_SW_CPU_CLOCK);
	}
	g.n_events = (unsigned)list.n_events;
	*ret_grants = g;
	return 0;
}

/* The bit of config1 by which user code may read the event on Arm, if kernel.perf_user_access allows
 * it; the others need none. It has no effect on what is counted. Source: Linux 6.12,
 * Documentation/arch/arm64/perf.rst, arch/arm64 format attribute rdpmc. */
#define ARM_CONFIG1_USER 2u

static int open_event(const struct grants *g, const struct event *e, pid_t tid, int leader)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
	};
	event_to_attr(e, &attr);
	attr.precise_ip = 0; /* of samples */
	if (e->type != PERF_TYPE_SOFTWARE)
		attr.exclude_kernel = attr.exclude_hv = 1;
#if defined(__aarch64__)
	if (e->type != PERF_TYPE_SOFTWARE)
		attr.config1 |= ARM_CONFIG1_USER;
#endif
	struct event_place place = {
		.kernel = g->kernel,
		.platform = cores_platform(g->cores, cores_kind(g->cores, 0)),
		.pid = tid,
		.hart = -1,
		.group_fd = leader,
	};
	int fd = event_open_at(&place, e, &attr);
	place.group_fd = -1;
	return fd == -EINVAL && leader >= 0 ? event_open_at(&place, e, &attr) : fd;
}

static void refuse(const struct grants *g, struct grant_event *e, int error)
{
	struct refusal why = refusal_explain(&e->event, error, false, g->machine);
	e->n_refused++;
	e->absent = error == ENOENT || error == ENODEV || error == EOPNOTSUPP;
	snprintf(e->trouble, sizeof(e->trouble), "%s; %s", why.says, why.remedy);
}

void grants_open(struct grants *g, pid_t tid, struct grant_set *ret_set)
{
	struct grant_set set = {.n = 0};
	for (unsigned i = 0; i < g->n_events; i++) {
		struct grant_event *e = &g->event[i];
		int fd =
			e->absent ? -ENOENT : open_event(g, &e->event, tid, set.n ? set.fd[0] : -1);
		if (fd == -ESRCH)
			continue; /* it has ended */
		if (fd < 0) {
			e->absent ? (void)e->n_refused++ : refuse(g, e, -fd);
			continue;
		}
		e->n_granted++;
		set.fd[set.n] = fd;
		set.event[set.n++] = (uint8_t)(i + 1);
	}
	*ret_set = set;
}

void grants_close(const struct grants *g, struct grant_set *set)
{
	for (unsigned i = 0; i < set->n; i++)
		g->kernel->event_close(g->kernel->userdata, set->fd[i]);
	set->n = 0;
}
