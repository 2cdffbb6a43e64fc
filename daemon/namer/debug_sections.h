/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Debug sections: compressed debug information, unpacked without waste
 *
 * libdw unpacks every section that it knows when it opens a file, of which lines and inlined calls
 * need half, and the compressed bytes stay in memory beside them.
 */

#include <libelf.h>
#include <stddef.h>

/* Unpack the compressed debug sections that names are made from, give back the pages of their
 * compressed form, and hide from libdw those that only debuggers read (where variables live,
 * macros, indices). `bytes`, n: the private mapping that the Elf was made of. What cannot be
 * unpacked is left as it is. */
void debug_sections_unpack(Elf *elf, void *bytes, size_t n);
