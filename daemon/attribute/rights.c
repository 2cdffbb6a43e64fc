/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Rights: the user to whom a process belongs entirely
 *
 * environ and the namespace are read before status: a process that ends meanwhile has released its
 * memory, and then environ belongs to root and status has no memory sizes, so it is not mistaken
 * for a process that hides. A process that execs or changes its user between the two reads is, at
 * worst, taken to belong to nobody.
 */

#include "daemon/attribute/rights.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/attribute/scan.h"
#include "proto/base/memory.h"

/* Source: kernel/user_namespace.c of Linux 6.12, create_user_ns: level > 32. */
#define USER_NAMESPACES_DEPTH 33

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

/* Source: fs/proc/task_mmu.c of Linux 6.12, task_mem: only for processes with memory. */
static bool has_memory(const char *status)
{
	return strstr(status, "\nVmSize:\t");
}

int rights_parse(const char *status, uid_t environ_uid, bool own_caps, struct rights *ret_rights)
{
	struct rights rights;
	uint64_t caps;

	if (scan_uid_parse(status, &rights.uid, &rights.gid, &rights.account))
		return RIGHTS_GONE;
	if (rights.uid != 0 && !has_memory(status))
		return RIGHTS_GONE;

	bool whole = rights.uid != 0 && environ_uid == rights.uid && scan_caps(status, &caps) &&
		     (caps == 0 || own_caps);
	*ret_rights = whole ? rights : (struct rights){.account = rights.account};
	return 0;
}

static bool same_file(int fd, const struct stat *st)
{
	struct stat other;

	return fd >= 0 && !fstat(fd, &other) && other.st_dev == st->st_dev &&
	       other.st_ino == st->st_ino;
}

/* The owner of a process's user namespace. */
enum whose { OURS, USERS, OTHERS };

/* A user has all rights in a namespace that they created in ours, and in its descendants. In a
 * namespace that someone else created they have none, even over processes that run as them there,
 * such as a root unit with PrivateUsers=. Source: man 7 user_namespaces; man 2 ioctl_ns;
 * kernel/user_namespace.c and security/commoncap.c of Linux 6.12, cap_capable. */
static enum whose namespace_of(int folder_fd, uid_t uid)
{
	struct stat ours, theirs;
	uid_t owner;

	if (stat("/proc/self/ns/user", &ours) < 0)
		return OURS; /* the kernel has none */
	if (fstatat(folder_fd, "ns/user", &theirs, 0) < 0)
		return OTHERS;
	if (theirs.st_dev == ours.st_dev && theirs.st_ino == ours.st_ino)
		return OURS;
	_cleanup_(closep) int fd = openat(folder_fd, "ns/user", O_RDONLY | O_CLOEXEC);
	for (int i = 0; fd >= 0 && i < USER_NAMESPACES_DEPTH; i++) {
		int parent_fd = ioctl(fd, NS_GET_PARENT);
		if (same_file(parent_fd, &ours)) {
			close(parent_fd);
			return ioctl(fd, NS_GET_OWNER_UID, &owner) == 0 && owner == uid ? USERS
											: OTHERS;
		}
		close(fd);
		fd = parent_fd;
	}
	return OTHERS;
}

/* The folder of a process belongs to its effective user, whether it hides or not; to root once it has
 * ended. Source: fs/proc/base.c of Linux 6.12, task_dump_owner and pid_getattr. */
static bool is_roots(int folder_fd)
{
	struct stat st;

	return fstat(folder_fd, &st) == 0 && st.st_uid == 0;
}

int rights_read(int folder_fd, uid_t account, struct rights *ret_rights)
{
	char text[SCAN_STAT_BYTES_MAX];
	struct stat st;

	/* read first: a process that has ended seems to be root's, and then has no environ */
	bool acts_as_root = is_roots(folder_fd);
	if (fstatat(folder_fd, "environ", &st, 0) < 0)
		return RIGHTS_GONE;
	if (acts_as_root && account == 0) { /* status, which is slow to read, would show the same */
		*ret_rights = (struct rights){.account = 0};
		return 0;
	}
	enum whose whose = st.st_uid ? namespace_of(folder_fd, st.st_uid) : OURS;
	if (scan_text(folder_fd, "status", text, sizeof(text)) <= 0)
		return RIGHTS_GONE;
	return rights_parse(text, whose == OTHERS ? 0 : st.st_uid, whose == USERS, ret_rights);
}

/* --- groups ----------------------------------------------------------------------------------- */

static int by_uid(const void *a, const void *b)
{
	const struct rights *x = a, *y = b;

	return (x->uid > y->uid) - (x->uid < y->uid);
}

static int logins_of(FILE *f, struct login_groups *to)
{
	char text[4096]; /* of one line; a longer one is skipped */
	struct passwd user, *found;
	size_t size = 0;

	for (int r = 0; to->n_logins < LOGINS_MAX && r != ENOENT;) {
		r = fgetpwent_r(f, &user, text, sizeof(text), &found);
		if (r)
			continue;
		if (to->n_logins == size) {
			size = size ? 2 * size : 64;
			struct rights *grown = reallocarray(to->login, size, sizeof(*grown));
			if (!grown)
				return -ENOMEM;
			to->login = grown;
		}
		to->login[to->n_logins++] = (struct rights){.uid = user.pw_uid, .gid = user.pw_gid};
	}
	if (to->n_logins)
		qsort(to->login, to->n_logins, sizeof(*to->login), by_uid);
	return 0;
}

int login_groups_read(struct login_groups *g, const char *path)
{
	struct login_groups now = {.n_logins = 0};
	struct stat st;

	if (stat(path, &st) < 0 || !S_ISREG(st.st_mode) ||
		(st.st_mtim.tv_sec == g->changed.tv_sec &&
			st.st_mtim.tv_nsec == g->changed.tv_nsec))
		return 0;
	_cleanup_(fclosep) FILE *f = fopen(path, "re");
	if (!f)
		return 0;
	int r = logins_of(f, &now);
	if (r < 0) {
		login_groups_clear(&now);
		return r;
	}
	now.changed = st.st_mtim;
	login_groups_clear(g);
	*g = now;
	return 0;
}

bool login_groups_have(const struct login_groups *g, const struct rights *rights)
{
	const struct rights *found =
		g->n_logins ? bsearch(rights, g->login, g->n_logins, sizeof(*g->login), by_uid)
			    : NULL;

	return !found || found->gid == rights->gid;
}

void login_groups_clear(struct login_groups *g)
{
	free(g->login);
	*g = (struct login_groups){.n_logins = 0};
}
