/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Owners: the owner of a process, and its samples when the owner changes
 *
 * Samples of a task belong to its owner. When the owner changes, the new one must not see earlier
 * samples, and the former one must lose them:
 *
 *      to root, or nobody      the task is hidden, with all its samples
 *      to a user               the task ends, hidden with its samples, and another task of the
 *                              same pid continues for that user
 *
 * The real user of a task pays its costs (struct rights), even if that user may not see the task. An exec does not
 * change that user. But a process that root has forked may have become any user's meanwhile: if it execs and is gone
 * before it is read, its costs belong to no account.
 *
 * A process changes its owner by an exec, which has a record, or by a system call, which has none.
 * Each exec begins a stage whose owner is unknown until it is read. A reading belongs to the stage
 * in which it was made: if the next exec came first, the earlier stage was never read, and belongs
 * to nobody. To find changes without a record, sampled processes are read again. If records of execs were lost,
 * the owner of each process is in doubt until it is read: once, when the process is next sampled. One that is gone by
 * then belongs to nobody.
 */

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/attribute/attribute_private.h"
#include "proto/base/clock.h"

#define UNKNOWN ((uid_t) - 1)

struct owners {
	struct task **
		watched; /* sampled processes of users, whose rights are read again; oldest check first */
	size_t n_watched, size_watched;
	uint64_t checked_ns; /* when their rights were last read again */
	uint64_t lost_ns;    /* execs may have been lost up to that time; 0: none */
	struct login_groups logins;
};

/* Read the users' login groups if they changed. 0 or -ENOMEM. */
static int read_logins(struct owners *w, const char *proc)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/../etc/passwd", proc);
	return login_groups_read(&w->logins, path);
}

int owner_new(const char *proc, struct owners **ret_owners)
{
	struct owners *w = calloc(1, sizeof(*w));
	int r = w ? read_logins(w, proc) : -ENOMEM;

	if (r < 0)
		w = owner_free(w);
	*ret_owners = w;
	return r;
}

struct owners *owner_free(struct owners *w)
{
	if (w) {
		free(w->watched);
		login_groups_clear(&w->logins);
	}
	free(w);
	return NULL;
}

void owner_mark(const struct owners *w, struct sweep *s)
{
	for (size_t i = 0; i < w->n_watched; i++)
		sweep_keep_task(s, w->watched[i]);
}

size_t owner_n_watched(const struct owners *w)
{
	return w->n_watched;
}

static bool is_users(uid_t uid)
{
	return uid != 0 && uid != UNKNOWN;
}

/* Was it sampled while it belonged to someone else? */
static bool sampled_as_other(const struct task *p, const struct rights *rights)
{
	if (p->sampled && p->uid != UNKNOWN)
		return true;
	return p->past && (p->past_uid != rights->uid || p->past_gid != rights->gid);
}

/* End the task with its samples; the process continues as another task. Not for a process with
 * several threads, whose own rows would have to be hidden too. 0 or -ENOMEM. */
static int continue_as_another(struct attribute *a, struct task **process)
{
	struct task *before = *process;

	int r = life_continue(a, process, before->exec_ns ? before->exec_ns : before->start_ns, 0);
	if (*process != before) {
		before->uid = 0;
		before->gid = 0;
	}
	return r;
}

int owner_set(
	struct attribute *a, struct task **process, const struct rights *rights, uint64_t read_ns)
{
	struct task *p = *process;
	struct rights now = *rights;
	int r = 0;

	if (read_ns)
		p->rights_read_ns = read_ns;
	p->owner_sure_ns = read_ns ? read_ns : p->exec_ns;
	p->changed |= p->account != now.account;
	if (p->uid == now.uid && p->gid == now.gid) {
		p->account = now.account;
		return 0;
	}
	if (is_users(now.uid) && sampled_as_other(p, &now)) {
		if (!p->end_ns && p->n_threads == 1 && p->process == p)
			r = continue_as_another(a, &p);
		if (p == *process)
			now = (struct rights){.account = now.account};
	}
	p->uid = now.uid;
	p->gid = now.gid;
	p->account = now.account;
	p->other_group = !login_groups_have(&a->owners->logins, &now);
	p->owner_since_ns = read_ns;
	/* also of the task that continues */
	if (read_ns)
		p->rights_read_ns = read_ns;
	p->owner_sure_ns = read_ns ? read_ns : p->exec_ns;
	p->changed = true;
	*process = p;
	return r;
}

/* Was the process first read only after that exec, when it already ran another program? */
static bool read_behind(const struct task *p, uint64_t exec_ns)
{
	return p->owner_since_ns && exec_ns <= p->owner_since_ns;
}

void owner_leave(struct task *before, uint64_t time_ns)
{
	if (!read_behind(before, time_ns))
		return;
	before->uid = 0;
	before->gid = 0;
	before->changed = true;
}

void owner_exec(struct task *p, uint64_t time_ns)
{
	bool unread = p->uid == UNKNOWN || read_behind(p, time_ns);
	bool mixed = p->past && (p->past_uid != p->uid || p->past_gid != p->gid);

	p->past |= p->sampled;
	p->past_uid = !unread && !mixed ? p->uid : p->past ? 0 : UNKNOWN;
	p->past_gid = !unread && !mixed ? p->gid : 0;
	p->past_account = p->account;
	if (p->account == 0)
		p->account = ACCOUNT_NOBODY;
	p->sampled = false;
	p->uid = UNKNOWN;
	p->gid = 0;
	p->other_group = false;
	p->owner_since_ns = 0;
	p->changed = true;
}

/* Users no longer see the process and its samples. */
static void give_to_nobody(struct task *p)
{
	p->uid = 0;
	p->gid = 0;
	p->changed = true;
}

/* --- lost execs ------------------------------------------------------------------------------- */

void owner_lost(struct attribute *a, uint64_t time_ns)
{
	if (time_ns > a->owners->lost_ns)
		a->owners->lost_ns = time_ns;
}

void owner_confirm(struct attribute *a, struct task *process)
{
	struct rights rights;

	if (process->owner_sure_ns >= a->owners->lost_ns || !is_users(process->uid))
		return;
	const int r = process->end_ns ? RIGHTS_GONE : proc_rights(&a->o, process->pid, &rights);
	const uint64_t read_ns = clock_ns(CLOCK_MONOTONIC);
	process->owner_sure_ns = process->rights_read_ns = read_ns;
	if (r == 0 && rights.uid == process->uid && rights.gid == process->gid) {
		process->owner_since_ns = read_ns; /* an exec before that may have changed it */
		return;
	}
	give_to_nobody(process);
}

/* Records of execs were lost while it was sampled, and it ended before it was read: a program of another user may have
 * been what was sampled. */
static void doubt_ended(const struct attribute *a, struct task *p)
{
	if (p->owner_sure_ns < a->owners->lost_ns && is_users(p->uid) &&
		life_now(a->o.tasks, p)->end_ns)
		give_to_nobody(p);
}

/* --- read again ------------------------------------------------------------------------------- */

/* Read the account of one of root's processes again: it may have become a user's without an
 * exec. */
static void read_account_again(struct attribute *a, struct task *p)
{
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
	struct rights rights;

	if (p->end_ns || p->kernel_thread || p->rights_read_ns + OWNER_AGAIN_NS > now_ns)
		return;
	p->rights_read_ns = now_ns;
	if (proc_rights(&a->o, p->pid, &rights) || rights.account == p->account)
		return;
	p->account = rights.account;
	p->changed = true;
}

void owner_watch(struct attribute *a, struct task *process)
{
	struct owners *w = a->owners;

	if (w->n_watched == w->size_watched) {
		size_t size = w->size_watched ? 2 * w->size_watched : 256;
		struct task **grown = reallocarray(w->watched, size, sizeof(*grown));

		if (!grown)
			return; /* with its next sample */
		w->watched = grown;
		w->size_watched = size;
	}
	process->watched = true;
	w->watched[w->n_watched++] = process;
	if (process->account == 0)
		read_account_again(a, process);
}

void attribute_counted(struct attribute *a, struct task *task)
{
	owner_sampled(a, task);
}

/* May the process turn out to belong to another user? Not if it is gone: it keeps its owner. But if
 * the process continues as another task, samples since the task's rights were last read may belong
 * to nobody. Root's processes are hidden from users anyway. */
static bool may_change(const struct attribute *a, struct task *p)
{
	return is_users(p->uid) && !life_now(a->o.tasks, p)->end_ns && !p->kernel_thread;
}

static void check(struct attribute *a, struct task *p, uint64_t now_ns)
{
	struct rights rights;

	p->rights_read_ns = now_ns;
	if (proc_rights(&a->o, p->pid, &rights) || (rights.uid == p->uid && rights.gid == p->gid))
		return;
	/* in the middle of an exec, for example, a process belongs to nobody for a moment: read
	 * twice */
	if (proc_rights(&a->o, p->pid, &rights) || (rights.uid == p->uid && rights.gid == p->gid))
		return;
	p->account = rights.account;
	give_to_nobody(p);
}

/* The process of p continues as another task. If that task's rights were read since p ended, use
 * them instead of reading them again. False: they were not read. */
static bool take_later_reading(const struct attribute *a, struct task *p)
{
	const struct task *now = life_now(a->o.tasks, p);

	if (now == p || now->uid == UNKNOWN || now->rights_read_ns <= p->end_ns)
		return false;
	if (now->uid != p->uid || now->gid != p->gid) {
		p->account = now->account;
		give_to_nobody(p);
	}
	return true;
}

void owner_forget_ended(struct attribute *a)
{
	struct owners *w = a->owners;
	size_t kept = 0;

	for (size_t i = 0; i < w->n_watched; i++) {
		struct task *p = w->watched[i];

		p->watched = may_change(a, p);
		if (p->watched)
			w->watched[kept++] = p;
		else
			doubt_ended(a, p);
	}
	w->n_watched = kept;
}

/* The number that may be read now. */
static size_t allowance(const struct owners *w, uint64_t now_ns)
{
	uint64_t passed_ns = now_ns > w->checked_ns ? now_ns - w->checked_ns : 0;
	uint64_t n = passed_ns / (1000000000u / OWNERS_SECOND_MAX);

	return n < OWNERS_READ_MAX ? (size_t)n : OWNERS_READ_MAX;
}

void attribute_confirm_owner(struct attribute *a, const struct task *task, uint64_t since_ns)
{
	struct task *p = task->process;

	if (!may_change(a, p)) {
		doubt_ended(a, p);
		return;
	}
	if (p->rights_read_ns >= since_ns || take_later_reading(a, p))
		return;
	if (p->owner_sure_ns < a->owners->lost_ns)
		owner_confirm(a, p);
	else
		check(a, p, clock_ns(CLOCK_MONOTONIC));
}

void attribute_check_owners(struct attribute *a, uint64_t now_ns)
{
	struct owners *w = a->owners;
	size_t left = allowance(w, now_ns), kept = 0;

	if (left == 0)
		return;
	w->checked_ns = now_ns;
	(void)read_logins(w, a->o.proc); /* without memory it is read the next time */
	for (size_t i = 0; i < w->n_watched; i++) {
		struct task *p = w->watched[i];
		bool changes = may_change(a, p);
		bool unsure = p->owner_sure_ns < w->lost_ns;
		bool recent = !unsure && p->rights_read_ns + OWNER_AGAIN_NS > now_ns;

		if (changes && (recent || left == 0)) {
			w->watched[kept++] = p;
			continue;
		}
		p->watched = false;
		if (!changes)
			doubt_ended(a, p);
		if (!changes || take_later_reading(a, p))
			continue;
		if (unsure)
			owner_confirm(a, p);
		else
			check(a, p, now_ns);
		left--;
	}
	w->n_watched = kept;
}
