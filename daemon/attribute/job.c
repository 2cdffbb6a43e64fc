/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Jobs: labels, given by requests and read from the environment
 *
 * Labels are inherited by FORK records, so that a process that lives 2 ms has those of the shell that
 * started it. Samples that a process has already belong to the job that it was in: where it has one
 * thread, it continues as another task.
 *
 * The environment only adds labels that a process does not have: what a request gave stands, and in a
 * job that starts another one all belongs to the outer. A process that has all of them is not read,
 * so in a job only the first processes cost anything. Only the variables that the configuration names
 * are taken out of an environment, and nothing else of it is kept.
 *
 * An environment is what whoever starts the program writes into it. So it labels only what belongs to its
 * user, in a job of that user's or in none: not what belongs to nobody, not the job of another user, and not
 * a set-user-ID program that has become root's by now. What is known of its owner is of an exec that came
 * through the rings; by now the process may be another program, whose environment this is: so the owner is
 * read before the environment, and again behind it.
 */

#include <errno.h>
#include <fcntl.h>
#include <linux/auxvec.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/attribute/attribute_private.h"
#include "proto/memory.h"

/* What is read of an environment; those of CI jobs have some 10 KB. What comes behind is not seen.
 * Source: execve(2): a quarter of the stack's limit, of 8 MB by default, at most. */
#define ENVIRON_BYTES_MAX (256u << 10)

/* --- labels of a process ---------------------------------------------------------------------- */

/* Let it continue as another task, if it was sampled. 0 or -ENOMEM. */
static int separate(struct attribute *a, struct task **process, uint64_t time_ns)
{
	struct task *before = *process;

	if (!before->sampled || before->end_ns || before->n_threads != 1)
		return 0;
	int r = life_continue(a, process, time_ns);
	struct task *after = *process;
	if (after == before)
		return r;
	after->heard_ns = before->heard_ns;
	after->missed_ns = before->missed_ns;
	after->other_group = before->other_group;
	after->read_ns = before->read_ns;
	after->looked_ns = before->looked_ns;
	after->maps_read_ns = before->maps_read_ns;
	return r;
}

/* json NULL: none. 0, LABEL_SETS_FULL, -ENOMEM. */
static int set_labels(
	struct attribute *a, struct task **process, uid_t uid, const char *json, uint64_t time_ns)
{
	struct label_set *set = NULL;

	int r = json ? label_set_get(&a->o.tasks->label_sets, uid, json, &set) : 0;
	if (r)
		return r;
	if (set != (*process)->labels)
		r = separate(a, process, time_ns);
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

/* Adds what this "NAME=value" is; n labels are there. Returns how many there are then. */
static size_t add_variable(
	const struct attribute *a, const char *text, struct label *label, size_t n)
{
	const struct label_variables *v = a->o.variables;
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

static size_t read_all(int fd, char *text, size_t size)
{
	size_t n = 0;

	while (n < size) {
		ssize_t got = read(fd, text + n, size - n);
		if (got <= 0)
			break;
		n += (size_t)got;
	}
	return n;
}

static size_t read_environment(
	const struct attribute *a, int folder_fd, struct label *label, size_t n)
{
	_cleanup_(closep) int fd = openat(folder_fd, "environ", O_RDONLY | O_CLOEXEC);
	_cleanup_(freep) char *text = fd < 0 ? NULL : malloc(ENVIRON_BYTES_MAX + 1);

	if (!text)
		return n;
	size_t n_text = read_all(fd, text, ENVIRON_BYTES_MAX);
	text[n_text] = '\0';
	for (size_t at = 0; at < n_text; at += strlen(text + at) + 1)
		n = add_variable(a, text + at, label, n);
	return n;
}

/* Did it begin with rights that its caller does not have? Source: getauxval(3), AT_SECURE; proc_pid_auxv(5):
 * pairs of words, which of a 32-bit program have 4 bytes: as one of 8 its first pair is more than any type. */
static bool began_secure(int folder_fd)
{
	union {
		uint64_t wide[128];
		uint32_t narrow[256];
	} auxv = {{0}};
	_cleanup_(closep) int fd = openat(folder_fd, "auxv", O_RDONLY | O_CLOEXEC);
	size_t n = fd < 0 ? 0 : read_all(fd, (char *)&auxv, sizeof(auxv));
	bool is_narrow = auxv.wide[0] > UINT32_MAX;
	size_t n_words = n / (is_narrow ? sizeof(uint32_t) : sizeof(uint64_t));

	for (size_t i = 0; i + 1 < n_words; i += 2) {
		uint64_t type = is_narrow ? auxv.narrow[i] : auxv.wide[i];
		if (type == AT_SECURE)
			return is_narrow ? auxv.narrow[i + 1] : auxv.wide[i + 1];
	}
	return true; /* it is gone, or does not say */
}

static bool is_still_whole(const struct attribute *a, const struct task *process, int folder_fd)
{
	struct rights now;

	return a->o.rights(folder_fd, ACCOUNT_NOBODY, &now) == 0 && now.uid == process->uid &&
	       rights_are_whole(now.uid, now.account);
}

/* May its environment label it? */
static bool is_trusted(const struct attribute *a, const struct task *process, int folder_fd)
{
	const struct label_set *set = process->labels;

	if (process->kernel_thread || !rights_are_whole(process->uid, process->account) ||
		(set && set->uid != process->uid) || !is_still_whole(a, process, folder_fd))
		return false;
	return process->uid != 0 || !began_secure(folder_fd);
}

static bool has_all(const struct label_variables *v, const struct label *label, size_t n)
{
	for (size_t i = 0; i < v->n; i++)
		if (!has_label(label, n, v->variable[i].key))
			return false;
	return true;
}

int job_read(struct attribute *a, struct task **process, int folder_fd)
{
	const struct label_variables *v = a->o.variables;
	const struct label_set *set = (*process)->labels;
	_cleanup_(freep) struct label *label = NULL;
	_cleanup_(freep) char *json = NULL;
	struct label_fault fault;

	if (!v || v->n == 0)
		return 0;
	label = calloc(LABELS_MAX, sizeof(*label));
	if (!label)
		return -ENOMEM;
	size_t n = set ? labels_read(set->labels, label) : 0, had = n;
	if (has_all(v, label, n) || !is_trusted(a, *process, folder_fd))
		return 0;
	n = read_environment(a, folder_fd, label, n);
	if (n == had || !is_still_whole(a, *process, folder_fd))
		return 0;
	int r = labels_write(label, n, &json, &fault);
	if (r == 0)
		r = set_labels(a, process, (*process)->uid, json,
			(*process)->exec_ns ? (*process)->exec_ns : (*process)->start_ns);
	if (r > 0)
		lose(a, 0, LOSS_ROOM, 1);
	return r < 0 ? r : 0;
}
