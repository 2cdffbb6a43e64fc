/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * These functions only read and change no state. A process may disappear at any moment, so each text that
 * cannot be read is simply missing.
 */
#include "daemon/attribute/proc_text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/attribute/proc_reader.h"
#include "daemon/attribute/task.h"
#include "proto/base/memory.h"

#define CUT_MARK "…"
#define PAGE_BYTES 4096u /* bytes compared at once; a machine's pages may be larger */

bool proc_text_stat(int folder_fd, const char *name, struct scan_stat *ret_stat)
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

int proc_text_argv_copy(const char *text, size_t n, char **ret_argv, uint32_t *ret_n_argv)
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

int proc_text_argv(int folder_fd, char **ret_argv, uint32_t *ret_n_argv)
{
	char text[TASK_ARGV_BYTES_MAX +
		  2]; /* one byte more than is kept shows whether there is more */
	ssize_t n_read = scan_text(folder_fd, "cmdline", text, sizeof(text));

	if (n_read <= 0)
		return n_read ? PROC_GONE : PROC_EMPTY;

	size_t n = (size_t)n_read;
	if (n <= TASK_ARGV_BYTES_MAX && text[n - 1] == '\0')
		n--; /* NUL separates arguments; none after the last */
	return proc_text_argv_copy(text, n, ret_argv, ret_n_argv);
}

bool proc_text_inner(int folder_fd, const char *name, pid_t *ret_inner)
{
	static const char label[] = "\nNSpid:";
	char text[SCAN_STAT_BYTES_MAX];
	const char *p =
		scan_text(folder_fd, name, text, sizeof(text)) > 0 ? strstr(text, label) : NULL;
	uint64_t inner = 0;
	if (!p)
		return false;
	p += sizeof(label) - 1;
	while (*p == '\t') {
		p++;
		if (!scan_number(&p, 10, &inner) || inner > INT32_MAX)
			return false;
	}
	*ret_inner = (pid_t)inner;
	return inner > 0;
}

bool proc_text_exe(int folder_fd, char path[static PATH_MAX])
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

uint64_t proc_text_memfd(int folder_fd, const char *exe)
{
	static const char memfd[] = "/memfd:";
	struct stat st;

	if (strncmp(exe, memfd, sizeof(memfd) - 1) != 0 || fstatat(folder_fd, "exe", &st, 0) < 0)
		return 0;
	return st.st_ino;
}

bool proc_text_compare(int folder_fd, const struct proc_text_range *r, bool *ret_same)
{
	_cleanup_(closep) int memory = openat(folder_fd, "mem", O_RDONLY | O_CLOEXEC);
	_cleanup_(closep) int program = openat(folder_fd, "exe", O_RDONLY | O_CLOEXEC);
	const uint64_t n_pages = r->bytes / PAGE_BYTES;
	const uint64_t n = n_pages < PROC_TEXT_PAGES_MAX ? n_pages : PROC_TEXT_PAGES_MAX;
	bool same = true, any = false;

	if (memory < 0 || program < 0 || n == 0)
		return false;
	for (uint64_t i = 0; i < n && same; i++) {
		uint8_t has[PAGE_BYTES], should[PAGE_BYTES] = {0};
		const uint64_t at = (n > 1 ? i * (n_pages - 1) / (n - 1) : 0) * PAGE_BYTES;
		if (pread(memory, has, sizeof(has), (off_t)(r->start + at)) != sizeof(has) ||
			pread(program, should, sizeof(should), (off_t)(r->file_offset + at)) < 0)
			return false;
		same = memcmp(has, should, sizeof(has)) == 0;
		for (size_t b = 0; b < sizeof(should) && !any; b++)
			any = should[b] != 0;
	}
	*ret_same = same && any;
	return true;
}
