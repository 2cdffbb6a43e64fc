/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Pages: self-contained HTML and SVG files, for pictures
 *
 * All pages share a frame: policy, header, colours for light and dark. Frame and body are templates
 * with named holes, {{name}}. Text that fills a hole is never expanded again, so a function called
 * {{script}} is just a strange function.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Fill the hole of this name, n bytes of it; an unknown one stays empty. */
typedef void page_fill(const void *userdata, const char *name, size_t n, FILE *out);

/* Write the frame with this body, which begins inside of its header, and for each hole what `fill`
 * writes: title, summary, provenance, style, script, policy (the hashes of the scripts, which alone may run), and those of the
 * body. */
void page_write(const char *body, page_fill *fill, const void *userdata, FILE *out);

/* The style of the frame. Static. */
const char *page_style(void);

/* Does this file get plain SVG, without a page around it? */
bool page_is_plain(const char *path);

/* Have `write` write a whole file, which replaces an earlier one only when complete; "-": stdout.
 * force: overwrite any regular file.
 * Returns mperfctl's exit status, after an error message if not 0. */
int page_save(
	const char *path, bool force, int (*write)(void *userdata, FILE *out), void *userdata);
