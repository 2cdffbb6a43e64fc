/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "client/roofline/code.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/measure/program.h"
#include "client/show/say.h"
#include "proto/base/memory.h"

#define SOCKET_FD 3 /* Source: daemon/code/main.c */
#define FILE_FD 4
#define ANSWER_NS 60000000000ull /* it gives up by itself after 30 s of CPU time */

/* In the child. Descriptors are moved out of the way of 3 and 4 first. */
static void become_program(const char *path, int socket, int file)
{
	int high_socket = fcntl(socket, F_DUPFD, 16), high_file = fcntl(file, F_DUPFD, 16);
	int null = open("/dev/null", O_RDWR);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (high_socket < 0 || high_file < 0 || null < 0)
		_exit(EXIT_FAILED);
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	dup2(null, STDERR_FILENO); /* a crash is reported here, in words */
	dup2(high_socket, SOCKET_FD);
	dup2(high_file, FILE_FD);
	close(high_socket);
	close(high_file);
	execl(path, "mperf-code", (char *)NULL);
	_exit(EXIT_NOT_EXECUTABLE);
}

/* 0, CODE_FAILED, -errno */
static int give(int fd, const void *from, size_t n)
{
	for (size_t sent = 0; sent < n;) {
		ssize_t r = send(fd, (const char *)from + sent, n - sent, MSG_NOSIGNAL);
		if (r < 0 && errno != EINTR)
			return errno == EPIPE || errno == ECONNRESET ? CODE_FAILED : -errno;
		sent += r > 0 ? (size_t)r : 0;
	}
	return 0;
}

/* Read until the other end closes, at most n bytes. Their number; -errno. */
static ssize_t take(int fd, void *to, size_t n)
{
	size_t got = 0;
	uint64_t until_ns = say_now_ns() + ANSWER_NS;
	while (got < n) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		uint64_t now_ns = say_now_ns();
		int ready = now_ns < until_ns
				    ? poll(&p, 1, (int)((until_ns - now_ns) / 1000000) + 1)
				    : 0;
		if (ready < 0 && errno == EINTR)
			continue;
		if (ready <= 0)
			return ready < 0 ? -errno : -ETIMEDOUT;
		ssize_t r = recv(fd, (char *)to + got, n - got, 0);
		if (r < 0 && errno != EINTR)
			return -errno;
		if (r == 0)
			break;
		got += r > 0 ? (size_t)r : 0;
	}
	return (ssize_t)got;
}

/* 0, CODE_FAILED, -errno */
static int converse(int fd, const struct code_question *q, struct code_found *ret_found)
{
	struct code_request request = {.magic = CODE_MAGIC,
		.version = CODE_VERSION,
		.n_samples = q->n_samples,
		.vector_bits = q->vector_bits,
		.n_build_id = q->n_build_id};
	if (q->n_build_id)
		memcpy(request.build_id, q->build_id, q->n_build_id);
	size_t size = sizeof(struct code_reply) + q->n_samples * sizeof(struct code_loop) + 1;
	_cleanup_(freep) uint8_t *bytes = malloc(size);
	if (!bytes)
		return -ENOMEM;
	int r = give(fd, &request, sizeof(request));
	if (r == 0)
		r = give(fd, q->sample, q->n_samples * sizeof(*q->sample));
	if (r != 0)
		return r;
	ssize_t n = take(fd, bytes, size);
	if (n < 0 || !code_reply_check(bytes, (size_t)n, q->n_samples))
		return CODE_FAILED;
	memcpy(&ret_found->reply, bytes, sizeof(ret_found->reply));
	size_t loops = (size_t)n - sizeof(ret_found->reply);
	ret_found->loop = malloc(loops + 1);
	if (!ret_found->loop)
		return -ENOMEM;
	memcpy(ret_found->loop, bytes + sizeof(ret_found->reply), loops);
	return 0;
}

/* The path comes from a recording, which anyone may have made. Opening a device can have side
 * effects, so check that it is a regular file first. */
static int open_regular(const char *path)
{
	struct stat st;
	char again[64];
	_cleanup_(closep) int found = open(path, O_PATH | O_CLOEXEC);
	if (found < 0 || fstat(found, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	snprintf(again, sizeof(again), "/proc/self/fd/%d", found);
	int fd = open(again, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

static int open_below(const char *folder, const char *path)
{
	char full[PATH_MAX];
	const char *slash = strrchr(path, '/');
	const char *const parts[] = {path, slash ? slash : path};
	int fd = -ENOENT;
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts) && fd < 0; i++) {
		int n = snprintf(full, sizeof(full), "%s/%s", folder, parts[i]);
		fd = n < PATH_MAX ? open_regular(full) : -ENAMETOOLONG;
	}
	return fd;
}

int code_ask(const struct code_question *q, struct code_found *ret_found, int *ret_error)
{
	char path[PROGRAM_PATH_BYTES];
	int pair[2], status;
	if (!program_find("mperf-code", path))
		return CODE_NO_PROGRAM;
	_cleanup_(closep) int file =
		q->symfs ? open_below(q->symfs, q->path) : open_regular(q->path);
	if (file < 0) {
		*ret_error = -file;
		return CODE_NO_FILE;
	}
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	_cleanup_(closep) int ours = pair[0], theirs = pair[1];
	pid_t pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0)
		become_program(path, theirs, file);
	close(TAKE_FD(theirs));
	int r = converse(ours, q, ret_found);
	kill(pid, SIGKILL); /* it has answered, or never will */
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return r;
}
