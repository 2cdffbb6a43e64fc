/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Closing: free everything when dlclose removes the library with this copy of the runtime
 *
 * The code of this copy is then unmapped, and the next dlopen starts with a fresh copy. So all
 * descriptors and mappings are freed. At the end of a program nothing is freed, since other threads
 * may still count.
 */

#include <stdbool.h>

struct state;

/* Prepare to find out how this copy ends. Call once, when it begins to serve. */
void mperf_closing_begin(void);

/* In the last destructor: is this a dlclose, rather than the end of the program? */
bool mperf_closing(void);

/* Close and unmap all that the state has. Its sender has ended, and no thread runs in this copy. */
void mperf_closing_release(struct state *s);
