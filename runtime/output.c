/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * One file, one program: it is locked while the program writes it, so that a child that inherits
 * MPERF_OUTPUT without %p in it writes nothing rather than overwriting its parent's. It must be a
 * regular file, since anything else may block a writer.
 *
 * A file from an earlier run is overwritten. But a process that executes another program keeps its
 * pid and its environment, so both programs have the same file; the second appends to it. It knows
 * by two facts that the file is its own process's: counting began after the process did, and one of
 * the threads had the process's id, as its first thread has.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "runtime/abi.h"
#include "runtime/sink.h"

#define SECOND_NS UINT64_C(1000000000)
#define STAT_BYTES 1024 /* more than /proc/PID/stat has */
#define STAT_BEGIN 22   /* field with the time when the process began, in ticks since boot */
#define STAT_NAME 2     /* the last field that may contain spaces; it ends with ')' */

/* Replace each %p in the path by the pid; false if it gets too long. */
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

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * SECOND_NS + (uint64_t)t.tv_nsec;
}

/* Start of this process by CLOCK_MONOTONIC, at most a tick too early; execve(2) does not change it.
 * UINT64_MAX: unknown, without /proc. Source: proc_pid_stat(5), starttime. */
static uint64_t process_begin_ns(void)
{
	char text[STAT_BYTES + 1];
	int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, STAT_BYTES);
	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	const char *at = strrchr(text, ')');
	for (unsigned field = STAT_NAME; at && field < STAT_BEGIN; field++)
		at = strchr(at + 1, ' ');
	long ticks = sysconf(_SC_CLK_TCK);
	if (!at || ticks <= 0)
		return UINT64_MAX;
	uint64_t since_boot_ns = strtoull(at, NULL, 10) * (SECOND_NS / (uint64_t)ticks);
	/* since_boot_ns includes suspension, CLOCK_MONOTONIC does not; reading it first makes the
	 * result smaller, never larger */
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
	uint64_t suspended_ns = clock_ns(CLOCK_BOOTTIME) - now_ns;
	return since_boot_ns > suspended_ns ? since_boot_ns - suspended_ns : 0;
}

static bool read_at(int fd, off_t at, void *to, size_t bytes)
{
	return pread(fd, to, bytes, at) == (ssize_t)bytes;
}

/* The end of the last whole message, if this process wrote the file before an execve; else 0. */
static off_t earlier_end(int fd, off_t bytes)
{
	struct mperf_feed_hello hello;
	if (!read_at(fd, 0, &hello, sizeof(hello)) || hello.head.type != MPERF_HELLO ||
		hello.magic != MPERF_FEED_MAGIC || hello.begin_ns < process_begin_ns() ||
		hello.begin_ns > clock_ns(CLOCK_MONOTONIC)) /* another boot's */
		return 0;
	uint32_t pid = (uint32_t)getpid();
	bool ours = false;
	off_t at = 0;
	struct mperf_feed_head head;
	while (read_at(fd, at, &head, sizeof(head)) && head.bytes >= sizeof(head) &&
		head.bytes <= MPERF_PACKET_BYTES_MAX && head.bytes <= bytes - at) {
		struct mperf_feed_thread thread;
		if (head.type == MPERF_THREAD && read_at(fd, at, &thread, sizeof(thread)))
			ours = ours || thread.tid == pid;
		at += head.bytes;
	}
	return ours ? at : 0;
}

/* A descriptor that appends, and can be read where permissions allow it; or a negative -errno. */
static int open_path(const char *path)
{
	int flags = O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
	int fd = open(path, O_RDWR | flags, 0666);
	if (fd < 0 && errno == EACCES)
		fd = open(path, O_WRONLY | flags, 0666);
	return fd < 0 ? -errno : fd;
}

int mperf_output_open(const struct sink *k)
{
	char path[MPERF_OUTPUT_PATH_BYTES];
	if (!expand(k->output, path))
		return -ENAMETOOLONG;

	int fd = open_path(path);
	if (fd < 0)
		return fd;
	struct stat st;
	int r = 0;
	if (fstat(fd, &st) < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
		r = -errno;
	else if (!S_ISREG(st.st_mode))
		r = -EINVAL;
	else if (ftruncate(fd, earlier_end(fd, st.st_size)) < 0)
		r = -errno;
	if (r < 0) {
		close(fd);
		return r;
	}
	return fd;
}

/* A write beyond the file size limit raises a signal. It is blocked now, but would end the program
 * later. Source: setrlimit(2). */
static void drop_signal(int number)
{
	int error = errno;
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, number);
	sigtimedwait(&set, NULL, &(struct timespec){0});
	errno = error;
}

int mperf_output_put(struct sink *k, const struct iovec *piece, int n_pieces)
{
	ssize_t n = writev(k->fd, piece, n_pieces);
	if (n == (ssize_t)mperf_sink_bytes(piece, n_pieces))
		return 0;
	if (n < 0 && errno == EFBIG)
		drop_signal(SIGXFSZ);
	if (n < 0 && errno != ENOSPC && errno != EDQUOT && errno != EINTR)
		return MPERF_SINK_NONE;

	/* A full disk: undo the partial message, and retry later. */
	struct stat st;
	if (n > 0 && (fstat(k->fd, &st) < 0 || ftruncate(k->fd, st.st_size - n) < 0))
		return MPERF_SINK_NONE;
	return MPERF_SINK_FULL;
}
