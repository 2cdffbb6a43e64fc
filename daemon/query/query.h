/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Queries: sealed segments in, rows out
 *
 * Each segment has its own dictionaries; a query reads its rows, translates ids into content keys
 * (function and module names, pids, cgroup paths) and sums in C, so that several segments merge by
 * the same code as one. Rows go to an answer (answer/answer.h).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/answer/answer.h"
#include "daemon/kernel/kernel.h"
#include "daemon/pmu/cores.h"
#include "daemon/query/by.h"
#include "daemon/store/segment/segment.h"
#include "daemon/store/store.h"
#include "proto/mperf.pb-c.h"

/* The exact labels of a job, and their user. */
struct query_job {
	uint32_t uid;
	const char *labels; /* JSON, as labels_write has it */
};

/* A job whose rows are in a pin (store/pin.h): its rows of this time are not taken from other
 * files. */
struct query_without {
	uint32_t uid;
	const char *labels;         /* JSON, as in label_set */
	int64_t since_ns, until_ns; /* CLOCK_REALTIME of its windows' starts */
	uint32_t next;              /* index + 1 of the same job's next; 0: none */
};

struct later;

struct query_filter {
	const int32_t *pid;
	size_t n_pids;
	const char *const *comm;
	size_t n_comms;
	const char *const *cgroup;
	size_t n_cgroups;
	const char *const *label; /* "KEY=VALUE" (proto/syntax/label.h); a task has all of them */
	size_t n_labels;
	const struct query_job *job; /* a task has the labels of one of them; none: any */
	size_t n_jobs;
	const struct query_without *without;
	size_t n_without;
	const uint32_t *cpu;
	size_t n_cpus;
	int64_t since_ns, until_ns; /* CLOCK_REALTIME; 0: open */
	/* since_ns as CLOCK_MONOTONIC of the boot with that id, by both clocks at the time of the
	 * question; 0: unknown */
	int64_t since_boot_ns;
	char boot_id[KERNEL_BOOT_ID_BYTES];
	const char *event; /* NULL: the sampling event's weight */
	/* Values are wall time (wall.h): work is what the jobs, labels and control groups above select; pids, names and
	 * cpu select which part of it is shown. Without event. */
	bool wall;
	bool by_wait; /* in flame graphs, stacks of waiting threads end in a node that says for what they wait */
	/* peer that asks: */
	bool only_uid; /* only processes that belong wholly to this user (attribute/rights.h) */
	uint32_t uid;
	uint32_t gid;     /* for live data; files do not have it */
	bool hide_kernel; /* the whole kernel is one function "[kernel]" */
	struct later *
		later; /* names frames that were stored without (naming/later.h); borrowed; NULL: nothing does */
	/* with only_uid: the group whose members see all, for the provenance; NULL: none */
	const char *group;
};

struct query_error {
	char text[512];
	char remedy[256];
	Mperf__FailureKind kind;
};

#define QUERY_METRICS_MAX 12 /* columns of a table: each has two, of REPLY_COLUMNS_MAX */

/* Metrics to compute from the counts of rows. */
struct query_metrics {
	const struct cores *cores; /* cores whose database has the platform */
	char *const *name;         /* n_names metrics and groups */
	size_t n_names;
};

/* A question: how to group the rows, and how many to return. */
struct query_question {
	enum query_by by;
	uint32_t limit; /* rows; 0: all */
	bool inlined;   /* charge inlined functions themselves */
	const struct query_filter *filter;
	const struct query_metrics *metrics; /* NULL: none */
};

/* The coarsest tier whose files still have the requested detail: minutes are the coarsest with
 * processes and their pids, lines, harts and inlined functions; windows the coarsest with threads.
 * A flame graph is QUERY_BY_FUNCTION. For times with only coarser files left, the answer comes from
 * these, with a note. */
enum tier query_coarsest(const struct query_question *question);

struct loop_output;

/* A file that a query reads. A query opens one after the other, so their number is not limited. A file that was named
 * must be sealed, and fails the query if it cannot be read. Files of a store that cannot be read are left out, and the
 * answer says so. */
struct query_source {
	const char *path;
	bool named;
	sqlite3 *db; /* the file, open, as one that was named; NULL: open path */
	const struct loop_output
		*output; /* a file that a program wrote for MPERF_OUTPUT; NULL: a segment */
	/* of a store: */
	/* range of its windows, by CLOCK_REALTIME of their start; 0: open */
	int64_t since_ns, until_ns;
	bool live; /* not sealed: see segment_open_live */
	/* QUERY_PIN: rows of one job, also in the times that filter.without names. QUERY_PIN_BESIDE: other
	 * files give the length of that time and its losses. */
	enum query_pin { QUERY_NO_PIN, QUERY_PIN, QUERY_PIN_BESIDE } pin;
	struct segment_identity verified; /* identity when last verified; set by the query */
	bool is_verified_anew;            /* set by the query: it has changed `verified` */
	/* set by the query. Sources that were not read are missing from the answer, which says
	 * so. */
	enum query_outcome {
		QUERY_READ,
		QUERY_BROKEN,  /* damaged, or not ours: set the file aside */
		QUERY_GONE,    /* retention was faster */
		QUERY_HELD,    /* may not be read, or held by another process */
		QUERY_WITHOUT, /* did not count the requested event */
	} outcome;
};

/* Rows sorted by self share, largest first. Columns: name…, self, total, samples, self_ns, and
 * cycles, instructions, ipc where counted; then counted, the share of the row's samples that its
 * counts cover, if some row's counts do not cover all of them. Counts are not scaled by that share.
 * total counts a stack once, even if the name recurs in it. 0, QUERY_FAILED with *ret_error (also if
 * none of the sources could be read), an answer callback's value, -errno. */
enum { QUERY_FAILED = 1 };
int query_hotspots(struct query_source *source, size_t n_sources,
	const struct query_question *question, const struct answer *answer,
	struct query_error *ret_error);

/* The call tree, parents before children: node, parent (0: root), function, module, kind
 * (user, kernel, jit, inlined, unknown), source, line, build_id (of code without a symbol), value (self). Same values. */
int query_flamegraph(struct query_source *source, size_t n_sources,
	const struct query_filter *filter, const struct answer *answer,
	struct query_error *ret_error);
