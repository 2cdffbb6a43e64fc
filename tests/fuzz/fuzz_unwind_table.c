/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Any bytes as .eh_frame or .debug_frame, of each machine. Where the table has a rule, its parts are of the kinds
 * that it can have. */

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/namer/table_make.h"

#define TABLE_BYTES_MAX ((size_t)1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct unwind_table *t, uint64_t from)
{
	if (unwind_table_check_counts(t) < 0 || unwind_table_check(t) < 0 ||
		t->n_rows * sizeof(struct unwind_row) > TABLE_BYTES_MAX + 4)
		abort();
	for (uint64_t at = 0; at < 4096; at += 7) {
		const struct unwind_rule *rule = unwind_table_find(t, from + at);
		if (rule && (rule->cfa > UNWIND_NONE || rule->ra > UNWIND_NONE ||
				    rule->fp > UNWIND_NONE))
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint16_t machines[] = {EM_X86_64, EM_AARCH64, EM_RISCV};
	static const uint8_t e_ident[EI_NIDENT] = {
		ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT};
	struct unwind_table *t = NULL;

	if (size < 2)
		return 0;
	uint8_t *copy = malloc(size); /* of exactly its size, so that a read beyond it is seen */
	memcpy(copy, data, size);
	/* Half of it is one section, half the other. */
	const size_t half = data[0] & 1 ? size / 2 : size - 1;
	Elf_Data first = {.d_buf = copy + 1, .d_size = half - (half > 0), .d_version = EV_CURRENT},
		 second = {.d_buf = copy + 1 + first.d_size,
			 .d_size = size - 1 - first.d_size,
			 .d_version = EV_CURRENT};
	const struct unwind_section sections[] = {
		{.data = first.d_size ? &first : NULL, .addr = 0x1000, .is_eh = true},
		{.data = second.d_size ? &second : NULL, .addr = 0x1000000},
	};
	if (unwind_table_make(sections, 2, NULL, 0, e_ident, machines[data[0] / 2 % 3],
		    TABLE_BYTES_MAX, &t) == 0)
		check(t, 0x1000);
	free(t);
	free(copy);
	return 0;
}
