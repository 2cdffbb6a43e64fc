/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Tables of unwinding from call frame information (daemon/unwind/table.h) */

#include <elfutils/libdw.h>
#include <libelf.h>

#include "daemon/unwind/table.h"

/* A section of call frame information. */
struct unwind_section {
	Elf_Data *data; /* NULL: absent */
	uint64_t addr;  /* where it is in the file's address space */
	bool is_eh;     /* .eh_frame; else .debug_frame */
};

/* Sections are borrowed for the call, and tried in their order. What one describes is not looked up in the
 * next. machine is an ELF e_machine: EM_X86_64, EM_AARCH64 or EM_RISCV, all of 64 bits. 0, -EOPNOTSUPP for other
 * machines and for a CIE of a form that only elfutils reads, -E2BIG for a table of more than n_bytes_max, -ENOMEM. What
 * is malformed ends its section. The caller frees the table. */
int unwind_table_make(const struct unwind_section *section, size_t n_sections,
	const struct unwind_segment *segment, size_t n_segments, const uint8_t *e_ident,
	uint16_t machine, size_t n_bytes_max, struct unwind_table **ret_table);
