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

#define FOLDER_FILES_MAX 512 /* in one folder; Linux's largest has 40 */

#ifndef MPERF_DATADIR
#define MPERF_DATADIR "/usr/local/share/mperf"
#endif

static int is_json(const struct dirent *entry)
{
	size_t n = strlen(entry->d_name);
	return entry->d_name[0] != '.' && n > 5 && strcmp(entry->d_name + n - 5, ".json") == 0;
}

struct visit {
	const struct reader *reader;
	const char *folder;
	int (*each)(const struct reader *r, void *userdata);
	void *userdata;
};

static int visit_file(const struct visit *v, const char *name)
{
	_cleanup_(freep) char *path = NULL;
	_cleanup_(pool_freep) struct pool *scratch = pool_new();
	struct reader r = *v->reader;
	if (!scratch || asprintf(&path, "%s/%s", v->folder, name) < 0)
		return -ENOMEM;
	r.scratch = scratch;
	r.file = pool_text(r.pool, path);
	return r.file ? v->each(&r, v->userdata) : -ENOMEM;
}

int folder_each(const struct reader *r, const char *folder,
	int (*each)(const struct reader *r, void *userdata), void *userdata)
{
	const struct visit v = {r, folder, each, userdata};
	struct dirent **files;
	int n_files = scandir(folder, &files, is_json, alphasort);
	if (n_files < 0)
		return -errno;
	int error = 0;
	if (n_files > FOLDER_FILES_MAX)
		error = reader_wrong(r, 0, "%s has more than %d files", folder, FOLDER_FILES_MAX);
	for (int i = 0; i < n_files; i++) {
		if (!error)
			error = visit_file(&v, files[i]->d_name);
		free(files[i]);
	}
	free(files);
	return error;
}

/* Candidates: next to us, as in a build; relative to us as installed, so that a tree can be moved;
 * the configured path. */
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
