/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Cores, dies and packages are counted by their first hart: the one that the list of its siblings begins
 * with. Source: tools/perf/util/{expr.c,smt.c} of Linux 6.1 for names and meanings;
 * Documentation/ABI/stable/sysfs-devices-system-cpu for the files.
 */
#include "daemon/metric/constants.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define CPUS "/sys/devices/system/cpu"
#define TEXT_BYTES 256 /* the beginning of a list is enough */

static bool read_number(const struct kernel *k, const char *path, long *ret_number)
{
	char text[TEXT_BYTES], *end;
	if (k->read_text(k->userdata, path, text, sizeof(text)) < 0)
		return false;
	*ret_number = strtol(text, &end, 10);
	return end != text;
}

/* The number of online harts that are the first of their list. */
static int count_first(
	const struct kernel *k, const struct hart_set *online, const char *list, double *ret_value)
{
	int n = 0;
	for (int hart = 0; hart < HARTS_MAX; hart++) {
		char path[96];
		long first;
		if (!hart_set_has(online, hart))
			continue;
		snprintf(path, sizeof(path), CPUS "/cpu%d/topology/%s", hart, list);
		if (!read_number(k, path, &first))
			return CONSTANT_UNKNOWN;
		n += first == hart;
	}
	*ret_value = n;
	return n > 0 ? 0 : CONSTANT_UNKNOWN;
}

static int smt_on(const struct kernel *k, double *ret_value)
{
	long active;
	if (!read_number(k, CPUS "/smt/active", &active))
		return CONSTANT_UNKNOWN;
	*ret_value = active != 0;
	return 0;
}

int machine_constant(
	const struct kernel *k, const struct hart_set *online, const char *name, double *ret_value)
{
	static const struct {
		const char *name, *list;
	} counted[] = {
		{"num_cores", "core_cpus_list"},
		{"num_dies", "die_cpus_list"},
		{"num_packages", "package_cpus_list"},
	};
	for (size_t i = 0; i < sizeof(counted) / sizeof(counted[0]); i++)
		if (strcasecmp(name, counted[i].name) == 0)
			return count_first(k, online, counted[i].list, ret_value);
	if (strcasecmp(name, "smt_on") == 0)
		return smt_on(k, ret_value);
	if (strcasecmp(name, "num_cpus") == 0 || strcasecmp(name, "num_cpus_online") == 0)
		*ret_value = hart_set_count(online);
	else if (strcasecmp(name, "core_wide") == 0)
		*ret_value = 0; /* a thread may be counted without its sibling */
	else
		return CONSTANT_UNKNOWN;
	return 0;
}
