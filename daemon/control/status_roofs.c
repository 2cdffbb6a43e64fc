/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The part of status about roofs: what is kept for all, and how often sampling was lowered for them.
 */
#include <stdio.h>

#include "daemon/conf/conf.h"
#include "daemon/control/status_private.h"
#include "daemon/service/roofs_kept.h"

static const struct answer_column columns[] = {
	{"kept", "Kept", MPERF__UNIT__UNIT_COUNT},
	{"newest", "Newest", MPERF__UNIT__UNIT_TIME},
	{"pauses", "Sampling lowered", MPERF__UNIT__UNIT_COUNT},
	{"paused", "Last", MPERF__UNIT__UNIT_TIME},
	{"paused_ns", "For", MPERF__UNIT__UNIT_NS},
	{"now", "Now", MPERF__UNIT__UNIT_NONE},
};

int status_roofs(struct status *s)
{
	const struct pause *p = &s->service->pause;
	struct roofs_kept kept;
	struct answer_moment newest, paused;
	char now[64];
	roofs_kept_look(s->service->o.conf->store_path, &kept);
	if (p->who)
		snprintf(now, sizeof(now), "lowered to %u Hz while roofs are measured", PAUSE_HZ);
	struct answer_value v[] = {
		NUMBER(kept.n),
		answer_moment(&newest, kept.newest_ns),
		NUMBER(p->n),
		answer_moment(&paused, p->realtime_ns),
		p->n == 0 ? ABSENT : NUMBER(p->who ? s->now_ns - p->began_ns : p->took_ns),
		p->who ? TEXT(now) : ABSENT,
	};
	int r = status_table(s, "roofs", columns, LENGTH(columns));
	return r == 0 ? status_row(s, v, LENGTH(v)) : r;
}
