/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* A top-down tree as it is shown: the tables of one answer, and what follows from them
 *
 * Texts are borrowed from the replies; they may be of others: escape them.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "client/show/reply.h"

#define TOPDOWN_LEVELS_MAX 16 /* deeper nodes are shown as if they were on this level */

enum topdown_kind {
	TOPDOWN_LOST,
	TOPDOWN_USEFUL,   /* slots that did work: large is good */
	TOPDOWN_RESIDUAL, /* what the rows above do not add up to */
};

struct topdown_node {
	enum topdown_kind kind;
	const char *name, *parent, *unit, *passes;
	const char *missing, *reason; /* why there is no value; "" otherwise */
	const char *says, *formula, *inputs, *next, *source, *verified;
	int level;      /* from 1 */
	double value;   /* in unit; NAN: none */
	double error;   /* half of the 95 % interval; NAN: not known */
	double running; /* the part of the time in which it was counted */
	bool is_worst, has_more;
};

/* An event in one of the passes. */
struct topdown_input {
	const char *name, *reason;
	double count, raw; /* NAN: not counted, because of `reason` */
	double running;
	int pass;
};

struct topdown {
	const char *core, *harts; /* "0-3"; "" from an older mperfd */
	bool is_alone;            /* there is no other */
	int levels, deepest, passes;
	bool is_cut, is_fewest;
	struct topdown_node *node; /* n_nodes, each before its children */
	size_t n_nodes;
	struct topdown_input *input; /* n_inputs, by pass */
	size_t n_inputs;
	const Mperf__Provenance *notes; /* or NULL */
};

/* How many trees the tables have: one for each kind of core. */
size_t topdown_count(const struct replies *r);
/* Read tree i. 0; TOPDOWN_MALFORMED: the tables have no such tree; -ENOMEM. The struct is filled only on
 * success. */
enum { TOPDOWN_MALFORMED = 1 };
#define TOPDOWN_TREES_MAX 8 /* kinds of core; machines have up to three */
int topdown_read(struct topdown *t, const struct replies *r, size_t i);
void topdown_clear(struct topdown *t);

/* The last node of the worst path; NULL if there is none. */
const struct topdown_node *topdown_worst(const struct topdown *t);

/* What to look at next, "A;B": of the worst path's last node, or else of the nearest above it that
 * says so; "" if none does. */
const char *topdown_next(const struct topdown *t);

/* "40.0 %", "12.3 MPKI", "n/a"; and "± 1.2", "± ?" or "" where it is exact. */
#define TOPDOWN_TEXT_BYTES 64
void topdown_value_text(const struct topdown_node *n, char text[static TOPDOWN_TEXT_BYTES]);
void topdown_error_text(const struct topdown_node *n, char text[static TOPDOWN_TEXT_BYTES]);

/* "CPU_CYCLES": the input's name without its modifiers is `name`, of n bytes. */
bool topdown_is_input(const struct topdown_input *i, const char *name, size_t n);

/* One paragraph on how it was counted, "" if there is nothing to say. The caller frees; NULL if memory
 * ran out. */
char *topdown_how(const struct topdown *t);
