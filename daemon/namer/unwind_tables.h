/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The tables of files that are unwound, by the daemon's file id; the least recently used goes first
 *
 * Processes share them: a file's table is made once, when a stack first passes through the file.
 */

#include "daemon/namer/unwind_table.h"

#define UNWIND_TABLES_BYTES_MAX ((size_t)32 << 20)

struct unwind_tables;

/* A part of this machine's memory, UNWIND_TABLES_BYTES_MAX at most. */
size_t unwind_tables_share(void);
/* NULL: out of memory. */
struct unwind_tables *unwind_tables_new(size_t n_bytes_max);

/* The rule at an offset of a file, borrowed until the next call; *ret_rule NULL: the file has no call frame
 * information there. The descriptor is read when there is no table of that file yet. 0; -errno: it has no table,
 * since it cannot be read, is for another machine, or has information in a form that only elfutils reads. */
int unwind_tables_find(struct unwind_tables *t, uint32_t file, int fd, uint16_t machine,
	uint64_t offset, const struct unwind_rule **ret_rule);

/* The memory of all tables. */
size_t unwind_tables_bytes(const struct unwind_tables *t);

/* Forget the table of a file, which changed; 0: of all files. */
void unwind_tables_forget(struct unwind_tables *t, uint32_t file);

struct unwind_tables *unwind_tables_free(struct unwind_tables *t);
