/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Unread reply bytes allowed. */

#include "daemon/conf.h"
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
