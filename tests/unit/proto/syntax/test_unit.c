/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Figures are compared with what a person would write; times are checked in a zone with a shift
 * of its clocks.
 */
#include <math.h>
#include <time.h>

#include "proto/syntax/unit.h"
#include "tests/unit/test.h"

#define S 1000000000ll

static const char *shown(Mperf__Unit unit, double value)
{
	static char text[UNIT_TEXT_BYTES];
	unit_text(unit, value, text);
	return text;
}

static const char *counted(int64_t value)
{
	static char text[UNIT_TEXT_BYTES];
	unit_count_text(value, text);
	return text;
}

TEST(a_part_of_the_time_is_told_unless_it_reads_as_all_of_it)
{
	static const struct {
		double part;
		const char *text;
	} cases[] = {{0, "none"}, {1e-9, "less than 1 %"}, {0.0049, "less than 1 %"},
		{0.006, "1 %"}, {0.25, "25 %"}, {0.994, "99 %"}};
	char text[UNIT_TEXT_BYTES];
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ck_assert(unit_part_text(cases[i].part, text));
		ck_assert_str_eq(text, cases[i].text);
	}
	ck_assert(!unit_part_text(0.996, text));
	ck_assert(!unit_part_text(1, text));
	ck_assert(!unit_part_text(NAN, text));
}

TEST(counts_are_grouped_by_thousands)
{
	ck_assert_str_eq(counted(0), "0");
	ck_assert_str_eq(counted(999), "999");
	ck_assert_str_eq(counted(1000), "1,000");
	ck_assert_str_eq(counted(3634478335), "3,634,478,335");
	ck_assert_str_eq(counted(-12345), "-12,345");
}

TEST(the_extreme_counts_fit)
{
	ck_assert_str_eq(counted(INT64_MAX), "9,223,372,036,854,775,807");
	ck_assert_str_eq(counted(INT64_MIN), "-9,223,372,036,854,775,808");
}

TEST(durations_keep_three_digits)
{
	ck_assert_str_eq(shown(MPERF__UNIT__UNIT_NS, 0), "0 ns");
	ck_assert_str_eq(shown(MPERF__UNIT__UNIT_NS, 412), "412 ns");
	ck_assert_str_eq(shown(MPERF__UNIT__UNIT_NS, 41234), "41.2 µs");
	ck_assert_str_eq(shown(MPERF__UNIT__UNIT_NS, 3.2e6), "3.20 ms");
	ck_assert_str_eq(shown(MPERF__UNIT__UNIT_NS, 12.13e9), "12.1 s");
	ck_assert_str_eq(shown(MPERF__UNIT__UNIT_NS, 200e9), "3 min 20 s");
	ck_assert_str_eq(shown(MPERF__UNIT__UNIT_NS, 18180e9), "5 h 03 min");
	ck_assert_str_eq(shown(MPERF__UNIT__UNIT_NS, 71 * 3600e9), "71 h 00 min");
	ck_assert_str_eq(shown(MPERF__UNIT__UNIT_NS, 400 * 86400e9 + 7200e9), "400 d 02 h");
}

TEST(rounding_up_changes_the_unit)
{
	ck_assert_str_eq(shown(MPERF__UNIT__UNIT_NS, 999.6), "1.00 µs");
	ck_assert_str_eq(shown(MPERF__UNIT__UNIT_NS, 9.999e6), "10.0 ms");
	ck_assert_str_eq(shown(MPERF__UNIT__UNIT_NS, 999.9e6), "1.00 s");
	ck_assert_str_eq(shown(MPERF__UNIT__UNIT_NS, 119.9e9), "2 min 00 s");
	ck_assert_str_eq(shown(MPERF__UNIT__UNIT_BYTES, 1023.9), "1.00 KiB");
}

TEST(other_units_are_written_as_people_do)
{
	ck_assert_str_eq(shown(MPERF__UNIT__UNIT_BYTES, 3.2 * 1024 * 1024), "3.20 MiB");
	ck_assert_str_eq(shown(MPERF__UNIT__UNIT_SHARE, 0.1844), "18.44 %");
	ck_assert_str_eq(shown(MPERF__UNIT__UNIT_SHARE, 0.000001), "<0.01 %");
	ck_assert_str_eq(shown(MPERF__UNIT__UNIT_SHARE, 0), "0.00 %");
	ck_assert_str_eq(shown(MPERF__UNIT__UNIT_RATIO, 0.857), "0.86");
	ck_assert_str_eq(shown(MPERF__UNIT__UNIT_HZ, 99), "99 Hz");
	ck_assert_str_eq(shown(MPERF__UNIT__UNIT_HZ, 1.6e9), "1.60 GHz");
	ck_assert_str_eq(shown(MPERF__UNIT__UNIT_COUNT, 1203.6), "1,204");
	ck_assert_str_eq(shown(MPERF__UNIT__UNIT_NONE, 42), "42");
}

TEST(what_is_no_number_is_a_dash)
{
	for (int unit = 0; unit <= MPERF__UNIT__UNIT_HZ; unit++) {
		ck_assert_str_eq(shown((Mperf__Unit)unit, NAN), "-");
		ck_assert_str_eq(shown((Mperf__Unit)unit, INFINITY), "-");
		ck_assert_str_eq(shown((Mperf__Unit)unit, -1e300), "-");
		ck_assert_uint_lt(strlen(shown((Mperf__Unit)unit, -9.2e18)), UNIT_TEXT_BYTES);
	}
}

TEST(durations_are_read)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} good[] = {
		{"10s", 10ull * S},
		{"10", 10ull * S},
		{"500ms", S / 2},
		{"2m", 120ull * S},
		{"2min", 120ull * S},
		{"1h30m", 5400ull * S},
		{"1.5s", 3ull * S / 2},
		{"3us", 3000},
		{"3µs", 3000},
		{"7ns", 7},
		{"0", 0},
		{"1d", 86400ull * S},
		{"2w", 14ull * 86400 * S},
		{"1 week", 7ull * 86400 * S},
		{"5 minutes", 300ull * S},
		{"1 hour 30 min", 5400ull * S},
	};
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		uint64_t ns = 1;
		ck_assert_int_eq(unit_parse_duration(good[i].text, &ns), 0);
		ck_assert_uint_eq(ns, good[i].ns);
	}
}

TEST(shares_are_read_and_what_is_none_is_refused)
{
	uint32_t ppm = 77;
	static const char *const bad[] = {
		"", "%", "5", ".5%", "5.%", "-1%", "+1%", " 1%", "1 %", "1%%", "0.00001%", "1e0%"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		ck_assert_msg(unit_parse_share(bad[i], &ppm) == UNIT_MALFORMED, "%s", bad[i]);
	ck_assert_int_eq(unit_parse_share("100.0001%", &ppm), UNIT_OUT_OF_RANGE);
	ck_assert_int_eq(unit_parse_share("4294967297%", &ppm), UNIT_OUT_OF_RANGE);
	ck_assert_uint_eq(ppm, 77);
	ck_assert_int_eq(unit_parse_share("100%", &ppm), 0);
	ck_assert_uint_eq(ppm, 1000000);
	ck_assert_int_eq(unit_parse_share("0.0300%", &ppm), 0);
	ck_assert_uint_eq(ppm, 300);
	ck_assert_int_eq(unit_parse_share("12.0001%", &ppm), 0);
	ck_assert_uint_eq(ppm, 120001);
}

TEST(what_is_no_duration_is_refused)
{
	static const char *const bad[] = {"", "s", "-1s", "+1s", " 1s", "1s ", "1x", "1.s", ".5s",
		"1..5s", "1e3s", "0x10s", "1s2", "ten", "1ss", "inf", "nan", "1,5s"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		uint64_t ns = 77;
		ck_assert_msg(unit_parse_duration(bad[i], &ns) == UNIT_MALFORMED, "%s", bad[i]);
		ck_assert_uint_eq(ns, 77);
	}
}

TEST(an_endless_duration_is_out_of_range)
{
	uint64_t ns = 77;
	char digits[400];
	memset(digits, '9', sizeof(digits) - 1);
	digits[sizeof(digits) - 1] = '\0';
	ck_assert_int_eq(unit_parse_duration("200000d", &ns), UNIT_OUT_OF_RANGE);
	ck_assert_int_eq(unit_parse_duration(digits, &ns), UNIT_OUT_OF_RANGE);
	ck_assert_uint_eq(ns, 77);
}

/* Saturday 2026-11-21 12:34:56 in Berlin, one hour east of UTC in winter. */
#define NOW ((int64_t)1795260896 * S)

static int64_t at(const char *text)
{
	int64_t ns = -1;
	setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
	tzset();
	ck_assert_msg(unit_parse_time(text, NOW, &ns) == 0, "%s", text);
	ck_assert_int_eq(ns % S, 0);
	return ns / S;
}

TEST(times_are_read)
{
	int64_t now = NOW / S, midnight = now - (12 * 3600 + 34 * 60 + 56);
	ck_assert_int_eq(at("now"), now);
	ck_assert_int_eq(at("today"), midnight);
	ck_assert_int_eq(at("yesterday"), midnight - 86400);
	ck_assert_int_eq(at("yesterday 10:30"), midnight - 86400 + 37800);
	ck_assert_int_eq(at("10:30"), midnight + 37800);
	ck_assert_int_eq(at("10:30:15"), midnight + 37815);
	ck_assert_int_eq(at("2026-11-21 10:00"), midnight + 36000);
	ck_assert_int_eq(at("2026-11-21T10:00:01"), midnight + 36001);
	ck_assert_int_eq(at("2026-11-20"), midnight - 86400);
	ck_assert_int_eq(at("-5m"), now - 300);
	ck_assert_int_eq(at("@1795260000"), 1795260000);
	ck_assert_int_eq(at("5 minutes ago"), now - 300);
	ck_assert_int_eq(at("1 week ago"), now - 7 * 86400);
	ck_assert_int_eq(at("-2w"), now - 14 * 86400);
}

TEST(a_date_in_summer_has_its_own_offset)
{
	ck_assert_int_eq(at("2026-07-01"), 1782856800); /* 2026-06-30 22:00 UTC */
}

TEST(yesterday_on_the_first_is_the_last_of_the_month_before)
{
	int64_t ns;
	setenv("TZ", "UTC", 1);
	tzset();
	ck_assert_int_eq(
		unit_parse_time("yesterday", 1772366400 * S, &ns), 0); /* 2026-03-01 12:00 */
	ck_assert_int_eq(ns / S, 1772236800);                          /* 2026-02-28 */
}

TEST(what_is_no_time_is_refused)
{
	static const char *const bad[] = {"", "never", "10", "10:3", "24:00", "10:60", "10:30:60",
		"10:30 ", " 10:30", "2026-13-01", "2026-00-10", "2026-11-00", "2026-02-30",
		"2026-11-32", "26-11-21", "2026-11-21x", "2026-11-21 ", "2026-11-21 1:00",
		"yesterdayy", "yesterday10:30", "today 25:00", "-", "-x", "--5m", "@", "@x", "@1x",
		"-5x", "+5m", " ago", "ago", "5 ago minutes", "a week ago", "5 minutes  ago"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		int64_t ns = 77;
		ck_assert_msg(unit_parse_time(bad[i], NOW, &ns) == UNIT_MALFORMED, "%s", bad[i]);
		ck_assert_int_eq(ns, 77);
	}
}

TEST(times_beyond_the_clock_are_out_of_range)
{
	int64_t ns = 77;
	ck_assert_int_eq(unit_parse_time("1969-01-01", NOW, &ns), UNIT_OUT_OF_RANGE);
	ck_assert_int_eq(unit_parse_time("9999-01-01", NOW, &ns), UNIT_OUT_OF_RANGE);
	ck_assert_int_eq(unit_parse_time("@99999999999999999999", NOW, &ns), UNIT_OUT_OF_RANGE);
	ck_assert_int_eq(unit_parse_time("-100000d", NOW, &ns), UNIT_OUT_OF_RANGE);
	ck_assert_int_eq(ns, 77);
}

TEST(sizes_are_powers_of_1024)
{
	uint64_t bytes = 0;
	ck_assert_int_eq(unit_parse_bytes("4096", &bytes), 0);
	ck_assert_uint_eq(bytes, 4096);
	ck_assert_int_eq(unit_parse_bytes("2MiB", &bytes), 0);
	ck_assert_uint_eq(bytes, 2u << 20);
	ck_assert_int_eq(unit_parse_bytes("1T", &bytes), 0);
	ck_assert_uint_eq(bytes, UINT64_C(1) << 40);
}

TEST(what_is_no_size_is_refused)
{
	static const char *const bad[] = {"", "M", "1 M", "1m", "1MB", "1.5M", "-1", "1Mi", "0x10"};
	uint64_t bytes = 77;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		ck_assert_msg(unit_parse_bytes(bad[i], &bytes) == UNIT_MALFORMED, "%s", bad[i]);
	ck_assert_int_eq(unit_parse_bytes("99999999999999999999", &bytes), UNIT_OUT_OF_RANGE);
	ck_assert_int_eq(unit_parse_bytes("16777216T", &bytes), UNIT_OUT_OF_RANGE);
	ck_assert_uint_eq(bytes, 77);
}
