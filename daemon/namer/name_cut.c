/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Names that are too long keep their front and end, with a hash between them. */

#include "daemon/namer/name_cut.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define FRONT_BYTES (IMAGE_NAME_BYTES_MAX / 2)
#define MIDDLE_FORMAT "…%08" PRIx32 "…"
#define MIDDLE_BYTES (2 * (sizeof("…") - 1) + 8)
#define END_BYTES (IMAGE_NAME_BYTES_MAX - FRONT_BYTES - MIDDLE_BYTES)

/* Is it a byte of a character, but not its first? */
static bool continues(char c)
{
	return ((uint8_t)c & 0xc0) == 0x80;
}

/* FNV-1a: it distinguishes names, unless somebody made them to collide. Source: RFC 9923, section 2. */
static uint32_t hash(const char *bytes, size_t n)
{
	uint32_t h = 2166136261u;
	for (size_t i = 0; i < n; i++)
		h = (h ^ (uint8_t)bytes[i]) * 16777619u;
	return h;
}

size_t name_cut(const char *name, size_t length, char ret_name[static IMAGE_NAME_BYTES_MAX + 1])
{
	if (length <= IMAGE_NAME_BYTES_MAX) {
		memcpy(ret_name, name, length);
		ret_name[length] = '\0';
		return length;
	}
	if (length > NAME_TEXT_MAX)
		length = NAME_TEXT_MAX;
	size_t front = FRONT_BYTES;
	const char *end = name + length - END_BYTES;
	for (int i = 0; i < 3 && continues(name[front]); i++)
		front--;
	for (int i = 0; i < 3 && continues(*end); i++)
		end++;
	const size_t n_end = (size_t)(name + length - end);
	memcpy(ret_name, name, front);
	snprintf(ret_name + front, MIDDLE_BYTES + 1, MIDDLE_FORMAT, hash(name, length));
	memcpy(ret_name + front + MIDDLE_BYTES, end, n_end);
	ret_name[front + MIDDLE_BYTES + n_end] = '\0';
	return front + MIDDLE_BYTES + n_end;
}
