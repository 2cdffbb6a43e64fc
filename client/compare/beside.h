/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Side by side: two sides without a test of changes, for example of two machines
 *
 * Made from the tables "side" and "beside" of an answer (proto/mperf.proto, CompareRequest).
 */

#include <stdbool.h>
#include <stdio.h>

#include "client/show/reply.h"

/* Is this a side-by-side answer? */
bool beside_is_there(const struct replies *r);

/* Write for a terminal: a line for each side, that no change is tested, and an empty line. */
void beside_head(const struct replies *r, FILE *f);

/* The same and the rows, in Markdown. */
void beside_markdown(const struct replies *r, FILE *f);
