/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* A plot as a page: the drawing, its roofs and its loops as tables
 *
 * One file without external resources, complete without a script; a script adds switches for kinds
 * of harts and precisions.
 */

#include <stdio.h>

#include "client/plot/bound.h"

/* Rows of the page's table: the hottest loops; a line below gives the number of further ones. */
#define PLOT_PAGE_ROWS_MAX 200

/* Write it. plain: SVG alone. 0, -ENOMEM, or -EIO if writing to out failed; out keeps the cause
 * (client/show/print.h). */
int plot_page_write(const struct plot *p, const struct plot_sets *sets, bool plain, FILE *out);
