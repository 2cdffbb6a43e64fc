/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Retention: which files are removed, and which would be next
 *
 * Only whole files are removed, and only files to which nothing is added any more. First, files
 * older than their tier allows; then, while the budget or the free space of the file system
 * requires it, damaged files, then the oldest of the finest tier, since coarser tiers have the same
 * time in fewer bytes. All decisions use only the list.
 */

#include <string.h>

#include "daemon/store/store_private.h"

#define DAY_NS (24 * 3600 * 1000000000ll)
/* A rate observed for less time than this is not reported: the start is not typical of a day. */
#define RATE_SEEN_NS (600 * 1000000000ll)
/* Rates are those of the last days; earlier load may have been different. */
#define RATE_PAST_NS (7 * DAY_NS)

static const char by_age[] = "age", by_budget[] = "budget", by_free[] = "free space",
		  by_number[] = "number of files";

/* End of a file's time; a file whose end is not known may be written until its period is over. */
static int64_t end_of(const struct store_file *f)
{
	return f->end_ns ? f->end_ns : f->start_ns + (int64_t)tier_period_ns(f->tier);
}

/* Is the file complete? Coarse files are named after their period, not after their content. */
static bool may_go(const struct store_file *f, int64_t now_ns, const char *spare)
{
	if (spare && strcmp(f->name, spare) == 0)
		return false;
	int64_t over = tier_start_ns(f->tier, f->start_ns) + (int64_t)tier_period_ns(f->tier);
	return f->corrupt || f->sealed || f->left || (f->tier != TIER_WINDOW && over <= now_ns);
}

/* INT64_MAX: never. */
static int64_t expiry(const struct store_file *f, const struct store_limits *l)
{
	uint64_t keep = l->keep_ns[f->corrupt ? TIER_WINDOW : f->tier];
	int64_t end = end_of(f);
	return keep > (uint64_t)(INT64_MAX - end) ? INT64_MAX : end + (int64_t)keep;
}

static size_t first_expired(
	const struct store *s, const struct store_limits *l, int64_t now_ns, const char *spare)
{
	for (size_t i = 0; i < s->n_files; i++) {
		int64_t when = expiry(&s->file[i], l);
		if (when <= now_ns && when != INT64_MAX && may_go(&s->file[i], now_ns, spare))
			return i;
	}
	return s->n_files;
}

/* The next file to remove: the list is in the order of removal. */
static size_t first_of_all(const struct store *s, int64_t now_ns, const char *spare)
{
	size_t i = 0;
	while (i < s->n_files && !may_go(&s->file[i], now_ns, spare))
		i++;
	return i;
}

/* The reason why files must be removed; NULL: none. */
static const char *pressure(const struct store *s, const struct store_limits *l, uint64_t headroom)
{
	if (s->bytes > l->budget_bytes || headroom > l->budget_bytes - s->bytes)
		return by_budget;
	if (s->free_bytes < l->min_free_bytes || s->free_bytes - l->min_free_bytes < headroom)
		return by_free;
	return s->n_files >= STORE_FILES_MAX ? by_number : NULL;
}

/* Would removing all removable files free the space that is required? If not, other programs have
 * taken the space, and history would be removed for nothing. */
static bool can_free(const struct store *s, uint64_t wanted, int64_t now_ns, const char *spare)
{
	uint64_t bytes = s->free_bytes;
	for (size_t i = 0; i < s->n_files && bytes < wanted; i++)
		if (may_go(&s->file[i], now_ns, spare))
			bytes += s->file[i].bytes;
	return bytes >= wanted;
}

static bool unlink_at(struct store *s, size_t at, const char *reason)
{
	struct store_file *f = &s->file[at];
	if (store_unlink(s, f->name) < 0)
		return false;
	s->n_unlinked++;
	s->bytes_unlinked += f->bytes;
	s->free_bytes += f->bytes;
	s->bytes -= f->bytes < s->bytes ? f->bytes : s->bytes;
	memcpy(s->last_unlinked, f->name, sizeof(s->last_unlinked));
	s->last_reason = reason;
	store_drop(s, at);
	return true;
}

int store_retain(struct store *s, const struct store_limits *limits, int64_t now_realtime_ns,
	uint64_t headroom_bytes, const char *spare, bool *ret_fits)
{
	int n = 0;
	const char *reason;
	size_t n_path = strlen(s->path);
	if (spare && strncmp(spare, s->path, n_path) == 0 && spare[n_path] == '/')
		spare += n_path + 1;
	for (size_t at; (at = first_expired(s, limits, now_realtime_ns, spare)) < s->n_files; n++)
		if (!unlink_at(s, at, by_age))
			break;
	while ((reason = pressure(s, limits, headroom_bytes))) {
		size_t at = first_of_all(s, now_realtime_ns, spare);
		uint64_t wanted = limits->min_free_bytes + headroom_bytes;
		if (at == s->n_files ||
			(reason == by_free && !can_free(s, wanted, now_realtime_ns, spare)) ||
			!unlink_at(s, at, reason))
			break;
		n++;
	}
	*ret_fits = !reason;
	return n;
}

/* --- what will be ----------------------------------------------------------------------------- */

/* Bytes a day of one tier, 0 where it is too early to tell. */
static uint64_t rate_of(const struct store *s, enum tier tier, int64_t now_ns)
{
	uint64_t bytes = 0;
	int64_t covered = 0;
	for (size_t i = 0; i < s->n_files; i++) {
		const struct store_file *f = &s->file[i];
		int64_t end = f->end_ns ? f->end_ns : now_ns;
		if (f->tier != tier || f->corrupt || end < now_ns - RATE_PAST_NS ||
			end <= f->start_ns)
			continue;
		bytes += f->bytes;
		covered += end - f->start_ns;
	}
	if (covered < RATE_SEEN_NS)
		return 0;
	double rate = (double)bytes * (double)DAY_NS / (double)covered;
	return rate < 1e18 ? (uint64_t)rate : 0;
}

/* Divide the budget from the coarsest tier down: space that a tier does not need in the long run is
 * left for the finer ones. */
static void forecast_spans(
	const struct store *s, const struct store_limits *l, struct store_forecast *f)
{
	uint64_t pins = store_pins_bytes(s);
	double left = l->budget_bytes > pins ? (double)(l->budget_bytes - pins) : 0;
	for (int tier = N_TIERS - 1; tier >= 0; tier--) {
		double rate = (double)f->bytes_a_day[tier], keep = (double)l->keep_ns[tier];
		double wanted = rate * keep / (double)DAY_NS;
		f->keeps_ns[tier] = l->keep_ns[tier];
		if (rate > 0 && wanted > left)
			f->keeps_ns[tier] = (uint64_t)(left / rate * (double)DAY_NS);
		left = wanted < left ? left - wanted : 0;
	}
}

/* Time at which new bytes will have used up the room that is left; INT64_MAX: never. */
static int64_t used_up(int64_t now_ns, double room, double rate)
{
	double days = room > 0 ? room / rate : 0;
	return rate <= 0 || days > 36500 ? INT64_MAX : now_ns + (int64_t)(days * (double)DAY_NS);
}

void store_forecast(const struct store *s, const struct store_limits *l, int64_t now_ns,
	struct store_forecast *ret_forecast)
{
	struct store_forecast f = {.next = NULL, .reason = "", .next_ns = INT64_MAX};
	double rate = 0;
	for (enum tier tier = TIER_WINDOW; tier < N_TIERS; tier++) {
		f.bytes_a_day[tier] = rate_of(s, tier, now_ns);
		rate += (double)f.bytes_a_day[tier];
	}
	forecast_spans(s, l, &f);

	size_t at = first_of_all(s, now_ns, NULL);
	if (at < s->n_files) {
		double budget = (double)l->budget_bytes - (double)s->bytes;
		double spare = (double)s->free_bytes - (double)l->min_free_bytes;
		bool by_room = spare < budget;
		f.next = &s->file[at];
		f.reason = by_room ? by_free : by_budget;
		f.next_ns = used_up(now_ns, by_room ? spare : budget, rate);
	}
	for (size_t i = 0; i < s->n_files; i++) {
		const struct store_file *file = &s->file[i];
		int64_t when = expiry(file, l) > now_ns ? expiry(file, l) : now_ns;
		if (!may_go(file, when, NULL) || when >= f.next_ns)
			continue;
		f.next = file;
		f.reason = by_age;
		f.next_ns = when;
	}
	*ret_forecast = f;
}
