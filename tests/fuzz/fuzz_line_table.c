/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Any bytes as .debug_line, which also serve as its strings; addresses and files are asked for. */

#include <string.h>

#include "daemon/namer/line_table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct section_bytes all = {data, size};
	const struct line_sections sections = {.line = all, .line_str = all, .str = all};
	struct names names = {0};
	struct line_table *table = NULL;

	if (line_table_new(&sections, 0, size % 2 ? "/src" : NULL, &names, &table) == 0) {
		uint64_t line;
		const char *source;
		for (uint64_t addr = 0; addr < 64; addr++) {
			line_table_find(table, addr * 16, &source, &line);
			line_table_find(table, 0x401000 + addr * 4, &source, &line);
			(void)line_table_source(table, addr);
			if (source && strlen(source) == SIZE_MAX)
				return 1;
		}
		line_table_find(table, UINT64_MAX, &source, &line);
	}
	line_table_free(table);
	names_clear(&names);
	return 0;
}
