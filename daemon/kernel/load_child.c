/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* The child's message is the result of its function, and the descriptors with it. */

#include "daemon/kernel/load_child.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <stdnoreturn.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

union control {
	struct cmsghdr head;
	char bytes[CMSG_SPACE(LOAD_FDS_MAX * sizeof(int))];
};

static noreturn void child(int socket, load_function *load, const void *userdata, int n_fds)
{
	int fd[LOAD_FDS_MAX];
	union control control = {0};
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "mperfd-bpf");
	int result = load(userdata, fd);
	struct iovec piece = {.iov_base = &result, .iov_len = sizeof(result)};
	struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
	if (result == 0) {
		const size_t n_bytes = (size_t)n_fds * sizeof(fd[0]);
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(n_bytes);
		struct cmsghdr *head = CMSG_FIRSTHDR(&message);
		head->cmsg_level = SOL_SOCKET;
		head->cmsg_type = SCM_RIGHTS;
		head->cmsg_len = CMSG_LEN(n_bytes);
		memcpy(CMSG_DATA(head), fd, n_bytes);
	}
	_exit(sendmsg(socket, &message, MSG_NOSIGNAL) < 0 ? EXIT_FAILURE : EXIT_SUCCESS);
}

static int receive(int socket, int n_fds, int ret_fd[])
{
	int result = 0, fd[LOAD_FDS_MAX];
	union control control = {0};
	struct iovec piece = {.iov_base = &result, .iov_len = sizeof(result)};
	struct msghdr message = {.msg_iov = &piece,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control)};
	ssize_t n;
	do
		n = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0 || result != 0)
		return n < 0 ? -errno : result;
	if (n != sizeof(result))
		return -ENOMEM;
	/* If our table is full, only some arrive. */
	const struct cmsghdr *head = CMSG_FIRSTHDR(&message);
	const size_t n_bytes = head ? head->cmsg_len - CMSG_LEN(0) : 0;
	if (head)
		memcpy(fd, CMSG_DATA(head), n_bytes);
	if (n_bytes != (size_t)n_fds * sizeof(fd[0])) {
		for (size_t i = 0; i < n_bytes / sizeof(fd[0]); i++)
			close(fd[i]);
		return -EMFILE;
	}
	memcpy(ret_fd, fd, n_bytes);
	return 0;
}

int load_in_child(load_function *load, const void *userdata, int n_fds, int ret_fd[])
{
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	const pid_t pid = fork();
	if (pid == 0) {
		close(pair[0]); /* so that it does not outlive the parent in a read */
		child(pair[1], load, userdata, n_fds);
	}
	int r = pid < 0 ? -errno : 0;
	close(pair[1]);
	if (r == 0)
		r = receive(pair[0], n_fds, ret_fd);
	close(pair[0]);
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		continue;
	return r;
}
