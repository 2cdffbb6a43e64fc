/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* A top-down tree as a picture: bars under each other, and in a page also tables of formulas and inputs
 *
 * One file without external resources and without a script.
 */

#include "client/topdown/tree.h"

/* Write n trees. plain: SVG alone. 0, -ENOMEM, or -EIO if writing to out failed. */
int topdown_page_write(const struct topdown *t, size_t n, const char *title, bool plain, FILE *out);

/* The drawing, as an element; plain: with its style, paper and heading. */
void topdown_svg_write(const struct topdown *t, const char *title, bool plain, FILE *out);
/* Several of them as one plain file, under each other. */
void topdown_svg_write_all(const struct topdown *t, size_t n, const char *title, FILE *out);
/* Its style. Static. */
const char *topdown_svg_style(void);
