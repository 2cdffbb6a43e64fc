/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* The threads of the processes that a session records. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/sampler/sampler_private.h"
#include "proto/base/memory.h"

struct task_list {
	pid_t *task;
	size_t n_tasks;
};

static void task_add(void *userdata, const char *name)
{
	struct task_list *l = userdata;
	char *end;
	errno = 0;
	long tid = strtol(name, &end, 10);
	if (errno || *end || end == name || tid <= 0 || tid > INT32_MAX)
		return;
	/* Threads beyond the limit are not recorded, nor their children: record a service with more
	 * threads with -a. */
	if (l->n_tasks < SAMPLER_TASKS_MAX)
		l->task[l->n_tasks++] = (pid_t)tid;
}

int tasks_read(const struct sampler *s, pid_t **ret_tasks, size_t *ret_n_tasks)
{
	const struct kernel *k = s->kernel;
	_cleanup_(freep) pid_t *task = calloc(SAMPLER_TASKS_MAX, sizeof(*task));
	struct task_list l = {.task = task};
	if (!task)
		return -ENOMEM;
	if (!s->options.per_task)
		l.task[l.n_tasks++] = -1;
	for (size_t i = 0; s->options.per_task && i < s->options.n_pids; i++) {
		char path[64];
		snprintf(path, sizeof(path), "/proc/%d/task", (int)s->options.pids[i]);
		/* A process that is gone has no folder; the others may be alive. */
		int r = k->list(k->userdata, path, task_add, &l);
		if (r == -ENOMEM)
			return r;
	}
	if (l.n_tasks == 0)
		return HART_GONE;
	*ret_n_tasks = l.n_tasks;
	*ret_tasks = TAKE_PTR(task);
	return 0;
}
