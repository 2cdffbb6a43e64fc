/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Events: what -e means
 *
 * An event is (PMU type, config, modifiers), never a name: the name is kept for people. The grammar
 * is perf's: generic names and aliases (cycles, cpu-clock, L1-dcache-load-misses),
 * `pmu/field=value,…/` and `pmu/alias/` through /sys/bus/event_source, rNNN, subsystem:tracepoint,
 * groups `{a,b}`, and modifiers `:u :k :h :p…` after an event or a group. Source: man perf-list;
 * tools/perf/util/parse-events.y of Linux 6.12 for what is accepted.
 */

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/kernel/kernel.h"

struct cores;

/* Not of perf: threads that wait; config says for what (kernel/offcpu.inc). Stored: do not change. */
#define EVENT_TYPE_OFFCPU 0x6f666663u

#define EVENTS_MAX 64 /* per request; more than any PMU counts, few enough to answer */
#define EVENT_NAME_BYTES_MAX 128
#define EVENT_PMU_BYTES_MAX 64 /* for names like marvell_cn10k_ddr_pmu_87e1c0000000 */
/* members of a group; no PMU that we know has more than 29 counters */
#define EVENT_GROUP_MAX 16

struct event {
	char name[EVENT_NAME_BYTES_MAX]; /* as the user wrote it, without the group's braces */
	/* "hardware", "cache", "software", "raw", "tracepoint", or the sysfs name */
	char pmu[EVENT_PMU_BYTES_MAX];
	uint32_t type; /* perf_event_attr.type */
	uint64_t config, config1, config2;
	bool exclude_user, exclude_kernel, exclude_hv;
	bool exclude_host, exclude_guest; /* modifiers G and H */
	uint8_t precise;
	/* its name is from the platform database: type and config are those of the first hart that
	 * has it; event_on_core.h finds those of another hart */
	bool by_platform;
	uint64_t counters; /* that can count it, where its name says so; 0: not known */
	bool by_bank;      /* a name such as "backend:INST_SPEC", whose first colon does not begin
		       * modifiers */
	/* events with the same number ≥ 0 are one group, in order; -1: alone */
	int group;
};

struct event_list {
	struct event event[EVENTS_MAX];
	int n_events;
	int n_groups;
};

enum {
	/* no such name, PMU or field: the error text names it and the nearest match */
	EVENT_UNKNOWN = 1,
	EVENT_MALFORMED, /* does not parse: the error text has the column */
	EVENT_TOO_MANY,
};

/* The longest refusal of refusal_explain with its remedy, and the names of an event and a layer. */
#define EVENT_ERROR_BYTES 640

/* A sentence about an error in an event, or why it is not available. */
struct event_error {
	char text[EVENT_ERROR_BYTES];
};

/* Parse one -e argument ("cycles:u,{instructions,branches}:k") and append to *list.
 * 0, or EVENT_*, with *ret_error filled and *list untouched. */
int event_parse(const struct kernel *k, const char *text, struct event_list *list,
	struct event_error *ret_error);
/* The same, and also accepts event names of the platforms of this machine's cores, and a bare sysfs
 * alias that only one PMU has. c may be NULL. */
int event_parse_for(const struct kernel *k, const struct cores *c, const char *text,
	struct event_list *list, struct event_error *ret_error);

/* Set type, config and exclusion of *attr (the caller sets size, sample and read formats). */
void event_to_attr(const struct event *e, struct perf_event_attr *attr);

/* Does the event at that position lead? Others of its group are read with the first of them. */
bool event_leads(const struct event_list *list, int i);

/* Are there modifiers in its name? */
bool event_has_modifiers(const struct event *e);

/* True for events that happen inside the kernel only (context-switches, cpu-migrations,
 * cgroup-switches): with exclude_kernel they open and stay 0, which is not a measurement. Source:
 * perf_exclude_event() in kernel/events/core.c of Linux 6.12, which checks the mode of the
 * registers, and perf_sw_event_sched(), which passes the kernel's. */
bool event_is_kernel_only(const struct event *e);

/* cpu-clock and task-clock: their period is a time. */
bool event_is_clock(const struct event *e);

/* A row of the catalogue that `list` shows: generic events by topic. */
struct event_name {
	const char *topic; /* "hardware", "cache", "software" */
	const char *name;
	const char *alias; /* or NULL */
	uint32_t type;
	uint64_t config;
	const char *says; /* a description of one line */
};
extern const struct event_name event_names[];
extern const size_t n_event_names;

/* Explain why an open failed: the layer that refuses (core, firmware, driver, sysctl, capability),
 * the reason, and the remedy; all static strings. */
struct refusal {
	const char *layer;
	const char *says;
	const char *remedy;
};
struct machine;
struct refusal refusal_explain(
	const struct event *e, int error, bool sampling, const struct machine *m);
