/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* A drawing: one picture of a page, with what is to be known before its first box is written
 *
 * The picture that a page shows first is SVG, which needs no script. The others are data, in a fifth of the bytes:
 * flame.js makes the same boxes of them when they are chosen.
 */

#include "client/flamegraph/page.h"

#define DRAWING_LABEL_BYTES_MAX 4096 /* C++ can do worse, but nobody reads it */
#define DRAWING_CLASS_BYTES 3        /* a letter and a digit */

/* Seven figures (proto/syntax/unit.h), and the words between them. */
#define DRAWING_FIGURES_BYTES 512

struct drawing {
	const struct flame_page *page;
	const struct flame_view *view;
	const struct flame_node *node;
	size_t n_nodes;
	Mperf__Unit unit;
	size_t n_cut;
	uint32_t depth; /* of the deepest box drawn */
	double height;
	/* with a baseline: the largest difference of a box, and the share of the baseline whose boxes are gone */
	double most, gone;
};

/* Measure the view's flame, which it has. O(n) in the nodes. */
void drawing_make(
	struct drawing *ret_drawing, const struct flame_page *page, const struct flame_view *view);

/* Where a box is, in units of the drawing, and its class. */
struct drawing_box {
	double x, width;
	char class[DRAWING_CLASS_BYTES];
	char *label; /* escaped for terminals */
};

/* Place a box. True: it is drawn, and the caller frees ret_box->label, which is NULL if memory ran out. */
bool drawing_place(
	const struct drawing *d, const struct flame_node *node, struct drawing_box *ret_box);

/* The tooltip's line of figures, without markup: "1.20 s · 12.00 % of all · self 0 ns". */
void drawing_figures(const struct drawing *d, const struct flame_node *node,
	char ret_text[static DRAWING_FIGURES_BYTES]);

/* The style of boxes. Static. */
const char *drawing_style(void);

/* Write the picture. */
void drawing_write_svg(const struct drawing *d, FILE *out);

/* Write the n drawings that are not shown first as JSON for flame.js, for a <script>:
 *
 *	{"views": {"NAME": [[parent, x, width, "class", label, place, figures], ...]}, "strings": ["", ...]}
 *
 * parent is an index into the view's boxes, that of the root its own; label, place (module and kind) and figures
 * are indices into strings, each of which is written once. 0, -ENOMEM. */
int drawing_write_data(const struct drawing *const *drawing, size_t n, FILE *out);

/* The class of boxes of a kind of waits, as flame_wait has it. */
void drawing_wait_class(size_t wait, char ret_class[static DRAWING_CLASS_BYTES]);
