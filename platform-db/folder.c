/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Where the data is, and its files one by one. The order is that of names, so that two machines
 * with the same files have the same database.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "platform-db/draft.h"

#define FOLDER_FILES_MAX 512 /* in one folder; Linux has 40 in its fullest */

#ifndef MPERF_DATADIR
#define MPERF_DATADIR "/usr/local/share/mperf"
#endif

static int is_json(const struct dirent *entry)
{
	size_t n = strlen(entry->d_name);
	return entry->d_name[0] != '.' && n > 5 && strcmp(entry->d_name + n - 5, ".json") == 0;
}

static int each_file(const struct reader *r, const char *folder, struct dirent **files, int n_files,
	int (*each)(const struct reader *r, void *userdata), void *userdata)
{
	int error = n_files > FOLDER_FILES_MAX ? reader_wrong(r, 0, "%s has more than %d files",
							 folder, FOLDER_FILES_MAX)
					       : 0;
	for (int i = 0; i < n_files && !error; i++) {
		_cleanup_(freep) char *path = NULL;
		if (asprintf(&path, "%s/%s", folder, files[i]->d_name) < 0)
			return -ENOMEM;
		_cleanup_(pool_freep) struct pool *scratch = pool_new();
		struct reader inner = *r;
		inner.scratch = scratch;
		inner.file = pool_text(r->pool, path);
		error = scratch && inner.file ? each(&inner, userdata) : -ENOMEM;
	}
	return error;
}

int folder_each(const struct reader *r, const char *folder,
	int (*each)(const struct reader *r, void *userdata), void *userdata)
{
	struct dirent **files;
	int n_files = scandir(folder, &files, is_json, alphasort);
	if (n_files < 0)
		return -errno;
	int error = each_file(r, folder, files, n_files, each, userdata);
	for (int i = 0; i < n_files; i++)
		free(files[i]);
	free(files);
	return error;
}

/* Beside us, as in a build; where an installed one stands from here, so that a tree can be moved;
 * where it was built for. */
int platform_folder_find(char *ret_path, size_t size)
{
	static const char *const from_here[] = {
		"platforms", "../share/mperf/platforms", "../../share/mperf/platforms"};
	char self[PATH_MAX], path[PATH_MAX + 64];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	self[n > 0 ? n : 0] = '\0';
	char *slash = strrchr(self, '/');
	for (size_t i = 0; slash && i < sizeof(from_here) / sizeof(from_here[0]); i++) {
		*slash = '\0';
		snprintf(path, sizeof(path), "%s/%s", self, from_here[i]);
		if (access(path, R_OK | X_OK) == 0)
			break;
		path[0] = '\0';
	}
	if (!slash || !path[0])
		snprintf(path, sizeof(path), "%s", MPERF_DATADIR "/platforms");
	if (strlen(path) >= size)
		return -ENAMETOOLONG;
	strcpy(ret_path, path);
	return 0;
}
