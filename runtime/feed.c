/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The daemon's socket takes complete messages or none, and never blocks the program: what does not
 * fit stays in the counters and goes with the next round.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "runtime/sink.h"

/* The kernel serves callers that wait for the queue in order; a non-blocking connect gets a place
 * only by luck. */
static int connect_in_turn(int fd, const struct sockaddr *to, socklen_t n)
{
	const struct timeval patience = {.tv_usec = MPERF_PLACE_MS * 1000};
	int flags = fcntl(fd, F_GETFL);
	if (flags < 0 || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) < 0 ||
		setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) < 0 ||
		connect(fd, to, n) < 0 || fcntl(fd, F_SETFL, flags) < 0)
		return -errno;
	return 0;
}

int mperf_feed_open(const struct sink *k)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	_Static_assert(sizeof(address.sun_path) == MPERF_FEED_PATH_BYTES, "a path fits");
	memcpy(address.sun_path, k->feed, sizeof(address.sun_path));

	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	const struct sockaddr *to = (const struct sockaddr *)&address;
	int r = connect(fd, to, sizeof(address)) < 0 ? -errno : 0;
	if (r == -EAGAIN && k->patient)
		r = connect_in_turn(fd, to, sizeof(address));
	if (r < 0) {
		close(fd);
		return r;
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
