/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* A print: a stream over a descriptor that remembers its first write error
 *
 * stdio records that a write failed but not why, and may lose even that before anybody checks.
 * Here the first error is kept until the end, so that a full disk is reported as a full disk.
 */

#include <stdbool.h>
#include <stdio.h>

#include "client/show/ascii.h"

struct print {
	FILE *file; /* to write to */
	int fd;     /* borrowed */
	int error;  /* of the first write that failed: -errno */
	bool ascii; /* text becomes ASCII */
	struct ascii part;
};

/* Kinds of output: data are bytes for programs (JSON, CSV, Markdown, raw numbers, pages, formats of tools); a text for
 * people is in the charset of the locale, ASCII where that is not UTF-8, unless stdout is the file of -o. */
enum print_what {
	PRINT_DATA,
	PRINT_TEXT,
};

/* Is stdout the file that -o names? */
void print_stdout_is_file(bool is_file);
/* Does a text become ASCII? */
bool print_is_ascii(void);

/* Start. Do not move the struct before print_close. 0 or -errno. */
int print_open(struct print *p, int fd, enum print_what what);

/* Flush and close the stream, not the descriptor. `r` is the result of the writing code. 0; -errno
 * of the first write that failed, else r, if that is negative. */
int print_close(struct print *p, int r);

/* Open and close an answer on stdout, which is data or text. Closing prints an error message, also for the error r
 * of opening. Returns EXIT_DONE or EXIT_FAILED. */
int print_open_answer(struct print *p, bool is_data);
int print_close_answer(struct print *p, int r);

/* Has a stream on stdout ended with an error? */
bool print_stdout_failed(void);

/* Print "cannot write to WHERE: …" with a remedy for this error, or else `elsewhere`, a remedy in
 * lower case such as "write elsewhere with -o". `where` is NULL for stdout. error is -errno. */
void print_say_failed(const char *where, int error, const char *elsewhere);
