/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * We may hold files whose close waits only for a disk, never for a server. An overlay is as local as its layers,
 * which only the line of its mount names. Any user can make an overlay over FUSE in a user namespace of their own;
 * in a mount namespace that belongs to our user namespace only root can, and we trust root's overlays. The paths of
 * the layers are valid in the mount namespace where the overlay was mounted: for a container usually ours, else
 * that of the process, outside its chroot. One of the layers must be there, and none may be on a file system that
 * may hang.
 */
#include "daemon/namer/opener_local.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/nsfs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "daemon/namer/mounts.h"
#include "proto/base/memory.h"

/* File systems whose close and read wait only for a disk. Source: linux/magic.h; if missing there,
 * fs/NAME/super.c or format.h of the file system itself. */
static const unsigned long local_file_systems[] = {EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC,
	BTRFS_SUPER_MAGIC, TMPFS_MAGIC, RAMFS_MAGIC, SQUASHFS_MAGIC, F2FS_SUPER_MAGIC,
	EROFS_SUPER_MAGIC_V1, PROC_SUPER_MAGIC, ISOFS_SUPER_MAGIC, MSDOS_SUPER_MAGIC,
	HUGETLBFS_MAGIC, 0x2011bab0ul /* exfat */, 0xca451a4eul /* bcachefs */,
	0x2fc12fc1ul /* zfs */, 0x3153464aul /* jfs */};

#define TOP_DEPTH 64 /* of a chroot's folder; the layers of a deeper one may not be found */

static uint64_t mount_of(int dir, const char *path)
{
	struct statx x;

	if (statx(dir, path, *path ? 0 : AT_EMPTY_PATH, STATX_MNT_ID, &x) < 0 ||
		!(x.stx_mask & STATX_MNT_ID))
		return 0;
	return x.stx_mnt_id;
}

static bool is_in_our_root(int fd)
{
	const uint64_t mount = mount_of(fd, "");

	return mount && mount == mount_of(AT_FDCWD, "/");
}

static bool is_listed(int fd, unsigned long *ret_type)
{
	struct statfs s;

	if (fstatfs(fd, &s) < 0)
		return false;
	*ret_type = (unsigned long)s.f_type;
	for (size_t i = 0; i < sizeof(local_file_systems) / sizeof(*local_file_systems); i++)
		if ((unsigned long)s.f_type == local_file_systems[i])
			return true;
	return s.f_type == OVERLAYFS_SUPER_MAGIC && is_in_our_root(fd);
}

/* Can this mount namespace be changed only by users who could change ours? Source: man ioctl_ns. */
static bool is_mounted_by_root(int proc)
{
	struct stat theirs, ours;
	_cleanup_(closep) int mounts = openat(proc, "ns/mnt", O_RDONLY | O_CLOEXEC);
	_cleanup_(closep) int users = mounts < 0 ? -1 : ioctl(mounts, NS_GET_USERNS);

	return users >= 0 && fstat(users, &theirs) == 0 && stat("/proc/self/ns/user", &ours) == 0 &&
	       theirs.st_dev == ours.st_dev && theirs.st_ino == ours.st_ino;
}

/* 1: local; 0: not there; -1: not local. */
static int layer_at(int dir, const char *path)
{
	unsigned long type;
	_cleanup_(closep) int fd = openat(dir, path, O_PATH | O_CLOEXEC);

	return fd < 0 ? 0 : is_listed(fd, &type) ? 1 : -1;
}

static bool is_local_layer(int root, const char *path)
{
	if (path[0] != '/' || !path[1])
		return false;
	const int here = layer_at(AT_FDCWD, path), there = layer_at(root, path + 1);
	return here >= 0 && there >= 0 && here + there > 0;
}

static const char *value_of(const char *option)
{
	static const char *const names[] = {"lowerdir=", "lowerdir+=", "datadir+=", "upperdir="};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strncmp(option, names[i], strlen(names[i])) == 0)
			return option + strlen(names[i]);
	return NULL;
}

/* Source: man proc_pid_mountinfo; Documentation/filesystems/overlayfs.rst. Names with escapes are not looked for. */
static bool are_local_layers(int root, const char *options)
{
	_cleanup_(freep) char *copy = strchr(options, '\\') ? NULL : strdup(options);
	char *rest = copy, *option, *layer;
	bool any = false;

	while ((option = strsep(&rest, ","))) {
		char *layers = (char *)value_of(option);
		while (layers && (layer = strsep(&layers, ":"))) {
			if (*layer && !is_local_layer(root, layer))
				return false;
			any = true;
		}
	}
	return any;
}

/* The root of the mount namespace of a process that may be in a chroot, or -1. From outside the
 * chroot, ".." leads up to it. */
static int open_top(int proc)
{
	char up[sizeof("root") + sizeof("/..") * TOP_DEPTH] = "root";

	for (size_t n = strlen(up), i = 0; i < TOP_DEPTH; i++, n += strlen("/.."))
		memcpy(up + n, "/..", sizeof("/.."));
	return openat(proc, up, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static bool is_local_overlay(int fd, int proc)
{
	struct mount_line line = {0};
	const uint64_t mount = mount_of(fd, "");
	_cleanup_(closep) int root = open_top(proc);

	if (!mount || root < 0 || !is_mounted_by_root(proc))
		return false;
	struct mounts *mounts = mounts_begin(proc);
	bool local = false;
	while (mounts && mounts_next(mounts, &line))
		if (line.id == mount) {
			local = strcmp(line.type, "overlay") == 0 &&
				are_local_layers(root, line.options);
			break;
		}
	mounts_end(mounts);
	return local;
}

bool opener_is_local(int fd, int proc)
{
	unsigned long type = 0;

	if (is_listed(fd, &type))
		return true;
	return type == OVERLAYFS_SUPER_MAGIC && proc > 0 && is_local_overlay(fd, proc);
}

bool opener_is_on_our_root(const struct stat *s)
{
	struct stat root;

	return stat("/", &root) == 0 && root.st_dev == s->st_dev;
}
