/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Internals of facts: how the files that read sources add to them */

#include <errno.h>

#include "daemon/query/loops/facts.h"

#define FACT_UNSEEN UINT32_MAX /* in frame_site and stack_callee */

/* The outcome of a text_table or key_table. */
static inline int facts_outcome(int r)
{
	return r == KEY_TABLE_FULL ? -EOVERFLOW : r;
}

/* NULL is "". 0, -EOVERFLOW, -ENOMEM. */
static inline int facts_text(struct loop_facts *f, const char *text, uint32_t *ret_id)
{
	return facts_outcome(text_get(&f->texts, text ? text : "", ret_id));
}

/* --- sites.c ---------------------------------------------------------------------------------- */

/* The site's index + 1. 0, QUERY_FAILED, -errno. key's parent is the site's. */
struct fact_site_key {
	uint8_t kind, flags;
	const char *subprogram, *source, *nest, *inlined_at, *build_id;
	uint32_t line, line_last, parent;
};
int loop_facts_site(struct loop_facts *f, const struct fact_site_key *key, uint32_t *ret_site);
/* Begin a segment: forget the sites seen in the former one. */
void fact_sites_begin_segment(struct fact_sites *s);
/* The first site of functions with that name (text), index + 1; 0: none. */
uint32_t fact_sites_alike(const struct fact_sites *s, uint32_t name);
void fact_sites_clear(struct fact_sites *s);

/* --- facts.c ---------------------------------------------------------------------------------- */

/* A thread, by pid, tid and start time, since numbers are reused. */
struct fact_who_key {
	int32_t pid, tid;
	uint64_t start_ns;
	const char *comm;
};
/* Its index + 1. 0, -errno. */
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
/* As in struct source_reader. */
int loop_facts_keep(void *facts);
void loop_facts_take_back(void *facts);

/* --- samples.c, lines.c, callee.c ------------------------------------------------------------- */

/* Add the samples of the current segment. With q.places they are of regions, else of loops. */
int loop_facts_add_samples(
	struct loop_facts *f, const struct row_filter *filter, struct scan_notes *notes);

/* Frames: the site of each, index + 1; 0: it is not counted. Begin: 0 or -ENOMEM. */
int loop_frames_begin(struct loop_facts *f);
uint32_t loop_facts_frame(struct loop_facts *f, uint32_t frame);
void loop_frames_end(struct loop_facts *f);
/* Do two paths of a file end alike? */
bool loop_facts_same_file(const char *a, const char *b);

/* Callees: find the uncounted callee that a stack's innermost counted caller called, by the line of the call and
 * the name of the function; index + 1. 0: the leaf is counted, or its caller is not known. Begin: 0 or
 * -ENOMEM. */
int loop_callees_begin(struct loop_facts *f);
uint32_t loop_facts_callee(struct loop_facts *f, uint32_t stack);
void loop_callees_end(struct loop_facts *f);
/* Is the callee one of the C library's functions that copy or fill? */
bool loop_facts_moves(const struct loop_facts *f, uint32_t site);

/* --- places.c --------------------------------------------------------------------------------- */

/* Normalise a place's key as it is read: if the place has a name, cut the offset off its nest and
 * drop the symbol, so that copies of a line are one place. Returns the offset; 0: none. */
struct place_words {
	char nest[LOOP_PLACE_NEST_BYTES];
	const char *symbol;
};
uint64_t loop_facts_place_key(struct fact_site_key *key, struct place_words *words);
/* Note the code of a place that was read, which later shows that samples and loops are in its region. offset: of
 * its return address. 0, -errno. */
int loop_facts_note_place(struct loop_facts *f, uint32_t site, uint64_t offset, const char *symbol);
/* The innermost region of a stack of the current segment, index + 1; 0: none. */
uint32_t loop_facts_region_of_stack(const struct loop_facts *f, uint32_t stack);
void facts_regions_clear(struct facts_regions *r);

/* --- granted.c, file.c ------------------------------------------------------------------------ */

/* The position of an event; MPERF_GRANTS_MAX: there is no room. 0, -errno. */
int granted_add(struct loop_facts *f, const char *name, unsigned *ret_at);

/* Add all messages of a file. 0, QUERY_FAILED, -errno. */
int loop_facts_add_file(
	struct loop_facts *f, const struct loop_output *file, struct query_error *ret_error);
