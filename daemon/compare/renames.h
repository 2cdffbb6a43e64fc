/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Renames: functions that only one side has, found on the other side under another name
 *
 * Rows of a gathered table are the same function if name and file agree. Some functions that are on one side alone are
 * on the other under another name, in another file, or inlined.
 */

#include "daemon/compare/gather.h"

/* A renamed function keeps its callers, in much the same shares, and its own share of all. */
#define RENAME_CALLERS_ALIKE 0.8
#define RENAME_SHARE_RATIO 1.5
/* The factor by which a pair must agree better than any other, so that two renamed neighbours are not taken for each
 * other. */
#define RENAME_SURER 1.25
/* Number of the hottest functions of each side alone that are compared with those of the other. The number of pairs is
 * its square. */
#define RENAME_ROWS_MAX 256

enum rename_kind {
	RENAME_NONE,  /* on both sides, or simply gone or new */
	RENAME_MOVED, /* the same name in another file; of loops the same line, at another place */
	RENAME_RENAMED, /* another name, the same callers, a similar share */
	RENAME_INLINED, /* on the other side it is only inlined into others */
};

struct function_rename {
	enum rename_kind kind;
	size_t other; /* row of the other side, if moved or renamed */
};

/* Find the renames by row of the table, after gather_table; all are NONE unless rows are functions or loops. The
 * caller frees *ret_renames. 0 or -ENOMEM. */
int renames_find(const struct gather *g, size_t n_rows, struct function_rename **ret_renames);
