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

/* Protocol version. The major changes when old peers would misread a message. The minor rises with each addition to requests;
 * the client then says which older daemons lack it (client/wire/older.h). */
#define PROTOCOL_MAJOR 1
#define PROTOCOL_MINOR 6

/* Largest payload. Rows and bytes are sent in chunks below FRAME_CHUNK_BYTES, so no frame keeps a
 * peer busy for long; the remaining room is for requests with long event lists. */
#define FRAME_BYTES_MAX (1u << 20)
#define FRAME_CHUNK_BYTES (128u << 10)
#define FRAME_HEADER_BYTES 4u

enum {
	FRAME_NONE = 1,  /* no complete frame yet: read more */
	FRAME_TOO_LARGE, /* the length exceeds FRAME_BYTES_MAX: hang up */
	FRAME_MALFORMED, /* complete, but not a Message: hang up */
	FRAME_TOO_MUCH,  /* frame_check: unpacking would take too long: hang up */
};

/* Limit of the cost to unpack a request, in values: a number costs one, a text 16 (it is
 * allocated), a nested message 256 (if repeated it is merged, with a copy of all contents of the
 * first one). The largest sensible request has about 2,000; this many unpack in a few
 * milliseconds. */
#define FRAME_VALUES_MAX 65536u
#define FRAME_TEXT_VALUES 16u
#define FRAME_MESSAGE_VALUES 256u

/* A queue of bytes still to be parsed (in) or still to be written (out). */
struct frame_buffer {
	uint8_t *bytes;
	size_t start, end, size; /* [start, end) is filled */
};

/* Append n bytes at p (copied). -ENOMEM. */
int frame_buffer_append(struct frame_buffer *b, const void *p, size_t n);

/* Drop the first n filled bytes. */
void frame_buffer_consume(struct frame_buffer *b, size_t n);

/* Bytes filled. */
size_t frame_buffer_filled(const struct frame_buffer *b);

/* Free the memory; the buffer is empty and usable afterwards. */
void frame_buffer_clear(struct frame_buffer *b);

/* Append one message as a frame. -EMSGSIZE if it exceeds FRAME_BYTES_MAX, -ENOMEM. */
int frame_put(struct frame_buffer *b, const Mperf__Message *m);

/* Take the first complete frame. The caller owns *ret_message (mperf__message__free_unpacked).
 * Returns 0, FRAME_NONE, FRAME_TOO_LARGE, FRAME_MALFORMED, or -ENOMEM. */
int frame_take(struct frame_buffer *b, Mperf__Message **ret_message);

/* Check the first complete frame, before frame_take if its sender is not trusted: allocates
 * nothing, linear in its bytes. 0 (also without a complete frame); FRAME_TOO_MUCH. */
int frame_check(const struct frame_buffer *b);

/* Get room for one FRAME_CHUNK_BYTES behind the bytes in b, valid until the next call; NULL without memory.
 * Then note that n bytes of it were filled. */
void *frame_buffer_room(struct frame_buffer *b);
void frame_buffer_grow(struct frame_buffer *b, size_t n);

/* Read up to one FRAME_CHUNK_BYTES from the socket into b, without blocking. Returns the bytes
 * read; 0 at end of file; -EAGAIN if there is none; -errno. */
int64_t frame_buffer_read(struct frame_buffer *b, int fd);

/* Write as much as the socket takes (MSG_NOSIGNAL). Returns the bytes left in b, or -errno. */
int64_t frame_buffer_write(struct frame_buffer *b, int fd);
