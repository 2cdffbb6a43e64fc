/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* What a thread waits for, from /proc: where BPF cannot look (offcpu.h)
 *
 * The kernel names the function in which a thread waits (wchan) to whoever may trace it, in /proc/PID/task/TID. Its
 * callers are not known.
 */

#include <stdbool.h>
#include <sys/types.h>

#include "daemon/attribute/attribute.h"
#include "daemon/decode/offcpu.h"

#define THREAD_WAIT_BYTES 64

struct thread_wait {
	enum offcpu_kind kind;
	char function[THREAD_WAIT_BYTES]; /* "": not known */
};

/* proc: "/proc", or a folder of files in tests. False: it does not wait, or is gone. */
bool thread_wait_read(const char *proc, pid_t pid, pid_t tid, struct thread_wait *ret_wait);

/* A wait that /proc knows alone, as a sample of its kind's stream. *frame: the kernel's function, NULL: not known; borrowed. */
struct attribution thread_wait_sample(const struct task_table *tasks, struct task *task,
	const struct stream *stream, struct frame **frame);

/* What a kernel function is called for by threads that wait; OFFCPU_OTHER: that is not known of it. */
enum offcpu_kind thread_wait_kind(const char *function);
