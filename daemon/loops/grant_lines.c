/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * We find out which events count by opening them for the calling thread, as they will be opened for
 * others. On a machine with several kinds of cores, a formula would hold for one kind only.
 */
#include "daemon/loops/grant_lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/metric/metric_walk.h"
#include "daemon/pmu/event/event_on_core.h"
#include "proto/base/memory.h"

#define DRAM_METRIC "dram_bytes"
#define LLC_LOAD_MISSES                                                                            \
	(PERF_COUNT_HW_CACHE_LL | PERF_COUNT_HW_CACHE_OP_READ << 8 |                               \
		PERF_COUNT_HW_CACHE_RESULT_MISS << 16)

/* 0 or -errno. */
static int try_open(const struct kernel *k, const struct platform *p, const struct event *e)
{
	struct perf_event_attr attr = {.size = sizeof(attr), .disabled = 1};
	const struct event_place place = {.kernel = k, .platform = p, .hart = -1, .group_fd = -1};
	event_to_attr(e, &attr);
	attr.precise_ip = 0;
	attr.exclude_kernel = attr.exclude_hv = 1;
	int fd = event_open_at(&place, e, &attr);
	if (fd >= 0)
		k->event_close(k->userdata, fd);
	return fd < 0 ? fd : 0;
}

static int find_misses(const struct event_list *list)
{
	for (int i = 0; i < list->n_events; i++)
		if (list->event[i].type == PERF_TYPE_HW_CACHE &&
			list->event[i].config == LLC_LOAD_MISSES)
			return i;
	return -1;
}

struct collecting {
	const struct kernel *kernel;
	const struct cores *cores;
	struct event_list *list;
};

enum { LINES_NOT_COUNTED = 1 };

static int take_input(void *userdata, const char *name)
{
	struct collecting *c = userdata;
	struct event_error error;
	char spelled[EVENT_NAME_BYTES_MAX];
	metric_spell(name, spelled);
	for (int i = 0; i < c->list->n_events; i++)
		if (strcmp(c->list->event[i].name, spelled) == 0)
			return 0;
	int n = c->list->n_events;
	int r = event_parse_for(c->kernel, c->cores, spelled, c->list, &error);
	const struct platform *p = cores_platform(c->cores, cores_kind(c->cores, 0));
	if (r == 0 && try_open(c->kernel, p, &c->list->event[n]) != 0)
		r = LINES_NOT_COUNTED;
	return r > 0 ? LINES_NOT_COUNTED : r;
}

/* The events of the metric. 0; LINES_NOT_COUNTED; -ENOMEM. */
static int collect(const struct kernel *k, const struct cores *c, const struct platform *p,
	struct event_list *ret_list)
{
	const struct platform_metric *m = platform_metric_find(p, DRAM_METRIC);
	const struct expression_source nothing = {NULL, NULL};
	struct collecting collecting = {k, c, ret_list};
	_cleanup_(pool_freep) struct pool *pool = m ? pool_new() : NULL;
	if (!m || !pool)
		return m ? -ENOMEM : LINES_NOT_COUNTED;
	return metric_each_input(p, pool, m, &nothing, take_input, &collecting);
}

int grant_lines_replace(
	const struct kernel *k, const struct cores *c, int n_max, struct event_list *list)
{
	int at = find_misses(list);
	if (at < 0 || !c || cores_differ(c))
		return 0;
	const struct platform *p = cores_platform(c, cores_kind(c, 0));
	_cleanup_(freep) struct event_list *own = calloc(1, sizeof(*own));
	if (!own)
		return -ENOMEM;
	if (try_open(k, p, &list->event[at]) != -ENOENT)
		return 0;
	int r = collect(k, c, p, own);
	if (r != 0 || own->n_events == 0 || list->n_events - 1 + own->n_events > n_max)
		return r < 0 ? r : 0;
	memmove(&list->event[at + own->n_events], &list->event[at + 1],
		(size_t)(list->n_events - at - 1) * sizeof(list->event[0]));
	memcpy(&list->event[at], own->event, (size_t)own->n_events * sizeof(list->event[0]));
	list->n_events += own->n_events - 1;
	return 0;
}
