/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * We compute the cost of a frame from its bytes, with the descriptors that unpacking uses. Bytes
 * that do not parse are left to unpacking, which also stops there. Source:
 * https://protobuf.dev/programming-guides/encoding, "Message Structure".
 */
#include <endian.h>
#include <stdbool.h>
#include <string.h>

#include "proto/frame.h"

#define DEPTH_MAX 16 /* nesting of messages; ours have five levels */

struct scan {
	const uint8_t *at, *end;
	uint64_t values; /* so far, including enclosing messages */
};

enum wire { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

static bool take_varint(struct scan *s, uint64_t *ret_value)
{
	uint64_t value = 0;
	for (unsigned shift = 0; s->at < s->end && shift < 64; shift += 7) {
		uint8_t byte = *s->at++;
		value |= (uint64_t)(byte & 127u) << shift;
		if (byte < 128) {
			*ret_value = value;
			return true;
		}
	}
	return false;
}

static bool skip(struct scan *s, uint64_t n)
{
	if (n > (uint64_t)(s->end - s->at))
		return false;
	s->at += n;
	return true;
}

/* Packed numbers: each ends with a byte whose highest bit is clear. */
static uint64_t count_packed(const uint8_t *at, uint64_t n)
{
	uint64_t numbers = 0;
	for (; n > 0; n--)
		numbers += *at++ < 128;
	return numbers;
}

static bool scan_message(struct scan *s, const ProtobufCMessageDescriptor *d, int depth);

static bool scan_bytes(struct scan *s, const ProtobufCFieldDescriptor *f, int depth)
{
	uint64_t n;
	if (!take_varint(s, &n) || n > (uint64_t)(s->end - s->at))
		return false;
	if (!f || f->type == PROTOBUF_C_TYPE_STRING || f->type == PROTOBUF_C_TYPE_BYTES) {
		s->values += FRAME_TEXT_VALUES;
		return skip(s, n);
	}
	if (f->type != PROTOBUF_C_TYPE_MESSAGE) {
		s->values += count_packed(s->at, n);
		return skip(s, n);
	}
	s->values += FRAME_MESSAGE_VALUES;
	struct scan inner = {.at = s->at, .end = s->at + n, .values = s->values};
	bool well = depth < DEPTH_MAX && scan_message(&inner, f->descriptor, depth + 1);
	s->values = inner.values;
	return well && skip(s, n);
}

/* False if it does not parse. Ends early once there are too many values. */
static bool scan_message(struct scan *s, const ProtobufCMessageDescriptor *d, int depth)
{
	while (s->at < s->end && s->values <= FRAME_VALUES_MAX) {
		uint64_t key, value;
		if (!take_varint(s, &key))
			return false;
		const ProtobufCFieldDescriptor *f =
			protobuf_c_message_descriptor_get_field(d, (unsigned)(key >> 3));
		enum wire wire = key & 7u;
		bool well = wire == WIRE_VARINT  ? take_varint(s, &value)
			    : wire == WIRE_64    ? skip(s, 8)
			    : wire == WIRE_32    ? skip(s, 4)
			    : wire == WIRE_BYTES ? scan_bytes(s, f, depth)
						 : false;
		if (!well)
			return false;
		/* an unknown field is kept as bytes */
		s->values += wire == WIRE_BYTES ? 0 : f ? 1 : FRAME_TEXT_VALUES;
	}
	return true;
}

int frame_check(const struct frame_buffer *b)
{
	uint32_t length;
	if (frame_buffer_filled(b) < FRAME_HEADER_BYTES)
		return 0;
	memcpy(&length, b->bytes + b->start, sizeof(length));
	length = le32toh(length);
	if (length > FRAME_BYTES_MAX || frame_buffer_filled(b) - FRAME_HEADER_BYTES < length)
		return 0;
	const uint8_t *payload = b->bytes + b->start + FRAME_HEADER_BYTES;
	struct scan s = {.at = payload, .end = payload + length};
	(void)scan_message(&s, &mperf__message__descriptor, 0);
	return s.values > FRAME_VALUES_MAX ? FRAME_TOO_MUCH : 0;
}
