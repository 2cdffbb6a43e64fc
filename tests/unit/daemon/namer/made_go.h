/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Go's tables of functions made by hand: three functions of 256 bytes, main.f0 to f2, of two files;
 * function i is of line 10 + i in its first half and of line 20 + i in its second. */

#include <stddef.h>
#include <stdint.h>

#define MADE_GO_FUNCTION_BYTES 0x100u
#define MADE_GO_FUNCTIONS 3u

struct made_go {
	uint8_t bytes[4096];
	size_t n;
};

/* magic: 0xfffffffb (Go 1.2), 0xfffffffa (1.16), 0xfffffff0 (1.18), 0xfffffff1 (1.20). text: where
 * the first function is; stated: what a header of 1.18 and later says about that. first: the name of
 * function 0. */
void made_go_fill(struct made_go *m, uint32_t magic, uint8_t pointer_bytes, uint64_t text,
	uint64_t stated, const char *first);
