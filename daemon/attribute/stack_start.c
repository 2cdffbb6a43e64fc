/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* The beginnings of stacks
 *
 * The kernel walks user stacks by frame pointers, but C libraries are mostly built without them. So
 * beyond the program's own frames it uses whatever the C library keeps in that register. On x86-64
 * that is mostly not an address and the walk ends; on RISC-V, with glibc 2.41, it is argv, so argc
 * appears as the caller of the function that calls main. The same happens in the middle of a stack
 * when a function of such a library calls back (qsort), and there all callers are missing. The two
 * cases differ only in the function that was reached.
 *
 * Symbols do not always help: these functions are local, and distributions strip them. But mperfd is
 * itself a program with a C library, and can find the callers of its own main and of its own thread
 * routine. Programs with another C library, or without one, begin with functions whose names are
 * known.
 */

#include "daemon/attribute/stack_start.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "daemon/attribute/scan.h"
#include "daemon/naming/file.h"
#include "proto/base/memory.h"

bool stack_start_find(const char *maps, uint64_t return_addr, struct stack_start *ret_start)
{
	_cleanup_(fclosep) FILE *f = fopen(maps, "re");
	char line[SCAN_LINE_BYTES_MAX];
	uint64_t call = return_addr - 1;

	for (int i = 0; f && i < SCAN_MAPS_MAX && fgets(line, sizeof(line), f); i++) {
		struct scan_map m;

		if (scan_map_parse(line, &m) || !m.executable || call < m.start || call >= m.end)
			continue;
		if (!m.inode)
			return false;
		*ret_start = (struct stack_start){
			.major = m.major,
			.minor = m.minor,
			.inode = m.inode,
			.offset = call - m.start + m.file_offset,
		};
		return true;
	}
	return false;
}

static void *tell_caller(void *ret_caller)
{
	*(const void **)ret_caller = __builtin_return_address(0);
	return NULL;
}

/* NULL if no thread can be created. */
static const void *thread_caller(void)
{
	const void *caller = NULL;
	pthread_t thread;

	if (pthread_create(&thread, NULL, tell_caller, &caller) != 0)
		return NULL;
	pthread_join(thread, NULL);
	return caller;
}

void stack_starts_learn(const void *main_caller, const char *maps, struct stack_starts *ret_starts)
{
	const void *const caller[STACK_STARTS_MAX] = {main_caller, thread_caller()};
	struct stack_starts s = {.n_starts = 0};

	for (size_t i = 0; i < STACK_STARTS_MAX; i++)
		if (caller[i] && stack_start_find(maps, (uintptr_t)caller[i], &s.start[s.n_starts]))
			s.n_starts++;
	*ret_starts = s;
}

bool stack_starts_have(const struct stack_starts *s, const struct frame *frame)
{
	for (size_t i = 0; s && i < s->n_starts; i++) {
		const struct stack_start *start = &s->start[i];
		const struct file *file = frame->file;

		if (frame->offset == start->offset && file->kind == FILE_ELF &&
			file->inode == start->inode && file->major == start->major &&
			file->minor == start->minor)
			return true;
	}
	return false;
}

static bool is_one_of(const char *function, size_t n, const char *const *names, size_t n_names)
{
	for (size_t i = 0; i < n_names; i++)
		if (strncmp(names[i], function, n) == 0 && names[i][n] == '\0')
			return true;
	return false;
}

bool stack_start_is_name(const char *function, bool is_innermost)
{
	/* Source: csu/libc-start.c, nptl/pthread_create.c and sysdeps/unix/sysv/linux/ARCH/clone.S of
	 * glibc 2.41; src/env/__libc_start_main.c and src/thread/ARCH/clone.s of musl 1.2.5;
	 * elf/rtld.c, RTLD_START; src/runtime/asm_*.s of Go 1.24 */
	static const char *const called[] = {"clone", "__clone", "clone3", "__clone3"};
	static const char *const names[] = {
		"main",
		"_start",
		"_start_c",
		"__libc_start_main",
		"__libc_start_main_impl",
		"__libc_start_call_main",
		"libc_start_main_stage2",
		"start_thread",
		"thread_start",
		"__thread_start",
		"_dl_start_user",
		"runtime.goexit",
		"runtime.mcall",
		"runtime.mstart",
		"runtime.rt0_go",
	};
	/* a version, "@@GLIBC_2.34", and Go's ".abi0" are no part of the name */
	size_t n = function ? strcspn(function, "@") : 0;

	if (n > 5 && strncmp(function + n - 5, ".abi0", 5) == 0)
		n -= 5;
	return n > 0 && (is_one_of(function, n, names, sizeof(names) / sizeof(*names)) ||
				(!is_innermost && is_one_of(function, n, called,
							  sizeof(called) / sizeof(*called))));
}
