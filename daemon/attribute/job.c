/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Jobs: labels, given by requests and read from the environment
 *
 * FORK records pass labels on, so that even a process that lives 2 ms has the labels of the shell that started it.
 * If a process is given labels, its earlier samples stay in its former job: it continues as another task, with its
 * threads.
 *
 * The environment only adds labels that a process does not have: labels from a request take precedence, and if
 * a job starts another job, all processes belong to the outer one. The environment of a process that has all
 * labels is not read, so in a job only the first processes cost anything. We take only the variables that the
 * configuration names out of an environment, and keep nothing else of it.
 *
 * The user who starts a program writes its environment. So it labels only processes that belong to that user, and
 * that are in a job of that user or in none. It does not label a process that belongs to nobody, a process in
 * another user's job, or a set-user-ID program that has become root's. The known owner is that at the last exec
 * whose record came through the rings. The process may have exec'd since, and the environment may be the new
 * program's. So we read the owner before the environment, and again after it.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/attribute/attribute_private.h"
#include "proto/base/memory.h"

/* --- labels of a process ---------------------------------------------------------------------- */

/* json NULL: none. 0, LABEL_SETS_FULL, -ENOMEM. */
static int set_labels(
	struct attribute *a, struct task **process, uid_t uid, const char *json, uint64_t time_ns)
{
	struct label_set *set = NULL;

	int r = json ? label_set_get(&a->o.tasks->label_sets, uid, json, &set) : 0;
	if (r)
		return r;
	if (set != (*process)->labels && (*process)->sampled)
		r = life_separate(a, process, time_ns, 0);
	task_set_labels(a->o.tasks, *process, set);
	return r;
}

int attribute_set_labels(
	struct attribute *a, pid_t pid, uid_t uid, const char *json, uint64_t time_ns)
{
	struct task *task = task_find(a->o.tasks, pid);

	if (!task || task->process != task)
		return ATTRIBUTE_GONE;
	int r = set_labels(a, &task, uid, json, time_ns);
	if (r == 0)
		task->own_labels = json != NULL;
	return r == LABEL_SETS_FULL ? ATTRIBUTE_FULL : r;
}

/* --- from the environment --------------------------------------------------------------------- */

static bool has_label(const struct label *label, size_t n, const char *key)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(label[i].key, key) == 0)
			return true;
	return false;
}

/* Add the label of this "NAME=value", if NAME is a label's variable, to n labels. Returns the new
 * number of labels. */
static size_t add_variable(
	const struct attribute_options *o, const char *text, struct label *label, size_t n)
{
	const struct label_variables *v = o->variables;
	struct label_fault fault;

	for (size_t i = 0; i < v->n && n < LABELS_MAX; i++) {
		size_t n_name = strlen(v->variable[i].name);
		if (strncmp(text, v->variable[i].name, n_name) != 0 || text[n_name] != '=' ||
			has_label(label, n, v->variable[i].key))
			continue;
		/* a value that is no label is left out */
		n += label_make(v->variable[i].key, text + n_name + 1, &label[n], &fault) == 0;
	}
	return n;
}

static size_t read_environment(const struct attribute_options *o, const struct proc_view *view,
	struct label *label, size_t n)
{
	const char *text = view->environment;

	for (size_t at = 0; at < view->n_environment; at += strlen(text + at) + 1)
		n = add_variable(o, text + at, label, n);
	return n;
}

/* May its environment label it? */
static bool is_trusted(const struct task *process, const struct proc_view *view)
{
	const struct label_set *set = process->labels;
	const struct rights *of = &view->environment_of;

	return rights_are_whole(process->uid, process->account) &&
	       (!set || set->uid == process->uid) && of->uid == process->uid &&
	       rights_are_whole(of->uid, of->account) && (process->uid != 0 || !view->secure);
}

static bool has_all(const struct label_variables *v, const struct label *label, size_t n)
{
	for (size_t i = 0; i < v->n; i++)
		if (!has_label(label, n, v->variable[i].key))
			return false;
	return true;
}

bool job_wants(const struct attribute_options *o, const struct task *process)
{
	const struct label_variables *v = o->variables;
	const struct label_set *set = process ? process->labels : NULL;

	if (!v || v->n == 0 || (process && process->kernel_thread))
		return false;
	_cleanup_(freep) struct label *label = set ? calloc(LABELS_MAX, sizeof(*label)) : NULL;
	return !label || !has_all(v, label, labels_read(set->labels, label));
}

int job_read(struct attribute *a, struct task **process, const struct proc_view *view)
{
	const struct label_set *set = (*process)->labels;
	_cleanup_(freep) struct label *label = NULL;
	_cleanup_(freep) char *json = NULL;
	struct label_fault fault;

	if (!(view->has & PROC_ENVIRON) || !job_wants(&a->o, *process))
		return 0;
	label = calloc(LABELS_MAX, sizeof(*label));
	if (!label)
		return -ENOMEM;
	size_t n = set ? labels_read(set->labels, label) : 0, had = n;
	if (!is_trusted(*process, view))
		return 0;
	n = read_environment(&a->o, view, label, n);
	if (n == had)
		return 0;
	int r = labels_write(label, n, &json, &fault);
	if (r == 0)
		r = set_labels(a, process, (*process)->uid, json,
			(*process)->exec_ns ? (*process)->exec_ns : (*process)->start_ns);
	if (r > 0)
		lose(&a->o, 0, LOSS_ROOM, 1);
	return r < 0 ? r : 0;
}
