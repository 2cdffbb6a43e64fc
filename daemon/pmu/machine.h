/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* What the kernel says of this machine before any event is opened: harts, limits, rights.
 */

#include <stdbool.h>
#include <stdint.h>

#include "daemon/pmu/kernel.h"

#define HARTS_MAX 1024 /* sets the size of plain bit sets; Linux' own NR_CPUS_DEFAULT is below it on our targets */

struct hart_set {
	uint64_t bits[HARTS_MAX / 64];
};

struct machine {
	int n_harts;                /* possible harts; ids are 0 … n_harts - 1 */
	struct hart_set online;
	int paranoid;               /* kernel.perf_event_paranoid; 4 where unreadable */
	uint32_t max_sample_rate;   /* kernel.perf_event_max_sample_rate, Hz; 0 where unreadable */
	uint32_t mlock_kb;          /* kernel.perf_event_mlock_kb */
	uint32_t memory_kb;         /* MemTotal; 0: unknown */
	uint32_t max_stack;         /* kernel.perf_event_max_stack, frames */
	bool may_see_all;           /* system-wide events can be opened; found by opening one */
	bool may_see_kernel;        /* events that count the kernel can be opened */
	char release[65];           /* uname -r */
	char arch[65];              /* uname -m */
};

/* Fill *ret_machine. Fails only with -EIO, where /sys/devices/system/cpu cannot be read. */
int machine_read(const struct kernel *k, struct machine *ret_machine);

/* Read again what changes while we run: online and max_sample_rate. 0 or -errno. */
int machine_refresh(const struct kernel *k, struct machine *m);

/* Parse the kernel's list form, "0-3,8,10-11". 0, -EINVAL, or -ERANGE above HARTS_MAX.
 * Source: Documentation/core-api/cpu-hotplug.rst, the cpulist format. */
int hart_set_parse(const char *text, struct hart_set *ret_set);
bool hart_set_has(const struct hart_set *s, int hart);
void hart_set_add(struct hart_set *s, int hart);
void hart_set_remove(struct hart_set *s, int hart);
int hart_set_count(const struct hart_set *s);
