/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Keys of rows: what samples are grouped by */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum query_by {
#define BY(id, ...) QUERY_BY_##id,
#include "daemon/query/by.inc"
#undef BY
	N_QUERY_BY,
};

struct query_by_kind {
	const char *name;
	bool frames;  /* keys are made from frames, else from the task or hart */
	bool by_text; /* equal rows are sorted by the text of their key's first part */
	/* number of leading columns that mean the same in every recording; 0: no two recordings
	 * have a row in common */
	size_t n_names;
	/* detail that the tier of hours or minutes lacks, as a clause; NULL: none */
	const char *hours, *minutes;
};
extern const struct query_by_kind query_by_kinds[N_QUERY_BY];

/* -1 if there is no such name. */
int query_by_parse(const char *name);
/* NULL if there is no such key. */
const char *query_by_name(enum query_by by);

/* Does the query need every place of a frame, not only its symbol? inlined: functions that were inlined are
 * charged themselves. */
static inline bool query_needs_places(enum query_by by, bool inlined)
{
	return by == QUERY_BY_LINE || (by == QUERY_BY_FUNCTION && inlined);
}
