/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Decode: bytes become text, by LLVM's disassembler */

#include "daemon/code/table.h"

#define DECODE_TEXT_BYTES 256

struct decode;

/* 0; positive: LLVM was built without that ISA. */
int decode_open(struct decode **ret_decode, enum isa isa);
/* Decode one instruction of at most n bytes. Returns its length; 0: it is none. */
size_t decode_one(struct decode *d, const uint8_t *bytes, size_t n, char text[DECODE_TEXT_BYTES]);
struct decode *decode_close(struct decode *d);
