/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

#include "daemon/namer/byte_reader.h"

#include <string.h>

struct byte_reader bytes_from(struct section_bytes s, uint64_t offset)
{
	if (!s.at || offset > s.n)
		return (struct byte_reader){.bad = true};
	return (struct byte_reader){.at = s.at + offset, .end = s.at + s.n};
}

struct section_bytes bytes_part(struct section_bytes s, uint64_t offset, uint64_t n)
{
	if (!s.at || offset > s.n || n > s.n - offset)
		return (struct section_bytes){0};
	return (struct section_bytes){s.at + offset, (size_t)n};
}

const char *bytes_string(struct section_bytes s, uint64_t offset)
{
	if (!s.at || offset >= s.n || !memchr(s.at + offset, '\0', s.n - (size_t)offset))
		return NULL;
	return (const char *)s.at + offset;
}

uint64_t read_number(struct byte_reader *r, size_t n)
{
	uint8_t bytes[8] = {0};
	uint64_t value = 0;

	if (r->bad || n > sizeof(bytes) || (size_t)(r->end - r->at) < n) {
		r->bad = true;
		return 0;
	}
	memcpy(bytes, r->at, n);
	r->at += n;
	if (n == 1)
		return bytes[0];
	if (n == 2)
		return *(uint16_t *)memcpy(&(uint16_t){0}, bytes, 2);
	if (n == 4)
		return *(uint32_t *)memcpy(&(uint32_t){0}, bytes, 4);
	memcpy(&value, bytes, sizeof(value));
	return n == 8 ? value : 0;
}

void read_past(struct byte_reader *r, uint64_t n)
{
	if (r->bad || (uint64_t)(r->end - r->at) < n)
		r->bad = true;
	else
		r->at += n;
}

uint64_t read_unsigned(struct byte_reader *r)
{
	uint64_t value = 0;

	for (unsigned shift = 0;; shift += 7) {
		uint8_t byte = (uint8_t)read_number(r, 1);
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		else
			shift = 64; /* it may go on for gigabytes */
		if (r->bad || !(byte & 0x80))
			return value;
	}
}

int64_t read_signed(struct byte_reader *r)
{
	uint64_t value = 0;

	for (unsigned shift = 0;;) {
		uint8_t byte = (uint8_t)read_number(r, 1);
		if (shift < 64) {
			value |= (uint64_t)(byte & 0x7f) << shift;
			shift += 7;
		}
		if (r->bad || byte & 0x80) {
			if (r->bad)
				return 0;
			continue;
		}
		if (byte & 0x40 && shift < 64)
			value |= ~UINT64_C(0) << shift;
		return (int64_t)value;
	}
}

const char *read_string(struct byte_reader *r)
{
	const uint8_t *end = r->bad ? NULL : memchr(r->at, '\0', (size_t)(r->end - r->at));
	const char *text = (const char *)r->at;

	if (!end) {
		r->bad = true;
		return NULL;
	}
	r->at = end + 1;
	return text;
}
