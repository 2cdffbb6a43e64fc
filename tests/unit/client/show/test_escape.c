/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Names that attack: a terminal, a page, a folded file, a reader's eye. And names of all scripts,
 * which must pass.
 */
#include <locale.h>

#include "client/show/escape.h"
#include "proto/base/memory.h"
#include "tests/unit/test.h"

typedef void escape_function(FILE *f, const char *text);

static const char *escaped(escape_function *f, const char *text)
{
	static char result[4096];
	FILE *out = fmemopen(result, sizeof(result), "w");
	f(out, text);
	fputc('\0', out);
	fclose(out);
	return result;
}

#define TERMINAL(text) escaped(escape_terminal, text)
#define MARKUP(text) escaped(escape_markup, text)

TEST(plain_names_pass_in_every_script)
{
	static const char *const names[] = {"", "main", "std::vector<int>::push_back(int const&)",
		"größe", "функция", "関数", "دالة", "🦀::main", "a\\b", "100 %"};
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		ck_assert_str_eq(TERMINAL(names[i]), names[i]);
}

TEST(escape_sequences_become_visible)
{
	ck_assert_str_eq(TERMINAL("\033[31mred\033[0m"), "\\x1b[31mred\\x1b[0m");
	ck_assert_str_eq(TERMINAL("\033]0;title\007"), "\\x1b]0;title\\x07");
	ck_assert_str_eq(TERMINAL("a\nb\tc\rd\x7f"), "a\\x0ab\\x09c\\x0dd\\x7f");
}

TEST(eight_bit_controls_become_visible)
{
	ck_assert_str_eq(TERMINAL("\xc2\x9b"
				  "31m"),
		"\\u{9b}31m"); /* CSI as UTF-8 */
	ck_assert_str_eq(TERMINAL("\x9b"
				  "31m"),
		"\\x9b31m"); /* and as a byte */
}

TEST(what_hides_or_reorders_becomes_visible)
{
	ck_assert_str_eq(TERMINAL("\xe2\x80\xae"
				  "fdp.exe"),
		"\\u{202e}fdp.exe");
	ck_assert_str_eq(TERMINAL("a\xe2\x81\xa6"
				  "b\xe2\x80\x8f"),
		"a\\u{2066}b\\u{200f}");
	ck_assert_str_eq(TERMINAL("a\xe2\x80\x8b"
				  "b\xef\xbb\xbf"),
		"a\\u{200b}b\\u{feff}");
	ck_assert_str_eq(TERMINAL("x\xe2\x80\xa8y"), "x\\u{2028}y");
	ck_assert_str_eq(TERMINAL("x\xf3\xa0\x81\x81y"), "x\\u{e0041}y");
}

TEST(bytes_that_are_no_utf8_become_visible)
{
	ck_assert_str_eq(TERMINAL("\xff\xfe"), "\\xff\\xfe");
	ck_assert_str_eq(TERMINAL("\xc0\xaf"), "\\xc0\\xaf");                   /* overlong / */
	ck_assert_str_eq(TERMINAL("\xe0\x80\x9b"), "\\xe0\\x80\\x9b");          /* overlong CSI */
	ck_assert_str_eq(TERMINAL("\xed\xa0\x80"), "\\xed\\xa0\\x80");          /* surrogate */
	ck_assert_str_eq(TERMINAL("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80"); /* beyond */
	ck_assert_str_eq(TERMINAL("a\xe2\x82"), "a\\xe2\\x82");                 /* cut off */
	ck_assert_str_eq(TERMINAL("\xe2"
				  "abc"),
		"\\xe2"
		"abc");
}

TEST(no_byte_string_yields_a_control_character)
{
	unsigned seed = 1;
	for (int round = 0; round < 20000; round++) {
		char text[9];
		for (size_t i = 0; i < 8; i++)
			text[i] = (char)(rand_r(&seed) >> 7);
		text[8] = '\0';
		const char *p = TERMINAL(text);
		for (size_t left = strlen(p); left > 0;) {
			uint32_t point;
			size_t n = escape_decode(p, left, &point);
			ck_assert(point != ESCAPE_INVALID && escape_is_plain(point));
			p += n;
			left -= n;
		}
	}
}

TEST(markup_means_nothing)
{
	ck_assert_str_eq(
		MARKUP("<script>alert(1)</script>"), "&lt;script&gt;alert(1)&lt;/script&gt;");
	ck_assert_str_eq(MARKUP("\" onload='x' &amp;"), "&quot; onload=&#39;x&#39; &amp;amp;");
	ck_assert_str_eq(MARKUP("]]>"), "]]&gt;");
}

TEST(markup_has_no_character_that_xml_forbids)
{
	ck_assert_str_eq(
		MARKUP("\x01\x1f\xef\xbf\xbf\xef\xbf\xbe"), "\\x01\\x1f\\u{ffff}\\u{fffe}");
	ck_assert_str_eq(MARKUP("\xff<\033"), "\\xff&lt;\\x1b");
}

TEST(text_ends_neither_its_json_string_nor_its_script)
{
	ck_assert_str_eq(escaped(escape_script, "f\"\\</script>&'"),
		"f\\u0022\\u005c\\u003c/script\\u003e\\u0026\\u0027");
	/* as for a terminal, with the backslash that JSON wants twice */
	ck_assert_str_eq(
		escaped(escape_script, "\033\xff\xe2\x80\xa8é"), "\\\\x1b\\\\xff\\\\u{2028}é");
}

TEST(folded_frames_cannot_forge_frames)
{
	ck_assert_str_eq(escaped(escape_folded, "a;b\nmain 999"), "a:b\\x0amain 999");
}

static const char *json(const char *text)
{
	static char *written;
	size_t n;

	free(written);
	FILE *f = open_memstream(&written, &n);
	ck_assert_ptr_nonnull(f);
	escape_json(f, text, strlen(text));
	ck_assert_int_eq(fclose(f), 0);
	return written;
}

TEST(json_shows_what_would_not_be_seen)
{
	ck_assert_str_eq(
		json("{\n \"größe 関数\": \"a\\n\"}\n"), "{\n \"größe 関数\": \"a\\n\"}\n");
	ck_assert_str_eq(json("a\u202eb\u2066\u200f"), "a\\u202eb\\u2066\\u200f");
	ck_assert_str_eq(json("\u2028\u2029\u200b\ufeff\u00ad\x7f\xc2\x85"),
		"\\u2028\\u2029\\u200b\\ufeff\\u00ad\\u007f\\u0085");
	ck_assert_str_eq(json("\U000e0041\U000e0fff"), "\\udb40\\udc41\\udb43\\udfff");
	ck_assert_str_eq(json("\U0001f600"), "\U0001f600");
}

TEST(json_text_is_mended_to_utf8)
{
	char *mended = escape_utf8_dup("a\xff"
				       "b\xed\xa0\x80\033ö");
	ck_assert_str_eq(mended, "a\xef\xbf\xbd"
				 "b\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\033ö");
	free(mended);
	mended = escape_utf8_dup("");
	ck_assert_str_eq(mended, "");
	free(mended);
}

TEST(widths_count_columns_not_bytes)
{
	setlocale(LC_CTYPE, "C.UTF-8");
	ck_assert_uint_eq(escape_width("main"), 4);
	ck_assert_uint_eq(escape_width("größe"), 5);
	ck_assert_uint_eq(escape_width("関数"), 4);
	ck_assert_uint_eq(escape_width(""), 0);
}

TEST(cuts_fall_between_characters)
{
	setlocale(LC_CTYPE, "C.UTF-8");
	ck_assert_uint_eq(escape_cut("größe", 3), 4);
	ck_assert_uint_eq(escape_cut("関数", 3), 3); /* half a letter does not fit */
	ck_assert_uint_eq(escape_cut("abc", 0), 0);
	ck_assert_uint_eq(escape_cut("abc", 99), 3);
	ck_assert_uint_eq(escape_cut_front("größe", 2), 4);
	ck_assert_uint_eq(escape_cut_front("関数", 3), 3);
	ck_assert_uint_eq(escape_cut_front("abc", 0), 3);
	ck_assert_uint_eq(escape_cut_front("abc", 99), 0);
}

static char *in_markdown(const char *name, bool in_table)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	ck_assert_ptr_nonnull(f);
	escape_markdown(f, name, in_table);
	ck_assert_int_eq(fclose(f), 0);
	return text;
}

TEST(in_markdown_a_name_is_a_code_span_that_it_cannot_end)
{
	static const struct {
		const char *name, *text, *cell;
	} rows[] = {
		{"@acme/everyone <b>", "`@acme/everyone <b>`", "`@acme/everyone <b>`"},
		{"#123 https://a.b ![x](y)", "`#123 https://a.b ![x](y)`",
			"`#123 https://a.b ![x](y)`"},
		{"a|b", "`a|b`", "`a\\|b`"},
		{"a\\|b", "`a\\|b`",
			"`a\\\\x7cb`"}, /* two backslashes would be one, and the pipe a border */
		{"a\\", "`a\\`", "`a\\`"},
		{"a`b``c", "```a`b``c```", "```a`b``c```"},
		{"`", "`` ` ``", "`` ` ``"},
		{"`a", "`` `a ``", "`` `a ``"},
		{" a ", "`  a  `", "`  a  `"},
		{"a\n\n| b", "`a\\x0a\\x0a| b`", "`a\\x0a\\x0a\\| b`"},
		{"", "", ""},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		_cleanup_(freep) char *text = in_markdown(rows[i].name, false);
		_cleanup_(freep) char *cell = in_markdown(rows[i].name, true);
		ck_assert_str_eq(text, rows[i].text);
		ck_assert_str_eq(cell, rows[i].cell);
	}
}
