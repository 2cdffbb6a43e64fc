/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* The list is short and in no order: each operation looks at all of it. */

#include "daemon/attribute/unanswered.h"

#include <stdlib.h>
#include <string.h>

struct unanswered {
	struct unanswered_pid pid[UNANSWERED_MAX];
	size_t n;
	uint64_t taken_ns; /* when they were last read again; 0: never */
};

struct unanswered *unanswered_new(void)
{
	return calloc(1, sizeof(struct unanswered));
}

void unanswered_add(struct unanswered *u, const struct unanswered_pid *p)
{
	for (size_t i = 0; i < u->n; i++)
		if (u->pid[i].pid == p->pid)
			return;
	if (u->n < UNANSWERED_MAX && p->n_tries < UNANSWERED_TRIES_MAX)
		u->pid[u->n++] = *p;
}

void unanswered_set_target(struct unanswered *u, pid_t pid)
{
	for (size_t i = 0; i < u->n; i++)
		u->pid[i].is_target |= u->pid[i].pid == pid;
}

size_t unanswered_take(
	struct unanswered *u, uint64_t now_ns, struct unanswered_pid ret_pid[static UNANSWERED_MAX])
{
	const size_t n = u->n;

	if (n == 0 || now_ns < u->taken_ns + UNANSWERED_AGAIN_NS)
		return 0;
	u->taken_ns = now_ns;
	u->n = 0;
	memcpy(ret_pid, u->pid, n * sizeof(*ret_pid));
	for (size_t i = 0; i < n; i++)
		ret_pid[i].n_tries++;
	return n;
}
