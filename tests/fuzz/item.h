/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* A file and those that it leads to, in memory and as a folder */

#include <stddef.h>
#include <stdint.h>

#define PARTS_MAX 4
#define PART_BYTES_MAX (4u << 20) /* a C library; larger ones make each input slow */

struct part {
	char name[64];
	uint8_t *data;
	size_t n;
};
/* The first part is the file `main`. */
struct item {
	struct part part[PARTS_MAX];
	size_t n_parts;
};

/* Print what failed, with errno, and exit with status 2. The following do so for what they cannot
 * read or write. */
_Noreturn void item_die(const char *what);

void item_read(struct item *item, const char *dir);
/* Each folder below `dir` that is not hidden, at most `room`; how many. */
size_t items_read(struct item *items, size_t room, const char *dir);
void item_write(const struct item *item, const char *dir);
