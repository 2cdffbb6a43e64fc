/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Texts for charsets that are not UTF-8: marks, names, and what is no UTF-8.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/show/ascii.h"
#include "client/show/print.h"
#include "proto/base/memory.h"
#include "tests/unit/test.h"

static void becomes(const char *text, const char *wanted)
{
	_cleanup_(freep) char *ascii = ascii_dup(text);
	ck_assert_str_eq(ascii, wanted);
}

TEST(marks_become_what_resembles_them)
{
	becomes("1.5 µs → hotspots", "1.5 us > hotspots");
	becomes("( ± 1.2 % ) · 3 × 4 − 1 – 2", "( +- 1.2 % ) * 3 x 4 - 1 - 2");
	becomes("/…/speedtest1", "/~/speedtest1");
	becomes("", "");
	becomes("plain\ttext\n", "plain\ttext\n");
}

TEST(other_letters_are_their_code_points)
{
	becomes("größe<日>", "gr\\u{f6}\\u{df}e<\\u{65e5}>");
	becomes("\U0010fffd", "\\u{10fffd}");
}

TEST(what_is_no_utf8_is_a_question_mark)
{
	becomes("a\xff"
		"b\xc3(\x80 \xe2\x82",
		"a?b?(? ");
	becomes("\xc0\xaf", "?");
	becomes("\xc3\xc3\xb6", "?\\u{f6}");
}

TEST(the_locale_says_what_is_wanted)
{
	unsetenv("LC_CTYPE");
	setenv("LANG", "de_DE.UTF-8", 1);
	setenv("LC_ALL", "C", 1);
	ck_assert(ascii_is_wanted());
	unsetenv("LC_ALL");
	ck_assert(!ascii_is_wanted());
	unsetenv("LANG"); /* POSIX */
	ck_assert(ascii_is_wanted());
}

/* Prints µ in two writes. */
static void printed(enum print_what what, const char *locale, const char *wanted)
{
	char got[64] = "";
	int fd[2];
	struct print p;
	setenv("LC_ALL", locale, 1);
	ck_assert_int_eq(pipe(fd), 0);
	ck_assert_int_eq(print_open(&p, fd[1], what), 0);
	fputs("2 \xc2", p.file);
	fflush(p.file);
	fputs("\xb5s", p.file);
	ck_assert_int_eq(print_close(&p, 0), 0);
	ck_assert_int_gt(read(fd[0], got, sizeof(got) - 1), 0);
	ck_assert_str_eq(got, wanted);
	close(fd[0]);
	close(fd[1]);
}

TEST(texts_are_in_the_locales_charset_and_data_are_not)
{
	printed(PRINT_TEXT, "C.UTF-8", "2 µs");
	printed(PRINT_TEXT, "C", "2 us");
	printed(PRINT_TEXT, "de_DE.ISO-8859-1", "2 us");
	printed(PRINT_DATA, "C", "2 µs");
}

TEST(long_texts_are_whole)
{
	int fd[2];
	struct print p;
	static char got[3 * 5000 * 2];
	size_t n = 0;
	ssize_t more;
	setenv("LC_ALL", "C", 1);
	ck_assert_int_eq(pipe(fd), 0);
	ck_assert_int_eq(print_open(&p, fd[1], PRINT_TEXT), 0);
	for (int i = 0; i < 5000; i++)
		fputs("ü", p.file);
	ck_assert_int_eq(print_close(&p, 0), 0);
	close(fd[1]);
	while ((more = read(fd[0], got + n, sizeof(got) - n)) > 0)
		n += (size_t)more;
	ck_assert_uint_eq(n, 5000 * strlen("\\u{fc}"));
	close(fd[0]);
}
