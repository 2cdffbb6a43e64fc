/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Two pipes do it: the child waits for a byte on one; the other closes when exec succeeds, or
 * carries the errno when it fails. If mperfctl dies first, the child reads end of file and never
 * runs: nobody would measure it.
 */
#include "client/measure/workload.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/show/answer.h"
#include "client/show/say.h"
#include "proto/base/memory.h"

static void become_workload(int hold_fd, int trouble_fd, char **argv)
{
	char go;
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (read(hold_fd, &go, 1) != 1)
		_exit(EXIT_FAILED);
	answer_give_stdout();
	execvp(argv[0], argv);

	int error = errno;
	if (write(trouble_fd, &error, sizeof(error)) < 0)
		_exit(EXIT_FAILED);
	_exit(EXIT_NOT_FOUND);
}

int workload_fork(struct workload *w, char **argv)
{
	int hold[2], trouble[2];

	*w = (struct workload){.end_fd = -1, .hold_fd = -1, .trouble_fd = -1, .argv = argv};
	if (pipe2(hold, O_CLOEXEC) < 0)
		return -errno;
	_cleanup_(closep) int hold_in = hold[0], hold_out = hold[1];
	if (pipe2(trouble, O_CLOEXEC) < 0)
		return -errno;
	_cleanup_(closep) int trouble_in = trouble[0], trouble_out = trouble[1];

	pid_t pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0) {
		close(hold_out); /* or the child would wait for itself */
		become_workload(hold_in, trouble_out, argv);
	}

	w->pid = pid;
	w->hold_fd = TAKE_FD(hold_out);
	w->trouble_fd = TAKE_FD(trouble_in);
	w->end_fd = pidfd_open(pid, 0);
	return w->end_fd < 0 ? -errno : 0;
}

/* "No such file" of an existing file means that the interpreter on its first line is missing. */
static const char *not_run_remedy(const char *name, int error)
{
	struct stat st;
	bool found = strchr(name, '/') && stat(name, &st) == 0;

	if (error == ENOENT)
		return found ? "Check the interpreter on its first line, which does not exist"
			     : "Check its name, or give its path if it is not in a folder of PATH";
	if (error == EACCES && found && S_ISDIR(st.st_mode))
		return "It is a folder; name a program in it";
	if (error == EACCES)
		return "Make it executable with chmod +x, or name another command";
	if (error == E2BIG)
		return "Give it fewer arguments";
	return "Check that it runs without mperfctl";
}

static int say_not_run(struct workload *w, int error)
{
	char what[512];
	snprintf(what, sizeof(what), "cannot run '%.400s': %s", w->argv[0], strerror(error));
	say_failure(what, not_run_remedy(w->argv[0], error));
	workload_wait(w);
	w->exit_status = error == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
	return WORKLOAD_NOT_RUN;
}

int workload_release(struct workload *w)
{
	int error;

	w->start_ns = say_now_ns();
	if (write(w->hold_fd, "", 1) != 1)
		return -errno;
	close(TAKE_FD(w->hold_fd));
	ssize_t n = read(w->trouble_fd, &error, sizeof(error));
	close(TAKE_FD(w->trouble_fd));
	return n == sizeof(error) ? say_not_run(w, error) : 0;
}

static uint64_t time_ns(struct timeval t)
{
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_usec * 1000ull;
}

int workload_wait(struct workload *w)
{
	struct rusage usage;
	int status;

	while (wait4(w->pid, &status, 0, &usage) < 0)
		if (errno != EINTR)
			return -errno;
	w->elapsed_ns = say_now_ns() - w->start_ns;
	w->user_ns = time_ns(usage.ru_utime);
	w->system_ns = time_ns(usage.ru_stime);
	w->ended = true;
	w->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	w->exit_status = w->signal ? EXIT_SIGNAL_BASE + w->signal : WEXITSTATUS(status);
	close(TAKE_FD(w->end_fd));
	return 0;
}

void workload_clear(struct workload *w)
{
	bool held = w->pid > 0 && w->hold_fd >= 0;

	if (w->hold_fd >= 0)
		close(TAKE_FD(w->hold_fd));
	if (w->trouble_fd >= 0)
		close(TAKE_FD(w->trouble_fd));
	if (held && !w->ended)
		workload_wait(w);
	if (w->end_fd >= 0)
		close(TAKE_FD(w->end_fd));
}
