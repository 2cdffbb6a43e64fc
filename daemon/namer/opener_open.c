/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * How to open a path safely. A path comes from another process and may now lead anywhere: to a
 * device that reacts to being opened, to a FIFO that blocks, to another file. So it is first
 * resolved (O_PATH does not open the device), looked at, and only then opened for reading through
 * /proc/self/fd.
 *
 * Being able to open a file is not enough. The service's capabilities open any user's files, while
 * a user controls what a process maps, what its debug links name and what is mounted in its
 * namespace; its names are shown to that user. So each file is opened for readers, and only if they
 * could have read it themselves: by each folder on the way (path_access.h), and by the file's own mode and
 * access control list. Modes are trusted where the kernel enforces them: on a user's own file system the user
 * decides, but that user has the bytes anyway. In /proc the kernel checks more than modes, so nothing there is
 * accepted as a file.
 *
 * A descriptor that leaves here is held by the daemon, which must never block: but close on FUSE
 * (FLUSH) and on NFS (CLOSE) waits for the server. So a file that is not on a local file system (opener_local.h) is
 * copied into memory first, and the copy is passed on.
 */
#include "daemon/namer/opener.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "daemon/namer/mapped.h"
#include "daemon/namer/opener_local.h"
#include "proto/base/memory.h"

/* A file's time is that of the last tick, at most 10 ms ago; plus one more tick. */
#define WRITTEN_SLACK_NS 20000000

/* Do its times come from our clock, to a few milliseconds? A server has its own clock; FAT has a
 * resolution of two seconds and its own time zone. An overlay has the times of its layers, and files written there
 * are usually local. */
static bool is_clocked(int fd)
{
	struct statfs s;

	if (fstatfs(fd, &s) < 0)
		return false;
	return s.f_type == OVERLAYFS_SUPER_MAGIC ||
	       (opener_is_local(fd, 0) && s.f_type != MSDOS_SUPER_MAGIC &&
		       (unsigned long)s.f_type != 0x2011bab0ul);
}

static int64_t in_ns(const struct timespec *t)
{
	return t->tv_sec * 1000000000ll + t->tv_nsec;
}

/* A time in the future is ignored: a clock is or was wrong. */
static bool is_later(int64_t time_ns, int64_t than_ns)
{
	struct timespec now;

	if (!than_ns || time_ns <= than_ns)
		return false;
	clock_gettime(CLOCK_REALTIME, &now);
	return time_ns <= in_ns(&now);
}

static bool leads_to(int dir, const char *link, const struct stat *s)
{
	struct stat is;

	return fstatat(dir, link, &is, 0) == 0 && is.st_dev == s->st_dev && is.st_ino == s->st_ino;
}

static bool is_still_mapped(const struct stat *s, const struct opener_demand *d)
{
	char range[64];

	if (d->mapper <= 0)
		return false;
	snprintf(range, sizeof(range), "map_files/%" PRIx64 "-%" PRIx64, d->map_start, d->map_end);
	return leads_to(d->mapper, range, s) || leads_to(d->mapper, "exe", s);
}

/* Did it have its contents when it was mapped? */
static int check_written(const struct stat *s, const struct opener_demand *d)
{
	const int64_t written_ns = in_ns(&s->st_mtim);

	if (is_later(written_ns, d->not_after_ns) ||
		(d->not_before_ns && written_ns < d->not_before_ns - WRITTEN_SLACK_NS))
		return -ESTALE;
	if (d->id_is_checked || !is_later(in_ns(&s->st_ctim), d->not_after_ns) ||
		is_still_mapped(s, d))
		return 0;
	return -ESTALE;
}

/* Copy the file at fd into memory. The length is the number of bytes read, at most the limit. */
static int copy(int fd, int *ret_fd, uint64_t *ret_bytes)
{
	static const size_t CHUNK_BYTES = 256 << 10;
	_cleanup_(freep) char *chunk = malloc(CHUNK_BYTES);
	_cleanup_(closep) int memory = memfd_create("mperf-copy", MFD_CLOEXEC);
	uint64_t bytes = 0;

	if (!chunk)
		return -ENOMEM;
	if (memory < 0)
		return -errno;
	for (;;) {
		ssize_t n = read(fd, chunk, CHUNK_BYTES);
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		bytes += (uint64_t)n;
		if (bytes > OPENER_COPY_BYTES_MAX)
			return -EFBIG;
		if (write(memory, chunk, (size_t)n) != n)
			return -EIO;
	}
	if (lseek(memory, 0, SEEK_SET) < 0)
		return -errno;
	*ret_fd = TAKE_FD(memory);
	*ret_bytes = bytes;
	return 0;
}

static int resolve(int dir, const char *path, const struct opener_demand *d)
{
	if (!d->linked)
		return path_open(dir, path, d->readers, d->owned || d->no_link);
	int fd = openat(dir, path, O_PATH | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static bool is_named(const struct stat *s, const struct opener_demand *d)
{
	return s->st_ino == d->inode && major(s->st_dev) == d->major &&
	       minor(s->st_dev) == d->minor;
}

/* May this be the demanded file? stat identifies a file as the kernel's records do, unless its device is anonymous
 * (major 0). */
static bool may_be(const struct stat *s, const struct opener_demand *d)
{
	return d->inode == 0 || major(s->st_dev) == 0 || d->major == 0 || is_named(s, d);
}

/* Is this the demanded file? On an overlay, /proc/PID/maps of some kernels identifies files as stat does, and not as
 * records do. */
static bool is_same(int fd, const struct stat *s, const struct opener_demand *d)
{
	struct mapped_file f;

	if (d->inode == 0)
		return true;
	if (!d->mapped || mapped_ask(d->mapped, fd, &f) < 0)
		return is_named(s, d);
	if (f.generation && d->generation && f.generation != d->generation)
		return false;
	return (f.inode == d->inode && f.major == d->major && f.minor == d->minor) ||
	       is_named(s, d);
}

static bool is_below_proc(int fd)
{
	struct statfs s;

	return fstatfs(fd, &s) == 0 && s.f_type == PROC_SUPER_MAGIC;
}

static int check(int place, const struct stat *s, const struct opener_demand *d)
{
	const struct readers *readers = d->readers;

	if (!S_ISREG(s->st_mode))
		return -EACCES;
	if (!may_be(s, d))
		return -ENOENT;
	if (d->owned && (s->st_uid != d->owner || d->owner == READER_NOBODY ||
				(readers->unmapped && s->st_uid == readers->unmapped)))
		return -EACCES;
	if (!path_may(place, s, readers, READER_READS) || (readers->n && is_below_proc(place)))
		return -EACCES;
	if ((uint64_t)s->st_size > WORKER_FILE_BYTES_MAX)
		return -EFBIG;
	return 0;
}

/* Identity and owner of the file. A remote file system, or one that a user serves, may report
 * anything. An ACL that lets another user write shows in the group's mode bits. Source: man 5
 * acl. */
static void note_origin(const struct stat *s, bool local, struct opener_answer *a)
{
	a->inode = s->st_ino;
	a->major = major(s->st_dev);
	a->minor = minor(s->st_dev);
	a->changed_ns = in_ns(&s->st_mtim);
	a->status_ns = in_ns(&s->st_ctim);
	a->owner = s->st_uid;
	a->sole = local && !(s->st_mode & (S_IWGRP | S_IWOTH));
}

int opener_open(
	int dir, const char *path, const struct opener_demand *d, struct opener_answer *ret_answer)
{
	_cleanup_(closep) int place = resolve(dir, path, d);
	if (place < 0)
		return place;

	struct stat s;
	if (fstat(place, &s) < 0)
		return -errno;
	int r = check(place, &s, d);
	if (r < 0)
		return r;

	char self[sizeof("/proc/self/fd/") + 11];
	snprintf(self, sizeof(self), "/proc/self/fd/%d", place);
	_cleanup_(closep) int fd = open(self, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return -errno;

	if (!is_same(fd, &s, d))
		return -ENOENT;
	const bool clocked = is_clocked(fd);
	r = clocked ? check_written(&s, d) : 0;
	if (r < 0)
		return r;
	uint64_t bytes = (uint64_t)s.st_size;
	bool local = opener_is_local(fd, d->host);
	ret_answer->leaves = local && !opener_is_on_our_root(&s);
	if (!local) {
		int memory = -1;
		r = copy(fd, &memory, &bytes);
		if (r < 0)
			return r;
		close(fd);
		fd = memory;
	}
	ret_answer->fd = TAKE_FD(fd);
	ret_answer->bytes = bytes;
	ret_answer->copied = !local;
	ret_answer->written_ns = local && clocked ? in_ns(&s.st_mtim) : 0;
	note_origin(&s, local, ret_answer);
	return 0;
}
