/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Work of the kernel for profilers
 *
 * The kernel writes a PMU's registers by functions that other code uses too (native_write_msr), so
 * the leaf does not show whether the work is for a profiler. Its callers do: time below the
 * kernel's own perf code is no work of the running program. If callers were not recorded, the leaf
 * keeps its name.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/query/samples/hotspots.h"

/* Prefixes of the functions of the kernel's perf. Source: kernel/events/core.c, arch/x86/events,
 * drivers/perf/arm_pmu.c, arm_pmuv3.c and riscv_pmu*.c of Linux 6.12 and 6.18. */
static const char *const prefixes[] = {
	"perf_",
	"__perf_",
	"event_sched_",
	"ctx_sched_",
	"cpu_clock_event_",
	"x86_pmu_",
	"intel_pmu_",
	"__intel_pmu_",
	"amd_pmu_",
	"armpmu_",
	"armv8pmu_",
	"riscv_pmu_",
	"pmu_sbi_",
	"rvpmu_",
};

static bool is_of_perf(const struct loaded *l, const struct loaded_frame *f)
{
	for (uint32_t i = f->place; i < f->place + f->n_places; i++) {
		const char *name = text_of(l->texts, l->place[i].function);
		for (size_t k = 0; name && k < sizeof(prefixes) / sizeof(*prefixes); k++)
			if (strncmp(name, prefixes[k], strlen(prefixes[k])) == 0)
				return true;
	}
	return false;
}

static bool is_of_kernel(const struct loaded *l, const struct loaded_frame *f)
{
	uint8_t kind = l->file[f->file].kind;
	return file_is_kernel((enum file_kind)kind);
}

/* Callers have lower ids than their callees. */
int hotspots_find_profiling(struct hotspots *h)
{
	const struct loaded *l = &h->loaded;
	uint8_t *of_perf = calloc((size_t)l->n_frames + 1, sizeof(*of_perf));
	h->profiling = calloc((size_t)l->n_stacks + 1, sizeof(*h->profiling));
	if (!of_perf || !h->profiling) {
		free(of_perf);
		return -ENOMEM;
	}
	for (uint32_t i = 1; i <= l->n_frames; i++)
		of_perf[i] = is_of_kernel(l, &l->frame[i]) && is_of_perf(l, &l->frame[i]);
	for (uint32_t id = 1; id <= l->n_stacks; id++) {
		uint32_t frame = l->stack[id].frame, parent = l->stack[id].parent;
		bool below = parent < id && h->profiling[parent];
		h->profiling[id] = of_perf[frame] || (below && is_of_kernel(l, &l->frame[frame]));
	}
	free(of_perf);
	uint32_t name, module;
	int r = text_get(l->texts, HOTSPOTS_PROFILING, &name);
	if (r == 0)
		r = text_get(l->texts, "[kernel]", &module);
	if (r != 0)
		return query_fail_full(l, r);
	h->profiling_key = (struct key){{name, module}};
	if (h->by == QUERY_BY_LINE)
		h->profiling_key = (struct key){{name, 0, 0, module}};
	else if (h->by == QUERY_BY_ADDRESS)
		h->profiling_key = (struct key){{name, 0, module, 0}};
	return 0;
}
