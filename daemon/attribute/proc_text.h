/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Single texts of a process, by its open folder in /proc. Each may block: see proc_reader.h. */

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/attribute/scan.h"

/* Read a stat by its name in the folder. False if it cannot be read. */
bool proc_text_stat(int folder_fd, const char *name, struct scan_stat *ret_stat);
/* 0; PROC_GONE; PROC_EMPTY: they are not in place yet, or the process is a zombie; -ENOMEM. */
int proc_text_argv(int folder_fd, char **ret_argv, uint32_t *ret_n_argv);
/* Copy arguments (n bytes, NUL between them), cut at TASK_ARGV_BYTES_MAX. 0 or -ENOMEM. */
int proc_text_argv_copy(const char *text, size_t n, char **ret_argv, uint32_t *ret_n_argv);
/* The last number of the line NSpid of a status by its name in the folder: the pid in the innermost
 * namespace. Source: man 5 proc, /proc/pid/status. */
bool proc_text_inner(int folder_fd, const char *name, pid_t *ret_inner);
/* Path of its program. False if it cannot be read. */
bool proc_text_exe(int folder_fd, char path[static PATH_MAX]);
/* Inode of the memfd that is its program, by its path; 0: it is in a file. */
uint64_t proc_text_memfd(int folder_fd, const char *exe);

/* Memory of a process, and the offset in its program's file that should have the same bytes. */
struct proc_text_range {
	uint64_t start, bytes, file_offset;
};
/* Pages of 4 KiB that are compared, spread over the range: other code would differ in all of
 * them. */
#define PROC_TEXT_PAGES_MAX 16u
/* Does the process have the same bytes there as the file of its program, and not only zeros? False if either cannot
 * be read. */
bool proc_text_compare(int folder_fd, const struct proc_text_range *r, bool *ret_same);
