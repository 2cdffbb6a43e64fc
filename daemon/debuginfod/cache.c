/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The library removes by age alone, so a size is ours to keep. An empty file tells the library for ten minutes that no
 * server has it. A fetch that was killed leaves debuginfo.XXXXXX, which the library never removes.
 */
#include "daemon/debuginfod/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "proto/base/array.h"
#include "proto/base/memory.h"

/* Time for which the library knows that no server has a file. Source: debuginfod-client.c, cache_miss_s. */
#define MISS_S 600

DEFINE_CLEANUP(DIR *, closedir)

/* FOLDER/BUILDID. False: it is no build id. */
static bool folder_of(
	const char *folder, const uint8_t *build_id, uint8_t n, char ret_path[PATH_MAX])
{
	int at = snprintf(ret_path, PATH_MAX, "%s/", folder);

	if (n < 2 || n > DEBUGINFOD_ID_BYTES_MAX || at + 2 * n + 16 >= PATH_MAX)
		return false;
	for (uint8_t i = 0; i < n; i++)
		at += snprintf(ret_path + at, PATH_MAX - (size_t)at, "%02x", build_id[i]);
	return true;
}

bool debuginfod_cache_path(
	const char *folder, const uint8_t *build_id, uint8_t n, char ret_path[PATH_MAX])
{
	if (!folder_of(folder, build_id, n, ret_path))
		return false;
	strcat(ret_path, "/debuginfo");
	return true;
}

bool debuginfod_cached(
	const char *folder, const uint8_t *build_id, uint8_t n, char ret_path[PATH_MAX])
{
	struct stat is;

	return debuginfod_cache_path(folder, build_id, n, ret_path) && lstat(ret_path, &is) == 0 &&
	       S_ISREG(is.st_mode) && is.st_size > 0 && access(ret_path, R_OK) == 0;
}

int debuginfod_cache_open(const char *folder, const uint8_t *build_id, uint8_t n)
{
	char path[PATH_MAX];

	if (!folder_of(folder, build_id, n, path))
		return -EINVAL;
	if (chmod(path, 0755) < 0)
		return -errno;
	strcat(path, "/debuginfo");
	/* the library may have had it for long */
	return chmod(path, 0644) < 0 || utimensat(AT_FDCWD, path, NULL, 0) < 0 ? -errno : 0;
}

/* --- its size --------------------------------------------------------------------------------- */

struct kept {
	char path[2 * DEBUGINFOD_ID_BYTES_MAX + NAME_MAX + 2]; /* below the cache's folder */
	uint64_t bytes;
	int64_t written_ns;
};

struct listing {
	struct kept *kept;
	uint32_t n, size;
	uint64_t bytes; /* of all */
};

static int add(struct listing *l, const char *folder, const char *name, const struct stat *is)
{
	int r = array_grow(&l->kept, &l->size, l->n + 1, sizeof(*l->kept));
	if (r < 0)
		return r;
	struct kept *k = &l->kept[l->n];
	const int n = snprintf(k->path, sizeof(k->path), "%s/%s", folder, name);
	if (n < 0 || (size_t)n >= sizeof(k->path))
		return 0; /* not the library's */
	k->bytes = (uint64_t)is->st_blocks * 512;
	k->written_ns = (int64_t)is->st_mtim.tv_sec * 1000000000 + is->st_mtim.tv_nsec;
	l->bytes += k->bytes;
	l->n++;
	return 0;
}

static bool is_left_over(const char *name, const struct stat *is)
{
	static const char partial[] = "debuginfo.";

	return strncmp(name, partial, sizeof(partial) - 1) == 0 ||
	       (is->st_size == 0 && is->st_mtim.tv_sec < time(NULL) - MISS_S);
}

/* Remove what is left over, and add the rest. A folder that is empty goes. */
static int list_folder(struct listing *l, int root, const char *name)
{
	const struct dirent *entry;
	struct stat is;
	int r = 0, fd = openat(root, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	_cleanup_(closedirp) DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;

	if (!folder) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	while (r == 0 && (entry = readdir(folder)))
		if (fstatat(fd, entry->d_name, &is, AT_SYMLINK_NOFOLLOW) == 0 &&
			S_ISREG(is.st_mode) &&
			(!is_left_over(entry->d_name, &is) || unlinkat(fd, entry->d_name, 0) < 0))
			r = add(l, name, entry->d_name, &is);
	if (unlinkat(root, name, AT_REMOVEDIR) < 0 && fstat(fd, &is) == 0)
		l->bytes += (uint64_t)is.st_blocks * 512;
	return r;
}

/* Remove a file, and its folder if that was the last. */
static void drop(struct listing *l, int root, struct kept *k)
{
	struct stat is;

	if (unlinkat(root, k->path, 0) < 0)
		return;
	l->bytes -= k->bytes;
	*strchr(k->path, '/') = '\0';
	if (fstatat(root, k->path, &is, AT_SYMLINK_NOFOLLOW) == 0 &&
		unlinkat(root, k->path, AT_REMOVEDIR) == 0)
		l->bytes -= (uint64_t)is.st_blocks * 512;
}

static int by_time(const void *a, const void *b)
{
	const struct kept *x = a, *y = b;

	return (x->written_ns > y->written_ns) - (x->written_ns < y->written_ns);
}

int64_t debuginfod_cache_trim(const char *folder, uint64_t bytes_max)
{
	_cleanup_(closedirp) DIR *root = opendir(folder);
	const struct dirent *entry;
	struct listing l = {NULL, 0, 0, 0};
	int r = 0;

	if (!root)
		return -errno;
	while (r == 0 && (entry = readdir(root)))
		if (entry->d_name[0] != '.')
			r = list_folder(&l, dirfd(root), entry->d_name);
	if (l.n > 0)
		qsort(l.kept, l.n, sizeof(*l.kept), by_time);
	for (uint32_t i = 0; r == 0 && i < l.n && l.bytes > bytes_max; i++)
		drop(&l, dirfd(root), &l.kept[i]);
	free(l.kept);
	return r < 0 ? r : (int64_t)l.bytes;
}
