/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Side by side: two sides of which no change is tested, as of two machines
 *
 * Made from the tables "side" and "beside" of an answer (proto/mperf.proto, CompareRequest).
 */

#include <stdbool.h>
#include <stdio.h>

#include "client/show/reply.h"

/* Is the answer one of these? */
bool side_by_side_is_there(const struct replies *r);

/* A line for each side, that nothing is tested, and an empty line: for a terminal. */
void side_by_side_head(const struct replies *r, FILE *f);

/* The same and the rows, in Markdown. */
void side_by_side_markdown(const struct replies *r, FILE *f);
