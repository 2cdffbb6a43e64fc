/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The stack of a program that begins: its arguments and whose it is
 *
 *      sp                                                  0 to 8 KiB, at random
 *      | argc | argv… | 0 | envp… | 0 | auxv pairs… |  ~~~~~~~  | arguments | environment |
 *
 * The kernel writes it at exec, before the first instruction runs, so that a copy taken then needs no
 * living process. Source: System V ABI, AMD64 supplement, "Initial Stack and Register State";
 * create_elf_tables in fs/binfmt_elf.c of Linux 6.12.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXEC_STACK_VECTORS_MAX 65536 /* words looked at; the copies that we ask for hold 2,048 */

enum {
	EXEC_STACK_CUT = 1,   /* the copy ends before what is needed does */
	EXEC_STACK_MALFORMED, /* no such layout */
};

struct exec_stack {
	const char *argv;     /* inside the bytes: the arguments, NUL between them; not ended by one */
	size_t n_argv;
	bool whole;           /* else more arguments follow than n_max */
	bool has_uid;
	uint32_t uid;         /* real, in the process's own user namespace */
	bool secure;          /* setuid, setgid or with capabilities of its file: the kernel lets its caller
	                         not look inside */
};

/* n bytes that were at sp, in words of 4 or 8 bytes; at most n_max bytes of arguments are wanted. The
 * bytes are borrowed. 0, EXEC_STACK_*. */
int exec_stack_parse(const uint8_t *bytes, size_t n, uint64_t sp, size_t word_bytes, size_t n_max,
	struct exec_stack *ret);
