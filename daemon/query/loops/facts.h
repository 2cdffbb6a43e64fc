/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Facts: what loops counted in all sources of a query, summed by content
 *
 *      segments ─▶ sites, counts ─┐
 *               └▶ samples ───────┼─▶ facts per (site, region, thread, epoch) ─▶ rows
 *      MPERF_OUTPUT ─▶ messages ──┘
 *
 * roofline.c and blocks.c make rows of them.
 */

#include "daemon/loops/program.h"
#include "daemon/query/provenance.h"
#include "daemon/query/sources.h"

/* Maximum of one answer, 700 bytes each. */
#define LOOP_FACTS_MAX (1u << 20)

/* A loop, function, block, region or callee. Numbers are indices + 1, 0 for none. */
struct fact_site {
	uint8_t kind; /* enum loop_site_kind */
	uint8_t flags, depth;
	uint32_t parent;
	uint32_t subprogram, source, nest, inlined_at, build_id; /* texts; build_id in hex */
	uint32_t readable;                                       /* text: demangled */
	uint32_t line, line_last;
	uint32_t next_alike; /* another site of the same function: index + 1 */
	/* what it calls that is not counted, and for a callee, the next one of its caller: indices
	 * + 1; a block's are its loop's */
	uint32_t first_callee, next_callee;
	/* of a parallel region: the function that its body was outlined from, and the first place in
	 * that (texts; line 0: none) */
	uint32_t body, body_source, body_line;
	uint32_t next_of_body; /* another region of that function: index + 1 */
	bool here;             /* in the current segment */
};

/* The thread that counted, if threads are distinguished. */
struct fact_who {
	int32_t pid, tid;
	uint32_t comm; /* text */
	/* if regions are distinguished: it counted code in one, or outside all of them */
	bool counted_inside, counted_outside;
};

struct fact {
	uint64_t value[N_LOOP_VALUES];
	double sampled_ns; /* CPU time of samples in this site's own lines; of a callee, in it and
				      * what it calls */
	double cycles, instructions; /* read with these samples */
	uint64_t samples, uncounted; /* of the samples, those that these two do not cover */
};

struct loop_facts {
	/* the question */
	const struct query_filter *filter;
	bool by_thread, by_region, samples; /* samples: join them */
	bool places;                        /* of OpenMP: read them too */
	bool places_only;                   /* and nothing else */
	uint64_t epoch_ns;                  /* 0: one epoch */

	struct text_table texts;
	struct key_table site_keys, who_keys, keys;
	struct fact_site *site;
	struct fact_who *who;
	struct fact *fact; /* by index of keys: FACT_KEY */
	uint32_t size_sites, size_whos, size_facts;
	uint32_t *alike; /* by text of a readable name: the first site of it, index + 1 */
	uint32_t size_alike;
	/* regions of OpenMP (index + 1), by the call that begins them and by functions that are theirs
	 * alone (places.c) */
	struct key_table calls, bodies;
	uint32_t *call_region, *body_region;
	uint32_t size_calls, size_bodies;
	struct key_table owners; /* functions with regions, */
	uint32_t *owner_region;  /* the last region of each; index + 1 */
	uint32_t size_owners;
	double sampled_ns; /* of all processes that counted */
	uint64_t samples_taken;
	bool callers;         /* of some samples in copies, we know from where these were called */
	uint32_t n_uncounted; /* names of code that nobody counts */
	/* events counted in regions: texts; their values start at LOOP_GRANTED */
	uint32_t granted[MPERF_GRANTS_MAX];
	unsigned n_granted;
	bool granted_left_out; /* there were more events */
	/* of the harts of all segments: text, name of their platform; 0: not known */
	uint32_t core;
	bool cores_differ; /* there are others */
	uint32_t threads;  /* threads that counted in regions; 0 without by_thread */
	bool from_file;    /* no segment, so no samples */
	/* not all entries of all functions were counted (loop_facts_scale) */
	bool sampled;
	/* functions and outermost loops with at most one counted entry */
	uint32_t n_scarce;
	struct provenance provenance;
	struct loop_facts_kept *kept;

	/* of the current segment */
	struct loaded loaded;
	struct key_table site_ids; /* {id} to index */
	uint32_t *site_of_id;      /* by that: index of site + 1 */
	uint32_t size_ids;
	bool *counts;         /* by task: its process counted */
	uint32_t *frame_site; /* by frame: index + 1; UINT32_MAX: not looked up yet */
	uint32_t *callee;     /* by stack: the same, of the callee that it is in */
};

#define FACT_KEY(site, region, who, epoch) ((struct key){{(site), (region), (who), (epoch)}})
/* The region of samples, for which none is known. Samples in code that nobody counts have no site;
 * the last part of their key is LOOP_UNCOUNTED_FUNCTION and _MODULE (texts), or 0 once there are
 * LOOP_UNCOUNTED_MAX names, so that they do not take all the room. */
#define LOOP_UNCOUNTED_MAX (1u << 16)
#define LOOP_UNCOUNTED_FUNCTION(name) ((uint32_t)((name) >> 32))
#define LOOP_UNCOUNTED_MODULE(name) ((uint32_t)(name))
#define FACT_ANY_REGION UINT32_MAX
#define FACT_UNSEEN UINT32_MAX /* in frame_site and callee */

/* The site's index + 1. 0, QUERY_FAILED, -errno. key's parent is the site's. */
struct fact_site_key {
	uint8_t kind, flags;
	const char *subprogram, *source, *nest, *inlined_at, *build_id;
	uint32_t line, line_last, parent;
};
int loop_facts_site(struct loop_facts *f, const struct fact_site_key *key, uint32_t *ret_site);
/* A thread, by pid, tid and start time, since numbers are reused. */
struct fact_who_key {
	int32_t pid, tid;
	uint64_t start_ns;
	const char *comm;
};
int loop_facts_who(struct loop_facts *f, const struct fact_who_key *key, uint32_t *ret_who);
/* The thread of a task of the current segment; results as of loop_facts_who. */
int loop_facts_task(struct loop_facts *f, uint32_t task, uint32_t *ret_who);
/* Note where a thread counted code. */
void loop_facts_was_in(struct loop_facts *f, uint32_t who, bool in_region);
/* The fact of that key; add to its sums with loop_facts_add. */
int loop_facts_get(struct loop_facts *f, const struct key *key, struct fact **ret_fact);
static inline void loop_facts_add(struct fact *fact, unsigned value, uint64_t amount)
{
	if (__builtin_add_overflow(fact->value[value], amount, &fact->value[value]))
		fact->value[value] = UINT64_MAX; /* an absurd value */
}

/* Add a segment, as in struct source_reader. */
int loop_facts_add_segment(
	void *facts, sqlite3 *db, const struct query_source *source, struct query_error *ret_error);
/* The site whose own counts these are: of a block, the loop or function around it. */
uint32_t loop_facts_owner(const struct loop_facts *f, uint32_t site);
/* callee.c: the callee at the end of a stack's counted callers, by the line of the call and the name of
 * the function; index + 1. 0: its leaf is counted, or who called it is not known. */
uint32_t loop_facts_callee(struct loop_facts *f, uint32_t stack);
/* Is it of the C library's functions that copy or fill? */
bool loop_facts_moves(const struct loop_facts *f, uint32_t site);
/* lines.c: the site of a frame, index + 1; 0: it is not counted. */
uint32_t loop_facts_frame(struct loop_facts *f, uint32_t frame);
bool loop_facts_same_file(const char *a, const char *b);
/* places.c: of a place that was read, note what samples and loops in its region are found by. offset:
 * of its return address. */
int loop_facts_note_place(struct loop_facts *f, uint32_t site, uint64_t offset, const char *symbol);
/* The region of OpenMP, index + 1, to which alone the code of a function belongs; 0: none. */
uint32_t loop_facts_body(const struct loop_facts *f, uint32_t function, uint32_t build_id);
/* The region in which a loop that counts itself is, index + 1; 0: none that is known. */
uint32_t loop_facts_region_of_loop(const struct loop_facts *f, uint32_t site);
/* The samples of the current segment, by region: facts of FACT_ANY_REGION, their last part as for
 * code that nobody counts. Without a site: outside all regions. */
int loop_facts_add_place_samples(
	struct loop_facts *f, const struct row_filter *filter, struct scan_notes *notes);
/* A place's key as it is read: of one that has a name, the offset is cut off its nest, and the symbol
 * taken away, so that copies of a line are one place. Returns the offset; 0: none. */
struct place_words {
	char nest[LOOP_PLACE_NEST_BYTES];
	const char *symbol;
};
uint64_t loop_facts_place_key(struct fact_site_key *key, struct place_words *words);
/* samples.c: the samples of the current segment. */
int loop_facts_add_samples(
	struct loop_facts *f, const struct row_filter *filter, struct scan_notes *notes);
/* A file written for MPERF_OUTPUT, in memory. */
struct loop_output {
	const uint8_t *bytes;
	size_t n;
	const char *path;
};
/* file.c: add all its messages. 0, QUERY_FAILED, -errno. */
int loop_facts_add_file(
	struct loop_facts *f, const struct loop_output *file, struct query_error *ret_error);

/* read.c: add all sources: segments, or one file of a program. 0, QUERY_FAILED, -errno. */
int loop_facts_read(struct loop_facts *f, struct query_source *source, size_t n_sources,
	struct query_error *ret_error);

/* scale.c: once everything is read, scale the counts of functions with two bodies to all their
 * entries. */
void loop_facts_scale(struct loop_facts *f);
/* The scope by whose entries a site's counts are scaled, itself or one around it: index + 1; 0: all
 * its entries were counted. */
uint32_t loop_facts_counted_by(const struct loop_facts *f, uint32_t site);
/* Does that fact belong to a function or outermost loop with at most one counted entry, though it
 * had more? */
bool loop_facts_is_scarce(const struct loop_facts *f, uint32_t fact);
/* The relative sampling error if `counted` of all entries were counted; 0: all were. */
double loop_share_error(double entries, double counted);

int loop_facts_keep(void *facts);
void loop_facts_take_back(void *facts);
void loop_facts_clear(struct loop_facts *f);
