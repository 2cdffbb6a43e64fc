/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* INI: the lines of configuration files
 *
 * `[section]` lines, `key = value` lines, and comments on lines of their own that begin with # or ;.
 * mperf.conf and the schedules have this format. The caller defines the meaning of sections and keys;
 * a malformed line is an error, never guessed at.
 */

#include <stddef.h>

#define INI_LINE_BYTES 1024  /* four of the longest paths */
#define INI_FAULT_BYTES 320  /* the longest quotes of a line, and its fault */
#define INI_FILE_BYTES 65536 /* bytes of a file; mperf.conf has 3 KB with all its comments */

enum ini_kind { INI_BLANK, INI_SECTION, INI_KEY };

struct ini_line {
	enum ini_kind kind;
	const char *name;  /* of the section, or the key; in text */
	const char *value; /* of a key, without blanks around it; may be empty */
	char text[INI_LINE_BYTES];
};

/* Read one line of n bytes, without its newline. first: it is the first of the file. 0; INI_WRONG with
 * `fault`, one sentence without a full stop. Borrow nothing: *ret_line has a copy. */
enum { INI_WRONG = 1 };
int ini_read(const char *bytes, size_t n, int first, struct ini_line *ret_line,
	char fault[static INI_FAULT_BYTES]);

/* Call take for each line of n bytes, without its newline, numbered from 1, up to the first result other than
 * 0, which is returned. */
int ini_each_line(const char *text, size_t n,
	int (*take)(void *userdata, const char *bytes, size_t n, unsigned number), void *userdata);

/* Quote at most 40 bytes of a file's text, safe for a log and a terminal. */
struct ini_quote {
	char text[168];
};
struct ini_quote ini_quoted(const char *text);

/* Does a comment follow the value, where none is allowed? */
int ini_has_comment(const char *value);

/* Read a file into *ret_text, which the caller frees: the first INI_FILE_BYTES, and one more byte if
 * there are more. 0; INI_ABSENT: there is no such file; INI_REFUSED: it cannot be opened;
 * INI_UNREADABLE: it is no text file. In the last two cases `fault` gives the reason, as a part of a
 * sentence.
 * -ENOMEM. */
enum { INI_ABSENT = 2, INI_REFUSED, INI_UNREADABLE };
int ini_read_file(
	const char *path, char **ret_text, size_t *ret_n, char fault[static INI_FAULT_BYTES]);
