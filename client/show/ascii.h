/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* ASCII: our own marks and others' names, for locales whose charset is not UTF-8
 *
 * Texts are UTF-8 up to the place where they leave. There marks that we use become what resembles them,
 * "µs" is "us", and each other character \u{e4}, as escape.h writes those that it does not show.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define ASCII_BYTES_MAX 16 /* of one character */

/* Is the charset of the user's locale not UTF-8? By LC_ALL, LC_CTYPE and LANG; none: POSIX, which is ASCII.
 * (Our own LC_CTYPE always is, for the widths of letters.) */
bool ascii_is_wanted(void);

/* A character that is not whole yet; zeros to begin with. */
struct ascii {
	char part[4];
	size_t n;
};

/* Take the next byte of UTF-8. Writes what is to be printed, without NUL; how many bytes. A byte that is no
 * UTF-8 is '?'. */
size_t ascii_take(struct ascii *a, char byte, char ret_text[static ASCII_BYTES_MAX]);

/* Copy a text in ASCII; the caller frees. NULL if memory ran out. */
char *ascii_dup(const char *text);

/* Print it as it is, or in ASCII where that is wanted; by one write if f is unbuffered, so that others' messages
 * do not come between. */
void ascii_print(FILE *f, const char *text);
