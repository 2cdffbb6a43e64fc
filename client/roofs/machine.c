/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * What a core is, it says itself: CPUID, MIDR, mvendorid and the length of its vectors. Harts of
 * one instruction set may still differ, so each is asked while we run on it. vlenb is read in a
 * child, which an old core or kernel may end with SIGILL.
 */
#include "client/roofs/machine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "proto/base/memory.h"

#define SYS_CPU "/sys/devices/system/cpu/cpu%u/"
/* Harts whose highest clocks differ by more are of two kinds; turbo favours some by less. */
#define CLOCKS_ALIKE 1.15
#define CACHES_MAX 8

/* --- files of sysfs --------------------------------------------------------------------------- */

/* Read the first line of a file named by `format` and hart; false if it cannot be read. */
static bool read_line(const char *name, uint32_t hart, char ret_line[static 256])
{
	char path[256];
	int n = snprintf(path, sizeof(path), SYS_CPU, hart);
	snprintf(path + n, sizeof(path) - (size_t)n, "%s", name);
	_cleanup_(fclosep) FILE *f = fopen(path, "re");
	char *line = f ? fgets(ret_line, 256, f) : NULL;
	if (line)
		line[strcspn(line, "\n")] = '\0';
	return line != NULL;
}

static uint64_t read_number(const char *name, uint32_t hart)
{
	char line[256];
	return read_line(name, hart, line) ? strtoull(line, NULL, 10) : 0;
}

bool machine_list(const char *list, cpu_set_t *ret_set)
{
	CPU_ZERO(ret_set);
	while (*list) {
		char *end;
		unsigned long first = strtoul(list, &end, 10), last = first;
		if (end == list)
			return false;
		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		for (; first <= last && first < CPU_SETSIZE; first++)
			CPU_SET(first, ret_set);
		list = end + (*end == ',');
	}
	return CPU_COUNT(ret_set) > 0;
}

bool machine_cluster(uint32_t number, cpu_set_t *ret_set)
{
	char line[256];
	if (read_line("topology/cluster_cpus_list", number, line) && machine_list(line, ret_set) &&
		CPU_COUNT(ret_set) > 1)
		return true;
	for (int i = CACHES_MAX - 1; i >= 0; i--) {
		char name[64];
		snprintf(name, sizeof(name), "cache/index%d/shared_cpu_list", i);
		if (read_line(name, number, line) && machine_list(line, ret_set))
			return CPU_COUNT(ret_set) > 1;
	}
	return false;
}

struct machine_caches machine_caches(uint32_t number)
{
	struct machine_caches caches = {.n_levels = 0};
	for (int i = 0; i < CACHES_MAX; i++) {
		char name[64], line[256];
		cpu_set_t set;
		snprintf(name, sizeof(name), "cache/index%d/type", i);
		bool is_code = read_line(name, number, line) && strcmp(line, "Instruction") == 0;
		snprintf(name, sizeof(name), "cache/index%d/level", i);
		uint32_t level = (uint32_t)read_number(name, number);
		if (is_code || level == 0 || level > MACHINE_CACHES_MAX)
			continue;
		if (level > caches.n_levels)
			caches.n_levels = level;
		snprintf(name, sizeof(name), "cache/index%d/size", i);
		caches.level[level - 1].bytes = read_number(name, number) << 10;
		snprintf(name, sizeof(name), "cache/index%d/shared_cpu_list", i);
		caches.level[level - 1].n_sharing =
			read_line(name, number, line) && machine_list(line, &set)
				? (uint32_t)CPU_COUNT(&set)
				: 1;
	}
	return caches;
}

/* --- what a hart is --------------------------------------------------------------------------- */

#if defined(__x86_64__)
/* On the hart that we run on. Source: Intel SDM volume 2A, CPUID, leaves 0, 1, 1AH. */
static void identify(uint32_t hart, uint32_t vlenb, char ret_id[static ROOF_TEXT_BYTES])
{
	unsigned a = 0, b = 0, c = 0, d = 0, type = 0;
	char vendor[13] = "";
	(void)hart;
	(void)vlenb;
	__get_cpuid(0, &a, &b, &c, &d);
	memcpy(vendor, &b, 4);
	memcpy(vendor + 4, &d, 4);
	memcpy(vendor + 8, &c, 4);
	__get_cpuid(1, &a, &b, &c, &d);
	unsigned family = a >> 8 & 15, model = a >> 4 & 15;
	if (family == 6 || family == 15)
		model |= a >> 12 & 0xf0;
	if (family == 15)
		family += a >> 20 & 255;
	if (__get_cpuid_count(0x1a, 0, &type, &b, &c, &d))
		type >>= 24;
	snprintf(ret_id, ROOF_TEXT_BYTES, type ? "x86-%s-%u-%u-%02x" : "x86-%s-%u-%u", vendor,
		family, model, type);
}
#elif defined(__aarch64__)
/* Source: Documentation/arch/arm64/cpu-feature-registers.rst of Linux 6.12; MIDR_EL1 in Arm DDI
 * 0487. */
static void identify(uint32_t hart, uint32_t vlenb, char ret_id[static ROOF_TEXT_BYTES])
{
	char line[256];
	(void)vlenb;
	uint64_t midr = read_line("regs/identification/midr_el1", hart, line)
				? strtoull(line, NULL, 16)
				: 0;
	snprintf(ret_id, ROOF_TEXT_BYTES, "arm-0x%02x-0x%03x", (unsigned)(midr >> 24 & 0xff),
		(unsigned)(midr >> 4 & 0xfff));
}
#else
/* Source: Documentation/arch/riscv/hwprobe.rst of Linux 6.12: keys 0, 1 and 2. */
static void identify(uint32_t hart, uint32_t vlenb, char ret_id[static ROOF_TEXT_BYTES])
{
	struct {
		int64_t key;
		uint64_t value;
	} pair[3] = {{0, 0}, {1, 0}, {2, 0}};
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(hart, &set);
	syscall(258 /* riscv_hwprobe */, pair, 3ul, sizeof(set), &set, 0u);
	snprintf(ret_id, ROOF_TEXT_BYTES, "riscv-%#llx-%#llx-%#llx-vlen%u",
		(unsigned long long)pair[0].value, (unsigned long long)pair[1].value,
		(unsigned long long)pair[2].value, vlenb * 8);
}
#endif

#if defined(__riscv)
/* In a child on that hart: 0 if it has no vlenb. Source: RISC-V "V" 1.0, 3.1: CSR 0xC22. */
static uint32_t read_vlenb(uint32_t hart)
{
	uint32_t *shared = mmap(
		NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return 0;
	pid_t pid = fork();
	if (pid == 0) {
		cpu_set_t set;
		unsigned long value;
		CPU_ZERO(&set);
		CPU_SET(hart, &set);
		sched_setaffinity(0, sizeof(set), &set);
		__asm__ volatile("csrr %0, 0xc22" : "=r"(value));
		*shared = (uint32_t)value;
		_exit(0);
	}
	if (pid > 0)
		waitpid(pid, NULL, 0);
	uint32_t vlenb = *shared;
	munmap(shared, sizeof(*shared));
	return vlenb;
}
#else
static uint32_t read_vlenb(uint32_t hart)
{
	(void)hart;
	return 0;
}
#endif

/* The name for people: cpuinfo's model name, or uarch of RISC-V, of this hart. */
static void read_name(uint32_t hart, char name[static ROOF_TEXT_BYTES])
{
	_cleanup_(fclosep) FILE *f = fopen("/proc/cpuinfo", "re");
	char line[512];
	bool ours = false;
	while (f && fgets(line, sizeof(line), f)) {
		char *value = strstr(line, ": ");
		line[strcspn(line, "\n")] = '\0';
		if (value && strncmp(line, "processor", 9) == 0)
			ours = strtoul(value + 2, NULL, 10) == hart;
		if (ours && value &&
			(strncmp(line, "model name", 10) == 0 || strncmp(line, "uarch", 5) == 0)) {
			snprintf(name, ROOF_TEXT_BYTES, "%.100s", value + 2);
			return;
		}
	}
}

/* --- the machine ------------------------------------------------------------------------------ */

/* Does the id have this core, with or without a clock: "arm-0x41-0xd03" or
 * "arm-0x41-0xd03@1800mhz"? */
static bool is_core(const char *kind_id, const char *id)
{
	size_t n = strlen(id);
	return strncmp(kind_id, id, n) == 0 && (!kind_id[n] || kind_id[n] == '@');
}

static bool same_kind(const struct machine *m, uint32_t kind, const char *id, uint64_t khz)
{
	for (size_t i = 0; i < m->n_harts; i++) {
		double other = (double)m->hart[i].khz, ours = (double)khz;
		if (m->hart[i].kind == kind)
			return is_core(m->kind[kind].id, id) && other <= ours * CLOCKS_ALIKE &&
			       ours <= other * CLOCKS_ALIKE;
	}
	return false;
}

static uint32_t kind_of(struct machine *m, const char *id, const struct machine_hart *h)
{
	for (uint32_t k = 0; k < m->n_kinds; k++)
		if (same_kind(m, k, id, h->khz))
			return k;
	if (m->n_kinds == ROOFS_KINDS_MAX) /* more kinds than any machine has: treat the rest as one
					    * kind */
		return ROOFS_KINDS_MAX - 1;

	struct roofs_kind *kind = &m->kind[m->n_kinds];
	snprintf(kind->id, sizeof(kind->id), "%s", id);
	for (size_t k = 0; k < m->n_kinds; k++) /* the same core with another clock */
		if (strcmp(m->kind[k].id, id) == 0)
			snprintf(kind->id, sizeof(kind->id), "%.100s@%llumhz", id,
				(unsigned long long)h->khz / 1000);
	memcpy(kind->name, kind->id, sizeof(kind->name));
	read_name(h->number, kind->name);
	return (uint32_t)m->n_kinds++;
}

/* "0-3,8": the harts of each kind; what does not fit is cut at a comma. */
static void list_harts(struct machine *m, uint32_t kind)
{
	char *list = m->kind[kind].harts;
	size_t at = 0;
	for (size_t i = 0; i < m->n_harts; i++) {
		if (m->hart[i].kind != kind)
			continue;
		size_t last = i;
		while (last + 1 < m->n_harts && m->hart[last + 1].kind == kind &&
			m->hart[last + 1].number == m->hart[last].number + 1)
			last++;
		char range[32];
		int n = snprintf(range, sizeof(range), last > i ? "%s%u-%u" : "%s%u", at ? "," : "",
			m->hart[i].number, m->hart[last].number);
		if (at + (size_t)n >= ROOF_TEXT_BYTES)
			return;
		memcpy(list + at, range, (size_t)n + 1);
		at += (size_t)n;
		i = last;
	}
}

static void look_at_hart(struct machine *m, uint32_t number)
{
	struct machine_hart *h = &m->hart[m->n_harts];
	char line[256], id[ROOF_TEXT_BYTES] = "";
	cpu_set_t here, siblings;

	CPU_ZERO(&here);
	CPU_SET(number, &here);
	if (sched_setaffinity(0, sizeof(here), &here) < 0)
		return; /* it went away */
	*h = (struct machine_hart){
		.number = number,
		.vlenb = read_vlenb(number),
		.khz = read_number("cpufreq/cpuinfo_max_freq", number),
	};
	identify(number, h->vlenb, id);
	h->kind = kind_of(m, id, h);
	if (read_line("topology/thread_siblings_list", number, line) &&
		machine_list(line, &siblings))
		for (size_t i = 0; i < m->n_harts; i++)
			h->sibling |= CPU_ISSET(m->hart[i].number, &siblings);
	m->n_harts++;
}

int machine_look(struct machine *ret_machine)
{
	struct machine m = {0};
	struct utsname u;
	cpu_set_t allowed;

	if (sched_getaffinity(0, sizeof(allowed), &allowed) < 0)
		return -errno;
	m.hart = calloc((size_t)CPU_COUNT(&allowed), sizeof(*m.hart));
	if (!m.hart)
		return -ENOMEM;
	for (uint32_t i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &allowed))
			look_at_hart(&m, i);
	sched_setaffinity(0, sizeof(allowed), &allowed);
	for (uint32_t k = 0; k < m.n_kinds; k++)
		list_harts(&m, k);

	uname(&u);
	snprintf(m.kernel, sizeof(m.kernel), "%s", u.release);
	roofs_machine(m.id);
	*ret_machine = m;
	return 0;
}

void machine_clear(struct machine *m)
{
	free(m->hart);
	*m = (struct machine){0};
}

void roofs_compare(struct roofs *r, const struct machine *m)
{
	*r->why = '\0';
	if (strcmp(r->machine, m->id) != 0)
		snprintf(r->why, sizeof(r->why), "they were measured on another machine");
	else if (strcmp(r->kernel, m->kernel) != 0)
		snprintf(r->why, sizeof(r->why),
			"they were measured on Linux %.80s; this is Linux %.80s", r->kernel,
			m->kernel);
	for (size_t i = 0; i < m->n_kinds && !*r->why; i++) {
		size_t k = 0;
		while (k < r->n_kinds && strcmp(r->kinds[k].id, m->kind[i].id) != 0)
			k++;
		if (k == r->n_kinds)
			snprintf(r->why, sizeof(r->why),
				"the machine had no hart of kind %.100s then", m->kind[i].id);
	}
	r->stale = *r->why != '\0';
}
