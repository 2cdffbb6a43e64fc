/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Each architecture has one source for a single hart, and /proc/cpuinfo for all online harts. A
 * query for all harts at once does not work: riscv_hwprobe returns -1 if they differ. cpuinfo is
 * read first, and a hart's own source overrides it.
 */
#include "daemon/pmu/identity.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/pmu/hart_pmu.h"
#include "proto/base/memory.h"

#define CPUINFO_BYTES_FIRST (64u << 10)
#define CPUINFO_BYTES_MAX (4u << 20) /* x86 writes some 1.5 KB for each of HARTS_MAX */

/* Source: arch/riscv/include/uapi/asm/hwprobe.h of Linux 6.12. */
enum { KEY_MVENDORID, KEY_MARCHID, KEY_MIMPID, N_KEYS };
#define HWPROBE_DIFFERS UINT64_MAX /* the harts of the set differ, or not known */

static enum platform_arch arch_of(const char *name)
{
	if (strncmp(name, "riscv", 5) == 0)
		return PLATFORM_ARCH_RISCV;
	if (strcmp(name, "aarch64") == 0 || strcmp(name, "arm64") == 0)
		return PLATFORM_ARCH_ARM64;
	if (strcmp(name, "x86_64") == 0 || (name[0] == 'i' && strcmp(name + 2, "86") == 0))
		return PLATFORM_ARCH_X86;
	return PLATFORM_ARCH_UNKNOWN;
}

/* --- /proc/cpuinfo ---------------------------------------------------------------------------- */

/* The block of one hart, filled line by line; `found` has a bit for each key found. */
struct block {
	int hart;
	unsigned found;
	uint64_t value[8];
	char vendor[16];
};

/* Keys that cpuinfo writes, for every architecture; the position is the one in `value`.
 * Source: arch/{riscv,arm64,x86}/kernel/{cpu.c,cpuinfo.c,cpu/proc.c} of Linux 6.12. */
enum { MVENDORID, MARCHID, MIMPID, N_RISCV };
enum { IMPLEMENTER, VARIANT, PART, REVISION, N_ARM };
enum { FAMILY, MODEL, STEPPING, VENDOR, N_X86 };
static const char *const riscv_keys[] = {"mvendorid", "marchid", "mimpid"};
static const char *const arm_keys[] = {
	"CPU implementer", "CPU variant", "CPU part", "CPU revision"};
static const char *const x86_keys[] = {"cpu family", "model", "stepping", "vendor_id"};

static const struct {
	const char *const *keys;
	int n_keys;
} keys_of[] = {
	[PLATFORM_ARCH_UNKNOWN] = {NULL, 0},
	[PLATFORM_ARCH_RISCV] = {riscv_keys, N_RISCV},
	[PLATFORM_ARCH_ARM64] = {arm_keys, N_ARM},
	[PLATFORM_ARCH_X86] = {x86_keys, N_X86},
};

/* The block had all parts of the identity. */
static void block_finish(
	const struct machine *m, const struct block *b, struct platform_identity *identities)
{
	if (b->hart < 0 || b->hart >= m->n_harts)
		return;
	struct platform_identity *id = &identities[b->hart];
	int n_keys = keys_of[id->arch].n_keys;
	if (n_keys == 0 || b->found != (1u << n_keys) - 1)
		return;
	if (id->arch == PLATFORM_ARCH_RISCV) {
		id->mvendorid = b->value[MVENDORID];
		id->marchid = b->value[MARCHID];
		id->mimpid = b->value[MIMPID];
	} else if (id->arch == PLATFORM_ARCH_ARM64) {
		/* Source: Arm ARM, MIDR_EL1; Architecture is 0xf on all that have AArch64. */
		id->midr = (b->value[IMPLEMENTER] & 0xff) << 24 | (b->value[VARIANT] & 0xf) << 20 |
			   UINT64_C(0xf) << 16 | (b->value[PART] & 0xfff) << 4 |
			   (b->value[REVISION] & 0xf);
	} else {
		id->family = (uint32_t)b->value[FAMILY];
		id->model = (uint32_t)b->value[MODEL];
		id->stepping = (uint32_t)b->value[STEPPING];
		memcpy(id->vendor, b->vendor, sizeof(id->vendor));
	}
	id->read = true;
}

static bool number_parse(const char *text, uint64_t *ret_number)
{
	char *end;
	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	unsigned long long number = strtoull(text, &end, 0);
	if (errno || *end)
		return false;
	*ret_number = number;
	return true;
}

static void block_line(enum platform_arch arch, const char *key, const char *value, struct block *b)
{
	for (int i = 0; i < keys_of[arch].n_keys; i++) {
		if (strcmp(key, keys_of[arch].keys[i]) != 0)
			continue;
		bool taken = number_parse(value, &b->value[i]);
		if (arch == PLATFORM_ARCH_X86 && i == VENDOR) {
			taken = strlen(value) < sizeof(b->vendor);
			if (taken)
				snprintf(b->vendor, sizeof(b->vendor), "%s", value);
		}
		b->found |= (unsigned)taken << i;
	}
}

/* Split "key<tabs>: value" in place. False for other lines. */
static bool line_cut(char *line, char **ret_value)
{
	char *colon = strchr(line, ':');
	if (!colon)
		return false;
	char *end = colon;
	while (end > line && (end[-1] == '\t' || end[-1] == ' '))
		end--;
	*end = '\0';
	*ret_value = colon + 1 + strspn(colon + 1, " \t");
	return true;
}

static void cpuinfo_parse(const struct machine *m, char *text, struct platform_identity *identities)
{
	const enum platform_arch arch = arch_of(m->arch);
	struct block b = {.hart = -1};
	for (char *line; (line = strsep(&text, "\n"));) {
		char *value;
		uint64_t hart;
		if (!line_cut(line, &value))
			continue;
		if (strcmp(line, "processor") != 0) {
			block_line(arch, line, value, &b);
			continue;
		}
		block_finish(m, &b, identities);
		b = (struct block){.hart = -1};
		if (number_parse(value, &hart) && hart < HARTS_MAX)
			b.hart = (int)hart;
	}
	block_finish(m, &b, identities);
}

static int cpuinfo_read(
	const struct kernel *k, const struct machine *m, struct platform_identity *identities)
{
	for (size_t size = CPUINFO_BYTES_FIRST; size <= CPUINFO_BYTES_MAX; size *= 4) {
		_cleanup_(freep) char *text = malloc(size);
		if (!text)
			return -ENOMEM;
		ssize_t n = k->read_text(k->userdata, "/proc/cpuinfo", text, size);
		if (n == -E2BIG)
			continue;
		if (n > 0)
			cpuinfo_parse(m, text, identities);
		return 0;
	}
	return 0;
}

/* --- one hart's own source -------------------------------------------------------------------- */

static void hwprobe_read(const struct kernel *k, int hart, struct platform_identity *id)
{
	struct kernel_hwprobe pairs[N_KEYS] = {
		{.key = KEY_MVENDORID}, {.key = KEY_MARCHID}, {.key = KEY_MIMPID}};
	if (!k->hwprobe || k->hwprobe(k->userdata, hart, pairs, N_KEYS) < 0)
		return;
	for (int i = 0; i < N_KEYS; i++)
		if (pairs[i].key != i || pairs[i].value == HWPROBE_DIFFERS)
			return;
	id->mvendorid = pairs[KEY_MVENDORID].value;
	id->marchid = pairs[KEY_MARCHID].value;
	id->mimpid = pairs[KEY_MIMPID].value;
	id->read = true;
}

/* Source: Documentation/arch/arm64/cpu-feature-registers.rst of Linux 6.12, section 4. */
static void midr_read(const struct kernel *k, int hart, struct platform_identity *id)
{
	char path[96], text[32];
	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/regs/identification/midr_el1",
		hart);
	if (k->read_text(k->userdata, path, text, sizeof(text)) <= 0)
		return;
	text[strcspn(text, "\n")] = '\0';
	uint64_t midr;
	if (number_parse(text, &midr)) {
		id->midr = midr;
		id->read = true;
	}
}

/* The name of the PMU gives the kind of a hart, if each kind has a PMU: leaf 0x1a of cpuid would give
 * it only to code that runs on the hart. */
static void pmus_read(
	const struct kernel *k, const struct machine *m, struct platform_identity *identities)
{
	struct hart_pmu pmu[HART_PMUS_MAX];
	size_t n = hart_pmus_read(k, pmu);
	for (int hart = 0; n > 0 && hart < m->n_harts; hart++) {
		const struct hart_pmu *own = hart_pmu_of(pmu, n, hart);
		if (own)
			memcpy(identities[hart].pmu, own->name, sizeof(own->name));
	}
}

/* The names of board and chip, separated by blanks instead of NUL. */
static void compatible_read(const struct kernel *k, char compatible[PLATFORM_COMPATIBLE_BYTES])
{
	static const char *const paths[] = {
		"/proc/device-tree/compatible", "/sys/firmware/devicetree/base/compatible"};
	ssize_t n = 0;
	char text[PLATFORM_COMPATIBLE_BYTES];
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]) && n <= 0; i++)
		n = k->read_text(k->userdata, paths[i], text, sizeof(text));
	compatible[0] = '\0';
	if (n <= 0)
		return;
	while (n > 0 && (text[n - 1] == '\0' || text[n - 1] == '\n'))
		n--;
	for (ssize_t i = 0; i < n; i++)
		compatible[i] = text[i] ? text[i] : ' ';
	compatible[n] = '\0';
}

int identity_read(
	const struct kernel *k, const struct machine *m, struct platform_identity *ret_identities)
{
	struct platform_identity blank = {.arch = arch_of(m->arch)};
	compatible_read(k, blank.compatible);
	for (int hart = 0; hart < m->n_harts; hart++)
		ret_identities[hart] = blank;
	int r = cpuinfo_read(k, m, ret_identities);
	if (r < 0)
		return r;

	if (blank.arch == PLATFORM_ARCH_X86)
		pmus_read(k, m, ret_identities);
	for (int hart = 0; hart < m->n_harts; hart++) {
		if (!hart_set_has(&m->online, hart))
			continue;
		if (blank.arch == PLATFORM_ARCH_RISCV)
			hwprobe_read(k, hart, &ret_identities[hart]);
		else if (blank.arch == PLATFORM_ARCH_ARM64)
			midr_read(k, hart, &ret_identities[hart]);
	}
	return 0;
}
