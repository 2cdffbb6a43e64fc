/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Values of rows about loops (daemon/answer/row.h), where sums of counts are doubles */

#include "daemon/answer/row.h"
#include "daemon/query/scan.h"

/* Estimated counts are not whole numbers. */
enum {
	row_unit_real_count = MPERF__UNIT__UNIT_COUNT,
	row_unit_real_bytes = MPERF__UNIT__UNIT_BYTES
};
#define cell_real_count(n) cell_ratio(n)
#define cell_real_bytes(n) cell_ratio(n)

/* "" is no text. */
static inline const char *known_text(const char *text)
{
	return text && *text ? text : NULL;
}

/* NAN if a share has no whole, or a rate no time. */
static inline double ratio_of(double part, double whole)
{
	return whole > 0 ? part / whole : NAN;
}
