/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A PMU of cores is known by its name, which begins with "cpu_", and by its list of harts; `cpu`
 * alone has none, since it has all of them.
 */
#include "daemon/pmu/hart_pmu.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEVICES "/sys/bus/event_source/devices"
#define PREFIX "cpu_"
#define LIST_BYTES_MAX 8192 /* HARTS_MAX separate ids, "1022," */

struct reading {
	const struct kernel *kernel;
	struct hart_pmu *pmu;
	size_t n;
};

static bool read_file(
	const struct kernel *k, const char *pmu, const char *file, char *text, size_t size)
{
	char path[128];
	snprintf(path, sizeof(path), DEVICES "/%s/%s", pmu, file);
	return k->read_text(k->userdata, path, text, size) > 0;
}

static bool read_type(const struct kernel *k, const char *pmu, uint32_t *ret_type)
{
	char text[32], *end;
	if (!read_file(k, pmu, "type", text, sizeof(text)))
		return false;
	errno = 0;
	unsigned long long type = strtoull(text, &end, 10);
	if (errno || end == text || (*end && *end != '\n') || type > UINT32_MAX)
		return false;
	*ret_type = (uint32_t)type;
	return true;
}

static void take(void *userdata, const char *name)
{
	struct reading *r = userdata;
	struct hart_pmu p = {.name = ""};
	char text[LIST_BYTES_MAX];
	if (r->n == HART_PMUS_MAX || strncmp(name, PREFIX, strlen(PREFIX)) != 0 ||
		strlen(name) >= sizeof(p.name))
		return;
	if (!read_type(r->kernel, name, &p.type) ||
		!read_file(r->kernel, name, "cpus", text, sizeof(text)) ||
		hart_set_parse(text, &p.harts) < 0)
		return;
	snprintf(p.name, sizeof(p.name), "%s", name);
	r->pmu[r->n++] = p;
}

size_t hart_pmus_read(const struct kernel *k, struct hart_pmu pmu[static HART_PMUS_MAX])
{
	struct reading r = {k, pmu, 0};
	(void)k->list(k->userdata, DEVICES, take, &r);
	return r.n;
}

const struct hart_pmu *hart_pmu_of(const struct hart_pmu *pmu, size_t n, int hart)
{
	for (size_t i = 0; i < n; i++)
		if (hart_set_has(&pmu[i].harts, hart))
			return &pmu[i];
	return NULL;
}
