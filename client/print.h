/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* A print: a stream over a descriptor that remembers why it could not be written
 *
 * stdio keeps that a write failed but not why, and may forget it before anybody looks. Here the
 * first error is kept until the end, so that a full disc is told as a full disc.
 */

#include <stdio.h>

struct print {
	FILE *file; /* what to write to */
	int fd;     /* borrowed */
	int error;  /* of the first write that failed: -errno */
};

/* Start. It is not to be moved until print_close. 0 or -errno. */
int print_open(struct print *p, int fd);

/* Write what is left and close the stream, not the descriptor. `r` is how the writing itself went.
 * 0; -errno of the first write that failed, else r, if that is negative. */
int print_close(struct print *p, int r);

/* "cannot write to WHERE: …" with what helps against this error, or else `elsewhere`, an advice in
 * small letters such as "write elsewhere with -o". `where` is NULL for stdout. error is -errno. */
void print_say_failed(const char *where, int error, const char *elsewhere);
