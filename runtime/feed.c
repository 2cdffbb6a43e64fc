/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The daemon's socket takes complete messages or none, and never blocks the program: what does not
 * fit stays in the counters and goes with the next round.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "runtime/sink.h"

int mperf_feed_open(const struct sink *k)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	_Static_assert(sizeof(address.sun_path) == MPERF_FEED_PATH_BYTES, "a path fits");
	memcpy(address.sun_path, k->feed, sizeof(address.sun_path));

	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		int error = errno;
		close(fd);
		return -error;
	}
	return fd;
}

int mperf_feed_put(struct sink *k, const struct iovec *piece, int n_pieces)
{
	const struct msghdr message = {
		.msg_iov = (struct iovec *)piece, .msg_iovlen = (size_t)n_pieces};
	ssize_t n = sendmsg(k->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n == (ssize_t)mperf_sink_bytes(piece, n_pieces))
		return 0;
	/* ENOBUFS and ENOMEM: a temporary shortage of kernel memory. */
	if (n < 0 && (errno == EAGAIN || errno == EINTR || errno == ENOBUFS || errno == ENOMEM))
		return MPERF_SINK_FULL;
	return MPERF_SINK_NONE;
}
