/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The formula is the core's data, and its events are found among the granted ones by their names. If a
 * recording was made on cores of several kinds, a formula would be valid for only one of them.
 */
#include "daemon/query/loops/dram.h"

#include <math.h>
#include <stddef.h>

#include "platform-db/expression.h"

#define DRAM_EVENT "LLC-load-misses"
#define DRAM_METRIC "dram_bytes"
/* Bytes that one miss of the last cache is assumed to load from memory: a line. Source: Examem,
 * III.H. */
#define LINE_BYTES 64.0

struct counting {
	const struct loop_facts *facts;
	const double *count;
};

static int count_of(void *userdata, enum expression_kind kind, const char *name, double *ret_value)
{
	const struct counting *c = userdata;
	int at = kind == EXPRESSION_NAME ? granted_find(c->facts, name) : -1;
	if (at < 0 || !(c->count[at] >= 0))
		return EXPRESSION_MISSING;
	*ret_value = c->count[at];
	return 0;
}

double dram_bytes(const struct loop_facts *f, const struct dram *d,
	const double count[static MPERF_GRANTS_MAX])
{
	struct counting counting = {f, count};
	const struct expression_source source = {count_of, &counting};
	const char *missing;
	double bytes;
	if (d->misses >= 0)
		return count[d->misses] >= 0 ? LINE_BYTES * count[d->misses] : -1;
	int r = platform_metric_value(d->platform, d->metric, &source, &bytes, &missing);
	return r == 0 ? bytes : -1;
}

bool dram_find(const struct loop_facts *f, const struct cores *cores, struct dram *ret_dram)
{
	static const double some[MPERF_GRANTS_MAX] = {1, 1, 1, 1};
	const char *core = loop_facts_core(f);
	const struct platform *p = core ? cores_platform_named(cores, core) : NULL;
	struct dram own = {-1, p, p ? platform_metric_find(p, DRAM_METRIC) : NULL};
	struct dram generic = {granted_find(f, DRAM_EVENT), NULL, NULL};
	bool is_own = own.metric && dram_bytes(f, &own, some) >= 0;
	if (!is_own && generic.misses < 0)
		return false;
	*ret_dram = is_own ? own : generic;
	return true;
}
