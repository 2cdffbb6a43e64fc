/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Names that are too long are cut and end in "…". */

#include "daemon/namer/name_cut.h"

#include <stdint.h>
#include <string.h>

#include "daemon/namer/image.h"

#define ELLIPSIS "…"

size_t name_cut(char *name, size_t length)
{
	if (length <= IMAGE_NAME_BYTES_MAX)
		return length;

	size_t keep = IMAGE_NAME_BYTES_MAX - (sizeof(ELLIPSIS) - 1);
	for (int i = 0; i < 3 && ((uint8_t)name[keep] & 0xc0) == 0x80; i++)
		keep--;
	memcpy(name + keep, ELLIPSIS, sizeof(ELLIPSIS));
	return keep + sizeof(ELLIPSIS) - 1;
}
