/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Rights: whose a process wholly is
 *
 * The one decision that governs what a user may learn of a process. The owner of /proc/PID does not
 * make it: that is the effective user, which a set-user-ID program, one with capabilities
 * of its file, or a daemon of root's that became the user all have. A process is a user's if that
 * user could read its memory, as the kernel decides it for ptrace.
 * Source: kernel/ptrace.c of Linux 6.12, __ptrace_may_access; security/commoncap.c,
 * cap_ptrace_access_check.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <time.h>

/* Whose it is; root's, {0, 0}, also where it is nobody's wholly. */
struct rights {
	uid_t uid;
	gid_t gid;
};

/* Gone, or without memory: it has not begun or has ended, and nothing can be said of it. */
enum { RIGHTS_GONE = 1 };

/* Read whose the process in the folder is: one of /proc/PID, or of a single thread,
 * /proc/PID/task/TID. It is a user's if
 *   - that user owns its file environ, which the kernel gives to root unless the process is
 * dumpable: its program can be read, its file gave it no rights, and it did not ask for it to be
 * hidden;
 *   - its real, effective, saved and file system users are that user, and its four groups are one;
 *   - its user namespace is ours, and it has no permitted capability; or it is one that the user
 *     made, or one below that: there the user has all capabilities.
 * Peers other than root are taken to have no capability themselves: those who have any can join the
 * group that sees all, or run a private mperfd, of which the kernel asks. Some 15 µs. 0;
 * RIGHTS_GONE, *ret_rights is untouched then. */
int rights_read(int folder_fd, struct rights *ret_rights);

/* The same of the text of status alone, where environ belongs to environ_uid, and `own_caps` says
 * that the capabilities are of a namespace of that user. */
int rights_parse(const char *status, uid_t environ_uid, bool own_caps, struct rights *ret_rights);

/* Of a process, by its pid; of a thread of it by both. */
int rights_of_process(pid_t pid, struct rights *ret_rights);
int rights_of_thread(pid_t pid, pid_t tid, struct rights *ret_rights);

/* The groups that users log in with, of /etc/passwd alone: other sources may hang. Files of the
 * store do not know the group of a process, so one that runs with another than its user's is
 * nobody's there. */
#define LOGINS_MAX 65536 /* users beyond it are as those that it does not have */
struct login_groups {
	struct rights *login; /* n_logins, sorted by uid */
	size_t n_logins;
	struct timespec changed; /* when the file was, as of the last reading */
};

/* Read the file if it changed since. 0, also where it cannot be read (what was read stays);
 * -ENOMEM. */
int login_groups_read(struct login_groups *g, const char *path);
/* Is it the group of that user, as far as the file knows the user? */
bool login_groups_have(const struct login_groups *g, const struct rights *rights);
void login_groups_clear(struct login_groups *g);
