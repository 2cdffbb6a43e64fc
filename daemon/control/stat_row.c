/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "daemon/control/stat_row.h"

void stat_row_fill(const struct counts *s, int e, char reason[static COUNTS_REASON_BYTES],
	struct answer_value v[static N_STAT_COLUMNS])
{
	const struct counter_value *now = &s->counter->value[e], *last = &s->last[e];
	const char *why_not = counts_why_not(s, e, reason);
	v[0] = answer_text(s->counter->events.event[e].name);
	if (why_not) {
		v[STAT_COLUMN_REASON] = answer_text(why_not);
		return;
	}
	v[1] = answer_integer(now->value - last->value);
	v[2] = answer_real(counts_scaled(now, last));
	v[3] = answer_integer(now->enabled_ns - last->enabled_ns);
	v[4] = answer_integer(now->running_ns - last->running_ns);
	v[5] = answer_real(counts_running(s, e));
}
