/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A few dozen files at most, so that a walk over the table per question is the simplest thing.
 */
#include "tests/unit/tree.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

ssize_t tree_read_text(void *userdata, const char *path, char *buffer, size_t size)
{
	const struct tree *tree = userdata;
	for (size_t i = 0; i < tree->n_files; i++) {
		const struct tree_file *file = &tree->file[i];
		if (strcmp(file->path, path) != 0)
			continue;
		if (!file->text)
			return file->error;
		size_t n = strlen(file->text);
		if (n >= size)
			return -E2BIG;
		memcpy(buffer, file->text, n + 1);
		return (ssize_t)n;
	}
	return -ENOENT;
}

int tree_list(void *userdata, const char *path, void (*each)(void *userdata, const char *name),
	void *each_userdata)
{
	const struct tree *tree = userdata;
	size_t n = strlen(path);
	int r = -ENOENT;
	for (size_t i = 0; i < tree->n_files; i++) {
		const struct tree_file *file = &tree->file[i];
		if (strncmp(file->path, path, n) != 0)
			continue;
		if (file->path[n] == '\0' && !file->text)
			return file->error;
		if (file->path[n] != '/')
			continue;
		char name[128];
		const char *start = file->path + n + 1;
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(start, "/"), start);
		each(each_userdata, name);
		r = 0;
	}
	return r;
}
