/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The flame graph as a page, or as plain SVG
 *
 * One file without external resources: an SVG that is readable alone (labels, tooltips), and in
 * the page a script that adds zoom, search and details to that SVG. A page may have several pictures of one source,
 * and a button for each; the script draws those that are not shown first.
 *
 * With a baseline, a box is red where the function itself has more of the whole than it had, and blue
 * where it has less; the strongest colour is that of the largest difference.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "client/flamegraph/flame.h"

/* Boxes narrower than this share of the whole are not drawn: a quarter of a pixel, which keeps
 * the page at a few thousand boxes per level whatever the tree's size. They are counted. */
#define FLAME_PAGE_SHARE_MIN 0.0002

#define FLAME_VIEWS_MAX 4

/* One picture */
struct flame_view {
	const char *name;          /* in the page's address: "waiting"; letters only */
	const char *label;         /* of its button */
	const char *says;          /* tooltip of the button: what the picture shows */
	const struct flame *flame; /* finished; NULL: left out */
	const char *absent;        /* without a flame: why */
	const char *event;         /* what the widths mean; may be empty */
	const char *provenance;    /* the line, escaped for terminals; may be NULL */
	double counted;            /* the share of all samples that counts cover */
};

struct flame_page {
	const char *title;
	const struct flame_view *view; /* in the order of their buttons; one: it has no button */
	size_t n_views;                /* at most FLAME_VIEWS_MAX */
	size_t first;                  /* the view that is shown first, and has a flame */
	bool plain;                    /* SVG alone, of the first view */
	const char *baseline;          /* name of the baseline; NULL: none */
};

/* Write finished flames. *ret_cut is the number of boxes omitted in the view shown first. 0; -ENOMEM; -EIO if writing
 * to out failed; out keeps the cause (client/show/print.h). */
int flame_page_write(const struct flame_page *page, FILE *out, size_t *ret_cut);
