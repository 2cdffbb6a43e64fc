/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Numbers and strings of a file, read one after another
 *
 * Nothing is read beyond the end: a read beyond it gives 0, and sets `bad`. Numbers are in this
 * machine's byte order.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of a section or of a part of one; at NULL: absent. */
struct section_bytes {
	const uint8_t *at;
	size_t n;
};

/* Bytes that are still to be read. */
struct byte_reader {
	const uint8_t *at, *end;
	bool bad; /* a read went beyond the end */
};

/* The bytes from `offset` on; bad, if it is beyond them. */
struct byte_reader bytes_from(struct section_bytes s, uint64_t offset);
/* The n bytes from that offset on; absent if there are fewer. */
struct section_bytes bytes_part(struct section_bytes s, uint64_t offset, uint64_t n);
/* The string that begins there. NULL: beyond the bytes, or without end. */
const char *bytes_string(struct section_bytes s, uint64_t offset);

/* A number of n bytes: 1, 2, 4 or 8. */
uint64_t read_number(struct byte_reader *r, size_t n);
void read_past(struct byte_reader *r, uint64_t n);
/* LEB128; bits above 64 are dropped. Source: DWARF 5, section 7.6. */
uint64_t read_unsigned(struct byte_reader *r);
int64_t read_signed(struct byte_reader *r);
/* A string with its end; NULL: without one. */
const char *read_string(struct byte_reader *r);
