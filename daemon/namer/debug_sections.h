/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Debug sections: compressed debug information, unpacked without wasting memory
 *
 * When libdw opens a file, it unpacks every section that it knows, of which lines and inlined calls
 * need half, and the compressed bytes stay in memory too.
 */

#include <libelf.h>
#include <stddef.h>

/* Unpack the compressed debug sections needed for names, release the pages of their compressed
 * form, and hide the sections that only debuggers read (locations of variables, macros, indices)
 * from libdw. `bytes`, n: the private mapping behind the Elf. What cannot be unpacked stays as it
 * is. */
void debug_sections_unpack(Elf *elf, void *bytes, size_t n);
