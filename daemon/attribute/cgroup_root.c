/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Names of cgroups
 *
 * A sample identifies its cgroup by the inode of its folder in the hierarchy of the perf_event
 * controller: version 2, unless the controller is mounted separately in version 1. One walk over
 * the folders names the existing cgroups; CGROUP records name later ones.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/attribute/attribute_private.h"
#include "daemon/naming/quota.h"
#include "proto/base/hash.h"
#include "proto/base/memory.h"

static void closedirp(DIR **d)
{
	if (*d)
		closedir(*d);
}

/* Cgroup folders walked at the start; a large container host has a few thousand. */
#define CGROUP_DIRS_MAX 20000
#define CGROUP_DEPTH_MAX 32

struct cgroup_root {
	int fd;             /* of the hierarchy whose ids perf gives; -1: none mounted */
	bool is_v1;         /* the hierarchy is that of the perf_event controller in version 1 */
	uint32_t pass;      /* number of sweeps over the whole table of groups, from 1 */
	uint32_t n_checked; /* in this sweep */
};

static int open_root(const char *proc, bool *ret_is_v1)
{
	static const struct {
		const char *folder, *sign; /* a file that only a root of this kind has */
		bool v1;
	} roots[] = {
		{"/perf_event", "/perf_event/cgroup.procs", true},
		{"", "/cgroup.controllers", false},
		{"/unified", "/unified/cgroup.controllers", false},
	};
	int fd = -1;

	for (size_t i = 0; i < sizeof(roots) / sizeof(*roots) && fd < 0; i++) {
		char path[PATH_MAX];

		snprintf(path, sizeof(path), "%s/../sys/fs/cgroup%s", proc, roots[i].sign);
		if (access(path, F_OK) < 0)
			continue;
		snprintf(path, sizeof(path), "%s/../sys/fs/cgroup%s", proc, roots[i].folder);
		fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		*ret_is_v1 = roots[i].v1;
	}
	return fd;
}

struct cgroup_root *cgroup_root_new(const char *proc)
{
	struct cgroup_root *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->pass = 1;
	c->fd = open_root(proc, &c->is_v1);
	return c;
}

struct cgroup_root *cgroup_root_free(struct cgroup_root *c)
{
	if (c)
		closep(&c->fd);
	free(c);
	return NULL;
}

uint64_t cgroup_root_id(
	const struct cgroup_root *c, enum scan_hierarchy hierarchy, const char *path)
{
	bool perf_has = hierarchy == (c->is_v1 ? SCAN_PERF_EVENT : SCAN_UNIFIED);
	struct stat st;

	if (perf_has && c->fd >= 0 && !strstr(path, "/..") &&
		!fstatat(c->fd, path[1] ? path + 1 : ".", &st, 0))
		return st.st_ino;
	return hash_bytes(path, strlen(path)) | UINT64_C(1) << 63;
}

void cgroup_root_sweep_begin(struct cgroup_root *c)
{
	c->n_checked = 0;
}

bool cgroup_root_is_gone(struct cgroup_root *c, struct cgroup *cgroup)
{
	if (c->fd < 0 || cgroup->pass == c->pass || c->n_checked >= SWEEP_CGROUPS_MAX)
		return false;
	c->n_checked++;
	cgroup->pass = c->pass;
	const char *path = cgroup->path[0] == '/' ? cgroup->path + 1 : cgroup->path;
	return *path && faccessat(c->fd, path, F_OK, 0) != 0 && errno == ENOENT;
}

void cgroup_root_sweep_end(struct cgroup_root *c)
{
	if (c->n_checked < SWEEP_CGROUPS_MAX)
		c->pass++; /* all were checked */
}

/* --- the names at the start ------------------------------------------------------------------- */

struct cgroup_walk {
	struct task_table *tasks;
	char path[PATH_MAX]; /* "" at the root */
	size_t n_path;
	int depth;
	struct quota dirs; /* folders taken from CGROUP_DIRS_MAX, by owner */
};

static int cgroup_walk(struct cgroup_walk *w, int parent_fd, const char *name);

/* Take an entry of a folder: its path is the folder's path and its name. */
static int cgroup_walk_entry(struct cgroup_walk *w, int folder_fd, const char *name)
{
	size_t n_path = w->n_path, n_name = strlen(name);

	if (n_path + 1 + n_name >= sizeof(w->path))
		return 0;
	w->path[n_path] = '/';
	memcpy(w->path + n_path + 1, name, n_name + 1);
	w->n_path = n_path + 1 + n_name;
	w->depth++;

	int r = cgroup_walk(w, folder_fd, name);

	w->depth--;
	w->n_path = n_path;
	w->path[n_path] = '\0';
	return r;
}

/* Name the folder and all below it. Folders may disappear meanwhile. CGROUP_FULL: its owner has no room for more. */
enum { CGROUP_FULL = 1 };
static int cgroup_walk(struct cgroup_walk *w, int parent_fd, const char *name)
{
	struct stat st;

	if (w->depth > CGROUP_DEPTH_MAX || fstatat(parent_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	if (!quota_take(&w->dirs, st.st_uid, CGROUP_DIRS_MAX, 1))
		return CGROUP_FULL;

	int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	_cleanup_(closedirp) DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (!d) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	int r = cgroup_set(w->tasks, st.st_ino, w->n_path ? w->path : "/", st.st_uid);
	if (r)
		return r < 0 ? r : CGROUP_FULL; /* folders below it have no name either */

	/* in a folder of root, folders of other users may follow */
	for (struct dirent *e; r >= 0 && (r == 0 || st.st_uid == 0) && (e = readdir(d));)
		if (e->d_type == DT_DIR && strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
			r = cgroup_walk_entry(w, fd, e->d_name);
	return r < 0 ? r : 0;
}

int cgroup_root_scan(const struct cgroup_root *c, struct task_table *tasks)
{
	struct cgroup_walk w = {.tasks = tasks};

	if (c->fd < 0)
		return 0;
	int r = cgroup_walk(&w, c->fd, ".");
	quota_clear(&w.dirs);
	return r < 0 ? r : 0;
}
