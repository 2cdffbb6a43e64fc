/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Sites: loops, functions, blocks, regions and places of OpenMP, each once
 *
 * A site is identified by its names, so that runs can be compared: build id, function, source and
 * line, its place in the nest, where it was inlined; for a region, the regions around it; for a callee,
 * where it is called. Compiler-made copies of a loop (a vectorised one, its remainder, one per alignment) have
 * the same names and are one site. Programs of one user share sites, which are reference counted. Users do not
 * share sites, since a program can announce another program's build id and names with different nests and flags.
 * Readers of the store know a site by its names alone. A place of OpenMP is identified by build id and offset,
 * and named by the namer.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/abi.h"

/* Sites of all programs and windows in memory: 200 bytes each, plus their names. */
#define LOOP_SITES_MAX (1u << 20)

/* Kinds of sites, numbered as in the store's loop_site.kind. */
enum loop_site_kind {
	LOOP_SITE_LOOP = MPERF_SCOPE_LOOP,
	LOOP_SITE_FUNCTION = MPERF_SCOPE_FUNCTION,
	LOOP_SITE_REGION = 3,
	LOOP_SITE_BLOCK = MPERF_SCOPE_BLOCK,
	LOOP_SITE_CALLEE = MPERF_SCOPE_CALLEE,
	/* places of OpenMP: a parallel region, and inside one a construct that divides its work, a wait
	 * of its threads for each other or for tasks, and a wait for a lock */
	LOOP_SITE_PARALLEL = 6,
	LOOP_SITE_WORK = 7,
	LOOP_SITE_WAIT = 8,
	LOOP_SITE_LOCK = 9,
};

static inline bool loop_site_is_place(uint8_t kind)
{
	return kind >= LOOP_SITE_PARALLEL && kind <= LOOP_SITE_LOCK;
}

/* Is a site of that kind identified by its parent, too? */
static inline bool loop_site_is_of_parent(uint8_t kind)
{
	return kind == LOOP_SITE_REGION || kind == LOOP_SITE_CALLEE || loop_site_is_place(kind);
}

/* A place's nest: a word for its kind, and the offset of its address in its file: "loop@11a0".
 * Without an address it is the word alone. */
#define LOOP_PLACE_NEST_BYTES 40

struct frame;

struct loop_site_key {
	uint8_t kind;
	uint8_t build_id[MPERF_BUILD_ID_BYTES_MAX];
	uint8_t n_build_id; /* 0: not known */
	uint32_t line;      /* 0: not known */
	uint64_t owner;     /* the user, + 1 */
	/* "" if there is none */
	const char *subprogram, *source, *nest, *inlined_at;
};

struct loop_site {
	uint64_t id; /* from 1, never used again: a user makes 2^32 within hours */
	uint32_t n_users;
	struct loop_site_key key; /* the site owns its texts */
	/* the loop or function around it or that calls it, the region around it; or NULL */
	struct loop_site *parent;
	uint32_t depth; /* sites around it; below LOOP_DEPTH_MAX (table.h) */
	uint32_t line_last, column;
	uint8_t flags; /* enum mperf_scope_flag, of all copies */
	/* of a place: borrowed from the file table, which keeps it for as long as feed_mark or a
	 * window's rows mark it; NULL: not found yet */
	struct frame *frame;
	/* site.c's */
	uint64_t hash;
	struct loop_site *next;
};

struct loop_sites {
	struct loop_site **slot; /* chains; n_slots is a power of two */
	uint32_t n_slots, n_sites;
	uint64_t last_id;
};

/* The site of that key under that parent, created if new, with one more reference. `more` is merged
 * into it: the highest last line, all flags. 0; FEED_SITES; FEED_TABLE_MALFORMED (cause.h): the nest
 * would be too deep, since tables of one build id may continue each other's nests; -ENOMEM. */
struct loop_site_more {
	uint32_t line_last, column;
	uint8_t flags;
};
int loop_site_get(struct loop_sites *t, const struct loop_site_key *key, struct loop_site *parent,
	const struct loop_site_more *more, struct loop_site **ret_site);

struct loop_site *loop_site_ref(struct loop_site *site);
/* Drop one reference; the last one frees the site and releases its parent. NULL is ignored. */
void loop_site_unref(struct loop_sites *t, struct loop_site *site);

/* Bytes of a site with these texts. */
size_t loop_site_memory(const struct loop_site_key *key);

/* Free the table. Call when no references are left. */
void loop_sites_clear(struct loop_sites *t);
