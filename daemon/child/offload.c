/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A fork without exec: the child has a copy of the daemon's tables, and the functions of the program, so
 * we need not send it anything. Before it looks at the request, it gives up what it must not share:
 * descriptors, signals, capabilities.
 *
 * SQLite needs care. It remembers in the process which files are open there, by device and inode, and
 * takes no lock twice. A child inherits that memory but neither the locks nor the descriptors, so it
 * would read a file that the daemon writes without any lock. So we give the child's SQLite another
 * device number for each file than the parent's: it recognises no file, and opens and locks them as any
 * other process would. Source: https://www.sqlite.org/howtocorrupt.html, carrying
 * a connection across a fork; sqlite3_vfs.xSetSystemCall in https://www.sqlite.org/c3ref/vfs.html.
 */
#include "daemon/child/offload.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sqlite3.h>

#include "daemon/child/offload_child.h"
#include "proto/base/memory.h"

#define ANSWER_FD 3 /* in the child: the first after the standard ones */
#define OFFLOAD_OOM_SCORE                                                                          \
	"500"                    /* when memory is short children go long before the daemon, and   \
				    before much of what others run */
#define OFFLOAD_PLAIN_NICE 10    /* roll-ups have no limit of time */
#define OTHER_DEVICE 0x6d500000u /* flipped in device numbers: any bits do */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OFFLOAD_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define OFFLOAD_SANITIZED 1
#endif
#endif

struct offload {
	pid_t pid;
	int pidfd;
	bool ended;
	struct offload_end end;
};

/* --- the child -------------------------------------------------------------------------------- */

static int other_fstat(int fd, struct stat *st)
{
	int r = fstat(fd, st);
	st->st_dev ^= OTHER_DEVICE;
	return r;
}

static int other_stat(const char *path, struct stat *st)
{
	int r = stat(path, st);
	st->st_dev ^= OTHER_DEVICE;
	return r;
}

/* See above. 0 or -errno. */
static int forget_open_files(void)
{
	sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
	if (!vfs || vfs->iVersion < 3 || !vfs->xSetSystemCall)
		return -ENOTSUP;
	int rc = vfs->xSetSystemCall(vfs, "fstat", (sqlite3_syscall_ptr)other_fstat);
	if (rc == SQLITE_OK)
		rc = vfs->xSetSystemCall(vfs, "stat", (sqlite3_syscall_ptr)other_stat);
	return rc == SQLITE_OK ? 0 : -ENOTSUP;
}

static void reset_signals(void)
{
	sigset_t none;
	for (int number = 1; number < SIGRTMAX; number++)
		signal(number, SIG_DFL); /* fails for SIGKILL and SIGSTOP, which nobody changed */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Leave nothing open but the standard descriptors, with nothing to read, and fd as ANSWER_FD (-1:
 * none). Standard error stays: last words of a sanitizer go there. */
static int keep_only(int fd)
{
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null_fd < 0 || dup2(null_fd, STDIN_FILENO) < 0 || dup2(null_fd, STDOUT_FILENO) < 0)
		return -errno;
	if (fd >= 0 && fd != ANSWER_FD && dup2(fd, ANSWER_FD) < 0)
		return -errno;
	return close_range(fd >= 0 ? ANSWER_FD + 1 : ANSWER_FD, ~0u, 0) < 0 ? -errno : 0;
}

static int limit(int resource, rlim_t most)
{
	struct rlimit r;
	if (getrlimit(resource, &r) < 0)
		return -errno;
	if (r.rlim_max < most)
		most = r.rlim_max;
	r = (struct rlimit){.rlim_cur = most, .rlim_max = most};
	return setrlimit(resource, &r) < 0 ? -errno : 0;
}

static int set_limits(const struct child_options *o)
{
	int r = limit(RLIMIT_CPU, OFFLOAD_SECONDS_MAX);
	if (r == 0 && o->file_bytes)
		r = limit(RLIMIT_FSIZE, o->file_bytes);
	if (r == 0)
		r = limit(RLIMIT_CORE, 0); /* it would contain all users' samples */
#ifndef OFFLOAD_SANITIZED                  /* whose shadow is terabytes */
	if (r == 0)
		r = limit(RLIMIT_DATA, OFFLOAD_BYTES_MAX);
#endif
	return r;
}

static void offer_to_oom_killer(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	if (fd >= 0 && write(fd, OFFLOAD_OOM_SCORE, sizeof(OFFLOAD_OOM_SCORE) - 1) < 0)
		errno = 0; /* a lower priority is optional: nothing depends on it */
	if (fd >= 0)
		close(fd);
}

/* Source: man 2 capset. */
static int drop_capabilities(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3];
	memset(none, 0, sizeof(none));
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 && errno != EINVAL)
		return -errno;
	return syscall(SYS_capset, &header, none) < 0 ? -errno : 0;
}

/* Set up the child: descriptors, limits, rights and priority. 0 or -errno. */
static int settle(const struct child_options *o, pid_t parent, int fd)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		return -ESRCH; /* it died before we could ask for the signal */
	prctl(PR_SET_NAME, o->name);
	reset_signals();
	int r = keep_only(fd);
	if (r == 0)
		r = set_limits(o);
	offer_to_oom_killer(); /* while we have the right */
	if (r == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		r = -errno;
	if (r == 0 && !o->keeps_capabilities)
		r = drop_capabilities();
	if (r == 0)
		r = forget_open_files();
	if (o->nice)
		setpriority(PRIO_PROCESS, 0, o->nice);
	return r;
}

int child_fork(const struct child_options *o, int fd, struct offload **ret_offload)
{
	struct offload *child = calloc(1, sizeof(*child));
	if (!child)
		return -ENOMEM;
	pid_t parent = getpid();
	child->pid = fork();
	if (child->pid < 0) {
		int r = -errno;
		free(child);
		return r;
	}
	if (child->pid == 0) {
		if (settle(o, parent, fd) < 0)
			_exit(CHILD_UNSETTLED);
		_exit(o->run(o->userdata, ANSWER_FD));
	}
	child->pidfd = pidfd_open(child->pid, 0);
	if (child->pidfd < 0) {
		int r = -errno;
		offload_free(child);
		return r;
	}
	*ret_offload = child;
	return 0;
}

/* --- the parent ------------------------------------------------------------------------------- */

struct plain {
	offload_plain_function *run;
	void *userdata;
};

static int run_plain(void *userdata, int fd)
{
	struct plain *plain = userdata;
	(void)fd;
	return plain->run(plain->userdata);
}

int offload_run(offload_plain_function *run, void *userdata, struct offload **ret_offload)
{
	struct plain plain = {.run = run, .userdata = userdata};
	struct child_options o = {
		.run = run_plain,
		.userdata = &plain,
		.name = "mperfd-rollup",
		.nice = OFFLOAD_PLAIN_NICE,
	};
	return child_fork(&o, -1, ret_offload);
}

int offload_fd(const struct offload *o)
{
	return o->pidfd;
}

pid_t offload_pid(const struct offload *o)
{
	return o->pid;
}

/* Reap it, waiting or not. */
static bool reap(struct offload *o, int flags)
{
	int status = 0;
	pid_t r;
	while (!o->ended) {
		r = waitpid(o->pid, &status, flags);
		if (r < 0 && errno == EINTR)
			continue;
		if (r == 0)
			return false;
		o->ended = true;
		/* The child was reaped elsewhere (r < 0): we know only that it has ended. */
		if (r < 0)
			o->end = (struct offload_end){.status = -1, .signal = SIGKILL};
		else if (WIFSIGNALED(status))
			o->end = (struct offload_end){.status = -1, .signal = WTERMSIG(status)};
		else
			o->end = (struct offload_end){.status = WEXITSTATUS(status)};
	}
	return true;
}

int offload_poll(struct offload *o, struct offload_end *ret_end)
{
	if (!reap(o, WNOHANG))
		return OFFLOAD_RUNNING;
	*ret_end = o->end;
	return 0;
}

void offload_kill(struct offload *o)
{
	if (!o->ended)
		kill(o->pid, SIGKILL);
}

struct offload *offload_free(struct offload *o)
{
	if (!o)
		return NULL;
	offload_kill(o);
	reap(o, 0);
	if (o->pidfd >= 0)
		close(o->pidfd);
	free(o);
	return NULL;
}
