/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* jitdump: lines of JIT code
 */

#include <stdint.h>

#include "daemon/namer/image.h"

struct jit_lines;

/* Set file and line of an address in the code that span tag `code` stands for, if known. */
void jit_lines_find(
	const struct jit_lines *j, uint32_t code, uint64_t addr, struct image_place *place);

struct jit_lines *jit_lines_free(struct jit_lines *j);
