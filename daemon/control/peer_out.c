/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Unread reply bytes allowed. */

#include <errno.h>
#include <poll.h>

#include "daemon/conf/conf.h"
#include "daemon/control/peer.h"

size_t peer_out_bytes_max(const struct peer *p)
{
	return p->options->conf ? p->options->conf->client_bytes_max : PEER_OUT_BYTES_MAX;
}

bool peer_has_out_room(const struct peer *p)
{
	size_t filled = frame_buffer_filled(&p->out);
	uint64_t grown = filled > p->unread ? filled - p->unread : 0;
	return filled < PEER_BYTES_MIN ||
	       (filled < peer_out_bytes_max(p) && grown < user_room(p->user, USER_UNREAD));
}

int peer_flush(struct peer *p)
{
	while (frame_buffer_filled(&p->out) > PEER_AHEAD_BYTES) {
		struct pollfd fd = {.fd = p->fd, .events = POLLOUT};
		int64_t left = frame_buffer_write(&p->out, p->fd);
		if (left < 0)
			return (int)left;
		if ((size_t)left > PEER_AHEAD_BYTES && poll(&fd, 1, -1) < 0 && errno != EINTR)
			return -errno;
	}
	return 0;
}
