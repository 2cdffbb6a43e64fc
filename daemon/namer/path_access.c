/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A user may reach a file only through folders that the user may search. So the path is walked like
 * the kernel does, with one open per component: O_PATH, which needs no right to the file itself and
 * wakes no device, and O_NOFOLLOW, so that a link is seen as one. Each opened folder itself is
 * checked, and the next step starts at its descriptor, so renaming folders meanwhile has no effect.
 *
 * ".." goes back to the descriptor that the walk came from, not to the folder's current parent. So
 * no walk leaves its root.
 *
 * Magic links of /proc lead directly to a file, regardless of their text. None is followed.
 */
#include "daemon/namer/path_access.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "proto/base/memory.h"

struct walk {
	const struct readers *readers;
	bool no_link;
	int dir[PATH_DEPTH_MAX]; /* from the root down; the first is the caller's */
	uint32_t n_dirs;
	uint32_t n_links;
	char rest[PATH_MAX]; /* the path; its remainder begins at `at` */
	size_t at;
};

/* Returns its size, 0 if there is none, -1 if it cannot be evaluated. Uses the /proc name of the
 * descriptor, since fgetxattr does not accept O_PATH. */
static ssize_t read_acl(int fd, uint8_t acl[ACL_BYTES_MAX])
{
	char self[sizeof("/proc/self/fd/") + 11];

	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	ssize_t n = getxattr(self, "system.posix_acl_access", acl, ACL_BYTES_MAX);
	if (n >= 0)
		return n;
	return errno == ENODATA || errno == EOPNOTSUPP ? 0 : -1;
}

bool path_may(int fd, const struct stat *s, const struct readers *readers, unsigned want)
{
	uint8_t acl[ACL_BYTES_MAX];
	ssize_t n_acl = 0;

	for (uint32_t i = 0; i < readers->n && n_acl == 0; i++)
		if (reader_asks_acl(&readers->one[i], s->st_mode, s->st_uid))
			n_acl = read_acl(fd, acl);
	if (n_acl < 0)
		return false;

	struct permissions f = {
		s->st_mode, s->st_uid, s->st_gid, readers->unmapped, acl, (size_t)n_acl};
	for (uint32_t i = 0; i < readers->n; i++)
		if (!reader_may(&readers->one[i], &f, want))
			return false;
	return true;
}

static int push(struct walk *w, int fd, const struct stat *s)
{
	_cleanup_(closep) int folder = fd;

	if (!path_may(folder, s, w->readers, READER_SEARCHES))
		return -EACCES;
	if (w->n_dirs == PATH_DEPTH_MAX)
		return -ENAMETOOLONG;
	w->dir[w->n_dirs++] = TAKE_FD(folder);
	return 0;
}

static void pop(struct walk *w)
{
	if (w->n_dirs > 1)
		close(w->dir[--w->n_dirs]);
}

/* The link's text replaces it in the path. */
static int follow(struct walk *w, int link, bool last)
{
	char target[PATH_MAX], rest[PATH_MAX];
	struct statfs s;

	if ((last && w->no_link) || ++w->n_links > PATH_LINKS_MAX)
		return -ELOOP;
	if (fstatfs(link, &s) < 0)
		return -errno;
	if (s.f_type == PROC_SUPER_MAGIC)
		return -ELOOP;
	ssize_t n = readlinkat(link, "", target, sizeof(target));
	if (n < 0)
		return -errno;
	size_t n_rest = strlen(w->rest + w->at);
	if (n == 0 || (size_t)n + n_rest >= sizeof(rest))
		return n == 0 ? -ENOENT : -ENAMETOOLONG;

	memcpy(rest, target, (size_t)n);
	memcpy(rest + n, w->rest + w->at, n_rest + 1);
	memcpy(w->rest, rest, (size_t)n + n_rest + 1);
	w->at = 0;
	while (*target == '/' && w->n_dirs > 1)
		pop(w);
	return 0;
}

/* Take one component in the current folder. *ret_fd is the file if it is the last, else -1. */
static int step(struct walk *w, const char *name, bool last, int *ret_fd)
{
	int flags = O_PATH | O_NOFOLLOW | O_CLOEXEC, here = w->dir[w->n_dirs - 1];
	struct stat s;

	/* with O_DIRECTORY, to trigger automounts */
	_cleanup_(closep) int fd = last ? -1 : openat(here, name, flags | O_DIRECTORY);
	if (fd < 0 && (last || errno == ENOTDIR))
		fd = openat(here, name, flags);
	if (fd < 0 || fstat(fd, &s) < 0)
		return -errno;
	if (S_ISLNK(s.st_mode))
		return follow(w, fd, last);
	if (!last)
		return S_ISDIR(s.st_mode) ? push(w, TAKE_FD(fd), &s) : -ENOTDIR;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

/* Take the next component of the remaining path. Returns its length; 0: none. */
static size_t next_name(struct walk *w, char name[NAME_MAX + 1], bool *ret_last)
{
	w->at += strspn(w->rest + w->at, "/");
	const char *p = w->rest + w->at;
	size_t n = strcspn(p, "/");

	*ret_last = p[n] == 0;
	w->at += n;
	if (n <= NAME_MAX) {
		memcpy(name, p, n);
		name[n] = 0;
	}
	return n;
}

static int go(struct walk *w, int *ret_fd)
{
	char name[NAME_MAX + 1];
	bool last = false;

	for (;;) {
		size_t n = next_name(w, name, &last);
		int r = 0;
		if (n == 0)
			return -EISDIR; /* the path ends at a folder */
		if (n > NAME_MAX)
			return -ENAMETOOLONG;
		if (strcmp(name, "..") == 0)
			pop(w);
		else if (strcmp(name, ".") != 0)
			r = step(w, name, last, ret_fd);
		if (r < 0 || *ret_fd >= 0)
			return r;
	}
}

int path_open(int root, const char *path, const struct readers *readers, bool no_link)
{
	struct walk w = {.readers = readers, .no_link = no_link, .dir = {root}, .n_dirs = 1};
	struct stat s;
	int fd = -1;

	_cleanup_(closep) int ours = -1;
	if (!*path)
		return -ENOENT;
	if (strlen(path) >= sizeof(w.rest))
		return -ENAMETOOLONG;
	strcpy(w.rest, path);
	if (root == AT_FDCWD)
		w.dir[0] = root = ours = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fstat(root, &s) < 0)
		return -errno;
	int r = path_may(root, &s, readers, READER_SEARCHES) ? go(&w, &fd) : -EACCES;
	while (w.n_dirs > 1)
		pop(&w);
	return r < 0 ? r : fd;
}
