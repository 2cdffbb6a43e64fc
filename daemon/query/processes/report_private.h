/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Internals of a report: report_read.c gathers processes, report_spend.c what they spent, report_tell.c answers */

#include "daemon/decode/offcpu.h"
#include "daemon/query/processes/chain.h"
#include "daemon/query/processes/report.h"
#include "daemon/query/provenance.h"

#define REPORT_NOTES_MAX 8
#define REPORT_NOTE_BYTES 256

/* One of report.keys, by its index. */
struct process {
	int64_t start_ns;
	int64_t end_ns;   /* 0: not known */
	int64_t last_ns;  /* end of its last window with a sample; 0: none */
	int64_t lived_ns; /* that was seen of its first thread, in recordings; 0: not known */
	int64_t named_ns; /* the name is of this time; INT64_MAX: of now */
	int32_t pid;
	uint32_t comm, argv; /* texts */
	uint32_t parent;     /* index + 1; 0: not known */
	bool wanted;
	uint32_t at; /* once all are known: index in `tree`, 0: it is none of the report's */
	double cpu_ns, wall_ns;
	/* in the service's window that is read now */
	uint32_t window;
	double worked_ns, waited_ns;
};

/* Of a stretch of the chain. */
struct spent {
	double cpu_ns, alone_ns;
	float waited_ns[N_OFFCPU_KINDS];
};

struct report_kept;

struct report {
	const struct report_of *of;
	const struct query_filter *filter;
	struct query_filter own; /* the filter with which sources are read */
	struct text_table texts;
	struct key_table keys;
	struct process *process; /* by key */
	uint32_t size, n_wanted;
	uint32_t boot; /* text; 0: none is wanted so far */
	bool other_boot;
	int64_t first_ns, last_ns; /* begin of the first window and end of the last one; 0: none */

	/* made of the above: */
	int64_t begin_ns, end_ns;
	struct chain_process *tree; /* n_tree; the first stands for all, or is the only root */
	uint32_t *key;              /* by index in tree; KEY_NONE: none of the processes */
	uint32_t n_tree;
	uint32_t n_endless; /* whose end is not known */
	struct chain *chain;
	const struct chain_part *part;
	uint32_t n_parts;
	uint32_t *part_of;   /* indices of parts, side by side for each process, in order of time */
	uint32_t *first;     /* by index in tree, and one more: where its parts begin */
	struct spent *spent; /* by part */
	double cpu_ns;
	struct scan_wall_time wall;
	bool has_waits;
	struct provenance provenance;
	struct report_kept *kept;

	/* of the source that is read */
	struct loaded loaded;
	bool *seen; /* by task: it has samples or thread times; NULL: does not matter */
};

/* Gather the processes of the sources. 0, QUERY_FAILED, -errno. */
int report_read(struct report *r, struct query_source *source, size_t n_sources,
	struct query_error *ret_error);
/* Gather what the processes spent. 0, QUERY_FAILED, -errno. */
int report_spend(struct report *r, struct query_source *source, size_t n_sources,
	struct query_error *ret_error);
int report_tell(struct report *r, uint32_t limit, const struct answer *answer);

/* Load an open source, with all its tasks or those that have samples, and call `read` with what passes r->own. 0,
 * QUERY_FAILED, read's value, -errno. */
int report_read_segment(struct report *r, sqlite3 *db, const struct query_source *source,
	bool all_tasks, int (*read)(struct report *r, const struct row_filter *f),
	struct query_error *ret_error);

/* Index of a loaded task's process, which is added with `add`; KEY_NONE: not there, or a kernel's. 0, QUERY_FAILED,
 * -ENOMEM. */
int report_key(struct report *r, uint32_t task, bool add, uint32_t *ret_key);

static inline const struct process *report_process(const struct report *r, uint32_t at)
{
	return r->key[at] == KEY_NONE ? NULL : &r->process[r->key[at]];
}
