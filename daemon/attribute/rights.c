/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Rights: whose a process wholly is
 *
 * environ is looked at before status is read: one that ends meanwhile has given its memory back,
 * after which environ is root's and status has no sizes of memory, so that it is not taken for one
 * that hides. One that execs or changes its user between the two is, at worst, taken for nobody's.
 */

#include "daemon/attribute/rights.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/attribute/scan.h"
#include "proto/memory.h"

static const struct rights roots = {0, 0};

/* Source: fs/proc/array.c of Linux 6.12, render_cap_t. */
static bool scan_caps(const char *status, uint64_t *ret_caps)
{
	static const char label[] = "\nCapPrm:\t";
	const char *p = strstr(status, label);

	if (!p)
		return false;
	p += sizeof(label) - 1;
	return scan_number(&p, 16, ret_caps);
}

/* Source: fs/proc/task_mmu.c of Linux 6.12, task_mem: only of what has memory. */
static bool has_memory(const char *status)
{
	return strstr(status, "\nVmSize:\t");
}

int rights_parse(const char *status, uid_t environ_uid, bool own_caps, struct rights *ret_rights)
{
	struct rights rights;
	uint64_t caps;

	if (scan_uid_parse(status, &rights.uid, &rights.gid))
		return RIGHTS_GONE;
	if (rights.uid != 0 && !has_memory(status))
		return RIGHTS_GONE;

	bool whole = rights.uid != 0 && environ_uid == rights.uid && scan_caps(status, &caps) &&
		     (caps == 0 || own_caps);
	*ret_rights = whole ? rights : roots;
	return 0;
}

static bool same_file(int fd, const struct stat *st)
{
	struct stat other;

	return fd >= 0 && !fstat(fd, &other) && other.st_dev == st->st_dev &&
	       other.st_ino == st->st_ino;
}

/* Is its user namespace a child of ours that this user made? Source: man 7 user_namespaces; man 2
 * ioctl_ns. Of a grandchild it would take more steps, and it is nobody's. */
static bool in_namespace_of(int folder_fd, uid_t uid)
{
	_cleanup_(closep) int fd = openat(folder_fd, "ns/user", O_RDONLY | O_CLOEXEC);
	_cleanup_(closep) int parent_fd = fd >= 0 ? ioctl(fd, NS_GET_PARENT) : -1;
	uid_t owner;
	struct stat ours;

	return parent_fd >= 0 && !stat("/proc/self/ns/user", &ours) &&
	       same_file(parent_fd, &ours) && ioctl(fd, NS_GET_OWNER_UID, &owner) == 0 &&
	       owner == uid;
}

int rights_read(int folder_fd, struct rights *ret_rights)
{
	char text[SCAN_STAT_BYTES_MAX];
	struct stat st;
	uint64_t caps;

	if (fstatat(folder_fd, "environ", &st, 0) < 0 ||
		scan_text(folder_fd, "status", text, sizeof(text)) <= 0)
		return RIGHTS_GONE;
	bool own_caps = st.st_uid != 0 && scan_caps(text, &caps) && caps != 0 &&
			in_namespace_of(folder_fd, st.st_uid);
	return rights_parse(text, st.st_uid, own_caps, ret_rights);
}

static int rights_at(const char *path, struct rights *ret_rights)
{
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? RIGHTS_GONE : rights_read(fd, ret_rights);
}

int rights_of_process(pid_t pid, struct rights *ret_rights)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	return rights_at(path, ret_rights);
}

int rights_of_thread(pid_t pid, pid_t tid, struct rights *ret_rights)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d", (int)pid, (int)tid);
	return rights_at(path, ret_rights);
}
