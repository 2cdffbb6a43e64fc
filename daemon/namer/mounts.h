/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The mounts that a process sees, line by line. Source: man proc_pid_mountinfo */

#include <stdbool.h>
#include <stdint.h>

struct mounts;

/* A mount, borrowed until the next is read. Spaces and the like are escapes (\040), which stay escaped. */
struct mount_line {
	uint64_t id;
	uint32_t major, minor; /* of its file system */
	const char *place;     /* below the root of the process */
	const char *type;      /* of its file system */
	const char *options;   /* likewise */
};

/* proc: the folder of the process in /proc. NULL: it is gone. */
struct mounts *mounts_begin(int proc);
/* False: there are no others. Lines of another form are skipped. */
bool mounts_next(struct mounts *m, struct mount_line *ret_line);
/* Returns NULL. */
struct mounts *mounts_end(struct mounts *m);
