/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The flame graph as a page, or as plain SVG
 *
 * One file without external resources: an SVG that is readable alone (labels, tooltips), and in
 * the page a script that adds zoom, search and details to that SVG.
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

struct flame_page {
	const char *title;
	const char *event;      /* what the widths mean; may be empty */
	const char *provenance; /* the line, escaped for terminals; may be NULL */
	double counted;         /* the share of all samples that counts cover */
	bool plain;             /* SVG alone */
	const char *baseline;   /* name of the baseline; NULL: none */
};

/* Write a finished flame. *ret_cut is the number of omitted boxes. 0, or -EIO if writing to out
 * failed; out keeps the cause (client/show/print.h). */
int flame_page_write(
	const struct flame *f, const struct flame_page *page, FILE *out, size_t *ret_cut);
