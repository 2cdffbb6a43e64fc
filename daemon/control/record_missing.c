/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A recording is made of windows, so it lacks what the store keeps only as sums of minutes or hours, what it never had,
 * and what is of an earlier boot. A query of that time would be answered, or would not say that a part is missing, so
 * here we say it.
 */
#include "daemon/control/record_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/control/peer.h"
#include "daemon/service/service.h"
#include "proto/base/clock.h"
#include "proto/base/memory.h"

/* A service that is restarted stores nothing for about as long. */
#define GAP_NS 5000000000ll

struct gaps {
	int64_t from, to; /* of the first */
	size_t n;
};

static void add_gap(struct gaps *g, int64_t from, int64_t to)
{
	if (to - from < GAP_NS)
		return;
	if (g->n++ == 0) {
		g->from = from;
		g->to = to;
	}
}

/* Where the windows of a part end. */
static int64_t end_of(const struct store_part *p, int64_t now_ns)
{
	const int64_t end_ns = p->file->end_ns ? p->file->end_ns : now_ns;
	return p->until_ns < end_ns ? p->until_ns : end_ns;
}

/* The first of the parts that are of the last one's boot; of earlier boots nothing is saved. */
static size_t first_of_boot(const struct store_part *part, size_t n)
{
	size_t first = n > 0 ? n - 1 : 0;
	while (first > 0 && store_is_same_boot(part[first - 1].file->name, part[n - 1].file->name))
		first--;
	return first;
}

static void find_gaps(const struct store_part *part, size_t n, int64_t since_ns, int64_t until_ns,
	struct gaps *ret_gaps)
{
	const int64_t now_ns = (int64_t)clock_ns(CLOCK_REALTIME);
	int64_t at = since_ns;
	*ret_gaps = (struct gaps){0};
	for (size_t i = 0; i < n; i++) {
		add_gap(ret_gaps, at, part[i].since_ns);
		at = end_of(&part[i], now_ns) > at ? end_of(&part[i], now_ns) : at;
	}
	add_gap(ret_gaps, at, until_ns && until_ns < now_ns ? until_ns : now_ns);
}

/* Has the store sums of minutes or hours of this time? */
static bool has_sums(const struct store_part *part, size_t n, int64_t from, int64_t to)
{
	for (size_t i = 0; i < n; i++)
		if (part[i].file->tier != TIER_WINDOW && part[i].since_ns < to &&
			part[i].until_ns > from)
			return true;
	return false;
}

/* boot_since: "" if all of that time is of one boot; sums: there are some of the first gap. */
static void say_missing(
	const struct gaps *g, const char *boot_since, bool sums, char *says, size_t size)
{
	char from[40], to[40], more[48] = "", boot[160] = "", gap[256] = "";
	if (*boot_since)
		snprintf(boot, sizeof(boot),
			"samples before %s are of an earlier boot, and a recording holds one boot: "
			"save those separately with --until",
			boot_since);
	if (g->n > 1)
		snprintf(more, sizeof(more), " and %zu other gap%s", g->n - 1, g->n > 2 ? "s" : "");
	if (g->n > 0)
		snprintf(gap, sizeof(gap),
			"the recording lacks %s to %s%s, of which the store has %s",
			clock_local_text(g->from, from), clock_local_text(g->to, to), more,
			sums ? "only sums of minutes or hours" : "nothing");
	snprintf(says, size, "%s%s%s", boot, *boot && *gap ? "; " : "", gap);
}

/* The start of the oldest windows; 0: there are none. */
static int64_t windows_since(const struct store *s)
{
	int64_t since_ns = 0;
	for (size_t i = 0; i < s->n_files; i++) {
		const struct store_file *f = &s->file[i];
		if (f->tier == TIER_WINDOW && !f->corrupt && !f->other_version &&
			(since_ns == 0 || f->start_ns < since_ns))
			since_ns = f->start_ns;
	}
	return since_ns;
}

static int refuse_sums(struct request *q, const struct store *s)
{
	char since[40], remedy[160];
	const int64_t since_ns = windows_since(s);
	snprintf(remedy, sizeof(remedy), "%s%s.",
		since_ns ? "Save a time that it has in full, from "
			 : "Ask it with hotspots or flamegraph and the same --since",
		since_ns ? clock_local_text(since_ns, since) : "");
	return request_fail(q, MPERF__FAILURE_KIND__FAILURE_MISSING, remedy,
		       "of that time the store keeps only sums of minutes or hours, and a "
		       "recording "
		       "is made of single windows (keep-windows in mperf.conf)")
		       ?: 1;
}

int record_missing(struct request *q, int64_t since_ns, int64_t until_ns, char *ret_says, size_t n)
{
	_cleanup_(freep) struct store_part *finest = NULL;
	const struct store_part *part;
	struct service *service = q->peer->options->service;
	size_t n_parts = 0, n_finest = 0;
	struct gaps gaps;
	char boot_since[40] = "";
	int r = service_select(service, since_ns, until_ns, STORE_FINEST_FIRST, &finest, &n_finest);
	if (r < 0)
		return r;
	part = finest; /* windows are dealt first */
	while (n_parts < n_finest && finest[n_parts].file->tier == TIER_WINDOW)
		n_parts++;
	*ret_says = '\0';
	if (n_parts == 0)
		return has_sums(finest, n_finest, 0, INT64_MAX) ? refuse_sums(q, service->store)
								: 0;
	const size_t first = first_of_boot(part, n_parts);
	if (first > 0)
		clock_local_text(part[first].since_ns, boot_since);
	find_gaps(part + first, n_parts - first, first > 0 ? part[first].since_ns : since_ns,
		until_ns, &gaps);
	say_missing(&gaps, boot_since, has_sums(finest, n_finest, gaps.from, gaps.to), ret_says, n);
	return 0;
}
