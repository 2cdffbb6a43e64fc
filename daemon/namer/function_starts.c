/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "daemon/namer/function_starts.h"

#include <errno.h>
#include <gelf.h>

#include "daemon/namer/cfi.h"
#include "daemon/namer/image.h"
#include "daemon/namer/table_file.h"

static int on_range(void *userdata, const struct cfi_range *range)
{
	struct spans *starts = userdata;

	if (starts->n >= IMAGE_SYMBOLS_MAX)
		return -E2BIG;
	int r = spans_add(
		starts, (struct span){.start = range->start, .end = range->start + range->n});
	return r == SPANS_FULL ? -E2BIG : r;
}

int function_starts_read(Elf *elf, struct spans *ret_starts)
{
	struct unwind_section section[2] = {};
	struct spans starts = {0};
	struct cfi cfi;
	GElf_Ehdr header;

	if (!gelf_getehdr(elf, &header) || table_sections(elf, section) < 0 ||
		cfi_begin(&cfi, section, 2, header.e_ident, header.e_machine) < 0)
		return 0;
	int r = cfi_ranges(&cfi, on_range, &starts);
	if (r != -ENOMEM) /* others end it early */
		r = spans_seal(&starts);
	if (r < 0)
		spans_clear(&starts);
	else
		*ret_starts = starts;
	return r;
}
