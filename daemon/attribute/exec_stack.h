/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The initial stack of a program: its arguments and owner
 *
 *      sp                                                  0 to 8 KiB, at random
 *      | argc | argv… | 0 | envp… | 0 | auxv pairs… |  ~~~~~~~  | arguments | environment |
 *
 * The kernel writes it at exec, before the first instruction runs, so a copy taken then can be read
 * after the process has ended. Source: System V ABI, AMD64 supplement, "Initial Stack and Register
 * State"; create_elf_tables in fs/binfmt_elf.c of Linux 6.12.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXEC_STACK_VECTORS_MAX 65536 /* words read; the copies that we request hold 2,048 */

enum {
	EXEC_STACK_CUT = 1,   /* the copy is too short */
	EXEC_STACK_MALFORMED, /* not this layout */
};

struct exec_stack {
	/* inside the bytes: the arguments, separated by NUL, without a final one */
	const char *argv;
	size_t n_argv;
	bool whole; /* false: the arguments exceed n_max */
	bool has_uid;
	uint32_t uid; /* real, in the process's own user namespace */
	/* setuid, setgid or with file capabilities: the kernel does not let the caller inspect
	 * it */
	bool secure;
};

/* Parse the n bytes at sp, in words of 4 or 8 bytes; returns at most n_max bytes of arguments. The
 * bytes are borrowed. 0, EXEC_STACK_*. */
int exec_stack_parse(const uint8_t *bytes, size_t n, uint64_t sp, size_t word_bytes, size_t n_max,
	struct exec_stack *ret);
