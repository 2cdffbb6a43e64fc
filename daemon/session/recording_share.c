/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A sample is cut before it is counted: a call site that nobody will write takes no memory either.
 * What stands for many, one function for all of a process and one process for all of a user, is a
 * frame and a task like any other, so that nothing behind them has to know.
 */
#include "daemon/session/recording_share.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

/* The name that coarser tiers give to what stands for many programs (store/rollup/names.c). */
#define COMM_MERGED "[other]"
/* No thread has it: Source: pid_max(5), tids are above 0. */
#define TID_MERGED INT_MIN

struct recording_share {
	struct shares *shares;
	struct walk *walk;
	struct frame *folded;
	struct task *merged[SHARE_USERS_MAX]; /* by user */
	size_t n_merged;
};

int recording_share_new(
	struct shares *shares, struct walk *walk, struct recording_share **ret_share)
{
	struct recording_share *s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->shares = shares;
	s->walk = walk;
	*ret_share = s;
	return 0;
}

/* The frame that stands for all of a process. Where there is no room for it the leaf stays. */
static int fold(struct recording_share *s, struct attribution *a)
{
	struct file_table *files = &s->walk->files;
	struct file *file;
	struct file_key key = {.kind = FILE_UNKNOWN, .path = SHARE_FUNCTION_FOLDED};
	int r = s->folded ? 0 : file_get(files, &key, &file);
	if (r == 0 && !s->folded)
		r = frame_get(files, file, 0, &s->folded);
	if (r == 0 && s->folded->state == FRAME_NEW)
		r = namer_name_as(s->walk->namer, s->folded, SHARE_FUNCTION_FOLDED);
	if (r >= 0 && s->folded)
		a->frame = &s->folded;
	return r < 0 ? r : 0;
}

/* The task that stands for all of a user's; the last one for users beyond the limit. NULL where the
 * task table is full: nobody's. */
static int merged_task(
	struct recording_share *s, uid_t uid, uint64_t time_ns, struct task **ret_task)
{
	for (size_t i = 0; i < s->n_merged; i++)
		if (s->merged[i]->uid == uid) {
			*ret_task = s->merged[i];
			return 0;
		}
	*ret_task = NULL;
	if (s->n_merged == SHARE_USERS_MAX)
		return 0;
	struct task *task;
	int r = task_add(&s->walk->tasks, TID_MERGED, TID_MERGED, time_ns, &task);
	if (r != 0)
		return r < 0 ? r : 0;
	task_end(&s->walk->tasks, task, time_ns);
	task->pid = task->tid = 0;
	task->uid = uid;
	task_set_comm(task, COMM_MERGED);
	s->merged[s->n_merged++] = *ret_task = task;
	return 0;
}

int recording_share_cut(struct recording_share *s, struct attribution *a, bool *ret_cut)
{
	uid_t uid = a->task ? a->task->uid : (uid_t)-1;
	enum share_level level = s ? share_level(s->shares, uid) : SHARE_WHOLE;
	*ret_cut = false;
	if (level == SHARE_WHOLE)
		return 0;
	if (a->n_frames > 1)
		a->truncated = true;
	a->n_frames = a->n_frames ? 1 : 0;
	if (level >= SHARE_PROCESS && a->task)
		a->task = a->task->process;
	*ret_cut = a->count > 0;
	share_user(s->shares, uid)->n_cut += a->count;
	int r = level >= SHARE_FOLDED && a->n_frames ? fold(s, a) : 0;
	return r == 0 && level >= SHARE_MERGED && a->task
		       ? merged_task(s, uid, a->time_ns, &a->task)
		       : r;
}

void recording_share_charge(
	struct recording_share *s, uid_t uid, uint32_t n_nodes, uint32_t n_rows, uint32_t n_reads)
{
	if (s)
		share_charge(s->shares, uid,
			(uint64_t)n_nodes * SHARE_NODE_BYTES +
				(uint64_t)n_rows *
					(SHARE_SAMPLE_BYTES +
						(uint64_t)n_reads * SHARE_READING_BYTES));
}

void recording_share_refill(struct recording_share *s, uint64_t now_ns)
{
	if (s)
		shares_refill(s->shares, now_ns);
}

bool recording_share_has_room(struct recording_share *s, uid_t uid)
{
	return !s || share_level(s->shares, uid) < SHARE_FOLDED;
}

struct shares *recording_share_all(const struct recording_share *s)
{
	return s ? s->shares : NULL;
}

void recording_share_mark(const struct recording_share *s, struct sweep *sweep)
{
	if (!s)
		return;
	sweep_keep_frame(sweep, s->folded);
	for (size_t i = 0; i < s->n_merged; i++)
		sweep_keep_task(sweep, s->merged[i]);
}

struct recording_share *recording_share_free(struct recording_share *s)
{
	free(s);
	return NULL;
}
