/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Execs: arguments, read while the process still lives
 *
 * Rings are drained a few times a second, and most processes of a build live shorter than that. So
 * execs are reported here early, and the arguments are read at once; they are given to the process
 * when the record of that exec comes through the merge in order.
 *
 * An exec may be reported when its arguments are in place (the tracepoint), or slightly before, when the new memory
 * is empty (COMM): a read at that moment finds no arguments, and is repeated. The arguments read belong to the last
 * exec before the read. So if the process turns out to have exec'd again before the read, they are given to that
 * later exec.
 *
 * If the kernel copies the new program's stack into the record, everything is in it: no early
 * report is needed, and the process need not live until it is read.
 *
 * A BPF program (kernel/exec_bpf.h) reports the arguments and the owner, so that the report can wait for the drain.
 */

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>

#include "daemon/attribute/attribute_private.h"
#include "daemon/attribute/exec_stack.h"
#include "daemon/attribute/exec_table.h"
#include "daemon/attribute/proc_text.h"
#include "daemon/kernel/exec_layout.h"
#include "daemon/kernel/machine.h"
#include "proto/base/clock.h"
#include "proto/base/memory.h"

_Static_assert(EXEC_ARGS_BYTES_MAX >= TASK_ARGV_BYTES_MAX, "a record has all that is kept");

/* The early report and COMM are separated by the time to map the program, which may have to be read
 * from disk. The nearest match is used, so that consecutive execs are distinguished. */
#define EXEC_MATCH_NS 100000000u

/* A drain comes within a quarter of a second, or within a few seconds if the machine is
 * overloaded. */
#define EXEC_EXPIRE_NS 3000000000u

/* When to try again after the record: mapping the file takes a fraction of a millisecond if it is
 * cached, and a few milliseconds if it has to be read. */
static const uint64_t exec_again_ns[] = {1000000, 3000000, 10000000};
#define EXEC_AGAIN (sizeof(exec_again_ns) / sizeof(exec_again_ns[0]))

/* Processes whose arguments were not in place yet when their exec was handled. */
#define REREAD_MAX 4096

struct execs {
	struct exec_table table;
	uint64_t due_ns; /* time of the next read; EXEC_NEVER: none */
	struct {
		struct task *process;
		int hart;
	} reread[REREAD_MAX];
	size_t n_reread;
};

struct execs *exec_argv_new(void)
{
	struct execs *x = calloc(1, sizeof(*x));

	if (x)
		x->due_ns = EXEC_NEVER;
	return x;
}

struct execs *exec_argv_free(struct execs *x)
{
	while (x && x->table.all)
		exec_table_remove(&x->table, x->table.all);
	free(x);
	return NULL;
}

void exec_argv_mark(const struct execs *x, struct sweep *s)
{
	for (size_t i = 0; i < x->n_reread; i++)
		sweep_keep_task(s, x->reread[i].process);
	for (const struct exec *e = x->table.open; e; e = e->open_next)
		sweep_keep_task(s, e->process);
}

size_t exec_argv_n(const struct execs *x)
{
	return x->table.n;
}

pid_t exec_argv_at(const struct execs *x, size_t i, uint64_t *ret_time_ns)
{
	const struct exec *e = x->table.all;

	while (i-- > 0)
		e = e->all_next;
	*ret_time_ns = e->time_ns;
	return e->pid;
}

/* --- what was read ---------------------------------------------------------------------------- */

static void exec_give_up(struct exec *e)
{
	free(e->text.argv);
	e->text.argv = NULL;
	e->due_ns = EXEC_NEVER;
}

/* Decide which user owns the process after its exec. Samples of a program that its caller may not
 * inspect are only for users who may see everything. A process that was gone before it was read
 * stays with the user who forked it, unless the copied stack shows that its file gives it rights.
 * If root forked it and it does not run as root, its costs belong to no account: the copy has its
 * uid in its own user namespace, where it can be any. 0 or -ENOMEM. */
static int give_owner(struct attribute *a, const struct exec *e, struct task **process)
{
	const struct exec_text *text = &e->text;
	uid_t account = (*process)->past_account;
	if (account == 0 && text->own_uid != 0)
		account = ACCOUNT_NOBODY;
	struct rights forkers = {(*process)->past_uid, (*process)->past_gid, account};
	struct rights roots = {.account = account};

	if (text->from_stack && text->secure)
		return owner_set(a, process, &roots, 0);
	if (text->has_rights)
		return owner_set(a, process, &text->rights, e->read_ns);
	return text->from_stack ? owner_set(a, process, &forkers, 0) : 0;
}

/* Give the process its arguments and owner as read at its exec. 0; -ENOMEM: its owner is not
 * known. */
static int exec_give(struct attribute *a, struct exec *e, struct task **process)
{
	int r = give_owner(a, e, process);
	free((*process)->argv);
	(*process)->argv = e->text.argv;
	(*process)->n_argv = e->text.n_argv;
	(*process)->changed = true;
	e->text.argv = NULL;
	_cleanup_(proc_view_clear) struct proc_view v = {.has = 0};
	if (r < 0 || !job_wants(&a->o, *process) || proc_read(&a->o, e->pid, PROC_ENVIRON, &v) != 0)
		return r < 0 ? r : 0;
	return job_read(a, process, &v);
}

/* The same of a report that needs no reading. True: it has the arguments. */
static bool take_report(struct attribute *a, struct exec *e, struct task **process)
{
	const bool has_argv = e->text.argv;

	(*process)->awaits_report = false;
	/* without memory they are not known */
	if (has_argv)
		(void)exec_give(a, e, process);
	else if (e->text.from_stack) /* not what was read after a later exec */
		(void)give_owner(a, e, process);
	return has_argv;
}

/* Count a process whose arguments could not be read. */
static void count_unread(const struct attribute *a, const struct task *process, int hart)
{
	if (!process->argv && (a->o.all || process->wanted))
		lose(&a->o, hart, LOSS_ARGV, 1);
}

/* --- early reports ---------------------------------------------------------------------------- */

/* Note the exec in the process, so that a later record shows whether the exec's record was lost. */
static void note_report(struct attribute *a, pid_t pid, uint64_t time_ns)
{
	struct task *task = task_find(a->o.tasks, pid);

	if (task && task->process == task && time_ns > task->reported_exec_ns)
		task->reported_exec_ns = time_ns;
}

static bool exec_wanted(const struct attribute *a, pid_t pid)
{
	const struct task *task = pid > 0 ? task_find(a->o.tasks, pid) : NULL;

	return pid > 0 &&
	       (a->o.all || !task || task->process->wanted || task->process->awaits_exec);
}

void attribute_exec(struct attribute *a, pid_t pid, uint64_t time_ns)
{
	struct execs *x = a->execs;

	if (!exec_wanted(a, pid))
		return;
	const struct exec_chain *c = exec_chain_find(&x->table, pid);
	struct exec *before = exec_chain_before(c, time_ns);
	struct exec *behind = before ? before->next : c ? c->first : NULL;
	while (behind && behind->text.from_stack)
		behind = behind->next;
	while (before && before->text.from_stack)
		before = before == c->first ? NULL : before->prev;
	/* those before it have given up already, when that one came */
	if (before && (!before->text.argv || before->read_ns >= time_ns))
		exec_give_up(before);

	const struct exec e = {.pid = pid, .time_ns = time_ns, .due_ns = behind ? EXEC_NEVER : 0};
	if (!exec_table_add(&x->table, &e))
		return;
	note_report(a, pid, time_ns);
	if (!behind)
		x->due_ns = 0;
}

/* Read the copy. False if it does not hold everything needed. */
static bool stack_text(const struct record_sample *s, struct exec_text *ret_text)
{
	bool narrow = s->regs_abi == PERF_SAMPLE_REGS_ABI_32;
	struct exec_stack stack;

	if (!s->regs || !s->n_stack)
		return false;
	int r = exec_stack_parse(s->stack, s->n_stack, record_reg(s, 0), narrow ? 4 : 8,
		TASK_ARGV_BYTES_MAX, &stack);
	if (r || !stack.has_uid)
		return false;

	struct exec_text text = {
		.from_stack = true,
		.secure = stack.secure,
		.own_uid = stack.uid,
	};
	/* one byte more than is kept shows whether there is more */
	size_t n = stack.whole ? stack.n_argv : TASK_ARGV_BYTES_MAX + 1;
	if (proc_text_argv_copy(stack.argv, n, &text.argv, &text.n_argv) < 0)
		return false;
	*ret_text = text;
	return true;
}

/* Read the owner where the copy does not show it: the copy says neither whether the program is
 * readable nor who is its real owner, since the copied uid is in the process's user namespace. A
 * process that root runs as root needs no check; a process that belongs to nobody does. */
static void read_owner(struct attribute *a, pid_t pid, struct exec_text *text)
{
	const struct task *task = task_find(a->o.tasks, pid);

	if (!text->secure && (!task || task->process->uid != 0 || task->process->account != 0 ||
				     text->own_uid != 0)) {
		int r = proc_rights(&a->o, pid, &text->rights);
		text->has_rights = r == 0;
		/* the program may be one that its caller may not inspect */
		text->secure |= r == PROC_SILENT;
	}
}

/* Keep an exec whose text is here already. */
static void take_text(struct attribute *a, const struct exec *e)
{
	if (exec_table_add(&a->execs->table, e))
		note_report(a, e->pid, e->time_ns);
	else
		free(e->text.argv);
}

void attribute_exec_stack(struct attribute *a, const struct record *r)
{
	pid_t pid = r->pid <= INT32_MAX ? (pid_t)r->pid : 0;
	struct exec_text text;

	if (!exec_wanted(a, pid))
		return;
	if (!stack_text(&r->sample, &text)) {
		attribute_exec(a, pid, r->time_ns);
		return;
	}
	read_owner(a, pid, &text);
	take_text(a, &(struct exec){
			     .pid = pid,
			     .time_ns = r->time_ns,
			     .read_ns = text.has_rights ? clock_ns(CLOCK_MONOTONIC) : 0,
			     .due_ns = EXEC_NEVER,
			     .text = text,
		     });
}

/* The owner by the kernel's own data, at the time of the exec. In another user namespace it depends on who made
 * that, which only /proc shows; if the process is gone by then, it is treated as if its stack had been copied. */
static void owner_of_record(
	const struct attribute *a, pid_t pid, const struct record *r, struct exec *ret_exec)
{
	const struct record_exec *x = &r->exec;
	struct exec_text *text = &ret_exec->text;
	const bool users = x->whole && x->uid != 0;

	ret_exec->read_ns = r->time_ns;
	text->from_stack = true;
	text->own_uid = x->uid;
	text->has_rights = true;
	text->rights = users ? (struct rights){x->uid, x->gid, x->uid}
			     : (struct rights){.account = x->uid};
	if (!x->unjudged)
		return;
	int result = proc_rights(&a->o, pid, &text->rights);
	ret_exec->read_ns = clock_ns(CLOCK_MONOTONIC);
	text->has_rights = result == 0;
	text->secure = result == PROC_SILENT || (result != 0 && x->may_hide);
}

/* The process whose exec's record came through the merge before this report, which the kernel writes when the program
 * is mapped, a moment later: a drain came in between. NULL: none. */
static struct task *awaits_report(const struct attribute *a, pid_t pid, uint64_t time_ns)
{
	struct task *task = task_find(a->o.tasks, pid);

	if (!task || task->process != task || !task->awaits_report || time_ns < task->exec_ns ||
		time_ns - task->exec_ns > EXEC_MATCH_NS)
		return NULL;
	return task;
}

/* Copy the arguments. False: they are not in the record, or there is no memory. */
static bool text_of_record(const struct record_exec *x, struct exec_text *to)
{
	/* one byte more than is kept shows that there is more */
	size_t n = x->cut ? TASK_ARGV_BYTES_MAX + 1 : x->n_args;

	if (x->cut && x->n_args < TASK_ARGV_BYTES_MAX)
		return false;
	if (!x->cut && n && x->args[n - 1] == '\0')
		n--; /* NUL separates arguments; none after the last */
	return proc_text_argv_copy(x->args, n, &to->argv, &to->n_argv) == 0;
}

void attribute_exec_record(struct attribute *a, const struct record *r)
{
	pid_t pid = r->pid <= INT32_MAX ? (pid_t)r->pid : 0;

	if (!exec_wanted(a, pid))
		return;
	struct exec e = {.pid = pid, .time_ns = r->time_ns, .due_ns = EXEC_NEVER};
	owner_of_record(a, pid, r, &e);
	(void)text_of_record(&r->exec, &e.text);
	struct task *process = awaits_report(a, pid, r->time_ns);
	if (process)
		(void)take_report(a, &e, &process);
	else
		take_text(a, &e);
}

/* Read arguments and owner from /proc. The outcomes of proc_read; PROC_EMPTY: they are not in place yet, or the
 * process is a zombie. */
static int proc_text(const struct attribute *a, pid_t pid, struct exec_text *ret_text)
{
	_cleanup_(proc_view_clear) struct proc_view v = {.has = 0};

	int r = proc_read(&a->o, pid, PROC_ARGV | PROC_RIGHTS, &v);
	if (r != 0)
		return r;
	if (!(v.has & PROC_ARGV))
		return v.no_argv ? PROC_EMPTY : PROC_GONE;
	*ret_text = (struct exec_text){
		.n_argv = v.n_argv,
		.rights = v.rights,
		.has_rights = v.has & PROC_RIGHTS,
	};
	ret_text->argv = TAKE_PTR(v.argv);
	return 0;
}

static void exec_read(const struct attribute *a, struct exec *e, uint64_t now_ns)
{
	e->due_ns = EXEC_NEVER;
	/* a process that is gone has none; without memory it stays unread */
	int r = proc_text(a, e->pid, &e->text);

	e->read_ns = clock_ns(CLOCK_MONOTONIC);
	while ((r == PROC_EMPTY || r == PROC_SILENT) && e->due_ns == EXEC_NEVER &&
		e->n_again < EXEC_AGAIN) {
		uint64_t again_ns = e->time_ns + exec_again_ns[e->n_again++];

		if (again_ns > now_ns)
			e->due_ns = again_ns;
	}
}

/* Give the arguments to a process whose record came before they could be read. True: done. */
static bool exec_settle(struct attribute *a, struct exec *e)
{
	if (!e->process || e->due_ns != EXEC_NEVER)
		return false;
	e->process = life_now(a->o.tasks, e->process);
	if (e->text.argv && !e->process->argv)
		(void)exec_give(a, e, &e->process); /* without memory it is not known */
	count_unread(a, e->process, e->hart);
	return true;
}

/* True: it is too young, and so are most behind it. */
static bool expire(struct execs *x, struct exec *e, uint64_t now_ns)
{
	if (now_ns <= e->time_ns + EXEC_EXPIRE_NS)
		return true;
	if (!e->open)
		exec_table_remove(&x->table, e);
	return false;
}

void attribute_read_execs(struct attribute *a, uint64_t now_ns)
{
	struct execs *x = a->execs;

	x->due_ns = EXEC_NEVER;
	for (struct exec *e = x->table.open, *next; e; e = next) {
		next = e->open_next;
		if (e->due_ns <= now_ns)
			exec_read(a, e, now_ns);
		if (exec_settle(a, e))
			exec_table_remove(&x->table, e);
		else if (e->due_ns == EXEC_NEVER)
			exec_table_close(&x->table, e);
		else if (e->due_ns < x->due_ns)
			x->due_ns = e->due_ns;
	}
	for (struct exec *e = x->table.all, *next; e; e = next) {
		next = e->all_next;
		if (expire(x, e, now_ns))
			break;
	}
}

void exec_argv_expire(struct execs *x, uint64_t now_ns)
{
	for (struct exec *e = x->table.all, *next; e; e = next) {
		next = e->all_next;
		(void)expire(x, e, now_ns);
	}
}

uint64_t attribute_exec_due_ns(const struct attribute *a)
{
	return a->execs->due_ns;
}

/* --- the record ------------------------------------------------------------------------------- */

/* The exec of that record; NULL: it was not reported. Those whose process still waits are of former records: the
 * process has exec'd again before they were read. */
static struct exec *chain_nearest(const struct exec_chain *c, uint64_t time_ns)
{
	struct exec *nearest = NULL;
	uint64_t least_ns = EXEC_MATCH_NS + 1;

	for (struct exec *e = c ? c->first : NULL; e; e = e->next) {
		uint64_t apart_ns =
			e->time_ns > time_ns ? e->time_ns - time_ns : time_ns - e->time_ns;
		if (e->process) {
			exec_give_up(e);
		} else if (apart_ns < least_ns) {
			nearest = e;
			least_ns = apart_ns;
		}
		if (e->time_ns > time_ns)
			break;
	}
	return nearest;
}

/* Give the process the arguments and owner that were read early; *process as in owner_set. True: done, or a later
 * read is due. False: nothing was read. */
static bool take_early(struct attribute *a, struct task **at, uint64_t time_ns, int hart)
{
	struct execs *x = a->execs;
	struct task *process = *at;
	const struct exec_chain *c = exec_chain_find(&x->table, process->pid);
	struct exec *nearest = chain_nearest(c, time_ns);

	process->awaits_report = !nearest && a->execs_apart;
	if (!nearest)
		return false;
	if (nearest->time_ns == process->reported_exec_ns)
		process->reported_exec_ns = 0;
	if (nearest->due_ns != EXEC_NEVER) {
		nearest->process = process;
		nearest->hart = hart;
		return true;
	}

	const bool was_read = take_report(a, nearest, at);
	exec_table_remove(&x->table, nearest);
	return was_read;
}

void exec_argv_take(struct attribute *a, struct task *process, uint64_t time_ns, int hart)
{
	struct execs *x = a->execs;

	/* The name is set slightly before the new arguments are in place. */
	if (take_early(a, &process, time_ns, hart) || census_argv(a, &process) <= 0)
		return;
	if (x->n_reread == REREAD_MAX) {
		count_unread(a, process, hart);
		return;
	}
	x->reread[x->n_reread].process = process;
	x->reread[x->n_reread++].hart = hart;
}

void exec_argv_reread(struct attribute *a, uint64_t now_ns)
{
	struct execs *x = a->execs;
	size_t kept = 0;

	for (size_t i = 0; i < x->n_reread; i++) {
		struct task *process = life_now(a->o.tasks, x->reread[i].process);
		const int hart = x->reread[i].hart;

		/* without memory it stays unread */
		if (!process->argv && !process->end_ns)
			(void)census_argv(a, &process);
		if (!process->argv && !process->end_ns && process->awaits_report &&
			now_ns <= process->exec_ns + EXEC_MATCH_NS) {
			x->reread[kept].process = process;
			x->reread[kept++].hart = hart;
			continue;
		}
		count_unread(a, process, hart);
	}
	x->n_reread = kept;
}
