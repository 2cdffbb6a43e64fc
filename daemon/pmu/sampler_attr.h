/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* What the sampler's and the ladder's events ask of the kernel, as perf_event_attr
 *
 * Private to the pmu station. Pure: no call is made here.
 */

#include "daemon/pmu/sampler.h"

/* What the read values of every group of ours hold. Source: man perf_event_open, "read_format". */
#define GROUP_READ_FORMAT                                                                          \
	(PERF_FORMAT_GROUP | PERF_FORMAT_ID | PERF_FORMAT_TOTAL_TIME_ENABLED |                     \
		PERF_FORMAT_TOTAL_TIME_RUNNING)

/* Features of the side-band event that not every kernel has, as bits of sampler.sideband. */
enum {
	SIDEBAND_KSYMBOL = 1,  /* Linux 5.1 */
	SIDEBAND_CGROUP = 2,   /* Linux 5.7 with CONFIG_CGROUP_PERF */
	SIDEBAND_LOST = 4,     /* Linux 6.0: PERF_FORMAT_LOST, of events that sample too */
};

/* The events of the ladder, which no user wrote. */
struct event event_cycles(void);
struct event event_instructions(void);
struct event event_cpu_clock(void);
struct event event_switches(void);
struct event event_dummy(void);

/* cpu-clock and task-clock: their period is a time. */
bool event_is_clock(const struct event *e);

/* Same counter, whatever the name. */
bool event_equal(const struct event *a, const struct event *b);

/* Leave the kernel and hypervisor out (or take them in again), and let the name say so. */
void event_exclude_kernel(struct event *e, bool exclude);

/* Fixed period where the event's period is a time, or where every occurrence counts since it is the
 * kernel's own deed (tracepoints, page faults); else frequency. A frequency is found by trying, and
 * of an event that comes in bursts most would be missed or misjudged meanwhile. Returns the fixed
 * period, 0 in frequency mode. */
uint64_t attr_set_rate(struct perf_event_attr *attr, const struct event *e, uint32_t hz);
uint64_t event_period(const struct event *e, uint32_t hz);

void attr_sideband(const struct sampler *s, unsigned features, size_t ring_bytes,
	struct perf_event_attr *ret_attr);
/* The tracepoint of execs, with a copy of the new program's stack, or a dummy that tells COMM; its own
 * ring wakes at each record. */
void attr_exec(const struct sampler *s, const struct event *e, struct perf_event_attr *ret_attr);
size_t exec_ring_bytes(const struct sampler *s, const struct event *e);
/* An event that fires; grouped: its samples bring the group's values. */
void attr_sampler(const struct sampler *s, const struct event *e, bool grouped,
	struct perf_event_attr *ret_attr);
void attr_sibling(const struct sampler *s, const struct event *e, struct perf_event_attr *ret_attr);
void attr_switch(const struct sampler *s, struct perf_event_attr *ret_attr);
/* What the BPF program puts its records through. */
void attr_switch_bpf(const struct sampler *s, struct perf_event_attr *ret_attr);

/* Bytes of that hart's ring for its plan, at the rate in force; a power of two. */
size_t ring_bytes_for(const struct sampler *s, int hart);
