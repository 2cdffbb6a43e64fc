/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Processes that did not answer when they were read from /proc (PROC_SILENT)
 *
 * They are read again once a second, which costs a system call each if they are still blocked, and given up after
 * two minutes.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Further ones are read when a record mentions them. */
#define UNANSWERED_MAX 256
#define UNANSWERED_TRIES_MAX 120u
#define UNANSWERED_AGAIN_NS 1000000000u

struct unanswered_pid {
	pid_t pid;
	uint32_t n_tries; /* after the first */
	/* target of a scan that ended before the process answered: it and its descendants are
	 * wanted */
	bool is_target;
};

struct unanswered;

struct unanswered *unanswered_new(void);
/* Note a process that did not answer, unless it is noted already, was tried too often, or there is no room. */
void unanswered_add(struct unanswered *u, const struct unanswered_pid *p);
/* If the process is noted, note that it is a target. */
void unanswered_set_target(struct unanswered *u, pid_t pid);
/* Take all processes that are due to be read again out of the list. Returns their number, with this try counted; 0
 * if they are not due. */
size_t unanswered_take(struct unanswered *u, uint64_t now_ns,
	struct unanswered_pid ret_pid[static UNANSWERED_MAX]);
