/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Figures that rows are worked out from and told by. */

#include <math.h>

#include "daemon/query/loops/roofline.h"

double roof_ops(const struct roof_sums *s, enum roofline_ops ops)
{
	switch (ops) {
	case ROOFLINE_INT:
		return s->value[LOOP_INT_OPS];
	case ROOFLINE_SP:
		return s->value[LOOP_FP32_OPS];
	case ROOFLINE_DP:
		return s->value[LOOP_FP64_OPS];
	default:
		return s->value[LOOP_FP16_OPS] + s->value[LOOP_FP32_OPS] + s->value[LOOP_FP64_OPS] +
		       s->value[LOOP_FP_WIDE_OPS];
	}
}

struct roof_share roof_share_of(const struct roofline *r, uint32_t group)
{
	const bool is_site = r->q.by == ROOFLINE_LOOP || r->q.by == ROOFLINE_FUNCTION;
	uint32_t by = is_site ? loop_facts_counted_by(&r->facts, group + 1) : 0;
	if (by == 0)
		return (struct roof_share){.entries = -1, .counted = -1};
	const double *v = r->self[by - 1].value;
	return (struct roof_share){.entries = v[LOOP_ENTRIES], .counted = v[LOOP_COUNTED_ENTRIES]};
}

double roof_variance_error(double variance, double sum)
{
	return sum > 0 ? sqrt(variance * MPERF_VARIANCE_UNIT) / sum : -1;
}
