/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Rights: the user to whom a process belongs entirely, and the one who pays for it
 *
 * This decides what a user may learn about a process. The owner of /proc/PID is not enough: it is
 * the effective user, also of a set-user-ID program, of one with file capabilities, or of a root
 * daemon that switched to that user. A process belongs to a user who could read its memory, by the
 * kernel's rules for ptrace. Source: kernel/ptrace.c of Linux 6.12, __ptrace_may_access;
 * security/commoncap.c, cap_ptrace_access_check.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <time.h>

/* The account of processes without a known user. It is never root's, since it would take root's share. */
#define ACCOUNT_NOBODY ((uid_t) - 1)

struct rights {
	/* the owner, who may learn about it; root, 0 and 0, also if it belongs entirely to no
	 * user */
	uid_t uid;
	gid_t gid;
	/* the user who pays for it: its real user, even if that user may learn nothing about it. Only
	 * root and set-user-ID programs of root's can change that. ACCOUNT_NOBODY: not known */
	uid_t account;
};

/* Does it belong to that user alone? False if it belongs to nobody. */
static inline bool rights_are_whole(uid_t uid, uid_t account)
{
	return uid == account && account != ACCOUNT_NOBODY;
}

/* Gone, or without memory (not started yet, or ended): nothing is known about it. */
enum { RIGHTS_GONE = 1 };

/* Read the owner of the process in the folder, /proc/PID or /proc/PID/task/TID for a single thread.
 * It belongs to a user if
 *   - the user owns its file environ, which the kernel gives to root unless the process is
 *     dumpable: its program is readable, its file gave it no rights, and it did not ask to
 *     be hidden;
 *   - its real, effective, saved and file system users are the user, and its four groups are equal;
 *   - its user namespace is ours, and it has no permitted capability; or the user made its
 *     namespace or an ancestor of it, and has all capabilities there.
 * Peers other than root are assumed to have no capability: those who have any can join the group
 * that sees all processes, or run a private mperfd, which the kernel checks. `account` is the one it had
 * so far, ACCOUNT_NOBODY if that is not known: where root's process still acts as root, its real user is
 * not read again. About 15 µs; 5 µs then. 0; RIGHTS_GONE, with *ret_rights untouched. */
int rights_read(int folder_fd, uid_t account, struct rights *ret_rights);

/* For tests and fuzzers too: the same from the text of status, if environ belongs to environ_uid; `own_caps`: the capabilities
 * are in a namespace of that user. Exported for tests. */
int rights_parse(const char *status, uid_t environ_uid, bool own_caps, struct rights *ret_rights);

/* The users' login groups, from /etc/passwd only: other sources may hang. The store does not keep
 * the group of a process, so a process with another group than its user's belongs to nobody
 * there. */
#define LOGINS_MAX 65536 /* further users are treated as unknown */
struct login_groups {
	struct rights *login; /* n_logins, sorted by uid */
	size_t n_logins;
	struct timespec changed; /* modification time of the file at the last reading */
};

/* Read the file if it has changed. 0, also if it cannot be read (the old contents stay);
 * -ENOMEM. */
int login_groups_read(struct login_groups *g, const char *path);
/* Is it the login group of that user? True for users that the file does not have. */
bool login_groups_have(const struct login_groups *g, const struct rights *rights);
void login_groups_clear(struct login_groups *g);
