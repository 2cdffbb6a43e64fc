/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* An output file: written beside its place, renamed when complete
 *
 * If anything fails on the way, the previous file remains. Where the file system can, it has no name until it is
 * complete: who is ended by a signal leaves nothing.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	OUTFILE_FOREIGN = 1, /* the path has a file that we may not overwrite */
};

struct outfile {
	char *path;      /* where it will be; symbolic links resolved */
	char *temporary; /* where it is now; NULL: nowhere, or in place (a device or pipe) */
	bool nameless;   /* it is nowhere yet */
	int fd;
	uint64_t bytes;
};

enum outfile_over {
	OUTFILE_OVER_SEGMENT, /* overwrite one of our segments, or an empty file */
	OUTFILE_OVER_ANSWER, /* overwrite what looks like an answer of ours, or an empty file: no source, and no
				  recording, which may be what is read; write into devices and pipes */
	OUTFILE_OVER_FORCE, /* overwrite any regular file, nothing else */
	OUTFILE_OVER_ANY,   /* overwrite any regular file; write into devices and pipes */
};

/* The rule for an answer: --force also overwrites files that do not look like one. */
static inline enum outfile_over outfile_over_answer(bool force)
{
	return force ? OUTFILE_OVER_ANY : OUTFILE_OVER_ANSWER;
}

/* Start. 0, OUTFILE_FOREIGN, -errno. *o is filled only on success. */
int outfile_open(struct outfile *o, const char *path, enum outfile_over over);

/* Say why an OUTFILE_OVER_ANSWER failed: r is what outfile_open or a later step returned; the rest is as for
 * print_say_failed. */
void outfile_say_failed(const char *path, int r, const char *elsewhere);

/* Start a temporary file, in $TMPDIR or /tmp, that outfile_clear removes. */
int outfile_open_temporary(struct outfile *o);

/* The folder of temporary files. */
const char *outfile_temporary_folder(void);

/* Append. 0 or -errno. */
int outfile_write(struct outfile *o, const void *p, size_t n);

/* Rename it to its place. 0 or -errno; the file is closed either way, and removed on failure. */
int outfile_commit(struct outfile *o);

/* Discard it; removes the temporary file unless committed. */
void outfile_clear(struct outfile *o);
