/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Text lines: read a file line by line, without a path, file position or mapping */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TEXT_LINE_BYTES_MAX (64u << 10)   /* a longer line is skipped: no name is that long */
#define TEXT_LINES_BYTES_MAX (1ull << 30) /* of one file; /proc/kallsyms has 10 MB */

enum {
	TEXT_LINES_END = 1,
	TEXT_LINES_OVERSIZE,
};

struct text_lines {
	int fd;
	uint64_t offset;   /* of the next byte to read */
	size_t start, end; /* [start, end) of the buffer is not returned yet */
	bool takes_rest;   /* set by the caller: a last line without a newline is one, too */
	bool took_rest;    /* the last one returned is such a line */
	bool skipping;     /* inside an overlong line */
	bool skipped;      /* an overlong line was skipped */
	char buffer[TEXT_LINE_BYTES_MAX];
};

/* The next line that ends in a newline: the tail of a file that is still being written may be a
 * partial line and is not returned, unless takes_rest. *ret_line is NUL-terminated, without the newline, and valid
 * until the next call. 0, TEXT_LINES_*, -errno */
int text_lines_next(struct text_lines *t, char **ret_line);

/* Read a hexadecimal number, with or without "0x", that ends in a blank. Returns the text after the
 * blanks; NULL if there is no number or it exceeds 64 bits. */
const char *text_hexadecimal(const char *text, uint64_t *ret_value);
