/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The opener: finds a file of another process and opens it, and reads none of it
 *
 * It may hang on a file system that does not answer; then the daemon kills it.
 */

#include <limits.h>
#include <stdint.h>

#include "daemon/namer/message.h"
#include "daemon/namer/way.h"

/* Files of remote and user-space file systems are copied into memory, since there even close can
 * hang, and the daemon holds the descriptor. Above that: STATE_OVERSIZE. */
#define OPENER_COPY_BYTES_MAX (128ull << 20)

/* Serve requests from socket until the other end is gone. 0 or -errno. */
int opener_run(int socket);

/* One question, decoded: strings end in NUL, the link is "" where there is none. */
struct opener_question {
	struct message_open open;
	char path[MESSAGE_PATH_BYTES_MAX + 1];
	char link[MESSAGE_LINK_BYTES_MAX + 1];
};
struct opener_answer {
	int fd; /* -1 unless state is STATE_READY; the caller's then */
	uint32_t state;
	int error;
	uint32_t first;
	bool copied;
	uint64_t bytes;
	int64_t written_ns; /* as in struct message_opened, like those below */
	uint64_t inode;
	uint32_t major, minor;
	int64_t changed_ns;
	uint32_t owner;
	bool sole;
	char path[PATH_MAX]; /* where it was found */
};

/* Decode a request of n bytes. 0, or -EBADMSG. */
int opener_decode(const void *bytes, size_t n, struct opener_question *ret_question);

/* Look for it where it may be, in order. Always answers. */
void opener_find(const struct opener_question *q, struct opener_answer *ret_answer);

/* Open the regular file at path below the folder dir (AT_FDCWD: our own root) for reading, if it is
 * one, within limits and by the rights of its readers; nothing leads out of dir.
 * 0 or -errno (-ENOENT for another file, -ESTALE for other contents, -EACCES for one that somebody
 * may not read). */
struct opener_demand {
	uint64_t inode; /* 0: any */
	uint32_t major, minor;
	const struct readers *readers; /* who must be able to get there and to read it; borrowed */
	bool owned; /* it describes generated code: it must be the owner's, and no link */
	uint32_t owner; /* READER_NOBODY: nobody is known to be */
	/* path is one of the links of /proc below dir, which is followed; the file alone is judged,
	 * since no folder was passed to get there: the process has it, or had it when it was mapped */
	bool linked;
	/* CLOCK_REALTIME; 0: any. Last written later than the first, or not since the second: -ESTALE */
	int64_t not_after_ns, not_before_ns;
};
int opener_open(
	int dir, const char *path, const struct opener_demand *d, struct opener_answer *ret_answer);
