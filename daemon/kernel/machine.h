/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Machine: harts, limits and rights, read from the kernel before any event is opened. */

#include <stdbool.h>
#include <stdint.h>

#include "daemon/kernel/kernel.h"

/* size of bit sets; Linux's NR_CPUS_DEFAULT is below it on our targets */
#define HARTS_MAX 1024

struct hart_set {
	uint64_t bits[HARTS_MAX / 64];
};

struct machine {
	int n_harts; /* possible harts; ids are 0 … n_harts - 1 */
	struct hart_set online;
	int paranoid;             /* kernel.perf_event_paranoid; 4 if unreadable */
	uint32_t max_sample_rate; /* kernel.perf_event_max_sample_rate, Hz; 0 if unreadable */
	uint32_t tick_hz;         /* timer ticks per second, CONFIG_HZ; 0: unknown */
	uint32_t mlock_kb;        /* kernel.perf_event_mlock_kb */
	uint64_t locked_kb;  /* a hart's share of the memory that all rings may lock; 0: no limit */
	uint32_t memory_kb;  /* MemTotal; 0: unknown */
	uint32_t max_stack;  /* kernel.perf_event_max_stack, frames */
	bool may_see_all;    /* system-wide events can be opened; found by opening one */
	bool may_see_kernel; /* events that count the kernel can be opened */
	/* throttling a group's leader stops its siblings too: since Linux 6.16, by `release`.
	 * Source: perf_event_throttle_group in kernel/events/core.c. */
	bool throttles_groups;
	char release[65]; /* uname -r */
	char arch[65];    /* uname -m */
};

/* Fill *ret_machine. Fails only with -EIO, if /sys/devices/system/cpu cannot be read. */
int machine_read(const struct kernel *k, struct machine *ret_machine);

/* Read again what may change at run time: online and max_sample_rate. 0 or -errno. */
int machine_refresh(const struct kernel *k, struct machine *m);

/* The highest rate in Hz that max_sample_rate does not throttle, on any kernel; UINT32_MAX if no
 * limit is known. With m = ceil(max_sample_rate / tick_hz), the kernel throttles an event until the
 * next tick
 *
 *      up to Linux 6.2      at its m-th sample of a tick, but never at the first
 *      6.3 to 6.15          after the m-th
 *      since 6.16, and in   at the m-th
 *      stable updates
 *
 * so m - 1 samples fit into a tick, and a fifth is left for timers that are late. At m = 1 newer
 * kernels throttle every sample, so no rate is safe. Then the period of the result is 2.5 ticks: it is
 * long compared with the remainder of a tick, and ends between two ticks, so that samples do not fall on
 * the kernel's own work at ticks. Never above max_sample_rate, beyond which frequencies do not open.
 * Source: __perf_event_account_interrupt in kernel/events/core.c of Linux 6.2, 6.12 and 6.18. */
uint32_t machine_rate_max(const struct machine *m);

/* Parse the kernel's list form, "0-3,8,10-11". 0, -EINVAL, or -ERANGE above HARTS_MAX.
 * Source: Documentation/core-api/cpu-hotplug.rst, the cpulist format. */
int hart_set_parse(const char *text, struct hart_set *ret_set);
bool hart_set_has(const struct hart_set *s, int hart);
void hart_set_add(struct hart_set *s, int hart);
void hart_set_remove(struct hart_set *s, int hart);
int hart_set_count(const struct hart_set *s);
