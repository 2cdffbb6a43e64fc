/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Internals of the hotspot query: sums per key
 *
 * hotspots.c reads segments into sums, hotspots_key.c finds the key of a row or frame,
 * hotspots_profiling.c separates the kernel's work for profilers, hotspots_rows.c sorts the sums
 * and sends them.
 */

#include "daemon/query/provenance.h"
#include "daemon/query/sums.h"

/* First part of the keys of programs, which have no pid: the hour tier's processes. */
#define HOTSPOT_PROGRAM UINT64_MAX

/* The sums of one key. */
struct hotspot {
	double self, total; /* of the attributed value */
	uint64_t samples, self_ns;
	uint64_t uncounted; /* number of samples that the counts do not cover */
	double cycles, instructions;
	bool has_cycles, has_instructions;
	/* self samples by the state of the leaf's name */
	uint64_t named, placed, unnamed, out_of_symbol;
	uint32_t name[2]; /* texts that are no part of the key: comm, argv */
	uint32_t n_open;  /* occurrences on the current path */
};

struct hotspots {
	enum query_by by;
	bool inlined;
	bool with_process; /* by function: a column with the comm in name[0] */
	bool by_total;     /* sort rows by total, not by self */
	const struct query_filter *filter;
	struct text_table texts;
	struct key_table keys;
	struct hotspot *hotspot; /* by key index */
	uint32_t size;
	double sum;                /* of all rows: the total for shares */
	bool cycles, instructions; /* counted in any source */
	bool of_event;             /* values are an event's counts, not time */
	bool of_other;             /* ... of an event without a column of its own */
	struct provenance provenance;
	struct hotspots_metrics *metrics; /* NULL: none */
	struct hotspots_kept *kept;       /* saved before the current source */

	/* of the current segment */
	struct loaded loaded;
	uint32_t *frame_hot; /* by frame: its key; only by function */
	uint32_t *place_hot; /* by place, where inlined functions are keys of their own */
	uint32_t *task_hot;  /* by task: index + 1; 0: not known yet */
	double *stack_value; /* by stack: its own, then its subtree's */
	/* by stack: its leaf worked for a profiler; NULL: it is not asked for */
	uint8_t *profiling;
	struct key profiling_key; /* key of all such stacks */
};

/* The row of the kernel's work for profilers, by function and by line. */
#define HOTSPOTS_PROFILING "(profiling itself)"

/* Prepare for the rows of h->loaded, once it is filled. 0, QUERY_FAILED, -errno. */
int hotspots_prepare(struct hotspots *h);
/* Are values of these rows an event's counts? */
void hotspots_find_values(struct hotspots *h, const struct row_filter *filter);
/* Count one row; userdata is the struct hotspots. 0, QUERY_FAILED, -errno. */
int hotspots_take_row(void *userdata, const struct scan_row *row);
/* After the last row: add counts to the callers' totals. 0 or -ENOMEM. */
int hotspots_add_totals(struct hotspots *h);
/* Clear h->loaded and what depends on it. */
void hotspots_forget_source(struct hotspots *h);
void hotspots_clear(struct hotspots *h);

/* Give every frame (and place) of the segment its key. 0, QUERY_FAILED, -errno. */
int hotspots_key_frames(struct hotspots *h);

/* Find the stacks whose leaf works for a profiler. 0, QUERY_FAILED, -errno. */
int hotspots_find_profiling(struct hotspots *h);
static inline bool hotspots_is_profiling(const struct hotspots *h, uint32_t stack)
{
	return h->profiling && stack <= h->loaded.n_stacks &&
	       h->profiling[loaded_sleeper(&h->loaded, stack)];
}

/* The key that a row's self value belongs to. 0, QUERY_FAILED, -errno. */
int hotspots_key_row(struct hotspots *h, const struct scan_row *row, uint32_t *ret_hot);

/* Send columns, then at most limit rows (0: all), the largest self value first. 0, a callback's
 * value, -errno. */
int hotspots_tell(struct hotspots *h, uint32_t limit, const struct answer *answer);
/* Send all as sums, in the same order. Results are the same. */
int hotspots_tell_sums(struct hotspots *h, const struct sums_reader *to);
