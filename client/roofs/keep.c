/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A user's roofs: a file for each machine, set of kinds of harts and kernel, in the state folder.
 * Homes are shared between machines, so those of others stay, and are shown only as such.
 */
#include "client/roofs/keep.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/show/outfile.h"
#include "proto/base/memory.h"

bool keep_folder(char ret_path[static ROOFS_PATH_BYTES])
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	if (state && *state == '/')
		return snprintf(ret_path, ROOFS_PATH_BYTES, "%s/mperf/roofs", state) <
		       ROOFS_PATH_BYTES;
	return home && *home == '/' &&
	       snprintf(ret_path, ROOFS_PATH_BYTES, "%s/.local/state/mperf/roofs", home) <
		       ROOFS_PATH_BYTES;
}

int keep_path(const struct roofs *r, char ret_path[static ROOFS_PATH_BYTES])
{
	char folder[ROOFS_PATH_BYTES], name[ROOFS_NAME_BYTES];
	if (!keep_folder(folder))
		return -ENOENT;
	int result = roofs_name(r, name);
	if (result < 0)
		return result;
	int n = snprintf(ret_path, ROOFS_PATH_BYTES, "%s/%s", folder, name);
	return n < ROOFS_PATH_BYTES ? 0 : -ENAMETOOLONG;
}

/* Make the folders of a path; 0700, as the specification wants them. */
static int make_folders(const char *path)
{
	char part[ROOFS_PATH_BYTES];
	snprintf(part, sizeof(part), "%s", path);
	for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(part, 0700) < 0 && errno != EEXIST)
			return -errno;
		*slash = '/';
	}
	return 0;
}

int keep_own(const struct roofs *r)
{
	char path[ROOFS_PATH_BYTES];
	_cleanup_(freep) char *text = NULL;
	size_t size = 0;
	struct outfile o;
	int result = keep_path(r, path);
	if (result < 0 || (result = make_folders(path)) < 0 ||
		(result = roofs_text(r, false, &text, &size)) < 0 ||
		(result = outfile_open(&o, path, OUTFILE_OVER_FORCE)) != 0)
		return result > 0 ? -EEXIST : result; /* not a regular file */
	result = outfile_write(&o, text, size);
	if (result == 0)
		result = outfile_commit(&o);
	outfile_clear(&o);
	return result;
}

/* The newest of all files there; false if there is none. */
static bool find_newest(const char *folder, char ret_path[static ROOFS_PATH_BYTES])
{
	DIR *d = opendir(folder);
	struct dirent *e;
	time_t newest = 0;
	bool found = false;
	while (d && (e = readdir(d))) {
		char path[ROOFS_PATH_BYTES];
		const char *end = strrchr(e->d_name, '.');
		struct stat s;
		if (!end || strcmp(end, ".json") != 0 ||
			snprintf(path, sizeof(path), "%s/%s", folder, e->d_name) >=
				ROOFS_PATH_BYTES ||
			stat(path, &s) < 0 || !S_ISREG(s.st_mode))
			continue;
		if (found && s.st_mtime <= newest)
			continue;
		found = true;
		newest = s.st_mtime;
		memcpy(ret_path, path, sizeof(path));
	}
	if (d)
		closedir(d);
	return found;
}

int keep_find_own(
	const struct machine *m, struct roofs *ret_roofs, char fault[static ROOF_NOTE_BYTES])
{
	char path[ROOFS_PATH_BYTES], folder[ROOFS_PATH_BYTES];
	struct roofs ours = {.kinds = (struct roofs_kind *)m->kind, .n_kinds = m->n_kinds};
	memcpy(ours.machine, m->id, sizeof(ours.machine));
	memcpy(ours.kernel, m->kernel, sizeof(ours.kernel));
	int r = keep_path(&ours, path);
	if (r == -ENOENT || (r == 0 && access(path, F_OK) < 0))
		r = keep_folder(folder) && find_newest(folder, path) ? 0 : ROOFS_NONE;
	if (r == 0)
		r = roofs_read(path, ret_roofs, fault);
	if (r != 0)
		return r;
	roofs_compare(ret_roofs, m);
	ret_roofs->keeper = ROOFS_OF_USER;
	return 0;
}
