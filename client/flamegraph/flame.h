/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* A flame: the call tree, merged by name
 *
 * The daemon's tree has one node per call site; people want one box per function and caller.
 * Siblings with the same name, module and kind are merged as they arrive, so only the merged tree
 * is in memory.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "proto/mperf.pb-c.h"

/* Limit of either tree, about 100 bytes a node. Beyond: FLAME_TOO_LARGE. */
#define FLAME_NODES_MAX 2000000
#define FLAME_DEPTH_MAX 4096 /* kernel and user stacks have 512 frames; inlining multiplies */

enum {
	FLAME_TOO_LARGE = 1,
	FLAME_MALFORMED, /* a node before its parent, twice, or without the columns we need */
};

enum flame_kind {
	FLAME_UNKNOWN,
	FLAME_USER,
	FLAME_KERNEL,
	FLAME_JIT,
	FLAME_INLINED,
	FLAME_WAITING, /* no function: for what a thread waits */
	N_FLAME_KINDS,
};
const char *flame_kind_name(enum flame_kind kind);

struct flame_node {
	uint32_t parent;      /* index; of the root: itself, 0 */
	uint32_t depth;       /* of the root: 0 */
	const char *function; /* NULL: unknown. Borrowed from the flame */
	const char *module;   /* NULL: unknown */
	enum flame_kind kind;
	double self, total; /* total and start after flame_finish */
	double start;       /* in [0, root.total): where its box begins */
	/* in the baseline; 0: there is none, or the box was not in it */
	double was_self, was_total;
	/* after flame_finish: its samples, and how many of them the values cover; 0: the values
	 * cover all */
	double samples, counted;
};

struct flame;

int flame_new(struct flame **ret_flame);
struct flame *flame_free(struct flame *f);

/* Take Columns or Rows of a flame graph answer; ignores others. 0, FLAME_TOO_LARGE,
 * FLAME_MALFORMED, -ENOMEM. */
int flame_add(struct flame *f, const Mperf__Answer *a);

/* Call these around the answer that the next one is compared with. Boxes keep its values as was_self and
 * was_total; their sizes and places are those of the next answer. Modules then lose their folders, since two
 * builds are seldom in the same one. */
void flame_begin_baseline(struct flame *f);
void flame_end_baseline(struct flame *f);

/* Sum up and lay out. 0, -ENOMEM. No flame_add after it. O(n log n) in the nodes. */
int flame_finish(struct flame *f);

/* The merged tree, parents before children; [0] is the root, "all". */
const struct flame_node *flame_nodes(const struct flame *f, size_t *ret_n);

/* The unit of the values; MPERF__UNIT__UNIT_NS or _COUNT. */
Mperf__Unit flame_unit(const struct flame *f);

/* Kinds of waits; those that we do not know count as the last, waiting:other. */
#define FLAME_WAITS 12

/* The kind of a node of FLAME_WAITING, below FLAME_WAITS. */
size_t flame_wait(const struct flame_node *node);

struct flame_wait_sum {
	const char *name; /* static: "waiting:lock" */
	size_t wait;
	double value;
};

/* Sum up the waits of a finished tree, longest first. Returns how many kinds there are; 0: stacks do not end in kinds.
 * O(n) in the nodes. */
size_t flame_waits(const struct flame *f, struct flame_wait_sum ret_sum[static FLAME_WAITS]);

/* A box's label, unescaped, in at most n bytes. */
void flame_label(const struct flame_node *node, char *ret_text, size_t n);

/* One line per stack that has a value of its own: "main;work;step 1204". 0, -ENOMEM, -EIO. */
int flame_write_folded(const struct flame *f, FILE *out);
