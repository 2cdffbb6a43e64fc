/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Texts of /proc and /sys: the first byte says which, the rest is the text. */

#include <stdlib.h>
#include <string.h>

#include "daemon/attribute/kernel_map.h"
#include "daemon/attribute/mapping.h"
#include "daemon/attribute/rights.h"
#include "daemon/attribute/scan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void parse(uint8_t which, char *text, size_t n)
{
	char path[SCAN_STAT_BYTES_MAX];
	uint8_t build_id[20];
	enum scan_hierarchy hierarchy;
	struct scan_stat stat;
	struct scan_map map;
	struct kernel_map kernel = {0};
	struct rights rights;

	switch (which) {
	case 's':
		if (!scan_stat_parse(text, &stat) && (stat.pid <= 0 || strlen(stat.comm) > 15))
			abort();
		break;
	case 'm':
		if (!scan_map_parse(text, &map)) {
			if (map.start >= map.end || map.path < text || map.path > text + n)
				abort();
			mapping_kind(map.path, 0);
		}
		break;
	case 'u':
		if (!rights_parse(text, 1000, false, &rights) && rights.uid != 0 &&
			rights.uid != 1000)
			abort();
		break;
	case 'c':
		if (!scan_cgroup_parse(text, &hierarchy, path) && *path != '/')
			abort();
		break;
	case 'k':
		kernel_map_modules(&kernel, text);
		for (size_t i = 0; i < kernel.n_modules; i++)
			if (kernel.module[i].start >= kernel.module[i].end ||
				(i && kernel.module[i].start < kernel.module[i - 1].start))
				abort();
		kernel_map_clear(&kernel);
		break;
	case 'n':
		if (note_build_id((const uint8_t *)text, n, build_id) > 20)
			abort();
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* longer texts are cut before they get here */
	if (size == 0 || size > SCAN_STAT_BYTES_MAX)
		return 0;

	char *text = malloc(size);
	if (!text)
		return 0;
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	parse(data[0], text, size - 1);
	free(text);
	return 0;
}
