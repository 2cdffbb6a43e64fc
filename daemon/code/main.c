/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * mperf-code: the program that mperfctl starts, as its own user, for each file whose machine code
 * it needs. It reads a request from descriptor 3 about the file that is descriptor 4, answers and
 * ends. It opens nothing and has the sandbox of the worker that parses files for mperfd, since the
 * file may be anybody's; LLVM is loaded before it is entered.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/code/reader.h"
#include "daemon/namer/sandbox.h"
#include "proto/base/memory.h"

#define SOCKET_FD 3
#define FILE_FD 4
#define SECONDS_MAX 30 /* of CPU time: LLVM reads 10 MB of code in one */

static int receive(void *to, size_t n)
{
	for (size_t got = 0; got < n;) {
		ssize_t r = read(SOCKET_FD, (char *)to + got, n - got);
		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return r < 0 ? -errno : -EPIPE;
		got += (size_t)r;
	}
	return 0;
}

/* The sandbox has sendmsg, and no write. */
static int give(const void *from, size_t n)
{
	for (size_t sent = 0; sent < n;) {
		struct iovec iov = {(char *)from + sent, n - sent};
		struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
		ssize_t r = sendmsg(SOCKET_FD, &m, MSG_NOSIGNAL);
		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -errno;
		sent += (size_t)r;
	}
	return 0;
}

static int serve(const struct table *t)
{
	struct code_request request;
	struct code_reply reply;
	int r = receive(&request, sizeof(request));
	if (r < 0)
		return r;
	if (request.magic != CODE_MAGIC || request.version != CODE_VERSION ||
		request.n_samples > CODE_SAMPLES_MAX || request.n_build_id > CODE_BUILD_ID_BYTES)
		return -EBADMSG;
	_cleanup_(freep) struct code_sample *samples =
		calloc((size_t)request.n_samples + 1, sizeof(*samples));
	_cleanup_(freep) struct code_loop *loops = NULL;
	if (!samples)
		return -ENOMEM;
	r = receive(samples, request.n_samples * sizeof(*samples));
	if (r == 0)
		r = code_answer(t, FILE_FD, &request, samples, &reply, &loops);
	if (r == 0)
		r = give(&reply, sizeof(reply));
	if (r == 0)
		r = give(loops, reply.n_loops * sizeof(*loops));
	return r;
}

int main(int argc, char **argv)
{
	struct table table;
	(void)argv;
	if (argc != 1) {
		fputs("mperf-code: only mperfctl starts this program\n", stderr);
		return 2;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	const struct rlimit seconds = {SECONDS_MAX, SECONDS_MAX};
	int r = setrlimit(RLIMIT_CPU, &seconds) < 0 ? -errno : sandbox_enter_parser();
	if (r == 0)
		r = table_load(&table);
	if (r == 0)
		r = serve(&table);
	if (r < 0)
		fprintf(stderr, "mperf-code: %s\n", strerror(-r));
	/* Exit without atexit handlers: LLVM's would free memory that the kernel frees at once. */
	_exit(r < 0 ? 1 : 0);
}
