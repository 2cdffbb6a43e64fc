/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* One process in /proc
 *
 * Only reads; changes no state. A process may disappear at any moment, so each text that cannot be
 * read is simply missing.
 */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/attribute/attribute_private.h"
#include "proto/memory.h"

#define CUT_MARK "…"

/* Source: man 2 kill: signal 0 only checks; EPERM means that it lives. */
bool proc_is_gone(pid_t pid)
{
	return pid > 0 && kill(pid, 0) < 0 && errno == ESRCH;
}

int proc_folder(const struct attribute *a, pid_t pid)
{
	char path[PATH_MAX];

	if (a->o.is_gone && a->o.is_gone(pid))
		return -1;
	snprintf(path, sizeof(path), "%s/%d", a->o.proc, (int)pid);
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

bool proc_stat(int folder_fd, const char *name, struct scan_stat *ret_stat)
{
	char text[SCAN_STAT_BYTES_MAX];

	return scan_text(folder_fd, name, text, sizeof(text)) > 0 &&
	       !scan_stat_parse(text, ret_stat);
}

/* Length of text cut to n bytes without splitting a character of UTF-8. */
static size_t cut(const char *text, size_t n)
{
	while (n && ((unsigned char)text[n] & 0xc0) == 0x80)
		n--;
	return n;
}

int proc_argv_copy(const char *text, size_t n, char **ret_argv, uint32_t *ret_n_argv)
{
	bool whole = n <= TASK_ARGV_BYTES_MAX;
	size_t n_mark = whole ? 0 : strlen(CUT_MARK);
	if (!whole)
		n = cut(text, TASK_ARGV_BYTES_MAX - n_mark);

	char *argv = malloc(n + n_mark + 1);
	if (!argv)
		return -ENOMEM;
	memcpy(argv, text, n);
	memcpy(argv + n, CUT_MARK, n_mark);
	n += n_mark;
	argv[n] = '\0';
	*ret_argv = argv;
	*ret_n_argv = (uint32_t)n;
	return 0;
}

int proc_argv(int folder_fd, char **ret_argv, uint32_t *ret_n_argv)
{
	char text[TASK_ARGV_BYTES_MAX +
		  2]; /* one byte more than is kept shows whether there is more */
	ssize_t n_read = scan_text(folder_fd, "cmdline", text, sizeof(text));

	if (n_read <= 0)
		return n_read ? PROC_GONE : PROC_EMPTY;

	size_t n = (size_t)n_read;
	if (n <= TASK_ARGV_BYTES_MAX && text[n - 1] == '\0')
		n--; /* NUL separates arguments; none after the last */
	return proc_argv_copy(text, n, ret_argv, ret_n_argv);
}

bool proc_exe(int folder_fd, char path[static PATH_MAX])
{
	static const char deleted[] = " (deleted)";
	ssize_t n = readlinkat(folder_fd, "exe", path, PATH_MAX - 1);

	if (n <= 0)
		return false;
	path[n] = '\0';
	size_t n_deleted = sizeof(deleted) - 1;
	if ((size_t)n > n_deleted && !strcmp(path + n - n_deleted, deleted))
		path[(size_t)n - n_deleted] = '\0';
	return true;
}

int proc_rights(const struct attribute *a, pid_t pid, struct rights *ret_rights)
{
	_cleanup_(closep) int folder_fd = proc_folder(a, pid);
	const struct task *task = task_find(a->o.tasks, pid);

	return folder_fd < 0 ? RIGHTS_GONE : a->o.rights(folder_fd, proc_account(task), ret_rights);
}

int proc_exec(const struct attribute *a, pid_t pid, struct exec_text *ret_text)
{
	_cleanup_(closep) int folder_fd = proc_folder(a, pid);
	struct exec_text text = {.argv = NULL};
	if (folder_fd < 0)
		return PROC_GONE;

	int r = proc_argv(folder_fd, &text.argv, &text.n_argv);
	if (r)
		return r;
	text.has_rights =
		a->o.rights(folder_fd, proc_account(task_find(a->o.tasks, pid)), &text.rights) == 0;
	*ret_text = text;
	return 0;
}

bool proc_is_other(const struct attribute *a, const struct task *process)
{
	_cleanup_(closep) int folder_fd = proc_folder(a, process->pid);
	char path[PATH_MAX], *argv = NULL;
	uint32_t n_argv = 0;

	if (folder_fd < 0)
		return false;
	if (process->exe && proc_exe(folder_fd, path) && strcmp(path, process->exe) != 0)
		return true;
	if (!process->argv || proc_argv(folder_fd, &argv, &n_argv) != 0)
		return false;
	bool other = n_argv != process->n_argv || memcmp(argv, process->argv, process->n_argv) != 0;
	free(argv);
	return other;
}
