/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A sample loses its detail before it is counted, so that a call site that is not stored takes no memory
 * either. The function that represents all of a process is a frame like any other, and the process that
 * represents all processes of a user is a task like any other, so that later steps need not know of them.
 * A user has such a process for each job, and one for processes without a job.
 */
#include "daemon/session/recording_share.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/hash_table.h"

/* The name that coarser tiers give to a task that represents many programs (store/rollup/names.c). */
#define COMM_MERGED "[other]"
/* No thread has it: Source: pid_max(5), tids are above 0. */
#define TID_MERGED INT_MIN
/* Two for each user: for the user's own tasks, and for tasks that belong to nobody. */
#define MERGED_USERS_MAX (2 * SHARE_USERS_MAX)

/* A task into which samples of a user's job are merged. Samples that belong to nobody and are on the
 * user's account have a task of their own. */
struct merged {
	struct merged_key {
		uint32_t account, uid, set; /* set: id of its labels; 0: none */
	} key;
	struct task *task;
	bool used; /* since the last sweep */
	UT_hash_handle hh;
};

struct recording_share {
	struct shares *shares;
	struct walk *walk;
	struct frame *folded;
	struct merged *merged; /* uthash by key */
	size_t n_users;        /* those without labels, which are kept */
	bool keeps_job;        /* the last sample was merged with those of its job */
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

/* The frame that represents all functions of a process. If there is no room for it, the leaf stays.
 * */
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

static void forget(struct recording_share *s, struct merged *m)
{
	s->n_users -= m->key.set == 0;
	HASH_DEL(s->merged, m);
	free(m);
}

/* Add a task of the user with these labels (NULL: none). 0, also if the task table is full; -ENOMEM. */
static int add_merged(struct recording_share *s, const struct merged_key *key,
	struct label_set *labels, uint64_t time_ns, struct merged **ret_merged)
{
	struct task *task;
	int r = task_add(&s->walk->tasks, TID_MERGED, TID_MERGED, time_ns, &task);
	if (r != 0)
		return r < 0 ? r : 0;
	task->pid = task->tid = 0; /* in the list of dead tasks it uses this link */
	task_end(&s->walk->tasks, task, time_ns);
	task->uid = key->uid;
	task->account = key->account;
	task_set_comm(task, COMM_MERGED);
	task_set_labels(&s->walk->tasks, task, label_set_ref(labels));
	struct merged *m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	*m = (struct merged){.key = *key, .task = task};
	HASH_ADD(hh, s->merged, key, sizeof(m->key), m);
	if (!m->hh.tbl) {
		free(m);
		return -ENOMEM;
	}
	s->n_users += key->set == 0;
	*ret_merged = m;
	return 0;
}

/* Set a->task to the task that represents the tasks of a user's job, or all tasks without a job; the last one is
 * for users beyond the limit. NULL if the task table is full: not attributed. 0 or -ENOMEM. */
static int merged_task(struct recording_share *s, struct attribution *a, uid_t account)
{
	struct label_set *labels = a->task->labels;
	struct merged_key key = {account, a->task->uid, labels ? labels->id : 0};
	struct merged *m;
	int r = 0;
	HASH_FIND(hh, s->merged, &key, sizeof(key), m);
	if (labels && !share_has_job_room(s->shares, account, m)) {
		share_user(s->shares, account)->n_unlabelled += a->count;
		labels = NULL;
		key.set = 0;
		HASH_FIND(hh, s->merged, &key, sizeof(key), m);
	}
	if (!m && (labels || s->n_users < MERGED_USERS_MAX)) {
		r = add_merged(s, &key, labels, a->time_ns, &m);
		if (m && labels)
			share_charge_job(
				s->shares, account, SHARE_TASK_BYTES + strlen(labels->labels));
	}
	if (m)
		m->used = true;
	s->keeps_job = m && labels;
	a->task = m ? m->task : NULL;
	return r;
}

int recording_share_cut(struct recording_share *s, struct attribution *a, bool *ret_cut)
{
	uid_t uid = task_account(a->task);
	enum share_level level = s ? share_level(s->shares, uid) : SHARE_WHOLE;
	*ret_cut = false;
	if (s)
		s->keeps_job = false;
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
	return r == 0 && level >= SHARE_MERGED && a->task ? merged_task(s, a, uid) : r;
}

void recording_share_charge(
	struct recording_share *s, uid_t uid, uint32_t n_nodes, uint32_t n_rows, uint32_t n_reads)
{
	if (!s)
		return;
	uint64_t bytes =
		(uint64_t)n_nodes * SHARE_NODE_BYTES +
		(uint64_t)n_rows * (SHARE_SAMPLE_BYTES + (uint64_t)n_reads * SHARE_READING_BYTES);
	share_charge(s->shares, uid, bytes);
	if (s->keeps_job)
		share_charge_job(s->shares, uid, bytes);
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

/* A job without samples since the last sweep has ended, or gets a new task later. */
void recording_share_mark(struct recording_share *s, struct sweep *sweep)
{
	struct merged *m, *next;
	if (!s)
		return;
	sweep_keep_frame(sweep, s->folded);
	HASH_ITER (hh, s->merged, m, next) {
		if (m->key.set != 0 && !m->used) {
			forget(s, m);
			continue;
		}
		sweep_keep_task(sweep, m->task);
		m->used = false;
	}
}

struct recording_share *recording_share_free(struct recording_share *s)
{
	struct merged *m, *next;
	if (!s)
		return NULL;
	HASH_ITER (hh, s->merged, m, next) {
		forget(s, m);
	}
	free(s);
	return NULL;
}
