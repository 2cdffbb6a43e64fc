/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Escape: names of other programs, made harmless
 *
 * Other users choose the names of processes, functions and cgroups that we print. What could
 * steer a terminal, a page or a reader's eye (control characters, bidirectional overrides,
 * invisible characters, bytes that are not UTF-8) becomes visible text: \x1b, \u{202e}.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define ESCAPE_INVALID UINT32_MAX /* in place of a code point: the byte is no UTF-8 */

/* Decode the character at p[0, n), n > 0. Returns the bytes it takes, 1 with ESCAPE_INVALID. */
size_t escape_decode(const char *p, size_t n, uint32_t *ret_point);

/* May this code point be shown as it is? Valid for every uint32_t. Exported for tests. */
bool escape_is_plain(uint32_t point);

/* Write text for a terminal or a plain file: one line, every other character visible. */
void escape_terminal(FILE *f, const char *text);

/* Do as escape_terminal, into a string that the caller frees; NULL if memory ran out. */
char *escape_terminal_dup(const char *text);

/* Write text for HTML, SVG and their attributes: as for a terminal, and markup as entities. */
void escape_markup(FILE *f, const char *text);

/* Write text between the quotes of a JSON string inside of a page's <script>: as for a terminal; nothing in it ends the
 * string or the script. Source: HTML, "restrictions for contents of script elements". */
void escape_script(FILE *f, const char *text);

/* Write text as a code span of Markdown, in which nobody is mentioned and nothing is a link, an issue or HTML; "" as
 * nothing. In a table's cell a pipe is escaped too. Source: GitHub Flavored Markdown 0.29, sections 6.3 (code spans)
 * and 4.10 (tables). */
void escape_markdown(FILE *f, const char *text, bool in_table);

/* Write one frame of a folded stack: as for a terminal, and ';' becomes ':'. */
void escape_folded(FILE *f, const char *text);

/* Write text between the quotes of comma-separated values: as for a terminal, and '"' twice. */
void escape_quoted(FILE *f, const char *text);

/* Write n bytes of JSON, complete UTF-8 characters: those that JSON permits but a reader would not
 * see as they are become \uXXXX, which means the same. */
void escape_json(FILE *f, const char *json, size_t n);

/* A copy with U+FFFD for every byte that is not UTF-8, for JSON, whose own escapes do the rest. The
 * caller frees; NULL if memory ran out. */
char *escape_utf8_dup(const char *text);

/* Is it only a path, whose end says more than its front? A command line that begins with one is
 * not. */
bool escape_is_path(const char *text);

/* Columns that escaped text takes on a terminal. */
size_t escape_width(const char *text);

/* How many bytes from the start of escaped text take at most `columns`. */
size_t escape_cut(const char *text, size_t columns);

/* Start of the tail of escaped text that takes at most `columns`. */
size_t escape_cut_front(const char *text, size_t columns);
