/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The names that mean the same on every machine. Hardware and software events are a plain table;
 * cache events are composed of a cache, an operation and a result, each with several spellings,
 * so the table lists one spelling of each for people and the composer below understands them all.
 * Source: names and spellings, man perf-list and tools/perf/util/{parse-events.l,evsel.c} of
 * Linux 6.12; numbers, include/uapi/linux/perf_event.h.
 */
#include "daemon/pmu/event/event_private.h"

#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define HARDWARE(id, name, alias, says)                                                            \
	{"hardware", name, alias, PERF_TYPE_HARDWARE, PERF_COUNT_HW_##id, says}
#define SOFTWARE(id, name, alias, says)                                                            \
	{"software", name, alias, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_##id, says}

/* Source: man perf_event_open, PERF_TYPE_HW_CACHE: id | op << 8 | result << 16. */
#define CACHE_CONFIG(id, op, result)                                                               \
	((uint64_t)(id) | (uint64_t)(op) << 8 | (uint64_t)(result) << 16)
#define CACHE(cache, op, result, name, says)                                                       \
	{"cache", name, NULL, PERF_TYPE_HW_CACHE,                                                  \
		CACHE_CONFIG(PERF_COUNT_HW_CACHE_##cache, PERF_COUNT_HW_CACHE_OP_##op,             \
			PERF_COUNT_HW_CACHE_RESULT_##result),                                      \
		says}

const struct event_name event_names[] = {
	HARDWARE(CPU_CYCLES, "cycles", "cpu-cycles", "cycles of the core's own clock"),
	HARDWARE(INSTRUCTIONS, "instructions", NULL, "instructions retired"),
	HARDWARE(CACHE_REFERENCES, "cache-references", NULL, "accesses to the last cache level"),
	HARDWARE(CACHE_MISSES, "cache-misses", NULL, "accesses that missed the last cache level"),
	HARDWARE(BRANCH_INSTRUCTIONS, "branches", "branch-instructions", "branches retired"),
	HARDWARE(BRANCH_MISSES, "branch-misses", NULL, "mispredicted branches"),
	HARDWARE(BUS_CYCLES, "bus-cycles", NULL, "cycles of the bus clock"),
	HARDWARE(STALLED_CYCLES_FRONTEND, "stalled-cycles-frontend", "idle-cycles-frontend",
		"cycles in which the front end delivered nothing to issue"),
	HARDWARE(STALLED_CYCLES_BACKEND, "stalled-cycles-backend", "idle-cycles-backend",
		"cycles in which the back end could execute nothing"),
	HARDWARE(REF_CPU_CYCLES, "ref-cycles", NULL, "cycles at a constant reference rate"),

	CACHE(L1D, READ, ACCESS, "L1-dcache-loads", "loads from the first data cache"),
	CACHE(L1D, READ, MISS, "L1-dcache-load-misses", "loads that missed the first data cache"),
	CACHE(L1D, WRITE, ACCESS, "L1-dcache-stores", "stores to the first data cache"),
	CACHE(L1D, WRITE, MISS, "L1-dcache-store-misses",
		"stores that missed the first data cache"),
	CACHE(L1D, PREFETCH, ACCESS, "L1-dcache-prefetches",
		"prefetches into the first data cache"),
	CACHE(L1D, PREFETCH, MISS, "L1-dcache-prefetch-misses",
		"prefetches that missed the first data cache"),
	CACHE(L1I, READ, ACCESS, "L1-icache-loads", "fetches from the first instruction cache"),
	CACHE(L1I, READ, MISS, "L1-icache-load-misses",
		"fetches that missed the first instruction cache"),
	CACHE(L1I, PREFETCH, ACCESS, "L1-icache-prefetches",
		"prefetches into the first instruction cache"),
	CACHE(L1I, PREFETCH, MISS, "L1-icache-prefetch-misses",
		"prefetches that missed the first instruction cache"),
	CACHE(LL, READ, ACCESS, "LLC-loads", "loads from the last cache level"),
	CACHE(LL, READ, MISS, "LLC-load-misses", "loads that missed the last cache level"),
	CACHE(LL, WRITE, ACCESS, "LLC-stores", "stores to the last cache level"),
	CACHE(LL, WRITE, MISS, "LLC-store-misses", "stores that missed the last cache level"),
	CACHE(LL, PREFETCH, ACCESS, "LLC-prefetches", "prefetches into the last cache level"),
	CACHE(LL, PREFETCH, MISS, "LLC-prefetch-misses",
		"prefetches that missed the last cache level"),
	CACHE(DTLB, READ, ACCESS, "dTLB-loads", "loads translated by the data TLB"),
	CACHE(DTLB, READ, MISS, "dTLB-load-misses", "loads that missed the data TLB"),
	CACHE(DTLB, WRITE, ACCESS, "dTLB-stores", "stores translated by the data TLB"),
	CACHE(DTLB, WRITE, MISS, "dTLB-store-misses", "stores that missed the data TLB"),
	CACHE(DTLB, PREFETCH, ACCESS, "dTLB-prefetches", "prefetches translated by the data TLB"),
	CACHE(DTLB, PREFETCH, MISS, "dTLB-prefetch-misses", "prefetches that missed the data TLB"),
	CACHE(ITLB, READ, ACCESS, "iTLB-loads", "fetches translated by the instruction TLB"),
	CACHE(ITLB, READ, MISS, "iTLB-load-misses", "fetches that missed the instruction TLB"),
	CACHE(BPU, READ, ACCESS, "branch-loads", "lookups in the branch predictor"),
	CACHE(BPU, READ, MISS, "branch-load-misses", "lookups that missed the branch predictor"),
	CACHE(NODE, READ, ACCESS, "node-loads", "loads from the memory of this node"),
	CACHE(NODE, READ, MISS, "node-load-misses", "loads that another node's memory served"),
	CACHE(NODE, WRITE, ACCESS, "node-stores", "stores to the memory of this node"),
	CACHE(NODE, WRITE, MISS, "node-store-misses", "stores that went to another node's memory"),
	CACHE(NODE, PREFETCH, ACCESS, "node-prefetches", "prefetches from the memory of this node"),
	CACHE(NODE, PREFETCH, MISS, "node-prefetch-misses",
		"prefetches that another node's memory served"),

	SOFTWARE(CPU_CLOCK, "cpu-clock", NULL, "time on the hart, in ns"),
	SOFTWARE(TASK_CLOCK, "task-clock", NULL, "time that the task ran, in ns"),
	SOFTWARE(PAGE_FAULTS, "page-faults", "faults", "page faults, minor and major"),
	SOFTWARE(CONTEXT_SWITCHES, "context-switches", "cs", "switches of a hart to another task"),
	SOFTWARE(CPU_MIGRATIONS, "cpu-migrations", "migrations", "moves of a task to another hart"),
	SOFTWARE(PAGE_FAULTS_MIN, "minor-faults", NULL, "page faults served from memory"),
	SOFTWARE(PAGE_FAULTS_MAJ, "major-faults", NULL, "page faults that waited for a disk"),
	SOFTWARE(ALIGNMENT_FAULTS, "alignment-faults", NULL,
		"unaligned accesses fixed by the kernel"),
	SOFTWARE(EMULATION_FAULTS, "emulation-faults", NULL, "instructions emulated by the kernel"),
	SOFTWARE(DUMMY, "dummy", NULL, "counts nothing; carries side-band records"),
	SOFTWARE(BPF_OUTPUT, "bpf-output", NULL, "output of BPF programs"),
	SOFTWARE(CGROUP_SWITCHES, "cgroup-switches", NULL,
		"context switches to a task of another cgroup"),
};
const size_t n_event_names = sizeof(event_names) / sizeof(event_names[0]);

#define SPELLINGS_MAX 5
#define OP_BIT(op) (1u << PERF_COUNT_HW_CACHE_OP_##op)
#define OPS_ALL (OP_BIT(READ) | OP_BIT(WRITE) | OP_BIT(PREFETCH))

struct spelling {
	const char *word[SPELLINGS_MAX];
	unsigned ops; /* of a cache: the operations that it has */
};

static const struct spelling caches[] = {
	[PERF_COUNT_HW_CACHE_L1D] = {{"L1-dcache", "L1-d", "L1d", "L1-data"}, OPS_ALL},
	[PERF_COUNT_HW_CACHE_L1I] = {{"L1-icache", "L1-i", "L1i", "L1-instruction"},
		OP_BIT(READ) | OP_BIT(PREFETCH)},
	[PERF_COUNT_HW_CACHE_LL] = {{"LLC", "L2"}, OPS_ALL},
	[PERF_COUNT_HW_CACHE_DTLB] = {{"dTLB", "d-tlb", "Data-TLB"}, OPS_ALL},
	[PERF_COUNT_HW_CACHE_ITLB] = {{"iTLB", "i-tlb", "Instruction-TLB"}, OP_BIT(READ)},
	[PERF_COUNT_HW_CACHE_BPU] = {{"branch", "branches", "bpu", "btb", "bpc"}, OP_BIT(READ)},
	[PERF_COUNT_HW_CACHE_NODE] = {{"node"}, OPS_ALL},
};
static const struct spelling ops[] = {
	[PERF_COUNT_HW_CACHE_OP_READ] = {{"load", "loads", "read"}},
	[PERF_COUNT_HW_CACHE_OP_WRITE] = {{"store", "stores", "write"}},
	[PERF_COUNT_HW_CACHE_OP_PREFETCH] = {{"prefetch", "prefetches", "speculative-read",
		"speculative-load"}},
};
static const struct spelling results[] = {
	[PERF_COUNT_HW_CACHE_RESULT_ACCESS] = {{"refs", "Reference", "ops", "access"}},
	[PERF_COUNT_HW_CACHE_RESULT_MISS] = {{"misses", "miss"}},
};
#define N(table) (sizeof(table) / sizeof(table[0]))

/* Take the longest spelling at the start of the word that ends at a dash or at the end of the word
 * ("L1-d" does not match "L1-dcache"). Returns its row, or -1. */
static int take(struct event_word *w, const struct spelling *table, size_t n_rows)
{
	int found = -1;
	size_t longest = 0;
	for (size_t row = 0; row < n_rows; row++) {
		for (size_t i = 0; i < SPELLINGS_MAX && table[row].word[i]; i++) {
			const char *word = table[row].word[i];
			size_t n = strlen(word);
			if (n <= longest || n > w->n || strncasecmp(w->start, word, n) != 0)
				continue;
			if (n < w->n && w->start[n] != '-')
				continue;
			found = (int)row;
			longest = n;
		}
	}
	w->start += longest;
	w->n -= longest;
	return found;
}

/* cache[-operation][-result], the last two in either order; defaults: load and access. */
static bool cache_find(struct event_word w, uint64_t *ret_config)
{
	int cache = take(&w, caches, N(caches));
	if (cache < 0)
		return false;

	int op = -1, result = -1;
	while (w.n > 0) {
		w.start++; /* the dash that take() checked */
		w.n--;
		int row;
		if (op < 0 && (row = take(&w, ops, N(ops))) >= 0)
			op = row;
		else if (result < 0 && (row = take(&w, results, N(results))) >= 0)
			result = row;
		else
			return false;
	}
	if (op < 0)
		op = PERF_COUNT_HW_CACHE_OP_READ;
	if (result < 0)
		result = PERF_COUNT_HW_CACHE_RESULT_ACCESS;
	if (!(caches[cache].ops & 1u << op))
		return false;
	*ret_config = CACHE_CONFIG(cache, op, result);
	return true;
}

static void set(struct event *e, const char *pmu, uint32_t type, uint64_t config)
{
	snprintf(e->pmu, sizeof(e->pmu), "%s", pmu);
	e->type = type;
	e->config = config;
}

bool event_generic_find(struct event_word name, struct event *e)
{
	for (size_t i = 0; i < n_event_names; i++) {
		const struct event_name *row = &event_names[i];
		if (event_word_is(name, row->name) ||
			(row->alias && event_word_is(name, row->alias))) {
			set(e, row->topic, row->type, row->config);
			return true;
		}
	}

	uint64_t config;
	if (!cache_find(name, &config))
		return false;
	set(e, "cache", PERF_TYPE_HW_CACHE, config);
	return true;
}
