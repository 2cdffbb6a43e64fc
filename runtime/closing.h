/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Closing: what dlclose of a library that has this copy of the runtime gives back
 *
 * Code of this copy is unmapped then, and the next dlopen begins with a copy that knows nothing of
 * it. So all descriptors and mappings go. At the end of a program, other threads may still count:
 * there, all stays.
 */

#include <stdbool.h>

struct state;

/* Learn from then on how this copy ends. Once, when it begins to serve. */
void mperf_closing_begin(void);

/* In the last destructor: is this a dlclose, rather than the end of the program? */
bool mperf_closing(void);

/* Close and unmap all that the state has. Its sender has ended, and no thread runs in this copy. */
void mperf_closing_release(struct state *s);
