/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The seal of a segment: a hash of all its bytes, appended to them
 *
 *      +---- pages of SQLite ----+------------+---------+----------------+
 *      |  a multiple of 512      | "mPrfSeal" | n_bytes |  XXH3, 128 bit |
 *      +-------------------------+------------+---------+----------------+
 *                                 8 bytes      8, LE     16, big endian
 *
 * SQLite takes the number of pages from its header and reads nothing after them. A sealed file is
 * read completely once, to verify that no bit has changed; a caller that knows the file by device,
 * inode, size and time need not read it again. The hash protects against disc errors, not against
 * attackers.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define TRAILER_BYTES 32

/* Identifies one state of a file. */
struct segment_identity {
	dev_t device;
	ino_t inode;
	uint64_t bytes;
	int64_t modified_ns; /* CLOCK_REALTIME; 0 with bytes 0: none is known */
};

/* The identity of an open file. 0 or -errno. */
int segment_identify(int fd, struct segment_identity *ret_identity);
bool segment_identity_equal(const struct segment_identity *a, const struct segment_identity *b);

/* Is there a seal? 1 (ours, complete or not), 0, -errno. */
int trailer_is_there(int fd);

/* Write the seal of all bytes of the file, replacing a complete or partial one. The file is open
 * for reading and writing, and nobody else writes it. Reads all of it. 0 or -errno.
 * Exported for tests. */
int trailer_write(int fd);
/* The same in pieces: begin, then step until it returns something other than TRAILER_MORE, which is
 * the outcome. A step reads about n_bytes; 0: all that remain. trailer_free also stops halfway. */
enum { TRAILER_MORE = 8 };
struct trailer_writer;
int trailer_begin(int fd, struct trailer_writer **ret_writer);
int trailer_step(struct trailer_writer *w, uint64_t n_bytes);
struct trailer_writer *trailer_free(struct trailer_writer *w);
/* All at once, by path; syncs the file. */
int trailer_write_path(const char *path);

/* Remove the seal before a change. 1: there was one; 0; -errno. */
int trailer_remove(const char *path);

/* Read all of it and verify the seal. 0: unchanged; TRAILER_NONE; TRAILER_OTHER: changed;
 * -errno. */
enum { TRAILER_NONE = 1, TRAILER_OTHER };
int trailer_verify(int fd);
