/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The hotspot query's own: sums per key
 *
 * hotspots.c reads segments into sums, hotspots_key.c says what the key of a row or frame is,
 * hotspots_rows.c sorts and tells them.
 */

#include "daemon/query/provenance.h"

/* First part of the keys of programs, which have no pid: the hour tier's processes. */
#define HOTSPOT_PROGRAM UINT64_MAX

/* What one key came to. */
struct hotspot {
	double self, total; /* of what is shared out */
	uint64_t samples, self_ns;
	double cycles, instructions;
	bool has_cycles, has_instructions;
	uint64_t named, unnamed, out_of_symbol; /* self samples by what became of the leaf */
	uint32_t name[2];                       /* texts that are no part of the key: comm, argv */
	uint32_t n_open;                        /* times it stands on the path that is walked */
};

struct hotspots {
	enum query_by by;
	bool inlined;
	bool with_process; /* by function: a column with the comm in name[0] */
	bool by_total;     /* rows by falling total, not self */
	const struct query_filter *filter;
	struct text_table texts;
	struct key_table keys;
	struct hotspot *hotspot; /* by key index */
	uint32_t size;
	double sum;                /* of all rows: what shares are of */
	bool cycles, instructions; /* counted anywhere */
	struct provenance provenance;
	struct hotspots_kept *kept; /* as it was before the source under way */

	/* of the segment under way */
	struct loaded loaded;
	uint32_t *frame_hot; /* by frame: its key; by functions alone */
	uint32_t *place_hot; /* by place, where inlined functions are keys of their own */
	uint32_t *task_hot;  /* by task, index + 1; 0 not known yet */
	double *stack_value; /* by stack: its own, then its subtree's */
};

/* Are keys made from frames (else: from the task or hart that ran)? */
static inline bool hotspots_of_code(const struct hotspots *h)
{
	return h->by == QUERY_BY_FUNCTION || h->by == QUERY_BY_MODULE || h->by == QUERY_BY_LINE;
}

/* Is every place of a frame a key? */
static inline bool hotspots_of_places(const struct hotspots *h)
{
	return h->by == QUERY_BY_LINE || (h->by == QUERY_BY_FUNCTION && h->inlined);
}

/* Make ready for the rows of h->loaded, as it was filled. 0, QUERY_FAILED, -errno. */
int hotspots_prepare(struct hotspots *h);
/* Count one row; userdata is the struct hotspots. 0, QUERY_FAILED, -errno. */
int hotspots_take_row(void *userdata, const struct scan_row *row);
/* After the last row: what was counted flows to the callers. 0 or -ENOMEM. */
int hotspots_add_totals(struct hotspots *h);
/* Forget h->loaded and what hangs on it. */
void hotspots_forget_source(struct hotspots *h);
void hotspots_clear(struct hotspots *h);

/* Give every frame (and place) of the segment its key. 0, QUERY_FAILED, -errno. */
int hotspots_key_frames(struct hotspots *h);

/* The key that a row's self value belongs to. 0, QUERY_FAILED, -errno. */
int hotspots_key_row(struct hotspots *h, const struct scan_row *row, uint32_t *ret_hot);

/* Columns, rows by falling self value, at most limit (0: all). 0, a callback's value, -errno. */
int hotspots_tell(struct hotspots *h, uint32_t limit, const struct answer *answer);
