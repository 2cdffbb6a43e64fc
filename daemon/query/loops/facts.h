/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Facts: what loops counted in all sources of a query, summed by content
 *
 *      segments ─▶ sites, counts ─┐
 *               └▶ samples ───────┼─▶ facts per (site, region, thread, epoch) ─▶ rows
 *      MPERF_OUTPUT ─▶ messages ──┘
 *
 * Each part of struct loop_facts is written by the one file that it names. roofline.c, blocks.c, parallel.c and
 * loop_sums.c request the facts, and make rows from sites, whos and table.
 */

#include "daemon/loops/program.h"
#include "daemon/query/provenance.h"
#include "daemon/query/sources.h"

/* Maximum of one answer, 700 bytes each. */
#define LOOP_FACTS_MAX (1u << 20)

/* Request: the facts to sum up, and their level of detail. */
struct facts_question {
	const struct query_filter *filter; /* NULL: everything */
	bool by_thread, by_region;
	bool samples;      /* join them */
	bool places;       /* read places of OpenMP too */
	bool places_only;  /* and nothing else */
	uint64_t epoch_ns; /* 0: one epoch */
};

/* --- sites.c ---------------------------------------------------------------------------------- */

/* A loop, function, block, region or callee. Numbers are indices + 1, 0 for none. */
struct fact_site {
	uint8_t kind; /* enum loop_site_kind */
	uint8_t flags, depth;
	uint32_t parent;
	uint32_t subprogram, source, nest, inlined_at, build_id; /* texts; build_id in hex */
	uint32_t readable;                                       /* text: demangled */
	uint32_t line, line_last;
	uint32_t next_alike; /* another site of the same function */
	/* callees: its first uncounted one, and for a callee, the next one of its caller; a block's are its loop's */
	uint32_t first_callee, next_callee;
	bool here; /* in the current segment */
};

struct fact_sites {
	struct key_table keys;
	struct fact_site *site; /* by index of keys */
	uint32_t size;
	uint32_t *alike; /* by text of a readable name: the first site of it, index + 1 */
	uint32_t size_alike;
};

/* --- facts.c ---------------------------------------------------------------------------------- */

/* The thread that counted, if threads are distinguished. */
struct fact_who {
	int32_t pid, tid;
	uint32_t comm; /* text */
	/* if regions are distinguished: it counted code in one, or outside all of them */
	bool counted_inside, counted_outside;
};

struct fact_whos {
	struct key_table keys;
	struct fact_who *who; /* by index of keys */
	uint32_t size;
};

struct fact {
	uint64_t value[N_LOOP_VALUES];
	double sampled_ns; /* CPU time of samples in this site's own lines; of a callee, in it and
			      what it calls */
	double cycles, instructions; /* read with these samples */
	uint64_t samples, uncounted; /* number of samples that these two do not cover */
};

struct fact_table {
	struct key_table keys; /* FACT_KEY */
	struct fact *fact;     /* by index of keys */
	uint32_t size;
};

#define FACT_KEY(site, region, who, epoch) ((struct key){{(site), (region), (who), (epoch)}})
/* The region of samples if it is not known. Samples in uncounted code have no site; the last part
 * of their key is LOOP_UNCOUNTED_FUNCTION and _MODULE (texts), or 0 beyond LOOP_UNCOUNTED_MAX
 * names, so that these names do not take all the room. */
#define FACT_ANY_REGION UINT32_MAX
#define LOOP_UNCOUNTED_MAX (1u << 16)
#define LOOP_UNCOUNTED_FUNCTION(name) ((uint32_t)((name) >> 32))
#define LOOP_UNCOUNTED_MODULE(name) ((uint32_t)(name))

/* --- the other files -------------------------------------------------------------------------- */

/* samples.c: the samples of processes that counted. */
struct facts_samples {
	struct facts_taken {
		double ns; /* CPU time */
		uint64_t n;
	} taken;
	bool callers;         /* for some samples in copies, the caller is known */
	uint32_t n_uncounted; /* names of uncounted code */
};

/* granted.c: events counted in regions. Their values start at LOOP_GRANTED. */
struct facts_granted {
	uint32_t name[MPERF_GRANTS_MAX]; /* texts */
	unsigned n;
	bool left_out; /* some events were left out */
};

/* scale.c: loops and functions that were not counted in all entries. */
struct facts_scaled {
	bool any;
	uint32_t n_scarce; /* functions and outermost loops with at most one counted entry */
};

/* places.c: the code of regions of OpenMP. A region is an index + 1 of sites. */
struct facts_regions {
	/* by the call that begins a region; by functions that belong to one region alone; by functions that
	 * contain regions: the last of these */
	struct region_index {
		struct key_table keys;
		uint32_t *region;
		uint32_t size;
	} calls, bodies, owners;
	struct region_body *body; /* by index of the region's site */
	uint32_t size;
};

/* The function that a region's body was outlined from (text; 0: not known), and the first place in the body (line 0:
 * none). */
struct region_body {
	uint32_t function, source, line;
	uint32_t next; /* another region of that function */
};

/* read.c: the sites of the current segment by its ids, and the tasks that counted. */
struct facts_segment {
	struct key_table site_ids; /* {id} to index */
	uint32_t *site_of_id;      /* by that: index of site + 1 */
	uint32_t size_ids;
	bool *counts; /* by task: its process counted */
};

/* read.c: text, name of the platform of the harts of all segments; 0: not known. */
struct facts_core {
	uint32_t name;
	bool differs; /* there are others */
};

struct loop_facts {
	struct facts_question q; /* facts.c */
	struct text_table texts;
	struct fact_sites sites;
	struct fact_whos whos;
	struct fact_table table;
	struct facts_samples samples;
	struct facts_granted granted;
	struct facts_scaled scaled;
	struct facts_regions regions;
	struct facts_core core;
	struct provenance provenance;
	struct loop_facts_kept *kept; /* facts.c */

	/* of the current segment */
	struct loaded loaded;
	struct facts_segment segment;
	uint32_t *frame_site;   /* lines.c: by frame: index + 1; UINT32_MAX: not looked up yet */
	uint32_t *stack_callee; /* callee.c: by stack: the same, of the callee that it is in */
};

/* --- asking ----------------------------------------------------------------------------------- */

/* A file written for MPERF_OUTPUT, in memory. */
struct loop_output {
	const uint8_t *bytes;
	size_t n;
	const char *path;
};

/* Facts must be zeroed before. by: whether threads matter to the answer's provenance. */
void loop_facts_begin(struct loop_facts *f, const struct facts_question *q, enum query_by by);
/* read.c: add all sources: segments, or one file of a program. 0, QUERY_FAILED, -errno. */
int loop_facts_read(struct loop_facts *f, struct query_source *source, size_t n_sources,
	struct query_error *ret_error);
/* scale.c: once everything is read, scale the counts of functions with two bodies to all their
 * entries. */
void loop_facts_scale(struct loop_facts *f);
void loop_facts_clear(struct loop_facts *f);

/* The site that owns these counts: for a block, the loop or function around it. */
uint32_t loop_facts_owner(const struct loop_facts *f, uint32_t site);
/* The scope whose entries scale a site's counts, the site itself or one around it: index + 1; 0:
 * all its entries were counted. */
uint32_t loop_facts_counted_by(const struct loop_facts *f, uint32_t site);
/* Does that fact belong to a function or outermost loop that had several entries, of which at most
 * one was counted? */
bool loop_facts_is_scarce(const struct loop_facts *f, uint32_t fact);
/* The relative sampling error if `counted` of all entries were counted; 0: all were. */
double loop_share_error(double entries, double counted);
/* The region in which a loop that counts itself is, index + 1; 0: none that is known. */
uint32_t loop_facts_region_of_loop(const struct loop_facts *f, uint32_t site);
/* The body of a region; all 0 if nothing is known of it. */
struct region_body loop_facts_body_of(const struct loop_facts *f, uint32_t region);
/* The platform of all harts, by name; NULL: not known, or they differ. */
const char *loop_facts_core(const struct loop_facts *f);
/* The name of a granted event; the position of an event, regardless of modifiers; -1: it was not
 * granted. */
const char *granted_name(const struct loop_facts *f, unsigned i);
int granted_find(const struct loop_facts *f, const char *wanted);
