/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * People compare figures in columns, so a figure has one unit and three digits, which can be
 * trusted at a glance. Counts are the exception: they are exact, and grouped instead of cut. We
 * parse by hand, not with strtod and strptime, since these obey the locale and accept more than we
 * want ("0x1p3s", " 5").
 */
#include "proto/syntax/unit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define PERCENT_MAX 100u
#define PPM_PER_PERCENT 10000u
#define NS_PER_S 1000000000ull

void unit_count_text(int64_t value, char ret_text[static UNIT_TEXT_BYTES])
{
	char digits[24];
	uint64_t magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
	int n = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)magnitude);
	char *p = ret_text;

	if (value < 0)
		*p++ = '-';
	for (int i = 0; i < n; i++) {
		if (i > 0 && (n - i) % 3 == 0)
			*p++ = ',';
		*p++ = digits[i];
	}
	*p = '\0';
}

bool unit_part_text(double part, char ret_text[static UNIT_TEXT_BYTES])
{
	if (!(part < 0.995))
		return false;
	if (part <= 0)
		snprintf(ret_text, UNIT_TEXT_BYTES, "none");
	else if (part < 0.005)
		snprintf(ret_text, UNIT_TEXT_BYTES, "less than 1 %%");
	else
		snprintf(ret_text, UNIT_TEXT_BYTES, "%.0f %%", 100 * part);
	return true;
}

/* A step of a scale of units: values below `below` (after rounding) use it. */
struct step {
	double below, divisor;
	const char *suffix;
};

/* Three significant digits; the bounds are where rounding would add a digit. */
static void scale_text(double value, const struct step *step, char *ret_text)
{
	double magnitude = fabs(value);
	while (step->below > 0 && magnitude >= step->below)
		step++;

	value /= step->divisor;
	magnitude /= step->divisor;
	int decimals = step->divisor == 1 ? 0 : magnitude < 9.995 ? 2 : magnitude < 99.95 ? 1 : 0;
	snprintf(ret_text, UNIT_TEXT_BYTES, "%.*f %s", decimals, value, step->suffix);
}

#define DAY_S 86400ull
#define HOURS_READABLE 72 /* longer times are in days */

static void ns_text(double ns, char *ret_text)
{
	static const struct step steps[] = {
		{999.5, 1, "ns"},
		{999.5e3, 1e3, "µs"},
		{999.5e6, 1e6, "ms"},
		{0, 1e9, "s"},
	};
	double seconds = fabs(ns) / 1e9;
	if (seconds < 119.5) {
		scale_text(ns, steps, ret_text);
		return;
	}

	const char *sign = ns < 0 ? "-" : "";
	uint64_t whole = (uint64_t)(seconds + 0.5);
	if (whole < 7200)
		snprintf(ret_text, UNIT_TEXT_BYTES, "%s%llu min %02llu s", sign,
			(unsigned long long)(whole / 60), (unsigned long long)(whole % 60));
	else if (whole >= HOURS_READABLE * 3600)
		snprintf(ret_text, UNIT_TEXT_BYTES, "%s%llu d %02llu h", sign,
			(unsigned long long)(whole / 86400),
			(unsigned long long)(whole / 3600 % 24));
	else
		snprintf(ret_text, UNIT_TEXT_BYTES, "%s%llu h %02llu min", sign,
			(unsigned long long)(whole / 3600), (unsigned long long)(whole / 60 % 60));
}

static void share_text(double share, char *ret_text)
{
	if (share > 0 && share < 0.00005)
		snprintf(ret_text, UNIT_TEXT_BYTES, "<0.01 %%");
	else
		snprintf(ret_text, UNIT_TEXT_BYTES, "%.2f %%", 100 * share);
}

void unit_text(Mperf__Unit unit, double value, char ret_text[static UNIT_TEXT_BYTES])
{
	static const struct step bytes[] = {
		{1023.5, 1, "B"},
		{1023.5 * 0x1p10, 0x1p10, "KiB"},
		{1023.5 * 0x1p20, 0x1p20, "MiB"},
		{1023.5 * 0x1p30, 0x1p30, "GiB"},
		{0, 0x1p40, "TiB"},
	};
	static const struct step hz[] = {
		{999.5, 1, "Hz"},
		{999.5e3, 1e3, "kHz"},
		{999.5e6, 1e6, "MHz"},
		{0, 1e9, "GHz"},
	};

	/* No count of ours exceeds 2^63, and it would not fit the text either. */
	if (!isfinite(value) || fabs(value) >= 0x1p63) {
		snprintf(ret_text, UNIT_TEXT_BYTES, "-");
		return;
	}
	switch (unit) {
	case MPERF__UNIT__UNIT_COUNT:
		unit_count_text((int64_t)round(value), ret_text);
		break;
	case MPERF__UNIT__UNIT_NS:
		ns_text(value, ret_text);
		break;
	case MPERF__UNIT__UNIT_BYTES:
		scale_text(value, bytes, ret_text);
		break;
	case MPERF__UNIT__UNIT_SHARE:
		share_text(value, ret_text);
		break;
	case MPERF__UNIT__UNIT_RATIO:
		snprintf(ret_text, UNIT_TEXT_BYTES, "%.2f", value);
		break;
	case MPERF__UNIT__UNIT_HZ:
		scale_text(value, hz, ret_text);
		break;
	default:
		snprintf(ret_text, UNIT_TEXT_BYTES, "%.15g", value);
	}
}

const char *unit_name(Mperf__Unit unit)
{
	switch (unit) {
	case MPERF__UNIT__UNIT_COUNT:
		return "count";
	case MPERF__UNIT__UNIT_NS:
		return "ns";
	case MPERF__UNIT__UNIT_BYTES:
		return "bytes";
	case MPERF__UNIT__UNIT_SHARE:
		return "share";
	case MPERF__UNIT__UNIT_RATIO:
		return "ratio";
	case MPERF__UNIT__UNIT_HZ:
		return "hz";
	case MPERF__UNIT__UNIT_TIME:
		return "time";
	case MPERF__UNIT__UNIT_ADDRESS:
		return "address";
	default:
		return NULL;
	}
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* The unit at the start of text; returns its length, 0 if there is none. */
static size_t duration_unit(const char *text, uint64_t *ret_ns)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {
		{"ns", 1},
		{"us", 1000},
		{"µs", 1000},
		{"ms", 1000000},
		{"seconds", NS_PER_S},
		{"second", NS_PER_S},
		{"sec", NS_PER_S},
		{"s", NS_PER_S},
		{"minutes", 60 * NS_PER_S},
		{"minute", 60 * NS_PER_S},
		{"min", 60 * NS_PER_S},
		{"m", 60 * NS_PER_S},
		{"hours", 3600 * NS_PER_S},
		{"hour", 3600 * NS_PER_S},
		{"h", 3600 * NS_PER_S},
		{"days", DAY_S * NS_PER_S},
		{"day", DAY_S * NS_PER_S},
		{"d", DAY_S * NS_PER_S},
		{"weeks", 7 * DAY_S * NS_PER_S},
		{"week", 7 * DAY_S * NS_PER_S},
		{"w", 7 * DAY_S * NS_PER_S},
	};
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
		size_t n = strlen(units[i].name);
		if (strncmp(text, units[i].name, n) == 0) {
			*ret_ns = units[i].ns;
			return n;
		}
	}
	return 0;
}

/* Digits with an optional fraction; a long double holds all 64-bit integers. */
static const char *number(const char *text, long double *ret_value)
{
	if (!is_digit(*text))
		return NULL;

	long double value = 0, place = 0.1L;
	for (; is_digit(*text); text++)
		value = value * 10 + (*text - '0');
	if (*text == '.') {
		if (!is_digit(*++text))
			return NULL;
		for (; is_digit(*text); text++, place /= 10)
			value += place * (*text - '0');
	}
	*ret_value = value;
	return text;
}

int unit_parse_duration(const char *text, uint64_t *ret_ns)
{
	long double total = 0;
	bool compound = false;

	if (!*text)
		return UNIT_MALFORMED;
	while (*text) {
		long double value;
		uint64_t ns = NS_PER_S;

		text = number(text, &value);
		if (!text)
			return UNIT_MALFORMED;
		text += *text == ' ' && text[1];
		size_t n = duration_unit(text, &ns);
		if (n == 0 && (*text || compound))
			return UNIT_MALFORMED;
		text += n;
		text += *text == ' ' && text[1]; /* "1 hour 30 min" */
		total += value * ns;
		compound = true;
	}
	if (total > (long double)INT64_MAX)
		return UNIT_OUT_OF_RANGE;
	*ret_ns = (uint64_t)(total + 0.5L);
	return 0;
}

int unit_parse_share(const char *text, uint32_t *ret_ppm)
{
	uint32_t percent = 0, decimals = 0, unit = PPM_PER_PERCENT;
	if (!is_digit(*text))
		return UNIT_MALFORMED;
	for (; is_digit(*text); text++)
		if (percent <= PERCENT_MAX)
			percent = percent * 10 + (uint32_t)(*text - '0');
	if (*text == '.' && text[1] != '%')
		for (text++; is_digit(*text) && unit > 1; text++)
			decimals += (uint32_t)(*text - '0') * (unit /= 10);
	if (strcmp(text, "%") != 0)
		return UNIT_MALFORMED;
	uint32_t ppm = percent > PERCENT_MAX ? UINT32_MAX : percent * PPM_PER_PERCENT + decimals;
	if (ppm > PERCENT_MAX * PPM_PER_PERCENT)
		return UNIT_OUT_OF_RANGE;
	*ret_ppm = ppm;
	return 0;
}

int unit_parse_bytes(const char *text, uint64_t *ret_bytes)
{
	static const char letters[] = "KMGT";
	uint64_t value = 0;
	bool overflow = false;
	if (!is_digit(*text))
		return UNIT_MALFORMED;
	for (; is_digit(*text); text++)
		overflow |= __builtin_mul_overflow(value, 10, &value) ||
			    __builtin_add_overflow(value, (uint64_t)(*text - '0'), &value);
	const char *letter = *text ? strchr(letters, *text) : NULL;
	if (*text && (!letter || (text[1] && strcmp(text + 1, "iB") != 0)))
		return UNIT_MALFORMED;
	unsigned shift = letter ? 10 * (unsigned)(letter - letters + 1) : 0;
	if (overflow || value > UINT64_MAX >> shift)
		return UNIT_OUT_OF_RANGE;
	*ret_bytes = value << shift;
	return 0;
}

/* Exactly `digits` digits, at most `max`. */
static const char *field(const char *text, int digits, int max, int *ret_value)
{
	int value = 0;
	for (int i = 0; i < digits; i++, text++) {
		if (!is_digit(*text))
			return NULL;
		value = value * 10 + (*text - '0');
	}
	if (value > max)
		return NULL;
	*ret_value = value;
	return text;
}

/* "10:30" or "10:30:15" up to the end of the text. */
static bool clock_time(const char *text, struct tm *tm)
{
	tm->tm_sec = 0;
	text = field(text, 2, 23, &tm->tm_hour);
	if (!text || *text++ != ':')
		return false;
	text = field(text, 2, 59, &tm->tm_min);
	if (text && *text == ':')
		text = field(text + 1, 2, 59, &tm->tm_sec);
	return text && !*text;
}

/* A day, then nothing or a clock time. */
static bool day_and_time(const char *text, struct tm *tm)
{
	static const struct {
		const char *word;
		int days;
	} words[] = {{"today", 0}, {"yesterday", -1}};

	tm->tm_hour = tm->tm_min = tm->tm_sec = 0;
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		size_t n = strlen(words[i].word);
		if (strncmp(text, words[i].word, n) != 0)
			continue;
		tm->tm_mday += words[i].days;
		text += n;
		return !*text || (*text == ' ' && clock_time(text + 1, tm));
	}

	int year, month, day;
	text = field(text, 4, 9999, &year);
	if (!text || *text++ != '-')
		return false;
	text = field(text, 2, 12, &month);
	if (!text || *text++ != '-')
		return false;
	text = field(text, 2, 31, &day);
	if (!text || month < 1 || day < 1)
		return false;
	tm->tm_year = year - 1900;
	tm->tm_mon = month - 1;
	tm->tm_mday = day;
	return !*text || ((*text == ' ' || *text == 'T') && clock_time(text + 1, tm));
}

static int calendar_ns(struct tm *tm, int64_t *ret_ns)
{
	struct tm asked = *tm;
	tm->tm_isdst = -1;
	time_t t = mktime(tm);
	/* 31 February becomes March; fine for "yesterday" on the first of a month, but not for a
	 * date. */
	if (asked.tm_mday > 0 && tm->tm_mday != asked.tm_mday)
		return UNIT_MALFORMED;
	if (t < 0 || (uint64_t)t > INT64_MAX / NS_PER_S)
		return UNIT_OUT_OF_RANGE;
	*ret_ns = (int64_t)t * (int64_t)NS_PER_S;
	return 0;
}

#define AGO " ago"

/* "5m", "5 minutes ago" */
static int relative_time(const char *text, int64_t now_ns, int64_t *ret_ns)
{
	char duration[64];
	uint64_t ago_ns;
	size_t n = strlen(text);
	if (n > strlen(AGO) && strcmp(text + n - strlen(AGO), AGO) == 0)
		n -= strlen(AGO);
	if (n >= sizeof(duration))
		return UNIT_MALFORMED;
	memcpy(duration, text, n);
	duration[n] = '\0';
	int r = unit_parse_duration(duration, &ago_ns);
	if (r != 0)
		return r;
	if (now_ns < 0 || ago_ns > (uint64_t)now_ns)
		return UNIT_OUT_OF_RANGE;
	*ret_ns = now_ns - (int64_t)ago_ns;
	return 0;
}

int unit_parse_time(const char *text, int64_t now_ns, int64_t *ret_ns)
{
	if (strcmp(text, "now") == 0) {
		*ret_ns = now_ns;
		return 0;
	}
	if (*text == '-')
		return relative_time(text + 1, now_ns, ret_ns);
	const char *ago = strstr(text, AGO);
	if (ago && !ago[strlen(AGO)])
		return relative_time(text, now_ns, ret_ns);
	if (*text == '@') {
		long double seconds;
		const char *end = number(text + 1, &seconds);
		if (!end || *end)
			return UNIT_MALFORMED;
		if (seconds > (long double)(INT64_MAX / NS_PER_S))
			return UNIT_OUT_OF_RANGE;
		*ret_ns = (int64_t)(seconds * NS_PER_S);
		return 0;
	}

	time_t now = (time_t)(now_ns / (int64_t)NS_PER_S);
	struct tm tm;
	if (!localtime_r(&now, &tm))
		return UNIT_OUT_OF_RANGE;
	if (!day_and_time(text, &tm)) {
		localtime_r(&now, &tm);
		if (!clock_time(text, &tm))
			return UNIT_MALFORMED;
	}
	return calendar_ns(&tm, ret_ns);
}
