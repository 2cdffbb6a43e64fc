/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A frame buffer is a flat array with a moving start. It is compacted only when it must grow, so a
 * stream of small frames costs one memmove per buffer length, not one per frame. We check a length
 * before waiting for the bytes after it: a peer that announces 4 GB is refused at once.
 */
#include "proto/frame.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

size_t frame_buffer_filled(const struct frame_buffer *b)
{
	return b->end - b->start;
}

void frame_buffer_consume(struct frame_buffer *b, size_t n)
{
	b->start += n;
	if (b->start == b->end)
		b->start = b->end = 0;
}

void frame_buffer_clear(struct frame_buffer *b)
{
	free(b->bytes);
	*b = (struct frame_buffer){0};
}

/* Make room for n bytes after end. */
static int reserve(struct frame_buffer *b, size_t n)
{
	if (b->size - b->end >= n)
		return 0;
	if (b->start > 0) {
		memmove(b->bytes, b->bytes + b->start, b->end - b->start);
		b->end -= b->start;
		b->start = 0;
		if (b->size - b->end >= n)
			return 0;
	}

	size_t size = b->size ? b->size : 4096;
	while (size - b->end < n)
		size *= 2;
	uint8_t *bytes = realloc(b->bytes, size);
	if (!bytes)
		return -ENOMEM;
	b->bytes = bytes;
	b->size = size;
	return 0;
}

int frame_buffer_append(struct frame_buffer *b, const void *p, size_t n)
{
	int r = reserve(b, n);
	if (r < 0)
		return r;
	if (n > 0)
		memcpy(b->bytes + b->end, p, n);
	b->end += n;
	return 0;
}

int frame_put(struct frame_buffer *b, const Mperf__Message *m)
{
	size_t n = mperf__message__get_packed_size(m);
	if (n > FRAME_BYTES_MAX)
		return -EMSGSIZE;
	int r = reserve(b, FRAME_HEADER_BYTES + n);
	if (r < 0)
		return r;

	uint32_t length = htole32((uint32_t)n);
	memcpy(b->bytes + b->end, &length, sizeof(length));
	mperf__message__pack(m, b->bytes + b->end + FRAME_HEADER_BYTES);
	b->end += FRAME_HEADER_BYTES + n;
	return 0;
}

int frame_take(struct frame_buffer *b, Mperf__Message **ret_message)
{
	if (frame_buffer_filled(b) < FRAME_HEADER_BYTES)
		return FRAME_NONE;
	uint32_t length;
	memcpy(&length, b->bytes + b->start, sizeof(length));
	length = le32toh(length);
	if (length > FRAME_BYTES_MAX)
		return FRAME_TOO_LARGE;
	if (frame_buffer_filled(b) < FRAME_HEADER_BYTES + (size_t)length)
		return FRAME_NONE;

	const uint8_t *payload = b->bytes + b->start + FRAME_HEADER_BYTES;
	Mperf__Message *m = mperf__message__unpack(NULL, length, payload);
	frame_buffer_consume(b, FRAME_HEADER_BYTES + length);
	if (!m)
		return FRAME_MALFORMED;
	*ret_message = m;
	return 0;
}

void *frame_buffer_room(struct frame_buffer *b)
{
	return reserve(b, FRAME_CHUNK_BYTES) < 0 ? NULL : b->bytes + b->end;
}

void frame_buffer_grow(struct frame_buffer *b, size_t n)
{
	b->end += n;
}

int64_t frame_buffer_read(struct frame_buffer *b, int fd)
{
	void *room = frame_buffer_room(b);
	if (!room)
		return -ENOMEM;
	ssize_t n = recv(fd, room, FRAME_CHUNK_BYTES, MSG_DONTWAIT);
	if (n < 0)
		return -errno;
	frame_buffer_grow(b, (size_t)n);
	return n;
}

int64_t frame_buffer_write(struct frame_buffer *b, int fd)
{
	while (frame_buffer_filled(b) > 0) {
		ssize_t n = send(fd, b->bytes + b->start, frame_buffer_filled(b),
			MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno == EAGAIN)
			break;
		if (n < 0)
			return -errno;
		frame_buffer_consume(b, (size_t)n);
	}
	return (int64_t)frame_buffer_filled(b);
}
