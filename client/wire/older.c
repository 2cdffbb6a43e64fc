/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "client/wire/older.h"

#include <stdbool.h>
#include <stddef.h>

static bool has_wall(const Mperf__Request *r)
{
	return (r->body_case == MPERF__REQUEST__BODY_HOTSPOTS && r->hotspots->wall) ||
	       (r->body_case == MPERF__REQUEST__BODY_FLAMEGRAPH && r->flamegraph->wall);
}

static bool has_by_wait(const Mperf__Request *r)
{
	return r->body_case == MPERF__REQUEST__BODY_FLAMEGRAPH && r->flamegraph->by_wait;
}

static bool has_timeline(const Mperf__Request *r)
{
	return r->body_case == MPERF__REQUEST__BODY_TIMELINE;
}

static bool has_page(const Mperf__Request *r)
{
	return r->body_case == MPERF__REQUEST__BODY_REPORT;
}

static bool has_report(const Mperf__Request *r)
{
	return r->body_case == MPERF__REQUEST__BODY_JOB &&
	       r->job->action == MPERF__JOB_ACTION__JOB_REPORT;
}

static bool has_stored(const Mperf__Request *r)
{
	return r->body_case == MPERF__REQUEST__BODY_RECORD && r->record->stored;
}

/* A field or a value is added with a row here and a higher PROTOCOL_MINOR, from which on it is known. */
static const struct {
	uint32_t minor;
	bool (*has)(const Mperf__Request *r);
	const char *says;
} added[] = {
	{6, has_wall, "wall time"},
	{6, has_by_wait, "a flame graph by what threads waited for"},
	{6, has_timeline, "a timeline"},
	{6, has_page, "the samples of a page"},
	{6, has_report, "a report on a job"},
	{6, has_stored, "saving a part of the store"},
};

const char *older_lacks(uint32_t minor, const Mperf__Request *request)
{
	for (size_t i = 0; i < sizeof(added) / sizeof(*added); i++)
		if (minor < added[i].minor && added[i].has(request))
			return added[i].says;
	return NULL;
}
