/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Function starts: where functions begin and end in a file, also in a stripped one
 *
 * Programs need call frame information to run (exceptions, backtraces), so strip leaves it: one entry for each
 * function, or for each part that the compiler put elsewhere. Entries have no names.
 */

#include <libelf.h>

#include "daemon/namer/spans.h"

/* Add the code that .eh_frame and .debug_frame describe, by virtual address, and seal it: a span's start is that of its
 * function. Empty if there is neither, or if the machine is not one of unwind_table_make. What cannot be read ends its
 * section, and functions beyond IMAGE_SYMBOLS_MAX are left out. 0 or -ENOMEM */
int function_starts_read(Elf *elf, struct spans *ret_starts);
