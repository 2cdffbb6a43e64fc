/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Disassembling: bytes become text, by LLVM's disassembler */

#include "daemon/code/table.h"

#define DISASSEMBLE_TEXT_BYTES 256

struct disassembler;

/* 0; positive: LLVM was built without that ISA. */
int disassembler_open(struct disassembler **ret_disassembler, enum isa isa);
/* The text of one instruction of at most n bytes. Returns its length; 0: it is none. */
size_t disassemble(
	struct disassembler *d, const uint8_t *bytes, size_t n, char text[DISASSEMBLE_TEXT_BYTES]);
struct disassembler *disassembler_close(struct disassembler *d);
