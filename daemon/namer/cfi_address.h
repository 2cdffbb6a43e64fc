/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Addresses in call frame information, encoded as DW_EH_PE says. Source: LSB Core, 10.5.1 */

#include "daemon/namer/byte_reader.h"
#include "daemon/namer/table_make.h"

/* Bytes of an encoded number; 0: of another kind. */
size_t cfi_encoded_bytes(uint8_t encoding);
/* The number as it is written, relative to nothing; 0, and the reader is bad, beyond the end. */
uint64_t cfi_read_encoded(struct byte_reader *r, uint8_t encoding);
/* An address at this place of a section. */
uint64_t cfi_read_address(struct byte_reader *r, const struct unwind_section *s, uint8_t encoding);
/* False: it needs more than the section to be read. */
bool cfi_can_read(uint8_t encoding);
