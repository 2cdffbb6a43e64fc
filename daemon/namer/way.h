/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* A path on foot: each step of it opened without following, and judged */

#include <stdbool.h>
#include <stdint.h>

#include "daemon/namer/reader.h"

/* Folders below each other: the deepest trees that build systems make have some 30. One descriptor
 * each. Deeper: -ENAMETOOLONG. */
#define WAY_DEPTH_MAX 64
#define WAY_LINKS_MAX 40 /* as the kernel follows; Source: MAXSYMLINKS, include/linux/namei.h */

/* All of them must be able to, with n 0 nobody need: we have our caller's rights, and the kernel
 * decides. */
#define READERS_MAX 2
struct readers {
	struct reader one[READERS_MAX];
	uint32_t n;
	uint32_t unmapped; /* as in struct permissions */
};

/* An O_PATH descriptor of the file at path below the folder root (AT_FDCWD: our own), out of which
 * no ".." and no link leads. Each folder on the way, root too, is one that the readers may search;
 * a link is followed as text, those of /proc, which are none, are refused. The caller judges the
 * file itself. The descriptor, or -errno: -EACCES where a reader may not pass, -ELOOP for too many
 * links, for one of /proc, and with `no_link` for one as the last step. */
int way_open(int root, const char *path, const struct readers *readers, bool no_link);

/* May all readers do that with the file behind an O_PATH descriptor? */
struct stat;
bool way_may(int fd, const struct stat *s, const struct readers *readers, unsigned want);
