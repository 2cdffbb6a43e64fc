/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The opener: finds and opens a file of another process, without reading it
 *
 * It may hang on a file system that does not respond; then the daemon kills it.
 */

#include <limits.h>
#include <stdint.h>

#include "daemon/namer/message.h"
#include "daemon/namer/path_access.h"

/* Files of remote and user-space file systems, and of overlays that users made, are copied into memory, since even
 * close can hang there, and the daemon holds the descriptor. Larger files: STATE_OVERSIZE. */
#define OPENER_COPY_BYTES_MAX (128ull << 20)

struct mapped;

/* Serve requests from socket until the other end is gone. mapped: to find out how the kernel identifies a file; NULL:
 * it is identified by stat. 0 or -errno. */
int opener_run(int socket, struct mapped *mapped);

/* A decoded request: strings are NUL-terminated, the link is "" if there is none. */
struct opener_question {
	struct message_open open;
	char path[MESSAGE_PATH_BYTES_MAX + 1];
	char link[MESSAGE_LINK_BYTES_MAX + 1];
};
struct opener_answer {
	int fd; /* -1 unless state is STATE_READY; then owned by the caller */
	uint32_t state;
	int error;
	uint32_t first;
	bool copied, leaves;
	uint64_t bytes;
	int64_t written_ns; /* as in struct message_opened, like those below */
	uint64_t inode;
	uint32_t major, minor;
	int64_t changed_ns, status_ns;
	uint32_t owner;
	bool sole;
	char path[PATH_MAX]; /* where it was found */
};

/* Decode a request of n bytes. 0, or -EBADMSG. Exported for tests. */
int opener_decode(const void *bytes, size_t n, struct opener_question *ret_question);

/* Try all possible places, in order. Always answers. mapped: as in opener_run. */
void opener_find(
	const struct opener_question *q, struct mapped *mapped, struct opener_answer *ret_answer);

/* Open the regular file at path below the folder dir (AT_FDCWD: our own root) for reading, within
 * the limits and the rights of its readers; no path leads out of dir. 0 or -errno (-ENOENT: another
 * file; -ESTALE: other contents; -EACCES: a reader may not read it). */
struct opener_demand {
	uint64_t inode;      /* 0: any */
	uint64_t generation; /* 0: any */
	uint32_t major, minor;
	struct mapped *mapped;         /* as in opener_run; borrowed */
	int host;                      /* as proc of opener_is_local */
	const struct readers *readers; /* users who must be able to reach and read it; borrowed */
	/* the file describes generated code: it must belong to the owner, and not be a link */
	bool owned;
	uint32_t owner; /* READER_NOBODY: not known */
	bool no_link;   /* path is no link, and leads over none */
	/* path is a magic link of /proc below dir, which is followed. Only the file is checked,
	 * since the link passes no folder: the process has the file, or had it when it was
	 * mapped */
	bool linked;
	/* CLOCK_REALTIME; 0: any. -ESTALE if last written after the first time, or not since the
	 * second */
	int64_t not_after_ns, not_before_ns;
	/* Changed contents may have an old modification time (cp -p), while the status time shows the change; but
	 * a link, a chmod and a rename change the status time, too. If the status time is later than
	 * not_after_ns, this is the file only if the caller will compare the build id, */
	bool id_is_checked;
	/* … or if the process that mapped it then still has it: the descriptor of the process's folder in /proc,
	 * and the address of the mapping. 0: not known. The kernel lets nobody write to a program that runs, and
	 * a process runs what is written to its library. */
	int mapper;
	uint64_t map_start, map_end;
};
int opener_open(
	int dir, const char *path, const struct opener_demand *d, struct opener_answer *ret_answer);
