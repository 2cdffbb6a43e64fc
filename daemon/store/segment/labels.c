/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Labels of processes: those of their jobs, and those of a recording, which apply to all its
 * processes. A label of the recording replaces a job's label with the same key. A job's set keeps
 * its id with them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/segment/write.h"
#include "proto/syntax/label.h"

/* The set of processes without a job: above all ids of sets, which have 32 bits. */
#define LABELS_OF_NO_JOB ((int64_t)UINT32_MAX + 1)

static int write_set(
	struct segment *g, const struct task *task, int64_t id, uid_t uid, const char *labels)
{
	int r = ROW(g, INSERT_LABEL_SET, CELL_I(id), CELL_I(uid), CELL_T(labels));
	if (r == 0 && sqlite3_changes(g->db) > 0)
		share_charge(g->shares, task_account(task), strlen(labels));
	return r == 0 ? ROW(g, INSERT_TASK_LABEL_SET, CELL_I(task->id), CELL_I(id)) : r;
}

/* The recording's labels, then as many of the job's as a set has room for. 0 or -ENOMEM. */
static int merge(const char *recording, const char *job, char **ret_json)
{
	struct label label[2 * LABELS_MAX];
	struct label_fault fault;
	const size_t n_own = labels_read(recording, label);
	const size_t n_job = labels_read(job, label + n_own);
	size_t n = n_own;
	for (size_t i = n_own; i < n_own + n_job && n < LABELS_MAX; i++) {
		bool has = false;
		for (size_t k = 0; k < n_own; k++)
			has |= strcmp(label[k].key, label[i].key) == 0;
		if (!has)
			label[n++] = label[i];
	}
	int r = labels_write(label, n, ret_json, &fault);
	return r > 0 ? -ENOMEM : r; /* they are few enough */
}

int segment_write_labels(struct segment *g, const struct task *task)
{
	const struct label_set *set = task->labels;
	_cleanup_(freep) char *both = NULL;
	if (!g->labels)
		return set ? write_set(g, task, set->id, set->uid, set->labels) : 0;
	if (!set)
		return write_set(g, task, LABELS_OF_NO_JOB, g->labels_uid, g->labels);
	int r = merge(g->labels, set->labels, &both);
	return r == 0 ? write_set(g, task, set->id, g->labels_uid, both) : r;
}
