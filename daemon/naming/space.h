/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Spaces: the code mappings of a process
 *
 * The space of a process translates an address to (file, offset); the unwinder needs the whole
 * space.
 */

#include <stdint.h>
#include <sys/types.h>

#include "daemon/naming/file.h"

#define MAPS_MAX 16384 /* executable mappings of one process; a JVM has a few thousand */

/* An executable mapping. */
struct map {
	uint64_t start, end;
	uint64_t file_offset;
	struct file *file;
};

/* The executable mappings of one process, shared by its threads and, until one of them maps
 * something, with its forked children. */
struct space {
	uint32_t n_users;
	struct map *map; /* sorted, disjoint; `spare` unused ones before it */
	uint32_t n_maps, spare, size;
	uid_t uid;           /* user of the process that used it last, who owns these files */
	uint64_t generation; /* unique over all spaces; new after every change */
};

/* The mapping that contains addr, or NULL. s may be NULL. O(log n). */
const struct map *space_find(const struct space *s, uint64_t addr);
/* Replace the mappings by those of another space. 0 or -ENOMEM. */
int space_copy(struct space *s, const struct space *from);
/* Replace [start, end) by one mapping; overlapped mappings are cut. 0, SPACE_FULL, -ENOMEM. Cheap below
 * and above all others, else O(n). */
enum { SPACE_FULL = 1 };
int space_insert(struct space *s, const struct map *m);
/* Free the mappings. */
void space_clear(struct space *s);
