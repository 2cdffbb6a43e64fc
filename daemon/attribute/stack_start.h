/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Stack starts: the calls in the C library that every stack begins with
 *
 * One call is that of main, the other that of the routine of a new thread. A stack that reaches one of
 * them is complete, whatever the walk finds beyond it; a stack that reaches none is cut.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct file;
struct frame;

#define STACK_STARTS_MAX 2 /* of main, of threads */

struct stack_start {
	uint32_t major, minor; /* of the file, as mappings name it */
	uint64_t inode;
	uint64_t offset; /* in the file, of the call's last byte */
};

struct stack_starts {
	struct stack_start start[STACK_STARTS_MAX];
	size_t n_starts;
};

/* Find the calls in this process; programs with the same C library share them. main_caller is the
 * return address of main, or NULL; maps is "/proc/self/maps". Starts a thread that ends at once. A
 * call that cannot be found is left out. */
void stack_starts_learn(const void *main_caller, const char *maps, struct stack_starts *ret_starts);

/* For tests too: find the call that returns to that address in the mappings. False: the address is in no file. Exported for tests. */
bool stack_start_find(const char *maps, uint64_t return_addr, struct stack_start *ret_start);

/* Is this caller's frame such a call? s may be NULL: none is known. */
bool stack_starts_have(const struct stack_starts *s, const struct frame *frame);

/* Does a stack begin with a function of this name, in any C library or in Go's runtime? True also for main: nothing
 * of the program is missing above it. Threads begin in clone, but programs call clone too: then it is the innermost
 * user frame, and its callers may be missing. A function of the kernel is never a start. function may be NULL. */
bool stack_start_is_name(const char *function, bool is_innermost);
