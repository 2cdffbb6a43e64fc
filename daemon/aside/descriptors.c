/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Peeking takes a reference of its own to each descriptor of a message and drops it again, so it closes
 * nothing, and MSG_CTRUNC shows that there was a descriptor. A peek at a stream continues to the first
 * message with descriptors, however small its buffer. Bytes that it saw without MSG_CTRUNC can be read,
 * since no other task takes from the socket.
 * Source: net/unix/af_unix.c, unix_stream_read_generic and unix_dgram_recvmsg; include/net/scm.h,
 * scm_recv_unix; Linux 6.1 to 6.18. SO_PASSCRED would set MSG_CTRUNC always.
 */
#include "daemon/aside/descriptors.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/aside/aside.h"

/* Source: include/uapi/asm-generic/socket.h of Linux 6.16; the same on all architectures of ours. */
#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

void descriptors_refuse(int fd)
{
	int no = 0;
	(void)setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &no, sizeof(no));
	(void)setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &no, sizeof(no));
	(void)setsockopt(fd, SOL_SOCKET, SO_PASSSEC, &no, sizeof(no));
}

bool descriptors_may_come(int fd)
{
	int passes = 1;
	socklen_t n = sizeof(passes);
	if (getsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &passes, &n) == 0 && !passes)
		return false;
	descriptors_refuse(fd);
	return true;
}

static ssize_t receive(int fd, void *bytes, size_t n, int flags, int *ret_flags)
{
	struct iovec piece = {.iov_base = bytes, .iov_len = n};
	struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
	ssize_t got = recvmsg(fd, &message, flags | MSG_DONTWAIT);
	*ret_flags = message.msg_flags;
	return got < 0 ? -errno : got;
}

ssize_t descriptors_receive(int fd, bool may_come, void *bytes, size_t n)
{
	int flags;
	ssize_t got = may_come ? receive(fd, bytes, n, MSG_PEEK, &flags) : (ssize_t)n;
	if (got < 0 || (may_come && (flags & MSG_CTRUNC)))
		return got < 0 ? got : -EBADMSG;
	/* also an empty packet, and one that is longer than there is room */
	got = receive(fd, bytes, (size_t)got, 0, &flags);
	return got >= 0 && (flags & MSG_TRUNC) ? -EMSGSIZE : got;
}

/* --- closing ---------------------------------------------------------------------------------- */

struct closing {
	struct aside_work work;
	int fd;
};

static void close_socket(struct aside_work *w)
{
	close(((struct closing *)w)->fd);
}

static void free_closing(struct aside_work *w)
{
	free(w);
}

/* Without sending more: is something unread? An empty packet has no bytes, but may have descriptors. */
static bool has_unread(int fd)
{
	int n = 0, type = SOCK_SEQPACKET;
	socklen_t n_type = sizeof(type);
	(void)shutdown(fd, SHUT_RDWR);
	(void)getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n_type);
	return type != SOCK_STREAM || ioctl(fd, FIONREAD, &n) < 0 || n > 0;
}

bool descriptors_close(struct aside *closers, int fd, bool may_come, uid_t uid)
{
	struct closing *c = closers && may_come && has_unread(fd) ? malloc(sizeof(*c)) : NULL;
	if (!c) {
		close(fd);
		return false;
	}
	*c = (struct closing){
		.work = {.run = close_socket, .free = free_closing, .uid = uid},
		.fd = fd,
	};
	aside_queue(closers, &c->work);
	return true;
}
