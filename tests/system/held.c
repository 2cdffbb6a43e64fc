/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Processes of a user whose memory lock is held, so that a read of their maps, cmdline or environ in
 * /proc blocks: mmap() of a file with FOPEN_DIRECT_IO writes its dirty pages back under the lock, and
 * the file system's server does not answer. The server is root's here, in a mount namespace of its own,
 * and the file system the user's, as if the user had mounted it with fusermount.
 *
 * Or, with exec: processes in the middle of an exec, which perf_event_open() waits for, since they close a file
 * whose flush is not answered.
 *
 * Usage: held FOLDER UID N [exec]; says the pids of N processes once all are held, until standard input ends.
 * Source: include/uapi/linux/fuse.h; fs/fuse/file.c of Linux 6.12, fuse_file_mmap.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/fuse.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define SIZE 4096
#define N_MAX 64

static int device;

static void reply(const struct fuse_in_header *in, int error, const void *data, size_t n)
{
	static char bytes[65536];
	struct fuse_out_header out = {(uint32_t)(sizeof(out) + n), error, in->unique};
	memcpy(bytes, &out, sizeof(out));
	if (n)
		memcpy(bytes + sizeof(out), data, n);
	if (write(device, bytes, out.len) < 0 && errno != ENOENT)
		perror("held: reply");
}

static struct fuse_attr attr_of(uint64_t node)
{
	return (struct fuse_attr){
		.ino = node,
		.mode = node == 1 ? S_IFDIR | 0755 : S_IFREG | 0666,
		.nlink = 1,
		.size = node == 1 ? 0 : SIZE,
		.blksize = SIZE,
	};
}

/* Files are called by the number of their node; each second open of one is direct. */
static void answer(const struct fuse_in_header *in, unsigned *n_held)
{
	static unsigned n_opened[N_MAX + 2];
	static const char zeros[SIZE];
	const void *body = in + 1;
	switch (in->opcode) {
	case FUSE_INIT: {
		struct fuse_init_out o = {
			.major = 7, .minor = 31, .max_write = 65536, .time_gran = 1};
		reply(in, 0, &o, sizeof(o));
		return;
	}
	case FUSE_LOOKUP: {
		uint64_t node = strtoull(body, NULL, 10);
		struct fuse_entry_out o = {.nodeid = node,
			.entry_valid = 1000,
			.attr_valid = 1000,
			.attr = attr_of(node)};
		reply(in, 0, &o, sizeof(o));
		return;
	}
	case FUSE_GETATTR: {
		struct fuse_attr_out o = {.attr_valid = 1000, .attr = attr_of(in->nodeid)};
		reply(in, 0, &o, sizeof(o));
		return;
	}
	case FUSE_OPEN: {
		bool direct = n_opened[in->nodeid]++ % 2;
		struct fuse_open_out o = {
			.open_flags = FOPEN_KEEP_CACHE | (direct ? FOPEN_DIRECT_IO : 0)};
		reply(in, 0, &o, sizeof(o));
		return;
	}
	case FUSE_READ:
		reply(in, 0, zeros, SIZE);
		return;
	case FUSE_WRITE:
	case FUSE_FLUSH: /* never answered */
		++*n_held;
		return;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		return;
	default:
		reply(in, -ENOSYS, NULL, 0);
	}
}

static void be_held(const char *folder, int uid, int node, bool exec)
{
	char path[256];
	close(device); /* so that the file system ends with its server */
	snprintf(path, sizeof(path), "%s/%d", folder, node);
	if (setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0)
		_exit(1);
	prctl(PR_SET_DUMPABLE, 1);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (exec && open(path, O_RDWR | O_CLOEXEC) >= 0)
		execl("/bin/sleep", "sleep", "600", (char *)NULL);
	int cached = open(path, O_RDWR);
	char *page = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, cached, 0);
	if (cached < 0 || page == MAP_FAILED) {
		perror("held: mmap");
		_exit(1);
	}
	page[0]++;
	int direct = open(path, O_RDWR);
	mmap(NULL, SIZE, PROT_READ, MAP_PRIVATE, direct, 0);
	_exit(0);
}

int main(int argc, char **argv)
{
	static char bytes[1 << 20] __attribute__((aligned(8)));
	char options[128];
	pid_t held[N_MAX];
	unsigned n_held = 0;
	bool said = false;
	if (argc != 4 && argc != 5)
		return 2;
	int uid = atoi(argv[2]), n = atoi(argv[3]);
	device = open("/dev/fuse", O_RDWR | O_CLOEXEC | O_NONBLOCK);
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=%d,group_id=%d", device,
		uid, uid);
	if (device < 0 || n < 1 || n > N_MAX || unshare(CLONE_NEWNS) < 0 ||
		mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		mount("held", argv[1], "fuse", MS_NOSUID | MS_NODEV, options) < 0) {
		perror("held");
		return 1;
	}
	for (int i = 0; i < n; i++)
		if ((held[i] = fork()) == 0)
			be_held(argv[1], uid, i + 2, argc == 5);
	fcntl(0, F_SETFL, O_NONBLOCK);
	for (char byte; read(0, &byte, 1) != 0;) {
		ssize_t got = read(device, bytes, sizeof(bytes));
		if (got > 0) {
			answer((struct fuse_in_header *)bytes, &n_held);
			continue;
		}
		if (n_held == (unsigned)n && !said) {
			for (int i = 0; i < n; i++)
				printf("%d ", (int)held[i]);
			puts("");
			fflush(stdout);
			said = true;
		}
		usleep(2000);
	}
	for (int i = 0; i < n; i++)
		kill(held[i], SIGKILL);
	umount2(argv[1], MNT_FORCE);
	return 0;
}
