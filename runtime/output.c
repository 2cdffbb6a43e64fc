/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * One file, one program: it is locked for as long as the program writes it, so that a child which
 * inherits MPERF_OUTPUT without %p in it writes nothing rather than over its parent's. It must be a
 * regular file, since anything else may make a writer wait.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "runtime/sink.h"

/* The path with each %p replaced by the pid, or false where it gets too long. */
static bool expand(const char *pattern, char path[MPERF_OUTPUT_PATH_BYTES])
{
	size_t at = 0;
	while (*pattern) {
		int n = 1;
		if (pattern[0] == '%' && pattern[1] == 'p')
			n = snprintf(path + at, MPERF_OUTPUT_PATH_BYTES - at, "%d", getpid());
		else
			path[at] = *pattern;
		at += (size_t)n;
		if (at >= MPERF_OUTPUT_PATH_BYTES)
			return false;
		pattern += pattern[0] == '%' && pattern[1] == 'p' ? 2 : 1;
	}
	path[at] = '\0';
	return true;
}

int mperf_output_open(struct sink *k)
{
	char path[MPERF_OUTPUT_PATH_BYTES];
	if (!expand(k->output, path))
		return -ENAMETOOLONG;

	int fd =
		open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666);
	if (fd < 0)
		return -errno;
	struct stat st;
	int r = 0;
	if (fstat(fd, &st) < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
		r = -errno;
	else if (!S_ISREG(st.st_mode))
		r = -EINVAL;
	else if (ftruncate(fd, 0) < 0)
		r = -errno;
	if (r < 0) {
		close(fd);
		return r;
	}
	return mperf_sink_take(k, fd);
}

/* A file that reaches the limit of its size brings its writer a signal, which is blocked now and
 * would end the program later. Source: setrlimit(2). */
static void drop_signal(int number)
{
	int error = errno;
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, number);
	sigtimedwait(&set, NULL, &(struct timespec){0});
	errno = error;
}

int mperf_output_put(struct sink *k, const void *message, size_t bytes)
{
	ssize_t n = write(k->fd, message, bytes);
	if (n == (ssize_t)bytes)
		return 0;
	if (n < 0 && errno == EFBIG)
		drop_signal(SIGXFSZ);
	if (n < 0 && errno != ENOSPC && errno != EDQUOT && errno != EINTR)
		return MPERF_SINK_NONE;

	/* A disc that is full: what was written of a message goes again, and it is tried later. */
	struct stat st;
	if (n > 0 && (fstat(k->fd, &st) < 0 || ftruncate(k->fd, st.st_size - n) < 0))
		return MPERF_SINK_NONE;
	return MPERF_SINK_FULL;
}
