/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tiers, and the names of their files, which say tier and start */

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "daemon/store/store_private.h"

#define SECOND_NS 1000000000ll
#define HOUR_NS (3600 * SECOND_NS)
#define DAY_NS (24 * HOUR_NS)
/* 1970-01-01 was a Thursday, the first Monday before it is three days back. */
#define MONDAY_NS ((int64_t)(3 * DAY_NS))
#define BOOT_CHARACTERS 8 /* of a boot id: 32 bits tell the boots of one machine apart */

static const struct {
	const char *name;
	uint64_t period_ns, step_ns;
} tiers[N_TIERS] = {
	[TIER_WINDOW] = {"window", HOUR_NS, 0},
	[TIER_MINUTE] = {"minute", DAY_NS, 60 * SECOND_NS},
	[TIER_HOUR] = {"hour", 7 * DAY_NS, HOUR_NS},
};

const char *tier_name(enum tier tier)
{
	return tiers[tier].name;
}

uint64_t tier_period_ns(enum tier tier)
{
	return tiers[tier].period_ns;
}

uint64_t tier_step_ns(enum tier tier)
{
	return tiers[tier].step_ns;
}

int64_t tier_start_ns(enum tier tier, int64_t realtime_ns)
{
	int64_t shift = tier == TIER_HOUR ? MONDAY_NS : 0, period = (int64_t)tiers[tier].period_ns;
	int64_t start = (realtime_ns + shift) / period * period - shift;
	return start < 0 ? 0 : start;
}

void store_name(char text[STORE_NAME_BYTES], enum tier tier, int64_t start_ns, const char *boot_id,
	unsigned n)
{
	char time[32], boot[BOOT_CHARACTERS + 1] = "00000000", again[16] = "";
	time_t seconds = (time_t)(start_ns / SECOND_NS);
	struct tm tm;
	gmtime_r(&seconds, &tm);
	strftime(time, sizeof(time), "%Y%m%dT%H%M%SZ", &tm);
	for (size_t i = 0; boot_id && i < BOOT_CHARACTERS && boot_id[i]; i++)
		boot[i] = strchr("0123456789abcdef", boot_id[i]) ? boot_id[i] : '0';
	if (n > 1)
		snprintf(again, sizeof(again), "-%u", n);
	snprintf(text, STORE_NAME_BYTES, "%s/%s-%s%s" STORE_SUFFIX, tier_name(tier), time, boot,
		again);
}

/* The boot in a name, or the text's end. */
static const char *boot_of(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	const char *dash = strchr(name, '-');
	return dash ? dash + 1 : name + strlen(name);
}

bool store_is_same_boot(const char *path, const char *other)
{
	return strncmp(boot_of(path), boot_of(other), BOOT_CHARACTERS) == 0;
}

/* "20261121T140000Z" at the beginning of text. */
static bool parse_time(const char *text, int64_t *ret_ns)
{
	static const char form[] = "ddddddddTddddddZ";
	for (size_t i = 0; form[i]; i++)
		if (form[i] == 'd' ? text[i] < '0' || text[i] > '9' : text[i] != form[i])
			return false;
	struct tm tm = {0}, back;
	if (sscanf(text, "%4d%2d%2dT%2d%2d%2dZ", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &tm.tm_hour,
		    &tm.tm_min, &tm.tm_sec) != 6)
		return false;
	tm.tm_year -= 1900;
	tm.tm_mon -= 1;
	struct tm asked = tm;
	time_t seconds = timegm(&tm);
	/* the 31st of June is another day; and nanoseconds end in 2262 */
	if (!gmtime_r(&seconds, &back) || back.tm_mday != asked.tm_mday ||
		back.tm_mon != asked.tm_mon || back.tm_hour != asked.tm_hour ||
		back.tm_min != asked.tm_min || back.tm_sec != asked.tm_sec || seconds < 0 ||
		seconds > INT64_MAX / SECOND_NS)
		return false;
	*ret_ns = (int64_t)seconds * SECOND_NS;
	return true;
}

bool store_name_parse(const char *name, enum tier *ret_tier, int64_t *ret_start_ns)
{
	const char *slash = strchr(name, '/');
	size_t n = strlen(name), n_suffix = strlen(STORE_SUFFIX);
	if (!slash || n >= STORE_NAME_BYTES || strlen(slash + 1) < 16 + n_suffix)
		return false;
	const char *rest = slash + 17, *end = name + n - n_suffix;
	if (strcmp(end, STORE_SUFFIX) != 0 || (rest != end && *rest != '-') ||
		strspn(rest, "-0123456789abcdef") != (size_t)(end - rest))
		return false;
	for (enum tier tier = TIER_WINDOW; tier < N_TIERS; tier++) {
		size_t n_folder = strlen(tier_name(tier));
		if (n_folder != (size_t)(slash - name) ||
			strncmp(name, tier_name(tier), n_folder) != 0)
			continue;
		if (!parse_time(slash + 1, ret_start_ns))
			return false;
		*ret_tier = tier;
		return true;
	}
	return false;
}
