/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* A path walk: each component is opened without following links, and checked */

#include <stdbool.h>
#include <stdint.h>

#include "daemon/namer/file_access.h"

/* Nesting of folders: the deepest trees of build systems have about 30 levels. One descriptor each.
 * Deeper: -ENAMETOOLONG. */
#define PATH_DEPTH_MAX 64
#define PATH_LINKS_MAX 40 /* as the kernel follows; Source: MAXSYMLINKS, include/linux/namei.h */

/* All of them must have access. n 0: no check, since we run with our caller's rights and the kernel
 * decides. */
#define READERS_MAX 2
struct readers {
	struct reader one[READERS_MAX];
	uint32_t n;
	uint32_t unmapped; /* as in struct permissions */
};

/* Open an O_PATH descriptor of the file at path below the folder root (AT_FDCWD: our own); no ".."
 * and no link leads out of root. The readers must be able to search each folder on the way,
 * including root. Links are followed as text; magic links of /proc are refused. The caller checks
 * the file itself. Returns the descriptor, or -errno: -EACCES if a reader may not pass, -ELOOP for
 * too many links, for a magic link, and with `no_link` for a link as the last component. */
int path_open(int root, const char *path, const struct readers *readers, bool no_link);

/* May all readers access the file behind an O_PATH descriptor in this way? */
struct stat;
bool path_may(int fd, const struct stat *s, const struct readers *readers, unsigned want);
