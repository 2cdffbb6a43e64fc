/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Queries: sealed segments in, rows out
 *
 * Each segment has its own dictionaries; a query reads its rows, translates ids into content keys
 * (function and module names, pids, cgroup paths) and sums in C, so that several segments merge by
 * the same code as one. Rows go to an answer, a table of callbacks which control turns into
 * messages and tests into arrays.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/store/segment.h"
#include "daemon/store/store.h"
#include "proto/mperf.pb-c.h"

#define QUERY_SEGMENTS_MAX 64    /* files that one query merges when they come opened */
#define QUERY_NOTES_MAX 32       /* of one answer's provenance */

struct answer_column {
	const char *name, *title;
	Mperf__Unit unit;
};

struct answer_value {
	enum { ANSWER_ABSENT, ANSWER_TEXT, ANSWER_INTEGER, ANSWER_REAL } kind;
	union {
		const char *text;    /* borrowed for the call; need not be UTF-8: the receiver mends it */
		int64_t integer;
		double real;
	};
};

struct answer_loss {
	const char *cause;
	uint64_t count;
	bool samples;            /* each is a sample that is missing from the figures */
};

struct answer_provenance {
	const char *event;
	const char *rung;
	const char *switches;    /* what cut the counts, as cut_name says it */
	uint32_t hz;
	uint64_t samples;
	struct answer_loss loss[N_LOSSES];
	uint32_t n_losses;
	double named_share, seconds;
	const char *note[QUERY_NOTES_MAX];
	uint32_t n_notes;
};

/* Where rows go. A callback that returns non-zero (cancelled, peer gone) stops the query, which
 * returns that value. */
struct answer {
	int (*columns)(void *u, const struct answer_column *c, size_t n);
	int (*row)(void *u, const struct answer_value *v, size_t n);
	int (*provenance)(void *u, const struct answer_provenance *p);
	void *userdata;
};

enum query_by {
	QUERY_BY_FUNCTION, QUERY_BY_MODULE, QUERY_BY_PROCESS, QUERY_BY_THREAD, QUERY_BY_CGROUP,
	QUERY_BY_LINE, QUERY_BY_HART,
	N_QUERY_BY,
};
/* -1 if there is no such name. */
int query_by_parse(const char *name);
const char *query_by_name(enum query_by by);

struct query_filter {
	const int32_t *pid;       size_t n_pids;
	const char *const *comm;  size_t n_comms;
	const char *const *cgroup;size_t n_cgroups;
	const uint32_t *cpu;      size_t n_cpus;
	int64_t since_ns, until_ns;   /* CLOCK_REALTIME; 0: open */
	const char *event;            /* NULL: the sampling event's weight */
	/* who asks: */
	bool only_uid; /* of what is wholly this user's alone (attribute/rights.h) */
	uint32_t uid;
	uint32_t gid;                 /* of what is live; files do not know it */
	bool hide_kernel;             /* what is in the kernel is one function "[kernel]" */
	const char *group;            /* with only_uid: whose members see all, for the provenance; NULL: nobody's */
};

struct query_error {
	char text[512];
	char remedy[256];
	Mperf__FailureKind kind;
};

/* What is asked of the rows. */
struct query_question {
	enum query_by by;
	uint32_t limit;               /* rows; 0: all */
	bool inlined;                 /* charge inlined functions themselves */
	const struct query_filter *filter;
};

/* The coarsest tier whose files still know what is asked for: processes and their pids, lines, harts
 * and what was inlined end with the minutes, threads with the windows. A flame graph is
 * QUERY_BY_FUNCTION. What only coarser files are left for is answered from these, with a note. */
enum tier query_coarsest(const struct query_question *question);

/* Files of a store, which a query opens one after the other, so that their number is not bounded. */
struct query_source {
	const char *path;
	int64_t since_ns, until_ns;   /* which of its windows, by CLOCK_REALTIME of their start; 0: open */
	bool live;                    /* not sealed: see segment_open_live */
	struct segment_identity verified; /* as last read whole; set by the query */
	/* set by the query. What was not read is no part of the answer, which says so. */
	enum query_outcome {
		QUERY_READ,
		QUERY_BROKEN,         /* damaged, or not ours: set it aside */
		QUERY_GONE,           /* retention was faster */
		QUERY_HELD,           /* may not be read, or another process holds it */
		QUERY_WITHOUT,        /* did not count the event that was asked for */
	} outcome;
};

/* Rows by falling self share. Columns: name…, self, total, samples, self_ns, and cycles,
 * instructions, ipc where counted. total counts a stack once, however often the name recurs in it.
 * 0, QUERY_FAILED with *ret_error, an answer callback's value, -errno. query_store_* fail if none of
 * the sources could be read. */
enum { QUERY_FAILED = 1 };
int query_hotspots(sqlite3 *const *db, size_t n_dbs, enum query_by by, uint32_t limit, bool inlined,
	const struct query_filter *filter, const struct answer *answer, struct query_error *ret_error);
int query_store_hotspots(struct query_source *source, size_t n_sources,
	const struct query_question *question, const struct answer *answer,
	struct query_error *ret_error);

/* The call tree, parents before children: node, parent (0: root), function, module, kind
 * (user, kernel, jit, inlined, unknown), source, line, value (self). Same values. */
int query_flamegraph(sqlite3 *const *db, size_t n_dbs, const struct query_filter *filter,
	const struct answer *answer, struct query_error *ret_error);
int query_store_flamegraph(struct query_source *source, size_t n_sources,
	const struct query_filter *filter, const struct answer *answer,
	struct query_error *ret_error);
