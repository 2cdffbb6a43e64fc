/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Framing of the control socket
 *
 * A frame is a 32-bit little-endian payload length followed by that many bytes, one packed
 * Mperf__Message. A connection owns one frame_buffer per direction; both are plain memory, so
 * that every boundary can be tested without a socket.
 *
 *      0        4                 4 + length
 *      +--------+-----------------+--------+----
 *      | length | message         | length | …
 *      +--------+-----------------+--------+----
 */

#include <stddef.h>
#include <stdint.h>

#include "proto/mperf.pb-c.h"

/* Protocol version. A change of the major is a change of what old peers would misread. */
#define PROTOCOL_MAJOR 1
#define PROTOCOL_MINOR 1

/* Largest payload. Row and byte chunks are cut to stay below FRAME_CHUNK_BYTES, so one frame never
 * keeps a peer busy for long; the rest of the room is for requests with long event lists. */
#define FRAME_BYTES_MAX (1u << 20)
#define FRAME_CHUNK_BYTES (128u << 10)
#define FRAME_HEADER_BYTES 4u

enum {
	FRAME_NONE = 1,  /* no whole frame yet: read more */
	FRAME_TOO_LARGE, /* the length exceeds FRAME_BYTES_MAX: hang up */
	FRAME_MALFORMED, /* whole, but no Message: hang up */
	FRAME_TOO_MUCH,  /* of frame_check: it would take too long to unpack: hang up */
};

/* What a request may cost to unpack, in values: a number is one, a text costs as much as 16 (it is
 * allocated), a message within a message as much as 256 (said twice it is merged, with a copy of
 * all that the first one had). The largest request that makes sense has some 2,000; this many
 * unpack in some milliseconds. */
#define FRAME_VALUES_MAX 65536u
#define FRAME_TEXT_VALUES 16u
#define FRAME_MESSAGE_VALUES 256u

/* A queue of bytes that are still to be parsed (in) or still to be written (out). */
struct frame_buffer {
	uint8_t *bytes;
	size_t start, end, size; /* [start, end) is filled */
};

/* Append n bytes at p (copied). -ENOMEM. */
int frame_buffer_append(struct frame_buffer *b, const void *p, size_t n);

/* Forget the first n filled bytes. */
void frame_buffer_consume(struct frame_buffer *b, size_t n);

/* Bytes filled. */
size_t frame_buffer_filled(const struct frame_buffer *b);

/* Free the memory; the buffer is empty and usable afterwards. */
void frame_buffer_clear(struct frame_buffer *b);

/* Append one message as a frame. -EMSGSIZE if it exceeds FRAME_BYTES_MAX, -ENOMEM. */
int frame_put(struct frame_buffer *b, const Mperf__Message *m);

/* Take the first whole frame. The caller owns *ret_message (mperf__message__free_unpacked).
 * Returns 0, FRAME_NONE, FRAME_TOO_LARGE, FRAME_MALFORMED, or -ENOMEM. */
int frame_take(struct frame_buffer *b, Mperf__Message **ret_message);

/* Check the first whole frame, before frame_take where its sender is not trusted: without memory,
 * in time that is linear in its bytes. 0, also where there is none; FRAME_TOO_MUCH. */
int frame_check(const struct frame_buffer *b);

/* Read what the socket has, without blocking, up to one FRAME_CHUNK_BYTES, into b.
 * Returns the bytes read; 0 at end of file; -EAGAIN if nothing is there; -errno. */
int64_t frame_buffer_read(struct frame_buffer *b, int fd);

/* Write what the socket takes (MSG_NOSIGNAL). Returns bytes left in b, or -errno. */
int64_t frame_buffer_write(struct frame_buffer *b, int fd);
