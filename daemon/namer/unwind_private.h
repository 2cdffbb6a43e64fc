/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Shared by the files of the unwinder
 *
 *      unwind.c            the unwinder
 *      unwind_map.c        its mappings
 *      unwind_elfutils.c   the walk by elfutils
 */

#include <elf.h>

#include "daemon/namer/unwind.h"

struct elfutils; /* unwind_elfutils.c */

struct unwinder {
	struct unwind_map *map; /* sorted by start */
	size_t n_maps;
	struct elfutils *elfutils; /* NULL: not needed so far */
	struct unwind_walk walk;   /* of the sample in hand */
};

/* --- unwind_map.c ----------------------------------------------------------------------------- */

/* The executable mapping of an address; NULL: none. */
const struct unwind_map *unwind_find_map(const struct unwinder *u, uint64_t addr);

/* --- unwind_elfutils.c ------------------------------------------------------------------------ */

/* Walk by elfutils. 0 or -errno; -EOPNOTSUPP: this libdw does not know the machine. */
int unwind_by_elfutils(struct unwinder *u);
struct elfutils *elfutils_free(struct elfutils *e);
