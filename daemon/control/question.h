/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Questions: requests about stored samples
 *
 * A command makes a question of its request and gives it to question_ask(), which finds the files and has the question's
 * `run` answer. A file that the request names is read at once, with the caller's rights, since only a private daemon
 * reads named files. The service's own store is read by a child (offload_job.h), which reports damaged files to the
 * daemon.
 *
 *      request ─▶ make ─▶ question ─┬▶ the named file ───────────────┬▶ run ─▶ rows
 *                                   └▶ files of the store, in a child ┘
 */

#include "daemon/control/request.h"
#include "daemon/query/loops/facts.h"

/* The time span of a question to the store that gives none. */
#define QUESTION_SPAN_NS 3600000000000ll

struct question {
	const Mperf__Request *request; /* a copy, from which the other members borrow */
	const struct cores *cores;     /* as the daemon knows them; may be NULL */

	/* Set by make: */
	char *const *path; /* paths of the named files; "" or none: the service's store */
	size_t n_paths;
	const Mperf__Filter *wanted;  /* the filter of the request; NULL: none */
	struct query_question query;  /* its filter is `filter` */
	struct query_metrics metrics; /* metrics of query, if it has any */
	struct loop_output output;    /* of the named file, if it is one; bytes NULL: a segment */
	enum tier coarsest;           /* the coarsest tier of the store that can answer */
	bool all_time;                /* without a time, ask all of the store, not the last hour */
	/* Wait until the store has all samples up to now, and until programs have reported n_rounds times. The wait
	 * for reports ends at rounds_until_ns (CLOCK_MONOTONIC). */
	bool fresh;
	uint64_t n_rounds, rounds_until_ns;
	/* Labels of the i-th selection of jobs, whose pins are read as well. Returns their number, 0 after the last.
	 * NULL: there is one selection, the filter's. */
	size_t (*labels)(const Mperf__Request *m, size_t i, char *const **ret_label);
	/* In the daemon, when it chooses files of the store: note in `known` the facts that only the daemon has. 0 or
	 * -errno. NULL: nothing. */
	int (*know)(struct request *q, struct question *a);
	void *known;
	void (*forget)(void *known); /* frees it; NULL: there is nothing to free */
	/* Answer from the sources, into `to`, whose userdata is a row_stream. Returns as query_hotspots does. */
	int (*run)(struct question *a, const struct answer *to, struct query_error *ret_error);

	/* For run: */
	struct query_filter filter; /* narrowed to what the peer may see */
	struct query_source *source;
	size_t n_sources;
	int status; /* of Done; set by run */
};

/* Check a request and make a question of it. 0; positive after a refusal; -errno. */
typedef int question_make(struct request *q, struct question *a);

/* Answer a request. 0 or -errno. */
int question_ask(struct request *q, const Mperf__Request *m, question_make *make);

/* --- for make --------------------------------------------------------------------------------- */

/* Set the named file and the filter. */
void question_about(const struct request *q, struct question *a, char *const *path,
	const Mperf__Filter *wanted);
/* The same of several. */
void question_about_files(const struct request *q, struct question *a, char *const *path,
	size_t n_paths, const Mperf__Filter *wanted);
/* Is it about the service's store? */
bool question_is_of_store(const struct request *q, const struct question *a);
/* Add metrics and groups of these names; returns as question_make. */
int question_add_metrics(struct request *q, struct question *a, char *const *name, size_t n);

/* Programs report before a question about the store up to now is answered (only one if the question names one). The wait
 * for them is so short that the answer still seems prompt. */
void question_ask_programs(const struct request *q, struct question *a);

/* --- for other requests ----------------------------------------------------------------------- */

/* The requested filter, narrowed to samples that the peer may see: only peers that see all get
 * others' samples and kernel details. Borrows everything from m, which may be NULL (no filter). */
struct query_filter query_filter_of(const struct request *q, const Mperf__Filter *m);

/* End an answer: Done with this status, or the failure that stopped the query with outcome r. 0, -errno. */
int query_answer_end(struct request *q, struct row_stream *stream, int r,
	const struct query_error *error, int status);
