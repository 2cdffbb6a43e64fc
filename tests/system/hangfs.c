/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A file system with one file, /program, whose bytes are those of another file. Everybody may open
 * it but mperf's opener (known by its name): its open is never answered, as on a server that went
 * away. Nor is a read of mperfd's. Usage: hangfs BACKING_FILE MOUNT_POINT; runs until it is killed or unmounted.
 */
#define FUSE_USE_VERSION 35
#include <errno.h>
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PROGRAM_INODE 2

static int backing = -1;

static void fill(fuse_ino_t inode, struct stat *st)
{
	if (inode == PROGRAM_INODE) {
		fstat(backing, st);
		st->st_mode = S_IFREG | 0755;
	} else {
		*st = (struct stat){.st_mode = S_IFDIR | 0755, .st_nlink = 2};
	}
	st->st_ino = inode;
}

static void on_getattr(fuse_req_t request, fuse_ino_t inode, struct fuse_file_info *info)
{
	(void)info;
	struct stat st;
	fill(inode, &st);
	fuse_reply_attr(request, &st, 1000);
}

static void on_lookup(fuse_req_t request, fuse_ino_t parent, const char *name)
{
	(void)parent;
	if (strcmp(name, "program") != 0) {
		fuse_reply_err(request, ENOENT);
		return;
	}
	struct fuse_entry_param entry = {
		.ino = PROGRAM_INODE, .attr_timeout = 1000, .entry_timeout = 1000};
	fill(PROGRAM_INODE, &entry.attr);
	fuse_reply_entry(request, &entry);
}

/* Does the request come from a thread of that name? */
static int is_of(fuse_req_t request, const char *wanted)
{
	char path[64], name[32] = "";
	snprintf(path, sizeof(path), "/proc/%d/comm", (int)fuse_req_ctx(request)->pid);
	FILE *f = fopen(path, "re");
	if (f) {
		if (!fgets(name, sizeof(name), f))
			name[0] = '\0';
		fclose(f);
	}
	return strncmp(name, wanted, strlen(wanted)) == 0;
}

static void on_open(fuse_req_t request, fuse_ino_t inode, struct fuse_file_info *info)
{
	(void)inode;
	if (is_of(request, "mperf-namer"))
		return; /* never answered */
	info->keep_cache = 1;
	fuse_reply_open(request, info);
}

static void on_read(fuse_req_t request, fuse_ino_t inode, size_t size, off_t offset,
	struct fuse_file_info *info)
{
	(void)inode;
	(void)info;
	if (is_of(request, "mperfd"))
		return; /* never answered */
	char *bytes = malloc(size);
	ssize_t n = bytes ? pread(backing, bytes, size, offset) : -1;
	if (n < 0)
		fuse_reply_err(request, EIO);
	else
		fuse_reply_buf(request, bytes, (size_t)n);
	free(bytes);
}

int main(int argc, char **argv)
{
	if (argc != 3 || (backing = open(argv[1], O_RDONLY | O_CLOEXEC)) < 0) {
		fprintf(stderr, "usage: hangfs BACKING_FILE MOUNT_POINT\n");
		return 2;
	}
	static const struct fuse_lowlevel_ops operations = {
		.lookup = on_lookup,
		.getattr = on_getattr,
		.open = on_open,
		.read = on_read,
	};
	char *arguments[] = {argv[0], (char *)"-oallow_other,default_permissions", NULL};
	struct fuse_args args = FUSE_ARGS_INIT(2, arguments);
	struct fuse_session *session =
		fuse_session_new(&args, &operations, sizeof(operations), NULL);
	if (!session || fuse_session_mount(session, argv[2]) != 0)
		return 1;
	fuse_session_loop(session);
	fuse_session_unmount(session);
	fuse_session_destroy(session);
	return 0;
}
