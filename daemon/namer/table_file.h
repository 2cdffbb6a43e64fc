/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The table of unwinding of an ELF file */

#include <libelf.h>

#include "daemon/namer/table_make.h"

/* build_id: of n_build_id bytes, 0: any. 0; -ENOENT: the file has another build id; -EBADMSG: it is no program or
 * library for that machine, or has no call frame information; -EOPNOTSUPP, -E2BIG: it has some that only elfutils
 * reads, or too much; -ENOMEM. The caller keeps the descriptor, and frees the table. */
int table_of_file(int fd, uint16_t machine, const uint8_t *build_id, size_t n_build_id,
	size_t n_bytes_max, struct unwind_table **ret_table);

/* The sections of call frame information: .eh_frame, then .debug_frame. Data are borrowed from the Elf. 0;
 * -EBADMSG: neither; -EOPNOTSUPP: one of them is compressed. */
int table_sections(Elf *elf, struct unwind_section ret_section[2]);
