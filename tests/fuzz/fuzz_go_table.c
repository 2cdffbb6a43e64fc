/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Any bytes as Go's table of functions: all of them are collected, and addresses asked for. */

#include <string.h>

#include "daemon/namer/go_table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct go_table table;
	struct symbols symbols = {0};
	size_t n_text = 0;

	if (!go_table_read((struct section_bytes){data, size}, &table))
		return 0;
	(void)go_table_collect(&table, &symbols);
	for (size_t i = 0; i < symbols.n && i < 64; i++) {
		const char *source;
		uint32_t line;
		n_text += strlen(symbols.symbol[i].name);
		go_table_find(&table, symbols.symbol[i].start, &source, &line);
		go_table_find(&table, symbols.symbol[i].end - 1, &source, &line);
		n_text += source ? strlen(source) : 0;
	}
	symbols_clear(&symbols);
	return n_text == SIZE_MAX;
}
