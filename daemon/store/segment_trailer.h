/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The seal of a segment: a hash of all its bytes, behind them
 *
 *      +---- pages of SQLite ----+------------+---------+----------------+
 *      |  a multiple of 512      | "mPrfSeal" | n_bytes |  XXH3, 128 bit |
 *      +-------------------------+------------+---------+----------------+
 *                                 8 bytes      8, LE     16, big endian
 *
 * SQLite takes the number of pages from its header and reads nothing behind them. What is sealed is
 * read whole once, which shows that no bit of it has changed; a caller that knows a file by device,
 * inode, size and time need not read it again. The hash is against discs, not against people.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define TRAILER_BYTES 32

/* What distinguishes one content of a file from another. */
struct segment_identity {
	dev_t device;
	ino_t inode;
	uint64_t bytes;
	int64_t modified_ns; /* CLOCK_REALTIME; 0 with bytes 0: none is known */
};

/* Of an open file. 0 or -errno. */
int segment_identify(int fd, struct segment_identity *ret_identity);
bool segment_identity_equal(const struct segment_identity *a, const struct segment_identity *b);

/* Is there a seal? 1 (whole or not, it is ours), 0, -errno. */
int trailer_is_there(int fd);

/* Write the seal of all that is in the file, in place of one that is there or half there. The file
 * is open for reading and writing, and nobody writes it. Reads all of it. 0 or -errno. */
int trailer_write(int fd);
/* The same by name; the file is synced. */
int trailer_write_path(const char *path);

/* Take the seal off, before something is changed. 1: there was one; 0; -errno. */
int trailer_remove(const char *path);

/* Read all of it. 0: it is as it was sealed; TRAILER_NONE; TRAILER_OTHER: it changed; -errno. */
enum { TRAILER_NONE = 1, TRAILER_OTHER };
int trailer_verify(int fd);
