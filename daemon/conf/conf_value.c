/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Numbers of all kinds are read into 64 bits and compared there; only the last step knows how wide
 * the member is. Writing gives back what reading took, to the nanosecond and the byte.
 */
#include "daemon/conf/conf_value.h"

#include <stddef.h>
#include <string.h>

#include "daemon/attribute/label_variables.h"
#include "daemon/store/pin_rule.h"
#include "proto/syntax/unit.h"

const struct conf_row conf_rows[] = {
#define CONF(section, key, member, kind, min, max, preset, unit, restart, says)                    \
	{section, key, offsetof(struct conf, member), KIND_##kind, min, max, preset, unit,         \
		restart, says},
#include "daemon/conf/conf.inc"
#undef CONF
};
const size_t n_conf_rows = sizeof(conf_rows) / sizeof(*conf_rows);

static const char *digits(const char *text, uint64_t *ret_value, bool *ret_overflow)
{
	uint64_t value = 0;
	*ret_overflow = false;
	if (*text < '0' || *text > '9')
		return NULL;
	for (; *text >= '0' && *text <= '9'; text++)
		if (__builtin_mul_overflow(value, 10, &value) ||
			__builtin_add_overflow(value, (uint64_t)(*text - '0'), &value))
			*ret_overflow = true;
	*ret_value = value;
	return text;
}

static int read_count(const char *text, uint64_t *ret_value)
{
	uint64_t value;
	bool overflow;
	text = digits(text, &value, &overflow);
	if (!text || *text)
		return CONF_VALUE_MALFORMED;
	if (overflow || value > UINT32_MAX)
		return CONF_VALUE_OUT_OF_RANGE;
	*ret_value = value;
	return 0;
}

static int read_switch(const char *text, uint64_t *ret_value)
{
	static const char *const words[] = {"no", "yes", "false", "true", "off", "on"};
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		if (strcmp(text, words[i]) == 0) {
			*ret_value = i % 2;
			return 0;
		}
	}
	return CONF_VALUE_MALFORMED;
}

static const char *const callers_words[] = {
	[CONF_CALLERS_NO] = "no", [CONF_CALLERS_FP] = "fp", [CONF_CALLERS_TABLES] = "tables"};

static int read_callers(const char *text, uint64_t *ret_value)
{
	uint64_t is = 0;

	for (size_t i = 0; i < sizeof(callers_words) / sizeof(*callers_words); i++) {
		if (strcmp(text, callers_words[i]) == 0) {
			*ret_value = i;
			return 0;
		}
	}
	int r = read_switch(text, &is);
	if (r == 0)
		*ret_value = is ? CONF_CALLERS_TABLES : CONF_CALLERS_NO;
	return r;
}

static int of_unit(int outcome)
{
	return outcome == 0                   ? 0
	       : outcome == UNIT_OUT_OF_RANGE ? CONF_VALUE_OUT_OF_RANGE
					      : CONF_VALUE_MALFORMED;
}

/* "1%", "0.25%", "none". */
static int read_share(const char *text, uint64_t *ret_value)
{
	uint32_t ppm = 0;
	bool none = strcmp(text, "none") == 0 || strcmp(text, "0") == 0;
	int r = none ? 0 : unit_parse_share(text, &ppm);
	if (r == 0)
		*ret_value = ppm;
	return of_unit(r);
}

static int read_number(enum conf_kind kind, const char *text, uint64_t *ret_value)
{
	switch (kind) {
	case KIND_COUNT:
		return read_count(text, ret_value);
	case KIND_SWITCH:
		return read_switch(text, ret_value);
	case KIND_CALLERS:
		return read_callers(text, ret_value);
	case KIND_BYTES:
		return of_unit(unit_parse_bytes(text, ret_value));
	case KIND_SHARE:
		return read_share(text, ret_value);
	default:
		return of_unit(unit_parse_duration(text, ret_value));
	}
}

static bool is_group_name(const char *text)
{
	if (*text == '-')
		return false;
	for (; *text; text++)
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.",
			    *text))
			return false;
	return true;
}

/* The maximum length of a text of this row, stored as a number. */
size_t conf_length_max(const struct conf_row *row)
{
	uint64_t max = 0;
	read_count(row->max, &max);
	return (size_t)max;
}

static bool is_visible(const char *text)
{
	for (; *text; text++)
		if (*text <= ' ' || *text > '~')
			return false;
	return true;
}

static bool are_variables(const char *text)
{
	struct label_variables v;

	return label_variables_parse(text, &v) == 0;
}

static bool are_rules(const char *text)
{
	struct pin_rules rules;

	return pin_rules_parse(text, &rules) == 0;
}

static bool are_urls(const char *text)
{
	if (strcmp(text, "none") == 0)
		return true;
	for (const char *url = text; url; url = strchr(url, ',') ? strchr(url, ',') + 1 : NULL) {
		const size_t scheme = strncmp(url, "https://", 8) == 0  ? 8
				      : strncmp(url, "http://", 7) == 0 ? 7
									: 0;
		if (scheme == 0 || url[scheme] == ',' || !url[scheme])
			return false;
	}
	return is_visible(text);
}

static bool is_of_kind(enum conf_kind kind, const char *text)
{
	return kind == KIND_PATH   ? *text == '/'
	       : kind == KIND_PINS ? are_rules(text)
	       : kind == KIND_URLS ? are_urls(text)
	       : kind == KIND_GROUP
		       ? is_group_name(text)
		       : is_visible(text) && (kind != KIND_VARIABLES || are_variables(text));
}

static int value_of_text(const struct conf_row *row, const char *text, struct conf *c)
{
	if (!is_of_kind(row->kind, text))
		return CONF_VALUE_MALFORMED;
	size_t n = strlen(text);
	if (n > conf_length_max(row) || n >= CONF_TEXT_BYTES)
		return CONF_VALUE_OUT_OF_RANGE;
	memcpy((char *)c + row->offset, text, n + 1);
	return 0;
}

static int value_of_number(const struct conf_row *row, const char *text, struct conf *c)
{
	uint64_t value = 0, min = 0, max = 1;
	int r = read_number(row->kind, text, &value);
	if (r != 0)
		return r;
	if (row->kind != KIND_SWITCH && (read_number(row->kind, row->min, &min) != 0 ||
						read_number(row->kind, row->max, &max) != 0))
		return CONF_VALUE_OUT_OF_RANGE; /* our own table; a test reads all of it */
	if (value < min || value > max)
		return CONF_VALUE_OUT_OF_RANGE;

	char *member = (char *)c + row->offset;
	uint32_t count = (uint32_t)value;
	bool is = value;
	if (row->kind == KIND_COUNT || row->kind == KIND_SHARE || row->kind == KIND_CALLERS)
		memcpy(member, &count, sizeof(count));
	else if (row->kind == KIND_SWITCH)
		memcpy(member, &is, sizeof(is));
	else
		memcpy(member, &value, sizeof(value));
	return 0;
}

bool conf_is_text(const struct conf_row *row)
{
	return row->kind == KIND_PATH || row->kind == KIND_GROUP || row->kind == KIND_EVENTS ||
	       row->kind == KIND_VARIABLES || row->kind == KIND_PINS || row->kind == KIND_URLS;
}

/* 0, VALUE_*; *c is untouched then. */
int conf_value_set(const struct conf_row *row, const char *text, struct conf *c)
{
	return conf_is_text(row) ? value_of_text(row, text, c) : value_of_number(row, text, c);
}

uint64_t conf_value_get(const struct conf_row *row, const struct conf *c)
{
	const char *member = (const char *)c + row->offset;
	uint64_t value = 0;
	uint32_t count;
	bool is;
	switch (row->kind) {
	case KIND_COUNT:
	case KIND_SHARE:
	case KIND_CALLERS:
		memcpy(&count, member, sizeof(count));
		return count;
	case KIND_SWITCH:
		memcpy(&is, member, sizeof(is));
		return is;
	default:
		memcpy(&value, member, sizeof(value));
		return value;
	}
}

static struct conf_value_text print_share(uint64_t ppm)
{
	struct conf_value_text v = {"none"};
	if (ppm == 0)
		return v;
	int n = snprintf(v.text, sizeof(v.text), "%u.%04u", (unsigned)(ppm / 10000),
		(unsigned)(ppm % 10000));
	while (v.text[n - 1] == '0')
		n--;
	n -= v.text[n - 1] == '.';
	snprintf(v.text + n, sizeof(v.text) - (size_t)n, "%%");
	return v;
}

/* Text of a value exactly as in the file: in the largest unit of which it is a whole multiple. */
struct conf_value_text conf_value_print(const struct conf_row *row, const struct conf *c)
{
	static const struct {
		uint64_t n;
		const char *name;
	} durations[] = {{86400000000000, "d"}, {3600000000000, "h"}, {60000000000, "min"},
		{1000000000, "s"}, {1000000, "ms"}, {1000, "us"}, {1, "ns"}},
	  sizes[] = {{1ull << 40, "T"}, {1ull << 30, "G"}, {1ull << 20, "M"}, {1ull << 10, "K"},
		  {1, ""}};
	struct conf_value_text v = {""};
	if (conf_is_text(row)) {
		snprintf(v.text, sizeof(v.text), "%s", (const char *)c + row->offset);
		return v;
	}

	uint64_t value = conf_value_get(row, c);
	if (row->kind == KIND_SHARE)
		return print_share(value);
	size_t i = 0;
	if (row->kind == KIND_SWITCH) {
		snprintf(v.text, sizeof(v.text), "%s", value ? "yes" : "no");
	} else if (row->kind == KIND_CALLERS) {
		snprintf(v.text, sizeof(v.text), "%s", callers_words[value]);
	} else if (row->kind == KIND_DURATION) {
		while (value % durations[i].n != 0 || (value == 0 && durations[i].n > 1))
			i++;
		snprintf(v.text, sizeof(v.text), "%llu%s",
			(unsigned long long)(value / durations[i].n), durations[i].name);
	} else {
		while (row->kind == KIND_COUNT
				? sizes[i].n > 1
				: value % sizes[i].n != 0 || (value == 0 && sizes[i].n > 1))
			i++;
		snprintf(v.text, sizeof(v.text), "%llu%s", (unsigned long long)(value / sizes[i].n),
			sizes[i].name);
	}
	return v;
}
