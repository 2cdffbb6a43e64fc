/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The kernel's own events by the names that perf list has for them: generic hardware events, which
 * a core may replace, and software events, which need no counter.
 */
#include <linux/perf_event.h>
#include <string.h>
#include <strings.h>

#include "platform-db/draft.h"

#define N(table) (sizeof(table) / sizeof(table[0]))

/* Source: include/uapi/linux/perf_event.h of Linux 6.12; names, man perf-list. */
static const struct {
	const char *name;
	uint64_t config;
} hardware[] = {
	{"cycles", PERF_COUNT_HW_CPU_CYCLES},
	{"instructions", PERF_COUNT_HW_INSTRUCTIONS},
	{"cache-references", PERF_COUNT_HW_CACHE_REFERENCES},
	{"cache-misses", PERF_COUNT_HW_CACHE_MISSES},
	{"branches", PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
	{"branch-misses", PERF_COUNT_HW_BRANCH_MISSES},
	{"bus-cycles", PERF_COUNT_HW_BUS_CYCLES},
	{"stalled-cycles-frontend", PERF_COUNT_HW_STALLED_CYCLES_FRONTEND},
	{"stalled-cycles-backend", PERF_COUNT_HW_STALLED_CYCLES_BACKEND},
	{"ref-cycles", PERF_COUNT_HW_REF_CPU_CYCLES},
};

static const struct {
	const char *name;
	unsigned id;
} caches[] = {
	{"L1-dcache", PERF_COUNT_HW_CACHE_L1D},
	{"L1-icache", PERF_COUNT_HW_CACHE_L1I},
	{"LLC", PERF_COUNT_HW_CACHE_LL},
	{"dTLB", PERF_COUNT_HW_CACHE_DTLB},
	{"iTLB", PERF_COUNT_HW_CACHE_ITLB},
	{"branch", PERF_COUNT_HW_CACHE_BPU},
	{"node", PERF_COUNT_HW_CACHE_NODE},
};

static const struct {
	const char *name;
	unsigned operation, result;
} operations[] = {
	{"-loads", PERF_COUNT_HW_CACHE_OP_READ, PERF_COUNT_HW_CACHE_RESULT_ACCESS},
	{"-load-misses", PERF_COUNT_HW_CACHE_OP_READ, PERF_COUNT_HW_CACHE_RESULT_MISS},
	{"-stores", PERF_COUNT_HW_CACHE_OP_WRITE, PERF_COUNT_HW_CACHE_RESULT_ACCESS},
	{"-store-misses", PERF_COUNT_HW_CACHE_OP_WRITE, PERF_COUNT_HW_CACHE_RESULT_MISS},
	{"-prefetches", PERF_COUNT_HW_CACHE_OP_PREFETCH, PERF_COUNT_HW_CACHE_RESULT_ACCESS},
	{"-prefetch-misses", PERF_COUNT_HW_CACHE_OP_PREFETCH, PERF_COUNT_HW_CACHE_RESULT_MISS},
};

/* Other names of generic events, used on one architecture. Source: "Supporting RISC-V Performance Counters
 * through Perf", CARRV 2021, its listings of perf list and perf stat. */
static const struct {
	enum platform_arch arch;
	const char *name, *generic;
} arch_names[] = {
	{PLATFORM_ARCH_RISCV, "riscv_cycles", "cycles"},
	{PLATFORM_ARCH_RISCV, "riscv_instret", "instructions"},
};

enum platform_arch platform_generic_name(const char *name, const char **ret_generic)
{
	for (size_t i = 0; i < N(arch_names); i++)
		if (strcasecmp(arch_names[i].name, name) == 0) {
			*ret_generic = arch_names[i].generic;
			return arch_names[i].arch;
		}
	return PLATFORM_ARCH_UNKNOWN;
}

static bool cache_find(const char *name, uint64_t *ret_config)
{
	for (size_t i = 0; i < N(caches); i++) {
		size_t n = strlen(caches[i].name);
		if (strncmp(name, caches[i].name, n) != 0)
			continue;
		for (size_t j = 0; j < N(operations); j++)
			if (strcmp(name + n, operations[j].name) == 0) {
				/* Source: man perf_event_open, PERF_TYPE_HW_CACHE. */
				*ret_config = caches[i].id | operations[j].operation << 8 |
					      operations[j].result << 16;
				return true;
			}
	}
	return false;
}

bool generic_find(const char *name, uint32_t *ret_type, uint64_t *ret_config)
{
	for (size_t i = 0; i < N(hardware); i++)
		if (strcmp(name, hardware[i].name) == 0) {
			*ret_type = PERF_TYPE_HARDWARE;
			*ret_config = hardware[i].config;
			return true;
		}
	uint64_t config;
	if (!cache_find(name, &config))
		return false;
	*ret_type = PERF_TYPE_HW_CACHE;
	*ret_config = config;
	return true;
}

/* Source: man perf-list of Linux 6.12. */
bool software_find(const char *name)
{
	static const char *const software[] = {"cpu-clock", "task-clock", "page-faults", "faults",
		"context-switches", "cs", "cpu-migrations", "migrations", "minor-faults",
		"major-faults", "alignment-faults", "emulation-faults", "cgroup-switches"};
	for (size_t i = 0; i < N(software); i++)
		if (strcasecmp(software[i], name) == 0)
			return true;
	return false;
}
