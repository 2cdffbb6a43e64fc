/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The PMUs of harts, where Linux has one for each kind
 *
 * On an x86 hybrid, cpuid's family and model are those of the package, and the kernel registers a
 * PMU for each kind of hart:
 *
 *      /sys/bus/event_source/devices/   cpus     type
 *          cpu_core/                    0-15     4, PERF_TYPE_RAW
 *          cpu_atom/                    16-23    10, whatever was free
 *
 * So the PMU's name is part of a hart's identity, and its type the one that raw codes are opened
 * with there: PERF_TYPE_RAW is ENOENT on all but cpu_core. A generic event of a hart is tried on all
 * PMUs by the kernel, and can name one by its type in the upper half of config.
 * Source: tools/perf/Documentation/intel-hybrid.txt; x86_pmu_event_init and init_hw_perf_events
 * in arch/x86/events/core.c, perf_init_event in kernel/events/core.c of Linux 6.12.
 */

#include "daemon/kernel/kernel.h"
#include "daemon/kernel/machine.h"
#include "platform-db/platform.h"

#define HART_PMUS_MAX 8 /* kinds of hart: machines have up to three */

struct hart_pmu {
	char name[PLATFORM_PMU_BYTES];
	uint32_t type; /* perf_event_attr.type */
	struct hart_set harts;
};

/* Fill pmu[] and return how many there are: 0 on a machine whose harts share one PMU, `cpu`, and
 * where sysfs cannot be read. Reads three files for each. */
size_t hart_pmus_read(const struct kernel *k, struct hart_pmu pmu[static HART_PMUS_MAX]);

/* The one of that hart, or NULL. */
const struct hart_pmu *hart_pmu_of(const struct hart_pmu *pmu, size_t n, int hart);
