/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Files as administrators write them, right and wrong; of the wrong ones also what is said and at
 * which line. The file that is shipped is read by the same parser.
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "daemon/conf/conf.h"
#include "daemon/conf/conf_value.h"
#include "proto/base/memory.h"
#include "tests/unit/test.h"

#define SHIPPED "systemd/mperf.conf"
#define S 1000000000ull

static int parse_bytes(const char *text, size_t n, struct conf *c, struct conf_error *error)
{
	/* On the heap and to the byte, so that a sanitizer sees the first one too many. */
	_cleanup_(freep) char *copy = malloc(n ? n : 1);
	ck_assert_ptr_nonnull(copy);
	memcpy(copy, text, n);
	return conf_parse(copy, n, "mperf.conf", c, error);
}

static struct conf parsed(const char *text)
{
	struct conf c;
	struct conf_error error = {""};
	ck_assert_msg(parse_bytes(text, strlen(text), &c, &error) == 0, "%s: %s", text, error.text);
	return c;
}

static void refused_bytes(const char *text, size_t n, const char *said)
{
	struct conf c;
	struct conf_error error = {""};
	memset(&c, 0x5a, sizeof(c));
	ck_assert_int_eq(parse_bytes(text, n, &c, &error), CONF_WRONG);
	ck_assert_str_eq(error.text, said);
	for (size_t i = 0; i < sizeof(c); i++)
		ck_assert_int_eq(((unsigned char *)&c)[i], 0x5a);
}

static void refused(const char *text, const char *said)
{
	refused_bytes(text, strlen(text), said);
}

static char *printed(const struct conf *c)
{
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);
	ck_assert_ptr_nonnull(f);
	conf_print(c, f);
	ck_assert_int_eq(fclose(f), 0);
	return text;
}

static char *file_text(const char *path)
{
	char *text = calloc(1, CONF_BYTES_MAX);
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	ck_assert_ptr_nonnull(text);
	ck_assert_msg(fd >= 0 && read(fd, text, CONF_BYTES_MAX - 1) > 0, "%s", path);
	return text;
}

TEST(an_empty_file_is_all_defaults)
{
	struct conf c = parsed("");
	ck_assert_uint_eq(c.rate, 99);
	ck_assert_uint_eq(c.top_rate, 999);
	ck_assert_uint_eq(c.rate_max, 10000);
	ck_assert_uint_eq(c.callers, CONF_CALLERS_TABLES);
	ck_assert(c.store);
	ck_assert_str_eq(c.store_path, "/var/lib/mperf");
	ck_assert_uint_eq(c.flush_ns, 5 * S);
	ck_assert_uint_eq(c.budget_bytes, 1ull << 30);
	ck_assert_uint_eq(c.min_free_bytes, 512ull << 20);
	ck_assert_uint_eq(c.keep_windows_ns, 2 * 86400 * S);
	ck_assert_uint_eq(c.keep_minutes_ns, 14 * 86400 * S);
	ck_assert_uint_eq(c.keep_hours_ns, 400 * 86400 * S);
	ck_assert_str_eq(c.socket_path, "/run/mperf/mperfd.sock");
	ck_assert_str_eq(c.group, "mperf");
	ck_assert_uint_eq(c.clients_max, 512);
	ck_assert_uint_eq(c.clients_per_user_max, 256);
	ck_assert_uint_eq(c.requests_per_second_max, 100);
	ck_assert_uint_eq(c.queries_max, 4);
	ck_assert_uint_eq(c.client_bytes_max, 16ull << 20);
}

TEST(values_of_each_kind_are_read)
{
	struct conf c = parsed("[sampling]\nrate=1\n  callers =\toff \n\n[store]\n; old\n"
			       "path = /srv/a folder\nflush = 1min30s\nbudget = 2GiB\n"
			       "min-free = 0\n[control]\ngroup = perf-users\n"
			       "client-bytes-max = 4194304");
	ck_assert_uint_eq(c.rate, 1);
	ck_assert_uint_eq(c.callers, CONF_CALLERS_NO);
	ck_assert_str_eq(c.store_path, "/srv/a folder");
	ck_assert_uint_eq(c.flush_ns, 90 * S);
	ck_assert_uint_eq(c.budget_bytes, 2ull << 30);
	ck_assert_uint_eq(c.min_free_bytes, 0);
	ck_assert_str_eq(c.group, "perf-users");
	ck_assert_uint_eq(c.client_bytes_max, 4ull << 20);
	ck_assert_uint_eq(c.top_rate, 999); /* what is not named keeps its default */
}

TEST(every_word_for_yes_and_no_is_read)
{
	static const char *const yes[] = {"yes", "true", "on"}, *const no[] = {
									"no", "false", "off"};
	char text[64];
	for (size_t i = 0; i < 3; i++) {
		snprintf(text, sizeof(text), "[store]\nkeep = %s\n", yes[i]);
		ck_assert(parsed(text).store);
		snprintf(text, sizeof(text), "[store]\nkeep = %s\n", no[i]);
		ck_assert(!parsed(text).store);
	}
}

TEST(every_word_for_callers_is_read)
{
	static const struct {
		const char *text;
		uint32_t is;
	} words[] = {{"no", CONF_CALLERS_NO}, {"off", CONF_CALLERS_NO}, {"fp", CONF_CALLERS_FP},
		{"tables", CONF_CALLERS_TABLES}, {"yes", CONF_CALLERS_TABLES}};
	char text[64];

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		snprintf(text, sizeof(text), "[sampling]\ncallers = %s\n", words[i].text);
		ck_assert_uint_eq(parsed(text).callers, words[i].is);
	}
}

TEST(every_row_takes_its_own_limits_and_default)
{
	struct conf c;
	conf_defaults(&c);
	ck_assert_uint_le(n_conf_rows, N_CONF_ROWS_MAX);
	for (size_t i = 0; i < n_conf_rows; i++) {
		const struct conf_row *row = &conf_rows[i];
		const char *const texts[] = {row->preset, row->min, row->max};
		ck_assert_str_eq(conf_value_print(row, &c).text, row->preset);
		for (size_t k = 0; k < (conf_is_text(row) || row->kind == KIND_SWITCH ? 1 : 3);
			k++) {
			struct conf changed = c;
			ck_assert_msg(conf_value_set(row, texts[k], &changed) == 0, "%s = %s",
				row->key, texts[k]);
			ck_assert_str_eq(conf_value_print(row, &changed).text, texts[k]);
		}
		for (size_t k = 0; k < i; k++)
			ck_assert_str_ne(row->key, conf_rows[k].key);
	}
}

TEST(what_is_printed_reads_back_the_same)
{
	struct conf c = parsed("[sampling]\nrate = 4999\ncallers = no\n[store]\nkeep = no\n"
			       "flush = 1234567891ns\nbudget = 17000001\nmin-free = 0\n"
			       "path = /x\nkeep-hours = 15d12h\n[control]\nclients-max = 7\n");
	_cleanup_(freep) char *text = printed(&c);
	struct conf again = parsed(text);
	_cleanup_(freep) char *text_again = printed(&again);
	ck_assert_str_eq(text, text_again);
	ck_assert_uint_eq(again.rate, 4999);
	ck_assert_uint_eq(again.flush_ns, 1234567891);
	ck_assert(!again.store);
	ck_assert_ptr_nonnull(strstr(text, "\nflush = 1234567891ns\n"));
	ck_assert_ptr_nonnull(strstr(text, "\nkeep-hours = 372h\n"));
}

TEST(the_shipped_file_shows_each_key_with_its_default)
{
	struct conf c;
	struct conf_error error = {""};
	ck_assert_msg(conf_read(SHIPPED, &c, &error) == 0, "%s", error.text);
	/* It is what we print, with a # before each key, below some lines about itself. */
	struct conf defaults = parsed("");
	_cleanup_(freep) char *wanted = printed(&defaults), *shipped = file_text(SHIPPED);
	_cleanup_(freep) char *got = printed(&c);
	ck_assert_str_eq(got, wanted);
	char *from = strstr(shipped, "\n[") + 1, *to = from;
	for (char *at = from; *at; at++)
		if (*at != '#' || at[-1] != '\n' || at[1] == ' ')
			*to++ = *at;
	*to = '\0';
	ck_assert_str_eq(from, wanted);
}

TEST(an_unknown_key_is_told_with_the_nearest)
{
	refused("# one\n[sampling]\nraet = 5\n",
		"mperf.conf:3: unknown key 'raet' in [sampling]; did you mean 'rate'?");
	refused("[store]\nkeep-minuts = 5d\n",
		"mperf.conf:2: unknown key 'keep-minuts' in [store]; did you mean 'keep-minutes'?");
	refused("[store]\nzzz = 5d\n",
		"mperf.conf:2: unknown key 'zzz' in [store]; mperf.conf(5) lists the keys");
	refused("[store]\nrate = 5\n",
		"mperf.conf:2: 'rate' is not a key of [store]; it belongs in [sampling]");
	refused("[sampling]\n\xff\x7e\xc2 = 5\n", "mperf.conf:2: unknown key '\\xff~\\xc2' in "
						  "[sampling]; mperf.conf(5) lists the keys");
}

TEST(an_unknown_section_is_told_with_the_nearest)
{
	refused("[sampels]\n", "mperf.conf:1: unknown section [sampels]; "
			       "mperf.conf(5) lists the sections");
	refused("\n[stoer]\n", "mperf.conf:2: unknown section [stoer]; did you mean [store]?");
	refused("[stor]\n", "mperf.conf:1: unknown section [stor]; did you mean [store]?");
	refused("[Control]\n", "mperf.conf:1: unknown section [Control]; did you mean [control]?");
}

TEST(a_section_that_is_not_one_is_an_error)
{
	static const char said[] =
		"mperf.conf:1: '%s' is not a section; write its name in brackets";
	static const char *const texts[] = {"[", "[]", "[sampling", "[sampling] rate = 1"};
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		char wanted[200];
		snprintf(wanted, sizeof(wanted), said, texts[i]);
		refused(texts[i], wanted);
	}
}

TEST(a_key_before_any_section_is_told_where_it_belongs)
{
	refused("budget = 2G\n", "mperf.conf:1: 'budget' comes before any section; put [store] "
				 "on a line above it");
	refused("\nxyz = 2G\n", "mperf.conf:2: 'xyz' comes before any section; put [sampling] "
				"on a line above it");
}

TEST(what_is_given_twice_is_an_error)
{
	refused("[sampling]\nrate = 5\n\nrate = 5\n",
		"mperf.conf:4: 'rate' was already set at line 2; keep one of the two");
	refused("[store]\n[control]\n[store]\nflush = 1s\n",
		"mperf.conf:3: section [store] already began at line 1; put its keys there");
}

TEST(a_line_that_is_nothing_is_an_error)
{
	refused("[sampling]\nrate 5\n", "mperf.conf:2: 'rate 5' is neither a section nor a "
					"'key = value'; comments begin with #");
	refused("[sampling]\n= 5\n", "mperf.conf:2: there is no key before '='");
	refused("[sampling]\nrate =\n", "mperf.conf:2: 'rate' has no value; its default is 99");
	refused("[sampling]\nrate = 5 # slow\n", "mperf.conf:2: a comment follows the value of "
						 "'rate'; put it on a line of its own");
	refused("[store]\npath = /a ;b\n", "mperf.conf:2: a comment follows the value of "
					   "'path'; put it on a line of its own");
}

TEST(a_count_out_of_its_range_is_told_with_the_range)
{
	refused("[sampling]\nrate = 100000\n", "mperf.conf:2: rate is 100000, but must be between "
					       "1 and 50000 samples a second");
	refused("[sampling]\nrate = 0", "mperf.conf:2: rate is 0, but must be between 1 and 50000 "
					"samples a second");
	refused("[control]\nclients-max = 99999999999999999999999\n",
		"mperf.conf:2: clients-max is 99999999999999999999999, but must be between 1 and "
		"4096 clients");
	refused("[control]\nqueries-max = 4294967297\n", /* 2^32 + 1 */
		"mperf.conf:2: queries-max is 4294967297, but must be between 1 and 64 queries");
}

TEST(what_is_no_count_is_an_error)
{
	static const char *const texts[] = {"x", "-1", "+1", "1.5", "12x", "0x10", "1 000", "99Hz"};
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		char text[64], wanted[200];
		snprintf(text, sizeof(text), "[sampling]\nrate = %s\n", texts[i]);
		snprintf(wanted, sizeof(wanted),
			"mperf.conf:2: rate is '%s', but must be a whole number between 1 and "
			"50000 "
			"samples a second",
			texts[i]);
		refused(text, wanted);
	}
}

TEST(a_bad_duration_is_an_error)
{
	static const char form[] = "mperf.conf:2: flush is '%s', but must be a time such as 500ms, "
				   "5s, 2min, 12h or 14d between 1s and 5min";
	static const char *const texts[] = {"5x", "s", "-5s", "5  s", "5s5"};
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		char text[64], wanted[200];
		snprintf(text, sizeof(text), "[store]\nflush = %s\n", texts[i]);
		snprintf(wanted, sizeof(wanted), form, texts[i]);
		refused(text, wanted);
	}
	refused("[store]\nflush = 1w\n",
		"mperf.conf:2: flush is 1w, but must be between 1s and 5min");
	refused("[store]\nflush = 10min\n",
		"mperf.conf:2: flush is 10min, but must be between 1s and 5min");
	refused("[store]\nflush = 999ms\n",
		"mperf.conf:2: flush is 999ms, but must be between 1s and 5min");
	refused("[store]\nkeep-hours = 99999999999999d\n",
		"mperf.conf:2: keep-hours is 99999999999999d, but must be between 1h and 3650d");
}

TEST(a_bad_size_is_an_error)
{
	static const char form[] = "mperf.conf:2: budget is '%s', but must be a size such as 4096, "
				   "512M or 2G between 16M and 64T";
	static const char *const texts[] = {
		"G", "1Q", "1GB", "1Gi", "1.5G", "-1G", "1 G", "1g", "1GiBx"};
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		char text[64], wanted[200];
		snprintf(text, sizeof(text), "[store]\nbudget = %s\n", texts[i]);
		snprintf(wanted, sizeof(wanted), form, texts[i]);
		refused(text, wanted);
	}
	refused("[store]\nbudget = 15M\n",
		"mperf.conf:2: budget is 15M, but must be between 16M and 64T");
	refused("[store]\nbudget = 18014398509481984K\n", /* 2^64 */
		"mperf.conf:2: budget is 18014398509481984K, but must be between 16M and 64T");
}

TEST(a_share_is_a_percentage_or_none)
{
	ck_assert_uint_eq(parsed("").overhead_ppm, 10000);
	ck_assert_uint_eq(parsed("[sampling]\noverhead = 0.25%\n").overhead_ppm, 2500);
	ck_assert_uint_eq(parsed("[sampling]\noverhead = 12.0001%\n").overhead_ppm, 120001);
	ck_assert_uint_eq(parsed("[sampling]\noverhead = 100%\n").overhead_ppm, 1000000);
	ck_assert_uint_eq(parsed("[sampling]\noverhead = none\n").overhead_ppm, 0);
	ck_assert_uint_eq(parsed("[sampling]\noverhead = 0\n").overhead_ppm, 0);
	ck_assert_uint_eq(parsed("[sampling]\noverhead = 0%\n").overhead_ppm, 0);
	struct conf c = parsed("[sampling]\noverhead = 0.0300%\n");
	_cleanup_(freep) char *text = printed(&c);
	ck_assert_ptr_nonnull(strstr(text, "overhead = 0.03%\n"));
}

TEST(a_bad_share_is_an_error)
{
	static const char form[] =
		"mperf.conf:2: overhead is '%s', but must be a percentage such as "
		"1%% or 0.5%% between none and 100%%";
	static const char *const texts[] = {
		"1", "%", ".5%", "1.%", "-1%", "1 %", "1.00001%", "0.5", "None", "1%%", "1e0%"};
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		char text[64], wanted[200];
		snprintf(text, sizeof(text), "[sampling]\noverhead = %s\n", texts[i]);
		snprintf(wanted, sizeof(wanted), form, texts[i]);
		refused(text, wanted);
	}
	refused("[sampling]\noverhead = 100.1%\n",
		"mperf.conf:2: overhead is 100.1%, but must be between none and 100%");
	refused("[sampling]\noverhead = 101%\n",
		"mperf.conf:2: overhead is 101%, but must be between none and 100%");
}

TEST(a_bad_word_path_or_group_is_an_error)
{
	refused("[store]\nkeep = maybe\n", "mperf.conf:2: keep is 'maybe', but must be yes or no");
	refused("[sampling]\ncallers = dwarf\n",
		"mperf.conf:2: callers is 'dwarf', but must be tables, fp or no");
	refused("[store]\nkeep = Yes\n", "mperf.conf:2: keep is 'Yes', but must be yes or no");
	refused("[store]\npath = var/lib\n", "mperf.conf:2: path is 'var/lib', but must be an "
					     "absolute path, such as /var/lib/mperf");
	refused("[control]\ngroup = a b\n", "mperf.conf:2: group is 'a b', but must be the name of "
					    "a group: letters, digits, '_', '-' and '.'");
	refused("[control]\ngroup = -x\n", "mperf.conf:2: group is '-x', but must be the name of a "
					   "group: letters, digits, '_', '-' and '.'");
}

TEST(a_text_may_be_as_long_as_its_limit_and_no_longer)
{
	char text[400] = "[control]\nsocket = /";
	size_t begin = strlen(text) - 1;
	memset(text + begin + 1, 's', 106);
	ck_assert_uint_eq(strlen(parsed(text).socket_path), 107);
	text[begin + 107] = 's';
	refused(text, "mperf.conf:2: socket is 108 bytes long, but must be at most 107");

	char folder[400] = "[store]\npath = /";
	begin = strlen(folder) - 1;
	memset(folder + begin + 1, 'p', 254);
	ck_assert_uint_eq(strlen(parsed(folder).store_path), 255);
	folder[begin + 255] = 'p';
	refused(folder, "mperf.conf:2: path is 256 bytes long, but must be at most 255");
}

TEST(keys_that_contradict_one_another_are_told_at_the_later_line)
{
	refused("[sampling]\nrate-max = 5000\nrate = 6000\ntop-rate = 7\n",
		"mperf.conf:3: rate is 6000, but rate-max is 5000 (line 2); rate must not be "
		"larger "
		"than rate-max");
	refused("[sampling]\nrate-max = 500\n", "mperf.conf:2: rate-max is 500, but top-rate is "
						"999 (the default); top-rate must not "
						"be larger than rate-max");
	refused("[sampling]\ntop-rate = 20000\n", "mperf.conf:2: top-rate is 20000, but rate-max "
						  "is 10000 (the default); top-rate must "
						  "not be larger than rate-max");
	refused("[store]\nkeep-windows = 20d\n\nkeep-minutes = 36h\n",
		"mperf.conf:4: keep-minutes is 36h, but keep-windows is 20d (line 2); keep-windows "
		"must not be larger than keep-minutes");
	refused("[store]\nkeep-hours = 13d\n", "mperf.conf:2: keep-hours is 13d, but keep-minutes "
					       "is 14d (the default); keep-minutes "
					       "must not be larger than keep-hours");
	parsed("[sampling]\nrate = 50000\nrate-max = 50000\n");
}

TEST(bytes_that_an_editor_hides_are_errors)
{
	static const char bom[] =
		"mperf.conf:1: the file starts with a byte order mark; save it as "
		"UTF-8 without one";
	refused("\xef\xbb\xbf[store]\n", bom);
	refused("\xff\xfe[", bom);
	refused("[store]\r\nkeep = no\r\n", "mperf.conf:1: the line holds a carriage return; "
					    "save the file with Unix line endings");
	refused_bytes("[store]\nke\0ep = no\n", 18,
		"mperf.conf:2: the line holds a NUL byte; save the file as plain text");
	refused_bytes(
		"\0", 1, "mperf.conf:1: the line holds a NUL byte; save the file as plain text");
	refused("# \033[31m\n",
		"mperf.conf:1: the line holds the control character 0x1b; remove it");
	refused("[store]\nkeep = no\x7f\n",
		"mperf.conf:2: the line holds the control character 0x7f; remove it");
}

TEST(a_line_or_a_file_that_is_too_long_is_an_error)
{
	_cleanup_(freep) char *text = calloc(1, CONF_BYTES_MAX + 2);
	memset(text, '#', 1023);
	parsed(text);
	text[1023] = '#';
	refused(text, "mperf.conf:1: the line has 1024 bytes, but may have at most 1023");

	memset(text, '\n', CONF_BYTES_MAX);
	parsed(text);
	text[CONF_BYTES_MAX] = '\n';
	refused(text,
		"mperf.conf: the file has more than 65536 bytes, which no configuration needs");
}

TEST(files_that_cannot_be_read_are_told_with_why)
{
	struct conf c;
	struct conf_error error;
	ck_assert_int_eq(conf_read("/dev/null", &c, &error), 0);
	ck_assert_uint_eq(c.rate, 99);
	ck_assert_int_eq(conf_read("/nonexistent/mperf.conf", &c, &error), CONF_ABSENT);
	ck_assert_str_eq(error.text, "/nonexistent/mperf.conf does not exist; name another file "
				     "with --config, or leave out --config for the defaults");
	ck_assert_int_eq(conf_read("/proc", &c, &error), CONF_UNREADABLE);
	ck_assert_str_eq(error.text, "/proc cannot be read: it is not a regular file; name a "
				     "text file with --config");
	ck_assert_int_eq(conf_read("/dev/zero", &c, &error), CONF_WRONG);
	ck_assert_str_eq(error.text, "/dev/zero: the file has more than 65536 bytes, which no "
				     "configuration needs");

	/* Nobody writes into it: who waited for him would wait for ever. */
	char folder[] = "/tmp/mperf-conf-XXXXXX", path[64];
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/fifo", folder);
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	int r = conf_read(path, &c, &error);
	unlink(path);
	rmdir(folder);
	ck_assert_int_eq(r, CONF_UNREADABLE);
}

TEST(what_needs_a_restart_is_named)
{
	struct conf now = parsed("");
	char text[256];
	struct conf next = parsed("[sampling]\nrate = 5\n[store]\nflush = 9s\nbudget = 2G\n");
	conf_need_restart(&now, &next, text, sizeof(text));
	ck_assert_str_eq(text, "");
	next = parsed(
		"[sampling]\nrate = 5\ncallers = no\n[store]\npath = /a\n[control]\nsocket = /b\n");
	conf_need_restart(&now, &next, text, sizeof(text));
	ck_assert_str_eq(text, "callers, socket");
	char small[8];
	conf_need_restart(&now, &next, small, sizeof(small));
	ck_assert_str_eq(small, "callers");
}
