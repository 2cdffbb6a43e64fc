/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* ELF symbols: functions from .symtab, .dynsym and the procedure linkage table */

#include <libelf.h>

#include "daemon/namer/names.h"
#include "daemon/namer/symbols.h"

enum {
	ELF_SYMBOLS_FULL = 1, /* more than IMAGE_SYMBOLS_MAX */
	ELF_SYMBOLS_NONE,     /* no table of that type, or an empty one */
};

/* Collect the functions of the first table of `type` (SHT_SYMTAB, SHT_DYNSYM). Addresses are
 * virtual; names are borrowed from the Elf. 0, ELF_SYMBOLS_*, -ENOMEM */
int elf_symbols_collect(Elf *elf, uint32_t type, struct symbols *ret_symbols);

/* Collect the entries of the procedure linkage table as "name@plt"; the names are allocated in
 * `names`. Tables of an unexpected layout are skipped. 0, ELF_SYMBOLS_FULL, -ENOMEM */
int elf_plt_collect(Elf *elf, struct names *names, struct symbols *ret_symbols);
