/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Fate of functions that one side does not have: moved, renamed, inlined
 *
 * Rows of a gathered table are the same function if name and file agree. Of those on one side alone,
 * some are the same all the same. Only the first two kinds have another row.
 */

#include "daemon/compare/gather.h"

/* A renamed function keeps its callers, in much the same shares, and its own share of all. */
#define BECAME_CALLERS_ALIKE 0.8
#define BECAME_SHARE_RATIO 1.5
/* How much better than any other a pair must agree: else two renamed neighbours are taken for each
 * other. */
#define BECAME_SURER 1.25
/* Functions of one side alone that are compared with those of the other, the hottest; their pairs are
 * as many as its square. */
#define BECAME_ROWS_MAX 256

enum became_kind {
	BECAME_NOTHING, /* on both sides, or simply gone or new */
	BECAME_MOVED, /* the same name in another file; of loops the same line, at another place */
	BECAME_RENAMED, /* another name, the same callers, a similar share */
	BECAME_INLINED, /* the other side has its code only where it is inlined into others */
};

struct became {
	enum became_kind kind;
	size_t other; /* row of the other side, of the first two kinds */
};

/* By row of the table, which gather_table has made; all NOTHING unless rows are functions or loops. The
 * caller
 * frees *ret_became. 0 or -ENOMEM. */
int became_find(const struct gather *g, size_t n_rows, struct became **ret_became);
