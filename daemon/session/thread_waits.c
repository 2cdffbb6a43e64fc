/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

#include "daemon/session/thread_waits.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "daemon/attribute/scan.h"

/* Parts of names of kernel functions that wait; the first that occurs decides. Source: where they are, in
 * kernel/futex, kernel/time, fs/pipe.c, fs/select.c, fs/eventpoll.c, kernel/exit.c, net, mm/filemap.c, block, drivers/tty
 * and kernel/signal.c of Linux 6.12. */
static const struct {
	const char *part;
	enum offcpu_kind kind;
} functions[] = {
	{"futex", OFFCPU_LOCK},
	{"nanosleep", OFFCPU_SLEEP},
	{"nsleep", OFFCPU_SLEEP},
	{"pipe_", OFFCPU_PIPE},
	{"ep_poll", OFFCPU_POLL},
	{"epoll", OFFCPU_POLL},
	{"poll_schedule", OFFCPU_POLL},
	{"do_select", OFFCPU_POLL},
	{"do_sys_poll", OFFCPU_POLL},
	{"do_wait", OFFCPU_CHILD},
	{"kernel_wait", OFFCPU_CHILD},
	{"wait_for_vfork", OFFCPU_CHILD},
	{"recv", OFFCPU_NETWORK},
	{"accept", OFFCPU_NETWORK},
	{"sk_", OFFCPU_NETWORK},
	{"skb_", OFFCPU_NETWORK},
	{"unix_stream", OFFCPU_NETWORK},
	{"tcp_", OFFCPU_NETWORK},
	{"inet_", OFFCPU_NETWORK},
	{"tty", OFFCPU_DEVICE},
	{"folio_wait", OFFCPU_DISK},
	{"wait_on_page", OFFCPU_DISK},
	{"io_schedule", OFFCPU_DISK},
	{"jbd2", OFFCPU_DISK},
	{"blk", OFFCPU_DISK},
	{"bio", OFFCPU_DISK},
	{"mutex", OFFCPU_LOCK},
	{"rwsem", OFFCPU_LOCK},
	{"_lock", OFFCPU_LOCK},
	{"sigtimedwait", OFFCPU_SLEEP},
	{"sigsuspend", OFFCPU_SLEEP},
	{"pause", OFFCPU_SLEEP},
	{"signal_stop", OFFCPU_STOPPED},
	{"ptrace_stop", OFFCPU_STOPPED},
	{"freez", OFFCPU_STOPPED},
	{"refrigerator", OFFCPU_STOPPED},
};

enum offcpu_kind thread_wait_kind(const char *function)
{
	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++)
		if (strstr(function, functions[i].part))
			return functions[i].kind;
	return OFFCPU_OTHER;
}

/* The letter behind the name, which may itself have brackets. '\0': gone. */
static char read_state(const char *folder)
{
	char path[PATH_MAX], text[SCAN_STAT_BYTES_MAX];
	snprintf(path, sizeof(path), "%s/stat", folder);
	if (scan_text(AT_FDCWD, path, text, sizeof(text)) <= 0)
		return '\0';
	const char *bracket = strrchr(text, ')');
	return bracket && bracket[1] == ' ' ? bracket[2] : '\0';
}

bool thread_wait_read(const char *proc, pid_t pid, pid_t tid, struct thread_wait *ret_wait)
{
	char folder[PATH_MAX / 2], path[PATH_MAX];
	snprintf(folder, sizeof(folder), "%s/%d/task/%d", proc, (int)pid, (int)tid);
	const char state = read_state(folder);
	if (state == '\0' || !strchr("SDTtI", state))
		return false;
	snprintf(path, sizeof(path), "%s/wchan", folder);
	if (scan_text(AT_FDCWD, path, ret_wait->function, sizeof(ret_wait->function)) <= 0 ||
		strcmp(ret_wait->function, "0") == 0) /* it just woke up, or may not be told */
		ret_wait->function[0] = '\0';
	ret_wait->kind = state == 'T' || state == 't' ? OFFCPU_STOPPED
						      : thread_wait_kind(ret_wait->function);
	return true;
}

struct attribution thread_wait_sample(const struct task_table *tasks, struct task *task,
	const struct stream *stream, struct frame **frame)
{
	return (struct attribution){
		.task = task,
		.cgroup = cgroup_find(tasks, task->cgroup),
		.event = stream->event,
		.rung = stream->rung,
		.count = 1,
		.period = 1,
		.frame = frame,
		.n_frames = *frame != NULL,
		.truncated = true,
		.is_offcpu = true,
	};
}
