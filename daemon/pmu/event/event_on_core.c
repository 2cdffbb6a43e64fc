/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The kernel is always tried first: its driver knows more about counters and firmware than a
 * database, and a generic event that it maps is the same event for every other tool. The core's own
 * code is used only if the kernel has no mapping.
 *
 * Codes and generic events are opened on the PMU of cores. Where there are several (hart_pmu.h),
 * PERF_TYPE_RAW is the type of one of them, so the hart's own PMU is asked for when the kernel says ENOENT.
 * An event of a PMU that the user named stays that PMU's.
 */
#include "daemon/pmu/event/event_on_core.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/pmu/hart_pmu.h"

static bool is_generic(uint32_t type)
{
	return type == PERF_TYPE_HARDWARE || type == PERF_TYPE_HW_CACHE;
}

/* The event's name, without the modifiers that follow it. */
static const struct platform_event *find_named(const struct event *e, const struct platform *p)
{
	char name[EVENT_NAME_BYTES_MAX];
	snprintf(name, sizeof(name), "%s", e->name);
	name[strcspn(name, ":")] = '\0';
	return platform_event_find(p, name);
}

void event_of_platform(const struct platform_event *from, struct event *ret_event)
{
	struct event e = {
		.type = PERF_TYPE_RAW,
		.config = from->code,
		.config1 = from->config1,
		.group = -1,
	};
	snprintf(e.name, sizeof(e.name), "%s", from->name);
	snprintf(e.pmu, sizeof(e.pmu), "raw");
	*ret_event = e;
}

const struct platform_event *event_described(
	const struct event *e, const struct platform *p, bool generics)
{
	if (e->by_platform)
		return find_named(e, p);
	if (generics && is_generic(e->type))
		return platform_event_generic(p, e->type, e->config);
	for (size_t i = 0; e->type == PERF_TYPE_RAW && i < p->n_events; i++)
		if (p->event[i].code == e->config && p->event[i].config1 == e->config1)
			return &p->event[i];
	return NULL;
}

static int open_as_it_is(const struct event_place *at, struct perf_event_attr *attr)
{
	return at->kernel->event_open(
		at->kernel->userdata, attr, at->pid, at->hart, at->group_fd, PERF_FLAG_FD_CLOEXEC);
}

/* Is it a code of whatever core it is opened on? */
static bool is_of_no_pmu(const struct event *e)
{
	return !e || e->by_platform || is_generic(e->type) || strcmp(e->pmu, "raw") == 0;
}

/* Set the PMU of an event: of a raw code by its type, a generic event in the upper half of its config. Source:
 * include/uapi/linux/perf_event.h of Linux 6.12, PERF_PMU_TYPE_SHIFT. */
static void set_pmu(struct perf_event_attr *attr, uint32_t type)
{
	if (attr->type == PERF_TYPE_RAW)
		attr->type = type;
	else
		attr->config |= (uint64_t)type << PERF_PMU_TYPE_SHIFT;
}

/* Open the event as attr has it; if the kernel knows no such event, open it on the hart's own PMU. */
static int open_on_pmu(
	const struct event_place *at, const struct event *e, struct perf_event_attr *attr)
{
	int fd = open_as_it_is(at, attr);
	bool has_pmu = attr->type == PERF_TYPE_RAW || is_generic(attr->type);
	if (fd != -ENOENT || !has_pmu || at->hart < 0 || !is_of_no_pmu(e))
		return fd;
	struct hart_pmu pmu[HART_PMUS_MAX];
	const struct hart_pmu *own = hart_pmu_of(pmu, hart_pmus_read(at->kernel, pmu), at->hart);
	struct perf_event_attr typed = *attr;
	if (!own)
		return fd;
	set_pmu(&typed, own->type);
	return open_as_it_is(at, &typed);
}

static int open_raw(
	const struct event_place *at, const struct event *e, struct perf_event_attr *attr)
{
	const struct platform_event *own = event_place_own(at, attr->type, attr->config);
	if (!own)
		return -ENOENT;
	struct perf_event_attr raw = *attr;
	raw.type = PERF_TYPE_RAW;
	raw.config = own->code;
	raw.config1 = own->config1 | attr->config1; /* of a generic event: what the caller added */
	int fd = open_on_pmu(at, e, &raw);
	if (fd >= 0)
		*attr = raw;
	return fd;
}

int event_place_code(
	const struct event_place *place, const struct event *e, struct perf_event_attr *attr)
{
	if (!e || !e->by_platform)
		return 0;
	const struct platform_event *own = find_named(e, place->platform);
	if (!own)
		return -ENOENT;
	attr->config = own->code;
	attr->config1 = own->config1 | (attr->config1 & ~e->config1);
	return 0;
}

const struct platform_event *event_place_own(
	const struct event_place *place, uint32_t type, uint64_t config)
{
	return is_generic(type) ? platform_event_generic(place->platform, type, config) : NULL;
}

int event_open_at(
	const struct event_place *place, const struct event *e, struct perf_event_attr *attr)
{
	int r = event_place_code(place, e, attr);
	if (r < 0)
		return r;
	int fd = open_on_pmu(place, e, attr);
	if (fd != -ENOENT || !is_generic(attr->type))
		return fd;
	/* The replacement's error is more specific than the kernel's missing mapping. */
	return open_raw(place, e, attr);
}

bool event_by_raw(const struct event *e, const struct perf_event_attr *attr)
{
	return is_generic(e->type) && attr->type == PERF_TYPE_RAW;
}
