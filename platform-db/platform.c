/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Lookups in a platform. Platforms have hundreds of events and are queried only for planning and
 * printing, so a linear search is enough.
 */
#include "platform-db/platform.h"

#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

const char *const platform_arch_names[] = {"riscv", "arm64", "x86", NULL};

const char *platform_identity_says(const struct platform_identity *id, char *buffer, size_t size)
{
	if (id->arch == PLATFORM_ARCH_RISCV && id->read)
		snprintf(buffer, size, "riscv 0x%llx/0x%llx/0x%llx",
			(unsigned long long)id->mvendorid, (unsigned long long)id->marchid,
			(unsigned long long)id->mimpid);
	else if (id->arch == PLATFORM_ARCH_ARM64 && id->read)
		snprintf(buffer, size, "arm64 0x%llx", (unsigned long long)id->midr);
	else if (id->arch == PLATFORM_ARCH_X86 && id->read)
		snprintf(buffer, size, "x86 %s-%u-%X-%X%s%s", id->vendor, id->family, id->model,
			id->stepping, *id->pmu ? " " : "", id->pmu);
	else
		snprintf(buffer, size, "unknown");
	return buffer;
}

/* The row of "cpus" that would match. */
static void row_says(const struct platform_identity *id, char *buffer, size_t size)
{
	if (id->arch == PLATFORM_ARCH_RISCV)
		snprintf(buffer, size,
			"\"arch\": \"riscv\", \"mvendorid\": \"0x%llx\", \"marchid\": \"0x%llx\"",
			(unsigned long long)id->mvendorid, (unsigned long long)id->marchid);
	else if (id->arch == PLATFORM_ARCH_ARM64)
		snprintf(buffer, size, "\"arch\": \"arm64\", \"midr\": \"0x%llx\"",
			(unsigned long long)id->midr);
	else
		snprintf(buffer, size,
			"\"arch\": \"x86\", \"vendor\": \"%s\", \"family\": %u, \"model\": "
			"%u%s%s%s",
			id->vendor, id->family, id->model, *id->pmu ? ", \"pmu\": \"" : "", id->pmu,
			*id->pmu ? "\"" : "");
}

/* The device tree may identify a core that no register identifies. */
static void unread_says(const struct platform_identity *id, char *buffer, size_t size)
{
	int first = (int)strcspn(id->compatible, " ");
	if (first > 0 && id->arch != PLATFORM_ARCH_UNKNOWN)
		snprintf(buffer, size,
			"this kernel does not identify the core; describe it by its board: add a "
			"file to " PLATFORM_FOLDER_OVERRIDES
			" whose cpus have {\"arch\": \"%s\", \"compatible\": \"%.*s\"}, see "
			"mperf-platforms(5)",
			platform_arch_names[id->arch - 1], first, id->compatible);
	else
		snprintf(buffer, size,
			"this kernel does not identify the core; only generic events are "
			"available");
}

const char *platform_unknown_says(const struct platform_identity *id, char *buffer, size_t size)
{
	char row[160], who[96];
	if (!id->read) {
		unread_says(id, buffer, size);
		return buffer;
	}
	row_says(id, row, sizeof(row));
	snprintf(buffer, size,
		"no platform describes %s; add a file to " PLATFORM_FOLDER_OVERRIDES
		" whose cpus have {%s}, see mperf-platforms(5)",
		platform_identity_says(id, who, sizeof(who)), row);
	return buffer;
}

const struct platform_event *platform_event_find(const struct platform *p, const char *name)
{
	for (size_t i = 0; i < p->n_events; i++) {
		const struct platform_event *e = &p->event[i];
		if (strcasecmp(e->name, name) == 0)
			return e;
		for (size_t j = 0; j < e->n_aliases; j++)
			if (strcasecmp(e->aliases[j], name) == 0)
				return e;
	}
	return NULL;
}

const struct platform_metric *platform_metric_find(const struct platform *p, const char *name)
{
	for (size_t i = 0; i < p->n_metrics; i++)
		if (strcasecmp(p->metric[i].name, name) == 0)
			return &p->metric[i];
	return NULL;
}

const char *platform_lacks(const struct platform *p, const char *name)
{
	for (size_t i = 0; i < p->n_lacks; i++)
		if (strcasecmp(p->lack[i].metric, name) == 0)
			return p->lack[i].says;
	return NULL;
}

bool platform_metric_is_in(const struct platform_metric *m, const char *group)
{
	for (size_t i = 0; i < m->n_groups; i++)
		if (strcasecmp(m->group[i], group) == 0)
			return true;
	for (size_t i = 0; i < m->n_kept_groups; i++)
		if (strcasecmp(m->kept_group[i], group) == 0)
			return true;
	return false;
}

const struct platform_event *platform_event_generic(
	const struct platform *p, uint32_t type, uint64_t config)
{
	for (size_t i = 0; i < p->n_generics; i++)
		if (p->generics[i].type == type && p->generics[i].config == config)
			return p->generics[i].event;
	return NULL;
}

const struct platform_event *platform_all_modes(const struct platform *p)
{
	return platform_event_generic(p, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES);
}

static const struct platform_range *range_of(
	const struct platform_range *range, size_t n, uint64_t code)
{
	for (size_t i = 0; i < n; i++)
		if (code >= range[i].first && code <= range[i].last)
			return &range[i];
	return NULL;
}

uint64_t platform_counters(const struct platform *p, uint64_t code)
{
	/* Firmware's own counters. Source: pmu_sbi_event_map() in drivers/perf/riscv_pmu_sbi.c of
	 * Linux 6.12: bits 63 and 62. */
	if (p->arch == PLATFORM_ARCH_RISCV && code >> 62)
		return 0;
	const struct platform_range *rule = range_of(p->counter_rule, p->n_counter_rules, code);
	if (!rule)
		return p->counters;
	if (rule->counters)
		return rule->counters;
	uint64_t counter = code + (uint64_t)rule->offset;
	return counter < 64 ? UINT64_C(1) << counter : 0;
}

const struct platform_range *platform_unfiltered(const struct platform *p, uint64_t code)
{
	return range_of(p->unfiltered, p->n_unfiltered, code);
}

const struct platform_event *platform_leader(const struct platform *p, unsigned modes)
{
	if (modes & PLATFORM_MODE_USER && p->leader_user)
		return p->leader_user;
	if (modes & PLATFORM_MODE_KERNEL && p->leader_kernel)
		return p->leader_kernel;
	return modes & PLATFORM_MODE_MACHINE ? p->leader_machine : NULL;
}
